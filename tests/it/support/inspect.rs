//! The checks that every request must pass, as strict as the strictest vendor and proxy.
//!
//! A request that breaks one is answered 400 and fails the test that sent it.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::HeaderMap;
use regex::Regex;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{
    history::{Asked, answers_in, calls_in, list, text_of},
    server::{MAX_OUTPUT, TOKEN, Wire},
};

/// What is remembered from one request to the next.
#[derive(Clone, Default)]
pub(super) struct Memory {
    /// The last body of each task, known by its first message: the raw messages, system prompt and tools.
    tasks: BTreeMap<String, Sent>,
    /// The ids of requests already seen.
    request_ids: BTreeSet<String>,
    /// Thinking that the server has sent, by alias, text and signature.
    pub(super) thinking: BTreeSet<(String, String, String)>,
    /// The role under test takes fallbacks: the proxy is not told to refuse them.
    pub(super) fallbacks: bool,
    /// The task under test was begun by an earlier version, whose wording stays.
    pub(super) old_wording: bool,
}

/// The parts of a body that the next one of the same task must begin with.
#[derive(Clone)]
struct Sent {
    /// The array without the brackets that close it.
    messages: String,
    system: String,
    tools: String,
}

/// The body's members whose bytes matter.
#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(borrow)]
    messages: &'a RawValue,
    #[serde(borrow)]
    system: Option<&'a RawValue>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
}

/// Reads a request; the error says what no parser would take.
pub(super) fn read(wire: Wire, bytes: &[u8]) -> Result<Asked, String> {
    let raw = std::str::from_utf8(bytes).map_err(|error| format!("the body is not UTF-8: {error}"))?;
    let body: Value = serde_json::from_str(raw).map_err(|error| format!("the body is not strict JSON: {error}"))?;
    Ok(Asked { wire, raw: raw.to_owned(), body })
}

/// Everything that is wrong with a request.
pub(super) fn violations(asked: &Asked, headers: &HeaderMap, memory: &mut Memory) -> Vec<String> {
    let mut found = Vec::new();
    members(asked, memory.fallbacks, &mut found);
    header(asked, headers, memory, &mut found);
    pairing(asked, &mut found);
    if !memory.old_wording {
        sides(asked, &mut found);
    }
    replayed(asked, memory, &mut found);
    prefix(asked, memory, &mut found);
    if asked.raw.contains(TOKEN) {
        found.push("the proxy's token is in the body".to_owned());
    }
    found
}

/// The members that each request must have.
fn members(asked: &Asked, fallbacks: bool, found: &mut Vec<String>) {
    let body = &asked.body;
    let last = body.as_object().and_then(|body| body.keys().next_back()).map(String::as_str);
    if last != Some("messages") {
        found.push(format!("`messages` is not the last member but {last:?}"));
    }
    let mut must = |name: &str, holds: bool| {
        if !holds {
            found.push(format!("`{name}` is {}", body[name]));
        }
    };
    must("model", body["model"].is_string());
    must("stream", body["stream"] == true);
    must("max_tokens", body["max_tokens"].as_u64().is_some_and(|n| (1..=MAX_OUTPUT).contains(&n)));
    must("num_retries", body["num_retries"] == 0);
    must("disable_fallbacks", body["disable_fallbacks"] == true || fallbacks && body["disable_fallbacks"].is_null());
    must("messages", !asked.messages().is_empty());
    if asked.wire == Wire::Chat {
        must("stream_options", body["stream_options"]["include_usage"] == true);
    }
    let names = asked.offered();
    if names.is_empty() || names.iter().collect::<BTreeSet<_>>().len() != names.len() {
        found.push(format!("the tools offered are {names:?}"));
    }
}

/// The headers that each request must have.
fn header(asked: &Asked, headers: &HeaderMap, memory: &mut Memory, found: &mut Vec<String>) {
    let value = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if value("authorization") != format!("Bearer {TOKEN}") {
        found.push("the token is not in `authorization`".to_owned());
    }
    if asked.wire == Wire::Messages {
        if value("x-api-key") != TOKEN {
            found.push("the token is not in `x-api-key`".to_owned());
        }
        if value("anthropic-version") != "2023-06-01" {
            found.push(format!("`anthropic-version` is {:?}", value("anthropic-version")));
        }
    }
    let id = value("x-litellm-call-id");
    if id.is_empty() {
        found.push("there is no `x-litellm-call-id`".to_owned());
    } else if !memory.request_ids.insert(id.to_owned()) {
        found.push(format!("`x-litellm-call-id` {id} was sent before"));
    }
}

/// The sides take turns, as the templates of Mistral's and Google's models want it: no user's message right behind
/// another, or behind a result.
fn sides(asked: &Asked, found: &mut Vec<String>) {
    let messages = asked.messages();
    for (at, pair) in messages.windows(2).enumerate() {
        let role = |message: &Value| message["role"].as_str().unwrap_or_default().to_owned();
        let (before, now) = (role(pair[0]), role(pair[1]));
        if now == "user" && matches!(before.as_str(), "user" | "tool") {
            found.push(format!("message {} is a user's right behind a {before}'s", at + 1));
        }
    }
}

/// Each result answers a call of the reply before it, and no call is left unanswered.
fn pairing(asked: &Asked, found: &mut Vec<String>) {
    let mut open: Vec<String> = Vec::new();
    let mut seen = BTreeSet::new();
    for (at, message) in asked.messages().into_iter().enumerate() {
        let answers = answers_in(asked.wire, message);
        for answer in &answers {
            match open.iter().position(|id| *id == answer.id) {
                Some(place) => drop(open.remove(place)),
                None => found.push(format!("message {at} answers {:?}, which is no open call", answer.id)),
            }
        }
        let is_results = match asked.wire {
            Wire::Chat => message["role"] == "tool",
            Wire::Messages => false,
        };
        if !is_results && !open.is_empty() {
            found.push(format!("calls without a result before the end of message {at}: {open:?}"));
            open.clear();
        }
        for call in calls_in(asked.wire, message) {
            if call.id.is_empty() {
                found.push(format!("message {at} replays a call with an empty id"));
            }
            if !seen.insert(call.id.clone()) {
                found.push(format!("message {at} replays the call id {:?} a second time", call.id));
            }
            open.push(call.id);
        }
    }
    if !open.is_empty() {
        found.push(format!("the history ends with unanswered calls: {open:?}"));
    }
}

/// What goes back to the model is what a vendor takes: objects as arguments, legal names, its own thinking, no
/// message without content.
fn replayed(asked: &Asked, memory: &Memory, found: &mut Vec<String>) {
    let alias = asked.body["model"].as_str().unwrap_or_default();
    for (at, message) in asked.messages().into_iter().enumerate() {
        let calls = calls_in(asked.wire, message);
        for call in &calls {
            if call.arguments.is_none() {
                found.push(format!("message {at} replays arguments that are no JSON object"));
            }
            let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if call.name.is_empty() || call.name.len() > 64 || !call.name.chars().all(legal) {
                found.push(format!("message {at} replays the tool name {:?}", call.name));
            }
        }
        if calls.is_empty() && answers_in(asked.wire, message).is_empty() && text_of(message).trim().is_empty() {
            found.push(format!("message {at} has no content"));
        }
        for block in list(&message["content"]).iter().chain(list(&message["thinking_blocks"])) {
            let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
            let known = match block["type"].as_str() {
                Some("thinking") => memory.thinking.contains(&(alias.to_owned(), text("thinking"), text("signature"))),
                Some("redacted_thinking") => false, // the server never sends one
                _ => true,
            };
            if !known {
                found.push(format!("message {at}: invalid `signature` in `thinking` block"));
            }
        }
        let reasoning = message["reasoning_content"].as_str();
        if reasoning.is_some_and(|text| !memory.thinking.iter().any(|(from, sent, _)| from == alias && sent == text)) {
            found.push(format!("message {at} replays reasoning that this model never sent"));
        }
    }
}

/// Within a task each body is the one before it and a suffix, byte for byte, cache marks aside; where older results
/// were left out to save room, it is so with them left out.
fn prefix(asked: &Asked, memory: &mut Memory, found: &mut Vec<String>) {
    let raw: Raw<'_> = match serde_json::from_str(&asked.raw) {
        Ok(raw) => raw,
        Err(error) => return found.push(format!("the body cannot be split: {error}")),
    };
    let plain = |raw: Option<&RawValue>| raw.map_or_else(String::new, |raw| without_cache_marks(raw.get()));
    let messages = plain(Some(raw.messages));
    let now = Sent {
        messages: messages.trim_end_matches([']', '}']).to_owned(),
        system: plain(raw.system),
        tools: plain(raw.tools),
    };
    let first = asked.messages().first().map_or_else(String::new, |message| text_of(message));
    if let Some(before) = memory.tasks.insert(format!("{}\n{first}", asked.body["model"]), now.clone()) {
        if !now.messages.starts_with(&before.messages) && !evicted(asked.wire, &now.messages, &before.messages) {
            let same = now.messages.bytes().zip(before.messages.bytes()).take_while(|(a, b)| a == b).count();
            let around = |text: &str| {
                String::from_utf8_lossy(text.as_bytes().get(same..).unwrap_or_default())
                    .chars()
                    .take(80)
                    .collect::<String>()
            };
            found.push(format!(
                "the messages are not those of the request before and a suffix; at byte {same}: {:?} was {:?}",
                around(&now.messages),
                around(&before.messages)
            ));
        }
        if now.system != before.system || now.tools != before.tools {
            found.push("the system prompt or the tools are not those of the request before".to_owned());
        }
    }
}

/// JSON text without its `cache_control` members. Within a string the quotes would be escaped.
fn without_cache_marks(json: &str) -> String {
    let mark = Regex::new(r#",?"cache_control":\{[^}]*\}"#).expect("a pattern of ours");
    mark.replace_all(json, "").into_owned()
}

/// Whether `now` is `before` and a suffix but for results that are stubs now.
fn evicted(wire: Wire, now: &str, before: &str) -> bool {
    let close = |messages: &str| {
        let closing = ["]", "}]", "}]}]", "]}]"];
        closing.iter().find_map(|end| serde_json::from_str::<Vec<Value>>(&format!("{messages}{end}")).ok())
    };
    let (Some(now), Some(before)) = (close(now), close(before)) else { return false };
    let skeleton = |message: &Value| {
        let mut message = message.clone();
        match wire {
            Wire::Chat if message["role"] == "tool" => message["content"] = Value::Null,
            Wire::Chat => {}
            Wire::Messages => {
                for block in message["content"].as_array_mut().into_iter().flatten() {
                    if block["type"] == "tool_result" {
                        block["content"] = Value::Null;
                    }
                }
            }
        }
        message
    };
    before.len() <= now.len()
        && before.iter().zip(&now).all(|(was, is)| {
            let (was_told, is_told) = (answers_in(wire, was), answers_in(wire, is));
            skeleton(was) == skeleton(is)
                && was_told.iter().zip(&is_told).all(|(was, is)| {
                    was.text == is.text || is.text.contains("left out to save room") && is.text.len() < was.text.len()
                })
        })
}
