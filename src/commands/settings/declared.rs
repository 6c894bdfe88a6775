//! `[models."alias"]`: what the proxy does not say about a model, or says wrongly.

use super::{
    given::Given,
    source::{Source, Sourced},
};
use crate::domain::{model::Route, money::Money, reasoning::Reasoning};

/// What is declared about one alias; each entry overrides the proxy's.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Declared {
    /// The provider, as the proxy spells it (`anthropic`, `openai`).
    pub provider: Option<Sourced<String>>,
    /// The protocol, whatever the provider.
    pub route: Option<Sourced<Route>>,
    /// The input window in tokens.
    pub max_input_tokens: Option<Sourced<u64>>,
    /// The most output tokens of a reply.
    pub max_output_tokens: Option<Sourced<u64>>,
    /// Whether `tool_choice` works.
    pub tool_choice: Option<Sourced<bool>>,
    /// Its reasoning effort.
    pub reasoning: Option<Sourced<Reasoning>>,
    /// The price of an input token.
    pub input_cost_per_token: Option<Sourced<Money>>,
    /// The price of an output token.
    pub output_cost_per_token: Option<Sourced<Money>>,
}

/// A key below `models."alias"`.
pub(super) struct ModelKey {
    pub(super) name: &'static str,
    /// A repository's `nisse.toml` may set it: limits, but nothing that hides costs or moves traffic.
    pub(super) project: bool,
    pub(super) set: fn(&mut Declared, &Given<'_>) -> Result<(), String>,
    show: fn(&Declared) -> Option<(String, &Source)>,
}

fn put<T>(slot: &mut Option<Sourced<T>>, value: Result<T, String>, given: &Given<'_>) -> Result<(), String> {
    *slot = Some(Sourced { value: value?, source: given.source.clone() });
    Ok(())
}

fn value_and_source<T: ToString>(slot: Option<&Sourced<T>>) -> Option<(String, &Source)> {
    slot.map(|sourced| (sourced.value.to_string(), &sourced.source))
}

/// A price as it was declared: per token.
fn shown_price(slot: Option<&Sourced<Money>>) -> Option<(String, &Source)> {
    slot.map(|price| (format!("{} USD", price.value.usd()), &price.source))
}

/// All keys of a model.
pub(super) const MODEL_KEYS: &[ModelKey] = &[
    ModelKey {
        name: "provider",
        project: false,
        set: |d, g| put(&mut d.provider, g.text(), g),
        show: |d| value_and_source(d.provider.as_ref()),
    },
    ModelKey {
        name: "route",
        project: false,
        set: |d, g| put(&mut d.route, g.route(), g),
        show: |d| value_and_source(d.route.as_ref()),
    },
    ModelKey {
        name: "max_input_tokens",
        project: true,
        set: |d, g| put(&mut d.max_input_tokens, g.count(), g),
        show: |d| value_and_source(d.max_input_tokens.as_ref()),
    },
    ModelKey {
        name: "max_output_tokens",
        project: true,
        set: |d, g| put(&mut d.max_output_tokens, g.count(), g),
        show: |d| value_and_source(d.max_output_tokens.as_ref()),
    },
    ModelKey {
        name: "tool_choice",
        project: false,
        set: |d, g| put(&mut d.tool_choice, g.switch(), g),
        show: |d| value_and_source(d.tool_choice.as_ref()),
    },
    ModelKey {
        name: "reasoning",
        project: false,
        set: |d, g| put(&mut d.reasoning, g.reasoning(), g),
        show: |d| value_and_source(d.reasoning.as_ref()),
    },
    ModelKey {
        name: "input_cost_per_token",
        project: false,
        set: |d, g| put(&mut d.input_cost_per_token, g.price(), g),
        show: |d| shown_price(d.input_cost_per_token.as_ref()),
    },
    ModelKey {
        name: "output_cost_per_token",
        project: false,
        set: |d, g| put(&mut d.output_cost_per_token, g.price(), g),
        show: |d| shown_price(d.output_cost_per_token.as_ref()),
    },
];

impl Declared {
    /// What is declared: key, value, source.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'static str, String, &Source)> {
        MODEL_KEYS.iter().filter_map(|key| (key.show)(self).map(|(value, source)| (key.name, value, source)))
    }
}
