//! Who answered, according to the proxy's headers: the body's `model` names the requested alias even after a fallback.

use reqwest::header::HeaderMap;

use super::header;
use crate::domain::model::{AnsweredBy, PinnedModel};

/// Reads the headers of a reply to a request for `asked`; none if no header says who answered.
///
/// Another group with a count of 0 fallbacks is a name that the proxy resolves for this key (`aliases`,
/// `model_group_alias`): the requested model.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::litellm::conversation;

    #[test]
    fn a_count_of_fallbacks_tells_before_the_group_does_and_nothing_tells_nothing() {
        let mut asked = conversation::empty(crate::domain::model::Route::Normalized).model;
        (asked.alias, asked.backing) = ("asked".to_owned(), "openai/asked".to_owned());
        let by_id = |id: &str| (id == "d1").then(|| "openai/by-id".to_owned());
        for (group, count, name, id, wanted) in [
            (None, None, None, None, None),
            (Some("asked"), None, None, None, Some(("asked", "openai/asked", false))),
            (Some("other"), None, None, None, Some(("other", "other", true))),
            // the proxy resolves the alias for this key
            (Some("other"), Some("0"), None, None, Some(("other", "openai/asked", false))),
            (Some("asked"), Some("1"), None, None, Some(("asked", "asked", true))),
            (Some("other"), Some("2"), Some("openai/named"), Some("d1"), Some(("other", "openai/named", true))),
            (Some("asked"), Some("0"), None, Some("d1"), Some(("asked", "openai/by-id", false))),
            (None, None, None, Some("d2"), None),
            (None, Some("1"), None, None, Some(("asked", "asked", true))),
            // a count that is none
            (Some("other"), Some("many"), None, None, Some(("other", "other", true))),
        ] {
            let told = [
                ("x-litellm-model-group", group),
                ("x-litellm-attempted-fallbacks", count),
                ("x-litellm-model-name", name),
                ("x-litellm-model-id", id),
            ];
            let told = told.into_iter().filter_map(|(name, value)| Some((name, value?)));
            let headers = told.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
            let found = answered_by(&headers, &asked, by_id);
            let found = found.as_ref().map(|who| (who.alias.as_str(), who.backing.as_str(), who.fallback));
            assert_eq!(found, wanted, "{group:?} {count:?} {name:?} {id:?}");
        }
    }
}
