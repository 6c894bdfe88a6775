//! What the settings declare about models, and models pinned from the catalog and the settings.

use std::fmt;

use super::catalog::{Catalog, Entry, route_of};
use crate::domain::{
    model::{PinnedModel, Prices, Route},
    reasoning::Reasoning,
};

/// What the settings declare about an alias (`[models."alias"]`); the proxy's word applies to what is absent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Override {
    /// The provider, which decides the route unless that is declared too.
    pub provider: Option<String>,
    /// Its route.
    pub route: Option<Route>,
    /// Input window in tokens.
    pub max_input_tokens: Option<u64>,
    /// Output limit in tokens.
    pub max_output_tokens: Option<u64>,
    /// Whether it supports `tool_choice`.
    pub tool_choice: Option<bool>,
    /// Its reasoning effort.
    pub reasoning: Option<Reasoning>,
    /// Prices per token; each alone.
    pub prices: Prices,
}

/// Why an alias cannot be pinned: wrong configuration.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PinError {
    /// The proxy does not list it to this key.
    #[error("the proxy offers no model {alias:?} to this key; {}", instead)]
    Unknown {
        /// The requested alias.
        alias: String,
        /// Alternatives.
        instead: Instead,
    },
    /// Its window is unknown.
    #[error("the input window of {alias:?} is unknown: declare `max_input_tokens` under [models.{alias:?}]")]
    NoWindow {
        /// Which.
        alias: String,
    },
    /// Its provider is unknown.
    #[error("the provider of {alias:?} is unknown: declare `provider` or `route` under [models.{alias:?}]")]
    NoProvider {
        /// Which.
        alias: String,
    },
}

/// What a key may use instead of a model that it may not use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Instead {
    /// Similar names, the most similar first.
    Near(Vec<String>),
    /// If none is similar, every name, in the proxy's order.
    Any(Vec<String>),
}

impl fmt::Display for Instead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Near(names) => write!(f, "similar names: {}", names.join(", ")),
            Self::Any(names) => write!(f, "it may use {}", short_list(names)),
        }
    }
}

/// A short list of names of models.
#[must_use]
pub fn short_list(offered: &[String]) -> String {
    let named = offered.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match offered.len().checked_sub(LISTED) {
        _ if offered.is_empty() => "none at all".to_owned(),
        None | Some(0) => named,
        Some(more) => format!("{named} and {more} more"),
    }
}

/// How many names a message lists.
const LISTED: usize = 12;

impl Catalog {
    /// Applies what the configuration declares of an alias. One that the proxy does not list is added, since hidden
    /// aliases and names under a wildcard can be asked for too.
    pub fn apply(&mut self, alias: &str, declared: &Override) {
        let listed = self.entries.iter().any(|entry| entry.alias == alias);
        if !listed {
            let covering = self.find(alias).cloned().unwrap_or_default();
            let mut notes = covering.notes.clone();
            notes.push("not listed by the proxy under this name".to_owned());
            self.entries.push(Entry { alias: alias.to_owned(), notes, ..covering });
        }
        self.entry(alias).declare(declared);
    }

    /// The model behind an alias as a task pins it. `max_output` is the ceiling that the settings ask for; what the model
    /// may take to reason comes on top.
    ///
    /// # Errors
    /// The alias is unknown, or no one says its window or its provider.
    pub fn pin(&self, alias: &str, max_output: u64) -> Result<PinnedModel, PinError> {
        let named = alias.to_owned();
        let Some(entry) = self.find(alias) else {
            let near: Vec<String> = self.near(alias).into_iter().map(str::to_owned).collect();
            let instead = if near.is_empty() { Instead::Any(self.aliases()) } else { Instead::Near(near) };
            return Err(PinError::Unknown { alias: named, instead });
        };
        let Some(route) = entry.route else { return Err(PinError::NoProvider { alias: named }) };
        let Some(window) = entry.max_input_tokens else { return Err(PinError::NoWindow { alias: named }) };
        Ok(PinnedModel {
            alias: named,
            backing: entry.backing.clone().unwrap_or_else(|| alias.to_owned()),
            provider: entry.provider.clone().unwrap_or_else(|| "unknown".to_owned()),
            route,
            window,
            max_output: ceiling(max_output.saturating_add(entry.effort.tokens()), entry.max_output_tokens, window),
            tool_choice: entry.tool_choice == Some(true),
            reasoning: entry.effort,
            prices: entry.prices.clone(),
        })
    }
}

/// The ceiling asked for, within the model's limit, and such that the window keeps room for input: of a declared limit
/// at most half the window, and a third where no one declares one.
fn ceiling(wanted: u64, limit: Option<u64>, window: u64) -> u64 {
    let most = limit.map_or(window / 3, |limit| limit.min(window / 2));
    wanted.min(most).max(1)
}

impl Entry {
    fn declare(&mut self, declared: &Override) {
        let mut told = Vec::new();
        let mut said = |what: &'static str, is: bool| {
            if is {
                told.push(what);
            }
        };
        if let Some(provider) = &declared.provider {
            self.provider = Some(provider.clone());
            self.route = Some(route_of(provider));
        }
        self.route = declared.route.or(self.route);
        self.max_input_tokens = declared.max_input_tokens.or(self.max_input_tokens);
        self.max_output_tokens = declared.max_output_tokens.or(self.max_output_tokens);
        self.tool_choice = declared.tool_choice.or(self.tool_choice);
        self.effort = declared.reasoning.unwrap_or(self.effort);
        let prices = &declared.prices;
        self.prices = Prices {
            input: prices.input.or(self.prices.input),
            output: prices.output.or(self.prices.output),
            cache_read: prices.cache_read.or(self.prices.cache_read),
            cache_write: prices.cache_write.or(self.prices.cache_write),
        };
        said("provider", declared.provider.is_some());
        said("route", declared.route.is_some());
        said("max_input_tokens", declared.max_input_tokens.is_some());
        said("max_output_tokens", declared.max_output_tokens.is_some());
        said("tool_choice", declared.tool_choice.is_some());
        said("reasoning", declared.reasoning.is_some());
        said("prices", *prices != Prices::default());
        if !told.is_empty() {
            self.notes.push(format!("declared in your settings: {}", told.join(", ")));
        }
    }
}
