//! The roles that a delegation needs, and what is declared of their models.

use super::{Check, Verdict};
use crate::{
    adapters::litellm::Catalog,
    commands::{
        Error,
        proxy::{self, BadRole},
        settings::Settings,
    },
    domain::{
        model::{PinnedModel, Route},
        role::RoleName,
    },
};

/// The roles that a command of this nisse needs.
const NEEDED: [RoleName; 1] = [RoleName::Delegate];

/// Looks at every role that is needed, and at those that are set though nothing needs them yet.
pub(super) fn look(catalog: &Catalog, settings: &Settings, checks: &mut Vec<Check>) {
    for role in RoleName::ALL {
        let needed = NEEDED.contains(&role);
        if !needed && !settings.roles.contains_key(&role) {
            continue;
        }
        match proxy::pin(catalog, settings, role) {
            Ok(model) => {
                checks.push(Check::good(role.as_str(), described(&model)));
                declared(role, &model, catalog, checks);
            }
            Err(bad) => {
                let verdict = if needed { Verdict::BadConfiguration } else { Verdict::Warning };
                checks.push(super::bad(role.as_str(), verdict, &Error::Roles(vec![bad])));
            }
        }
    }
    if let Err(error @ Error::Unpriced { .. }) = proxy::pin_delegate(catalog, settings) {
        checks.push(super::bad("delegate", Verdict::BadConfiguration, &error));
    }
}

/// Names the needed roles that are not even set, where the proxy cannot be asked about any.
pub(super) fn look_without_catalog(settings: &Settings, checks: &mut Vec<Check>) {
    for role in NEEDED.into_iter().filter(|role| !settings.roles.contains_key(role)) {
        checks.push(super::bad(role.as_str(), Verdict::BadConfiguration, &Error::Roles(vec![BadRole::Unset(role)])));
    }
}

fn described(model: &PinnedModel) -> String {
    let PinnedModel { alias, backing, provider, route, window, max_output, .. } = model;
    format!("{alias} ({backing} of {provider}), {route}, window {window}, output up to {max_output}")
}

fn declared(role: RoleName, model: &PinnedModel, catalog: &Catalog, checks: &mut Vec<Check>) {
    let mut warn = |found: String, advice: &str| {
        checks.push(Check::new(role.as_str(), Verdict::Warning, found, advice));
    };
    let alias = &model.alias;
    if model.max_output >= model.window {
        warn(
            format!("an output ceiling of {} leaves nothing of {alias}'s window", model.max_output),
            "lower max_output_tokens, or declare the window if it is larger",
        );
    }
    if let Some(entry) = catalog.find(alias) {
        let drives_tools = match role {
            RoleName::Planner | RoleName::Executor | RoleName::Delegate => true,
            RoleName::Consultant | RoleName::Classifier => false,
        };
        if drives_tools && entry.tools == Some(false) {
            warn(format!("{alias} is declared to take no tools"), "name another model, if it proves true");
        }
        if !entry.fallbacks.is_empty() {
            let to = entry.fallbacks.join(", ");
            let advice = "know that a delegation accepts the model that it asked for, and no other";
            warn(format!("the proxy falls back from {alias} to {to}"), advice);
        }
    }
    if role == RoleName::Delegate && model.route == Route::Normalized {
        warn(
            format!("{alias} is spoken to in the normalized way, which loses reasoning and cache marks"),
            "nothing, unless its provider is anthropic: then declare that",
        );
    }
}
