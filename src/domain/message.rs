//! A model's reply and the calls in it, as recorded.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    id::CallId,
    model::{AnsweredBy, Usage},
    money::Money,
};

/// One piece of a reply, in the order in which it came.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Text for a reader.
    Text(String),
    /// Vendor-opaque reasoning, raw JSON, replayed byte for byte to the model that made it and to no other.
    ///
    /// Native route: one content block (`thinking` with its signature, `redacted_thinking`).
    /// Normalized route: one object with the message's members beside `content` and `tool_calls`
    /// (`reasoning_content`, `thinking_blocks`, `provider_specific_fields`).
    Reasoning(String),
    /// A tool call.
    Call(Call),
}

/// A tool call as a model made it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Call {
    /// Ours, unique in the task.
    pub id: CallId,
    /// The vendor's, if it is usable: it goes back to the model that minted it, since some carry a signature in it.
    pub vendor_id: Option<String>,
    /// The tool's name, made legal for replay (`^[a-zA-Z0-9_-]{1,64}$`).
    pub name: String,
    /// The name as the model wrote it, if that is not legal.
    pub written_name: Option<String>,
    /// The arguments as the model wrote them: usually, but not always, a JSON object.
    pub arguments: String,
    /// Vendor members of the call beside id, name and arguments, as raw JSON; replayed like reasoning.
    pub vendor: Option<String>,
}

impl Call {
    /// A call at `index` (from 0) of the reply in `turn`, its ids and name made usable.
    ///
    /// A vendor id is kept if it is not empty, at most 256 bytes of `[a-zA-Z0-9_.:/+=-]`, and not in `taken`
    /// (the vendor ids already seen in this task).
    #[must_use]
    pub fn minted(turn: u32, index: usize, vendor_id: &str, name: &str, arguments: &str, taken: &[String]) -> Self {
        let usable = !vendor_id.is_empty()
            && vendor_id.len() <= 256
            && vendor_id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.:/+=-".contains(&b))
            && !taken.iter().any(|seen| seen == vendor_id);
        let legal = legal_name(name);
        Self {
            id: CallId::new(turn, index),
            vendor_id: usable.then(|| vendor_id.to_owned()),
            written_name: (legal != name).then(|| name.chars().take(256).collect()),
            name: legal,
            arguments: mend_surrogates(arguments).into_owned(),
            vendor: None,
        }
    }

    /// The arguments if they are one JSON object, as they were written; else `{}`, since servers and proxies
    /// refuse a history that holds anything else.
    #[must_use]
    pub fn replayable_arguments(&self) -> &str {
        if is_object(&self.arguments) { &self.arguments } else { "{}" }
    }
}

/// Whether a text is one JSON object that every parser accepts.
fn is_object(text: &str) -> bool {
    // valid syntax that a parser may still reject: half a surrogate pair, a number out of range, depth
    let odd = text.contains("\\u")
        || text.as_bytes().windows(2).any(|pair| pair[0].is_ascii_digit() && pair[1].eq_ignore_ascii_case(&b'e'))
        || text.bytes().filter(|byte| matches!(byte, b'{' | b'[')).count() > 100;
    if odd {
        return serde_json::from_str::<serde_json::Value>(text).is_ok_and(|value| value.is_object());
    }
    // without building a value, because this runs for every call before every request
    text.trim_start().starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// JSON text with every `\\uXXXX` escape of half a surrogate pair replaced by `\\ufffd`.
///
/// Models emit such halves; no parser accepts them, and one in the history makes every later request invalid.
#[must_use]
pub fn mend_surrogates(json: &str) -> Cow<'_, str> {
    let escape = |at: usize| -> Option<u16> {
        let hex = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(hex, 16).ok()
    };
    let bytes = json.as_bytes();
    let (mut mended, mut copied, mut at) = (String::new(), 0, 0);
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        let (half, length) = match escape(at) {
            Some(0xd800..=0xdbff) if matches!(escape(at + 6), Some(0xdc00..=0xdfff)) => (false, 12),
            Some(0xd800..=0xdfff) => (true, 6),
            Some(_) => (false, 6),
            None => (false, 2),
        };
        if half {
            mended.push_str(&json[copied..at]);
            mended.push_str("\\ufffd");
            copied = at + length;
        }
        at += length;
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    mended.push_str(&json[copied..]);
    Cow::Owned(mended)
}

/// `name` cut and mapped to `^[a-zA-Z0-9_-]{1,64}$`.
fn legal_name(name: &str) -> String {
    let legal: String = name
        .chars()
        .take(64)
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' })
        .collect();
    if legal.is_empty() { "unnamed".to_owned() } else { legal }
}

/// Why the model stopped.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It made calls and awaits their results.
    Calls,
    /// It finished.
    End,
    /// The output limit cut it off; nothing of such a reply runs.
    Truncated,
    /// It, or a filter, declined; the text says why.
    Declined(String),
}

/// A complete reply: recorded as a whole or not at all.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Reply {
    /// Its content, in order.
    pub parts: Vec<Part>,
    /// Why it ended.
    pub stop: Stop,
    /// Its tokens; none if the proxy did not say (then the estimate is charged).
    pub usage: Option<Usage>,
    /// Its cost according to the proxy; if none, the fold computes it from prices.
    pub cost: Option<Money>,
    /// Who answered; none if no header says so.
    pub answered_by: Option<AnsweredBy>,
}

impl Reply {
    /// The model that answered instead of the requested one, if one did.
    #[must_use]
    pub fn fallback(&self) -> Option<&AnsweredBy> {
        self.answered_by.as_ref().filter(|who| who.fallback)
    }

    /// The calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call),
            Part::Text(_) | Part::Reasoning(_) => None,
        })
    }

    /// The text, joined.
    #[must_use]
    pub fn text(&self) -> String {
        self.parts
            .iter()
            .filter_map(|part| match part {
                Part::Text(text) => Some(text.as_str()),
                Part::Reasoning(_) | Part::Call(_) => None,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_surrogate_pairs_are_mended_and_nothing_else_is() {
        for (given, wanted) in [
            (r#"{"a":"half \ud83d end \udc00"}"#, r#"{"a":"half \ufffd end \ufffd"}"#),
            (r#""whole \ud83d\udd25""#, r#""whole \ud83d\udd25""#),
            (r#""escaped \\ud83d""#, r#""escaped \\ud83d""#),
            (r#""\ud83d\ud83d\udd25 é \n""#, r#""\ufffd\ud83d\udd25 é \n""#),
            (r#""cut \ud8"#, r#""cut \ud8"#),
            ("\\", "\\"),
        ] {
            assert_eq!(mend_surrogates(given), wanted);
        }
    }

    #[test]
    fn arguments_go_back_only_if_every_parser_takes_them() {
        let deep = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        for (text, wanted) in [
            ("{}", true),
            (" {\"a\": [1.5e3, \"\\ud83d\\udd25\"]}\n", true),
            ("", false),
            ("[]", false),
            ("{} {}", false),
            ("{\"a\":}", false),
            ("\u{a0}{}", false),
            ("{\"a\": \"\\ud83d\"}", false),
            ("{\"a\": 1e999}", false),
            (&deep(90), true),
            (&deep(200), false),
        ] {
            assert_eq!(is_object(text), wanted, "{text}");
            let parsed = serde_json::from_str::<serde_json::Value>(text);
            assert_eq!(parsed.is_ok_and(|value| value.is_object()), wanted, "{text}");
        }
    }

    #[test]
    fn names_become_legal_and_ids_unique() {
        let taken = vec!["same".to_owned()];
        let call = Call::minted(2, 0, "same", "naïve tool!", "", &taken);
        assert_eq!((call.name.as_str(), call.vendor_id), ("na_ve_tool_", None));
        assert_eq!(call.written_name.as_deref(), Some("naïve tool!"));
        assert_eq!(Call::minted(2, 1, "", "", "", &taken).name, "unnamed");
        assert_eq!(Call::minted(2, 1, "call_1", "search", "", &taken).vendor_id.as_deref(), Some("call_1"));
    }
}
