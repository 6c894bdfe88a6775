//! `nisse models`: the catalog as this key sees it, with the roles that use it. Unknown stays unknown.

use serde::Serialize;

use super::{
    Error, proxy,
    settings::{Environment, Settings},
};
use crate::{
    adapters::litellm::{Catalog, Entry},
    domain::{model::Route, money::Money, reasoning::Reasoning, role::RoleName},
};

/// The catalog, for a table or for JSON.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The schema's version.
    v: u32,
    /// What this document is.
    r#type: &'static str,
    /// The proxy's address.
    pub proxy: String,
    /// What the aliases were picked by, if they were.
    pub filter: Option<String>,
    /// One for each alias that was picked, in the proxy's order.
    pub models: Vec<Row>,
    /// Roles whose alias the proxy does not offer.
    pub missing: Vec<Missing>,
    /// What a reader should know of the whole.
    pub notes: Vec<String>,
}

/// An alias. What no one says is absent, never a guess.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// The name to ask for.
    pub alias: String,
    /// The model behind it.
    pub backing: Option<String>,
    /// The provider.
    pub provider: Option<String>,
    /// What it is for: `chat`, `embedding` and so on.
    pub mode: Option<String>,
    /// How it is spoken to.
    pub route: Option<Route>,
    /// The input window in tokens.
    pub max_input_tokens: Option<u64>,
    /// The output limit in tokens.
    pub max_output_tokens: Option<u64>,
    /// It takes tools.
    pub tools: Option<bool>,
    /// It obeys `tool_choice`.
    pub tool_choice: Option<bool>,
    /// It makes several calls in one reply.
    pub parallel_calls: Option<bool>,
    /// It can reason before it answers.
    pub reasoning: Option<bool>,
    /// How much it is asked to, as the settings say.
    pub reasoning_effort: Reasoning,
    /// US dollars for an input token.
    pub input_cost_per_token: Option<f64>,
    /// US dollars for an output token.
    pub output_cost_per_token: Option<f64>,
    /// US dollars for an input token read from a cache.
    pub cache_read_cost_per_token: Option<f64>,
    /// US dollars for an input token written to a cache.
    pub cache_write_cost_per_token: Option<f64>,
    /// Aliases that the proxy falls back to, where it tells.
    pub fallbacks: Vec<String>,
    /// The roles that use it.
    pub roles: Vec<RoleName>,
    /// What a reader should know of it.
    pub notes: Vec<String>,
}

/// A role whose alias the proxy does not offer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Missing {
    /// The role.
    pub role: RoleName,
    /// What it is set to.
    pub alias: String,
    /// Where that is set.
    pub source: String,
    /// Aliases like it.
    pub near: Vec<String>,
}

/// Asks the proxy what it offers; of that, the aliases that have `filter` in their name, their model's or its provider's.
///
/// # Errors
/// The proxy cannot be reached, or not with these settings.
pub async fn models(settings: &Settings, environment: &Environment, filter: Option<&str>) -> Result<Report, Error> {
    let proxy = proxy::connect(settings, environment)?;
    let catalog = proxy::catalog(&proxy, settings, proxy::LOOK).await?;
    Ok(report(settings.base_url()?, &catalog, settings, filter))
}

fn report(address: &str, catalog: &Catalog, settings: &Settings, filter: Option<&str>) -> Report {
    let mut missing = Vec::new();
    let mut used: Vec<(RoleName, &Entry)> = Vec::new();
    for (role, alias) in &settings.roles {
        match catalog.find(&alias.value) {
            Some(entry) => used.push((*role, entry)),
            None => missing.push(Missing {
                role: *role,
                alias: alias.value.clone(),
                source: alias.source.to_string(),
                near: catalog.near(&alias.value).into_iter().map(str::to_owned).collect(),
            }),
        }
    }
    let roles =
        |entry: &Entry| used.iter().filter(|(_, used)| used.alias == entry.alias).map(|(role, _)| *role).collect();
    let rows = catalog.entries.iter().map(|entry| Row::new(entry, roles(entry)));
    Report {
        v: 1,
        r#type: "models",
        proxy: address.to_owned(),
        filter: filter.map(str::to_owned),
        models: rows.filter(|row| filter.is_none_or(|filter| row.has(filter))).collect(),
        missing,
        notes: catalog.notes.clone(),
    }
}

impl Row {
    /// Whether nothing says that it could not do a task. What a role names is always told.
    #[must_use]
    pub fn could_do_a_task(&self) -> bool {
        let chats = self.mode.as_deref().is_none_or(|mode| mode == "chat");
        !self.roles.is_empty() || (chats && self.tools != Some(false))
    }

    fn has(&self, filter: &str) -> bool {
        let names = [Some(&self.alias), self.backing.as_ref(), self.provider.as_ref()];
        names.into_iter().flatten().any(|name| name.to_lowercase().contains(&filter.to_lowercase()))
    }

    fn new(entry: &Entry, roles: Vec<RoleName>) -> Self {
        let mut notes = entry.notes.clone();
        // a model that embeds or draws is listed, but nothing here could use it
        if let Some(mode) = entry.mode.as_deref().filter(|mode| *mode != "chat") {
            notes.push(format!("its mode is {mode}"));
        }
        Self {
            alias: entry.alias.clone(),
            backing: entry.backing.clone(),
            provider: entry.provider.clone(),
            mode: entry.mode.clone(),
            route: entry.route,
            max_input_tokens: entry.max_input_tokens,
            max_output_tokens: entry.max_output_tokens,
            tools: entry.tools,
            tool_choice: entry.tool_choice,
            parallel_calls: entry.parallel,
            reasoning: entry.reasoning,
            reasoning_effort: entry.effort,
            input_cost_per_token: entry.prices.input.map(Money::usd),
            output_cost_per_token: entry.prices.output.map(Money::usd),
            cache_read_cost_per_token: entry.prices.cache_read.map(Money::usd),
            cache_write_cost_per_token: entry.prices.cache_write.map(Money::usd),
            fallbacks: entry.fallbacks.clone(),
            roles,
            notes,
        }
    }
}
