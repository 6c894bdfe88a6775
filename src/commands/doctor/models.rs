//! The roles that a delegation needs, and what is declared about their models.

use std::path::Path;

use super::{Check, Verdict};
use crate::{
    adapters::litellm::Catalog,
    agent::{first_request, roles},
    commands::{
        Error,
        bad_role::BadRole,
        proxy,
        settings::{Fallback, Settings},
    },
    domain::{
        model::{PinnedModel, Route},
        reasoning::Reasoning,
        role::RoleName,
    },
    repo::workspace,
};

/// The roles that a command of this nisse needs.
const NEEDED: [RoleName; 1] = [RoleName::Delegate];

/// Checks every needed role, and those that are set although nothing needs them yet. `root` is where a run would start, if
/// known.
pub(super) fn check_roles(catalog: &Catalog, settings: &Settings, root: Option<&Path>, checks: &mut Vec<Check>) {
    for role in RoleName::ALL {
        let needed = NEEDED.contains(&role);
        if !needed && !settings.roles.contains_key(&role) {
            continue;
        }
        match proxy::pin(catalog, settings, role) {
            Ok(model) => {
                checks.push(match too_small(role, &model, root) {
                    Some(error) => super::bad(role.as_str(), Verdict::BadConfiguration, &error),
                    None => Check::good(role.as_str(), described(&model)),
                });
                declared(role, &model, catalog, settings, checks);
            }
            Err(bad) => {
                let error = proxy::unusable(catalog, settings, bad);
                let verdict = match &error {
                    _ if !needed => Verdict::Warning,
                    Error::Catalog { source, .. } => super::blame(source.trouble),
                    _ => Verdict::BadConfiguration,
                };
                checks.push(super::bad(role.as_str(), verdict, &error));
            }
        }
    }
    if let Err(error @ Error::Unpriced { .. }) = proxy::pin_delegate(catalog, settings) {
        checks.push(super::bad("delegate", Verdict::BadConfiguration, &error));
    }
}

/// Why the first request of any task here does not fit the model's window, if it does not.
fn too_small(role: RoleName, model: &PinnedModel, root: Option<&Path>) -> Option<Error> {
    let role = match role {
        RoleName::Delegate => roles::delegate(),
        RoleName::Planner | RoleName::Executor | RoleName::Consultant | RoleName::Classifier => return None,
    };
    let workspace = || root.map(|root| workspace::describe(root).text).unwrap_or_default();
    first_request::too_small(&role, &roles::wording(), model, "", &[], workspace).map(Error::Window)
}

/// Reports needed roles that are not set, if the proxy cannot be asked about them.
pub(super) fn check_roles_without_catalog(settings: &Settings, checks: &mut Vec<Check>) {
    for role in NEEDED.into_iter().filter(|role| !settings.roles.contains_key(role)) {
        checks.push(super::bad(role.as_str(), Verdict::BadConfiguration, &Error::Roles(vec![BadRole::Unset(role)])));
    }
}

fn described(model: &PinnedModel) -> String {
    let PinnedModel { alias, backing, provider, route, window, max_output, reasoning, .. } = model;
    let effort = if *reasoning == Reasoning::Off { String::new() } else { format!(", reasoning {reasoning}") };
    format!("{alias} ({backing} of {provider}), {route}, window {window}, output up to {max_output}{effort}")
}

fn declared(role: RoleName, model: &PinnedModel, catalog: &Catalog, settings: &Settings, checks: &mut Vec<Check>) {
    let mut warn = |found: String, advice: &str| {
        // of one model for several roles it is told once
        if !checks.iter().any(|check| check.found == found) {
            checks.push(Check::new(role.as_str(), Verdict::Warning, found, advice));
        }
    };
    let alias = &model.alias;
    if let Some(entry) = catalog.find(alias) {
        let wanted = settings.max_output_tokens.value;
        let wanted = entry.max_output_tokens.map_or(wanted, |limit| wanted.min(limit));
        if model.max_output < wanted {
            let lowered = model.max_output;
            let found =
                format!("an output limit of {wanted} takes too much of the window of {alias}; nisse uses {lowered}");
            warn(found, "declare its window and output limit if they are larger");
        }
        if model.reasoning != Reasoning::Off && entry.reasoning == Some(false) {
            warn(format!("{alias} is declared without reasoning"), "if that is true, set no reasoning for it");
        }
        if model.route == Route::Native
            && model.reasoning != Reasoning::Off
            && model.reasoning.budget(model.max_output).is_none()
        {
            warn(
                format!("an output limit of {} leaves {alias} no room to reason", model.max_output),
                "raise max_output_tokens, or set no reasoning for it",
            );
        }
        let drives_tools = match role {
            RoleName::Planner | RoleName::Executor | RoleName::Delegate => true,
            RoleName::Consultant | RoleName::Classifier => false,
        };
        if drives_tools && entry.tools == Some(false) {
            warn(format!("{alias} is declared without tool support"), "if that is true, choose another model");
        }
        if !entry.fallbacks.is_empty() {
            let to = entry.fallbacks.join(", ");
            let advice = match (role, settings.delegate.fallback.value) {
                (RoleName::Delegate, Fallback::Allow) => {
                    "be aware that tasks may go there: delegate.fallback allows it"
                }
                (RoleName::Delegate, Fallback::Refuse) => {
                    "nothing to do: a task refuses fallbacks unless delegate.fallback allows them"
                }
                (RoleName::Planner | RoleName::Executor | RoleName::Consultant | RoleName::Classifier, _) => {
                    "be aware that another model may answer"
                }
            };
            warn(format!("the proxy falls back from {alias} to {to}"), advice);
        }
    }
    // of any other model there is nothing to be done about it
    if role == RoleName::Delegate && model.route == Route::Normalized && looks_like_anthropics(model) {
        warn(
            format!("{alias} uses the normalized route, which loses reasoning and cache marks"),
            "if its provider is \"anthropic\", declare that",
        );
    }
}

/// A model that may need the native route, though its provider is not declared.
fn looks_like_anthropics(model: &PinnedModel) -> bool {
    let named = [&model.alias, &model.backing].map(|name| name.to_lowercase());
    named.iter().any(|name| name.contains("claude") || name.contains("anthropic"))
}
