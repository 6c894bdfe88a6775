//! The configured proxy, and the models of the roles.

use std::time::Duration;

use super::{
    Error,
    bad_role::BadRole,
    settings::{Declared, Environment, Settings, Sourced},
};
use crate::{
    adapters::litellm::{self, Catalog, Override, PinError, Proxy},
    agent,
    domain::{
        model::{PinnedModel, Prices},
        role::RoleName,
        upstream::Trouble,
    },
};

/// A client for the proxy that the settings name. Fetches the token; sends nothing yet.
///
/// # Errors
/// No address, no token, or neither can be used.
pub fn connect(settings: &Settings, environment: &Environment) -> Result<Proxy, Error> {
    let address = settings.base_url()?;
    let mut named = litellm::Settings::new(address, settings.token(environment)?);
    named.first_byte = settings.proxy.first_byte.value;
    named.idle = settings.proxy.idle.value;
    named.extra_ca.clone_from(&settings.proxy.ca_file.value);
    named.through = http_proxy(address, environment);
    Ok(Proxy::new(named)?)
}

/// The HTTP proxy that the environment names for an address, without a name and password in it.
fn http_proxy(address: &str, environment: &Environment) -> Option<String> {
    let for_scheme = if address.starts_with("https:") { "HTTPS_PROXY" } else { "HTTP_PROXY" };
    let named = [for_scheme, "ALL_PROXY"].into_iter().flat_map(|name| [name.to_owned(), name.to_lowercase()]);
    named.into_iter().find_map(|name| {
        let value = environment.get(&name)?.to_str().filter(|value| !value.trim().is_empty())?;
        let (scheme, rest) = value.split_once("://").unwrap_or(("http", value));
        let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
        Some(format!("{name}={scheme}://{place}"))
    })
}

/// How long a command that only shows something waits for the proxy.
pub const LOOK: Duration = Duration::from_secs(10);
/// How long a new task waits for it; a real proxy took 0.3 s for 876 kB.
pub const BEGIN: Duration = Duration::from_mins(1);

/// What the proxy offers, with what the settings declare over it. An answer may take so long.
///
/// # Errors
/// [`Error::Catalog`] if the proxy does not say.
pub async fn catalog(proxy: &Proxy, settings: &Settings, within: Duration) -> Result<Catalog, Error> {
    let address = settings.base_url()?.to_owned();
    let mut catalog = proxy.catalog(within).await.map_err(|source| Error::Catalog { address, source })?;
    declare(&mut catalog, settings);
    Ok(catalog)
}

fn declare(catalog: &mut Catalog, settings: &Settings) {
    for (alias, declared) in &settings.models {
        catalog.apply(alias, &declared.into());
    }
}

/// `error` with the models that the key may use now, where the proxy refused one in the middle of a task.
pub async fn with_offers(proxy: &Proxy, error: Error) -> Error {
    let refused = matches!(&error, Error::Cut { source, .. } if matches!(
        **source,
        agent::Error::Upstream { trouble: Trouble::ModelDenied | Trouble::ModelUnknown, .. }
    ));
    match error {
        Error::Cut { task, source, .. } if refused => {
            // a proxy that no longer says what there is has given the better error already
            let offered = proxy.catalog(BEGIN).await.ok().map(|catalog| litellm::short_list(&catalog.aliases()));
            Error::Cut { task, source, offered }
        }
        error => error,
    }
}

/// The model of the delegate, the only one that a delegation needs.
///
/// # Errors
/// [`Error::Roles`] if it has none, and [`Error::Unpriced`] where a cost cap is set and nothing could be counted against it.
pub fn pin_delegate(catalog: &Catalog, settings: &Settings) -> Result<PinnedModel, Error> {
    let model = pin(catalog, settings, RoleName::Delegate).map_err(|bad| unusable(catalog, settings, bad))?;
    let unpriced = model.prices.input.is_none() || model.prices.output.is_none();
    if unpriced && settings.delegate.max_cost.value.is_some() {
        return Err(Error::Unpriced { alias: model.alias });
    }
    Ok(model)
}

/// The model of a role, as a task pins it.
///
/// # Errors
/// No one named one, or it cannot be used.
pub fn pin(catalog: &Catalog, settings: &Settings, role: RoleName) -> Result<PinnedModel, BadRole> {
    let Some(alias) = settings.roles.get(&role) else { return Err(BadRole::Unset(role)) };
    catalog.pin(&alias.value, settings.max_output_tokens.value).map_err(|trouble| BadRole::Unusable {
        role,
        alias: alias.clone(),
        trouble,
    })
}

/// Why a role cannot be used: no one has to declare what the proxy will tell again once its trouble is over.
#[must_use]
pub fn unusable(catalog: &Catalog, settings: &Settings, bad: BadRole) -> Error {
    match (&bad, &catalog.outage) {
        (BadRole::Unusable { trouble: PinError::NoWindow { .. } | PinError::NoProvider { .. }, .. }, Some(outage)) => {
            let address = settings.base_url().unwrap_or_default().to_owned();
            Error::Catalog { address, source: outage.clone() }
        }
        _ => Error::Roles(vec![bad]),
    }
}

impl From<&Declared> for Override {
    fn from(declared: &Declared) -> Self {
        let value = |price: &Option<Sourced<_>>| price.as_ref().map(|price| price.value);
        Self {
            provider: declared.provider.as_ref().map(|provider| provider.value.clone()),
            route: declared.route.as_ref().map(|route| route.value),
            max_input_tokens: declared.max_input_tokens.as_ref().map(|limit| limit.value),
            max_output_tokens: declared.max_output_tokens.as_ref().map(|limit| limit.value),
            tool_choice: declared.tool_choice.as_ref().map(|works| works.value),
            reasoning: declared.reasoning.as_ref().map(|effort| effort.value),
            prices: Prices {
                input: value(&declared.input_cost_per_token),
                output: value(&declared.output_cost_per_token),
                ..Prices::default()
            },
        }
    }
}
