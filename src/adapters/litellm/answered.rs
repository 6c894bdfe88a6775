//! Who answered, as the proxy's headers say: the body's `model` names the alias asked for even after a fallback.

use reqwest::header::HeaderMap;

use super::header;
use crate::domain::model::{AnsweredBy, PinnedModel};

/// Reads the headers of a reply to a request for `asked`; none if no header tells.
///
/// Another group beside a count of 0 fallbacks is a name that the proxy resolves for this key (`aliases`,
/// `model_group_alias`): the model that was asked for.
///
/// `backing_of` knows the backing model behind a deployment's id, for proxies that do not name it
/// (`x-litellm-model-name` came after 1.90).
pub(super) fn answered_by(
    headers: &HeaderMap,
    asked: &PinnedModel,
    backing_of: impl Fn(&str) -> Option<String>,
) -> Option<AnsweredBy> {
    let group = header(headers, "x-litellm-model-group");
    let attempted = header(headers, "x-litellm-attempted-fallbacks").and_then(|n| n.trim().parse::<u64>().ok());
    let told = header(headers, "x-litellm-model-name")
        .map(str::to_owned)
        .or_else(|| header(headers, "x-litellm-model-id").and_then(backing_of));
    if group.is_none() && attempted.is_none() && told.is_none() {
        return None;
    }
    let fallback = attempted.map_or_else(|| group.is_some_and(|group| group != asked.alias), |count| count > 0);
    let alias = group.unwrap_or(&asked.alias).to_owned();
    let backing = told.unwrap_or_else(|| if fallback { alias.clone() } else { asked.backing.clone() });
    Some(AnsweredBy { alias, backing, fallback, prices: None })
}
