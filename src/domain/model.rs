//! Models as a task sees them: the pinned model, its route, usage and prices.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{money::Money, reasoning::Reasoning};

/// The protocol of requests to a model.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Route {
    /// `POST /v1/chat/completions`.
    Normalized,
    /// `POST /v1/messages`: thinking blocks, signatures and cache marks arrive intact.
    Native,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Normalized => "normalized",
            Self::Native => "native",
        })
    }
}

/// Prices per token; none if the catalog does not say.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Prices {
    /// An input token.
    pub input: Option<Money>,
    /// An output token.
    pub output: Option<Money>,
    /// An input token read from the cache; if none, the input price applies.
    pub cache_read: Option<Money>,
    /// An input token written to the cache; if none, the input price applies.
    pub cache_write: Option<Money>,
}

impl Prices {
    /// The most that this much input may cost: some of it may be written to a cache.
    #[must_use]
    pub fn of_input(&self, tokens: u64) -> Option<Money> {
        let dearest = self.input?.max(self.cache_write.unwrap_or_default());
        Some(Money(dearest.0.saturating_mul(tokens)))
    }

    /// The cost of `usage`, or none if a price is missing.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> Option<Money> {
        let (input, output) = (self.input?, self.output?);
        let plain = usage.input.saturating_sub(usage.cache_read).saturating_sub(usage.cache_write);
        let sum = [
            (plain, input),
            (usage.cache_read, self.cache_read.unwrap_or(input)),
            (usage.cache_write, self.cache_write.unwrap_or(input)),
            (usage.output, output),
        ]
        .into_iter()
        .fold(0u64, |sum, (tokens, price)| sum.saturating_add(tokens.saturating_mul(price.0)));
        Some(Money(sum))
    }
}

/// A model as pinned in a task's first event; used to the end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PinnedModel {
    /// The proxy's name for it.
    pub alias: String,
    /// The model behind the alias, according to the catalog (`anthropic/claude-…`).
    pub backing: String,
    /// The provider, according to the catalog or the settings.
    pub provider: String,
    /// The route of its requests.
    pub route: Route,
    /// Input window in tokens.
    pub window: u64,
    /// The most output tokens that a request asks for, reasoning included.
    pub max_output: u64,
    /// Whether the proxy declares that `tool_choice` works.
    pub tool_choice: bool,
    /// Its reasoning effort.
    pub reasoning: Reasoning,
    /// Prices, if known.
    pub prices: Prices,
}

/// Tokens of one reply, or of a task. The same meaning on both routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// All input, cached or not.
    pub input: u64,
    /// All output, reasoning included.
    pub output: u64,
    /// The part of the input that was read from a cache.
    pub cache_read: u64,
    /// The part of the input that was written to a cache.
    pub cache_write: u64,
}

impl Usage {
    /// What the token cap counts.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Adds another usage to this one.
    pub fn add(&mut self, other: &Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
    }

    /// The charge for a request whose usage is unknown: its estimated input and an eighth of its output limit.
    #[must_use]
    pub fn estimate(estimated_input: u64, max_output: u64) -> Self {
        Self { input: estimated_input, output: max_output / 8, ..Self::default() }
    }
}

/// Which model answered, as the proxy's headers say (the body's `model` is wrong after a fallback).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AnsweredBy {
    /// The alias that answered (`x-litellm-model-group`), else the alias asked for.
    pub alias: String,
    /// The backing model that answered, else the pinned one.
    pub backing: String,
    /// Whether the proxy fell back to another model.
    pub fallback: bool,
    /// The prices of that other model, according to the catalog then; none if the pinned model answered.
    pub prices: Option<Prices>,
}
