//! What the proxy offers: `GET /model/info` merged with `GET /v1/models`.
//!
//! Either list may be empty or hold pseudo-models. Null and absent mean unknown, never false and never a guess. An
//! alias with several deployments has the least of their limits, the highest of their prices and only the abilities
//! that all of them have, with a note that they differ. Names are never interpreted.

use std::collections::HashMap;

use serde_json::Value;

use super::json;
use crate::{
    domain::{
        model::{Prices, Route},
        money::Money,
        reasoning::Reasoning,
    },
    ports::llm,
};

/// Names that the proxy lists for team keys and that are not models.
const PSEUDO: [&str; 3] = ["all-team-models", "all-proxy-models", "no-default-models"];

/// How similar a name must be to be suggested (Jaro-Winkler, 0 to 1).
const NEAR: f64 = 0.8;

/// What the proxy offers to this key.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Catalog {
    /// The aliases, in the proxy's order.
    pub entries: Vec<Entry>,
    /// What a reader should know of the catalog as a whole.
    pub notes: Vec<String>,
    /// Why the information of `/model/info` is missing, if the proxy failed and may answer later.
    pub outage: Option<llm::Error>,
}

/// An alias.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Entry {
    /// The name to ask for.
    pub alias: String,
    /// The backing model (`anthropic/claude-…`), of the first deployment; unknown where only `/v1/models` lists it.
    pub backing: Option<String>,
    /// The provider; of deployments that differ all, joined by `+`.
    pub provider: Option<String>,
    /// Its route: an override, else by provider.
    pub route: Option<Route>,
    /// Input window in tokens.
    pub max_input_tokens: Option<u64>,
    /// Output limit in tokens.
    pub max_output_tokens: Option<u64>,
    /// Supports tools (`supports_function_calling`).
    pub tools: Option<bool>,
    /// Supports `tool_choice`.
    pub tool_choice: Option<bool>,
    /// Makes several calls in one reply.
    pub parallel: Option<bool>,
    /// Reasons before it answers.
    pub reasoning: Option<bool>,
    /// Its declared reasoning effort.
    pub effort: Reasoning,
    /// What it is for, as the proxy says (`chat`, `embedding`).
    pub mode: Option<String>,
    /// Prices per token.
    pub prices: Prices,
    /// Aliases that the proxy falls back to, if it says.
    pub fallbacks: Vec<String>,
    /// Its deployments.
    pub deployments: Vec<Deployment>,
    /// What a reader should know: differences between deployments, overrides.
    pub notes: Vec<String>,
}

/// One of the deployments behind an alias.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Deployment {
    /// Its id (`x-litellm-model-id`); the entries that a wildcard expands to share one.
    pub id: Option<String>,
    /// Its backing model.
    pub backing: Option<String>,
    /// Its provider.
    pub provider: Option<String>,
}

impl Catalog {
    /// Reads the answers of `/model/info` and `/v1/models`; either may be null.
    #[must_use]
    pub fn new(info: &Value, models: &Value) -> Self {
        let mut catalog = Self::default();
        for described in list(info) {
            let Some(entry) = deployment(described) else { continue };
            match catalog.entries.iter_mut().find(|known| known.alias == entry.alias) {
                Some(known) => known.merge(entry),
                None => catalog.entries.push(entry),
            }
        }
        for listed in list(models) {
            let Some(alias) = listed.get("id").and_then(Value::as_str).filter(|id| is_model(id)) else { continue };
            let limit = |name: &str| listed.get(name).and_then(json::whole_number).filter(|n| *n > 0);
            let entry = catalog.entry(alias);
            // limits of the whole alias: they only fill in what no deployment says
            entry.max_input_tokens = entry.max_input_tokens.or_else(|| limit("max_input_tokens"));
            entry.max_output_tokens = entry.max_output_tokens.or_else(|| limit("max_output_tokens"));
            entry.mode = entry.mode.take().or_else(|| text(listed, "mode"));
        }
        catalog
    }

    /// Reads an answer of `/v1/models?include_metadata=true&fallback_type=…`. Proxies without this feature
    /// answer with the plain list, which adds nothing.
    pub fn add_fallbacks(&mut self, models: &Value) {
        for listed in list(models) {
            let Some(entry) = text(listed, "id").and_then(|id| self.entries.iter_mut().find(|e| e.alias == id)) else {
                continue;
            };
            let told = listed.pointer("/metadata/fallbacks").and_then(Value::as_array);
            for fallback in told.into_iter().flatten().filter_map(Value::as_str) {
                if !entry.fallbacks.iter().any(|known| known == fallback) {
                    entry.fallbacks.push(fallback.to_owned());
                }
            }
        }
    }

    /// The entry of an alias: its own, else that of the narrowest wildcard that covers it (`openai/*`).
    #[must_use]
    pub fn find(&self, alias: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.alias == alias).or_else(|| {
            self.entries
                .iter()
                .filter(|entry| {
                    let covers = |(before, after): (&str, &str)| {
                        alias.len() > before.len() + after.len() && alias.starts_with(before) && alias.ends_with(after)
                    };
                    entry.alias.split_once('*').is_some_and(covers)
                })
                .max_by_key(|entry| entry.alias.len())
        })
    }

    /// Every alias, in the proxy's order.
    #[must_use]
    pub fn aliases(&self) -> Vec<String> {
        self.entries.iter().map(|entry| entry.alias.clone()).collect()
    }

    /// Up to three aliases like an unknown one, the nearest first.
    #[must_use]
    pub fn near(&self, alias: &str) -> Vec<&str> {
        let wanted = alias.to_lowercase();
        let mut near: Vec<(f64, &str)> = self
            .entries
            .iter()
            .map(|entry| {
                let known = entry.alias.to_lowercase();
                // `claude-x` for `anthropic/claude-x`
                let tail = known.rsplit('/').next().unwrap_or_default();
                let alike = strsim::jaro_winkler(&wanted, &known).max(strsim::jaro_winkler(&wanted, tail) * 0.99);
                (alike, entry.alias.as_str())
            })
            .filter(|(alike, _)| *alike >= NEAR)
            .collect();
        near.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        near.into_iter().take(3).map(|(_, alias)| alias).collect()
    }

    /// Backing models by the ids of their deployments; an id that several share says nothing and is left out.
    #[must_use]
    pub fn backings(&self) -> HashMap<String, String> {
        let mut by_id: HashMap<String, Option<String>> = HashMap::new();
        for deployment in self.entries.iter().flat_map(|entry| &entry.deployments) {
            let (Some(id), Some(backing)) = (&deployment.id, &deployment.backing) else { continue };
            by_id
                .entry(id.clone())
                .and_modify(|known| *known = known.take().filter(|known| known == backing))
                .or_insert_with(|| Some(backing.clone()));
        }
        by_id.into_iter().filter_map(|(id, backing)| Some((id, backing?))).collect()
    }

    /// The entry of exactly this alias, made if there is none.
    pub(super) fn entry(&mut self, alias: &str) -> &mut Entry {
        let at = self.entries.iter().position(|entry| entry.alias == alias).unwrap_or_else(|| {
            self.entries.push(Entry { alias: alias.to_owned(), ..Entry::default() });
            self.entries.len() - 1
        });
        &mut self.entries[at]
    }
}

impl Entry {
    /// Adds another deployment of the same alias.
    fn merge(&mut self, other: Self) {
        // the same deployment listed twice adds nothing
        if other.deployments.iter().all(|deployment| deployment.id.is_some() && self.deployments.contains(deployment)) {
            return;
        }
        let mut differ = Vec::new();
        let mut compare = |what: &'static str, same: bool| {
            if !same {
                differ.push(what);
            }
        };
        compare("backing model", self.backing == other.backing);
        compare("provider", self.provider == other.provider);
        compare("window", self.max_input_tokens == other.max_input_tokens);
        compare("output limit", self.max_output_tokens == other.max_output_tokens);
        let abilities = |e: &Self| (e.tools, e.tool_choice, e.parallel, e.reasoning);
        compare("abilities", abilities(self) == abilities(&other));
        compare("prices", self.prices == other.prices);

        let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        self.max_input_tokens = least(self.max_input_tokens, other.max_input_tokens);
        self.max_output_tokens = least(self.max_output_tokens, other.max_output_tokens);
        self.tools = both(self.tools, other.tools);
        self.tool_choice = both(self.tool_choice, other.tool_choice);
        self.parallel = both(self.parallel, other.parallel);
        self.reasoning = both(self.reasoning, other.reasoning);
        // a price that one of them does not say is unknown for the alias
        let highest = |a: Option<Money>, b: Option<Money>| a.zip(b).map(|(a, b)| a.max(b));
        self.prices = Prices {
            input: highest(self.prices.input, other.prices.input),
            output: highest(self.prices.output, other.prices.output),
            cache_read: highest(self.prices.cache_read, other.prices.cache_read),
            cache_write: highest(self.prices.cache_write, other.prices.cache_write),
        };
        self.mode = self.mode.take().or(other.mode);
        self.deployments.extend(other.deployments);
        self.provider = joined_providers(&self.deployments);
        self.route = self.provider.as_deref().map(route_of);
        self.notes.retain(|note| !note.starts_with(DIFFER));
        if !differ.is_empty() {
            self.notes.push(format!("{DIFFER} {} deployments differ in {}", self.deployments.len(), differ.join(", ")));
        }
    }
}

const DIFFER: &str = "its";

/// Yes if both can, no if one cannot, otherwise unknown.
fn both(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        (None, _) | (_, None) => None,
    }
}

/// All providers of an alias; none if one of them is unknown.
fn joined_providers(deployments: &[Deployment]) -> Option<String> {
    let mut providers: Vec<&str> = Vec::new();
    for deployment in deployments {
        let provider = deployment.provider.as_deref()?;
        if !providers.contains(&provider) {
            providers.push(provider);
        }
    }
    (!providers.is_empty()).then(|| providers.join("+"))
}

/// The native protocol is one vendor's; all support the normalized one, so it also works for a mixture.
pub(super) fn route_of(provider: &str) -> Route {
    if provider == "anthropic" { Route::Native } else { Route::Normalized }
}

fn deployment(described: &Value) -> Option<Entry> {
    let alias = text(described, "model_name").filter(|name| is_model(name))?;
    let (params, info) = (described.get("litellm_params")?, described.get("model_info").unwrap_or(&Value::Null));
    let backing = text(params, "model");
    let provider = text(params, "custom_llm_provider").or_else(|| text(info, "litellm_provider")).or_else(|| {
        let (prefix, _) = backing.as_deref()?.split_once('/')?;
        Some(prefix.to_owned())
    });
    let limit = |name: &str| info.get(name).and_then(json::whole_number).filter(|n| *n > 0);
    let ability = |name: &str| info.get(name).and_then(Value::as_bool);
    let price = |name: &str| info.get(name).and_then(json::number).and_then(Money::from_usd);
    Some(Entry {
        alias,
        route: provider.as_deref().map(route_of),
        max_input_tokens: limit("max_input_tokens"),
        max_output_tokens: limit("max_output_tokens"),
        tools: ability("supports_function_calling"),
        tool_choice: ability("supports_tool_choice"),
        parallel: ability("supports_parallel_function_calling"),
        reasoning: ability("supports_reasoning"),
        effort: Reasoning::Off,
        mode: text(info, "mode"),
        prices: Prices {
            input: price("input_cost_per_token"),
            output: price("output_cost_per_token"),
            cache_read: price("cache_read_input_token_cost"),
            cache_write: price("cache_creation_input_token_cost"),
        },
        fallbacks: Vec::new(),
        deployments: vec![Deployment { id: text(info, "id"), backing: backing.clone(), provider: provider.clone() }],
        notes: Vec::new(),
        backing,
        provider,
    })
}

fn list(answer: &Value) -> impl Iterator<Item = &Value> {
    answer.get("data").and_then(Value::as_array).into_iter().flatten()
}

fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn is_model(name: &str) -> bool {
    // a lone wildcard covers whatever a key may ask for, and says nothing of any of it
    !name.is_empty() && name != "*" && !PSEUDO.contains(&name)
}
