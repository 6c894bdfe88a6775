//! The normalized route: `POST /v1/chat/completions`.
//!
//! A reply's opaque part is one object with the message's members beside content and calls
//! (`reasoning_content`, `thinking_blocks`, `provider_specific_fields`); they go back in the message they came in.

mod fragments;
mod reply;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::value::RawValue;

pub(super) use self::reply::Reading;
use super::{
    error::not_recorded_so,
    json::{self, Object},
};
use crate::{
    domain::{message::Call, reasoning::Reasoning, role::OfferedTool},
    ports::llm::{AssistantPart, Error, Message, Request},
};

/// The path of this route.
pub(super) const PATH: &str = "/v1/chat/completions";

/// Bytes of a body beside its messages; an estimate.
const ROOM: usize = 10_000;

/// The request's body. Everything that stays the same over a task comes before `messages`, which is last.
///
/// # Errors
/// A recorded opaque part that is not the JSON object it should be, as [`Trouble::BadRequest`](crate::domain::upstream::Trouble::BadRequest).
pub fn body(request: &Request, written: &mut Written) -> Result<String, Error> {
    written.bring_up_to_date(request)?;
    let system = (!request.system.is_empty()).then(|| text_message("system", &request.system));
    let mut body = Object::with_room_for(written.length() + ROOM);
    body.put("model", request.model.alias.as_str())
        .put("max_tokens", request.max_output)
        .put("stream", true)
        .raw("stream_options", r#"{"include_usage":true}"#)
        .put("num_retries", 0);
    if !request.fallbacks {
        body.put("disable_fallbacks", true);
    }
    if request.reasoning != Reasoning::Off {
        body.put("reasoning_effort", request.reasoning.as_str());
    }
    if !request.tools.is_empty() {
        body.array("tools", request.tools.iter().map(tool));
        // where the proxy makes thinking of the effort, its vendor refuses a forced call beside it
        let thinks = request.reasoning != Reasoning::Off && request.model.provider == "anthropic";
        if request.require_call && request.model.tool_choice && !thinks {
            body.put("tool_choice", "required");
        }
    }
    body.array("messages", system.iter().chain(written.0.iter().map(|(_, text)| text)));
    Ok(body.end())
}

fn tool(tool: &OfferedTool) -> String {
    let mut function = Object::new();
    function
        .put("name", tool.name.as_str())
        .put("description", tool.description.as_str())
        .put("parameters", &tool.parameters);
    let mut outer = Object::new();
    outer.put("type", "function").raw("function", &function.end());
    outer.end()
}

/// The messages of the last request as they were written: most of the next one's are the same.
#[derive(Debug, Default)]
pub struct Written(Vec<(Arc<Message>, String)>);

impl Written {
    fn bring_up_to_date(&mut self, request: &Request) -> Result<(), Error> {
        let both = self.0.iter().zip(&request.messages);
        self.0.truncate(both.take_while(|((was, _), is)| Arc::ptr_eq(was, is)).count());
        for message in request.messages.iter().skip(self.0.len()) {
            self.0.push((Arc::clone(message), text_of(message)?));
        }
        Ok(())
    }

    fn length(&self) -> usize {
        self.0.iter().map(|(_, text)| text.len() + 1).sum()
    }
}

/// A message in this route's form; results are one each, with commas between them.
fn text_of(message: &Message) -> Result<String, Error> {
    Ok(match message {
        Message::User(text) => text_message("user", text),
        Message::Assistant { text, parts } => assistant(text, parts)?,
        Message::Results(answers) => {
            let each = answers.iter().map(|answer| {
                let mut result = Object::with_room_for(answer.content.len());
                result.put("role", "tool").put("tool_call_id", answer.wire_id.as_str());
                result.put("content", answer.content.as_str());
                result.end()
            });
            each.collect::<Vec<_>>().join(",")
        }
    })
}

fn text_message(role: &str, text: &str) -> String {
    let mut message = Object::with_room_for(text.len());
    message.put("role", role).put("content", text);
    message.end()
}

fn assistant(text: &str, parts: &[AssistantPart]) -> Result<String, Error> {
    let (mut opaque, mut calls) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            AssistantPart::Text(_) => {} // all of it stands in `text`
            AssistantPart::Reasoning(raw) => opaque.push(json::members_of(raw).map_err(not_recorded_so)?),
            AssistantPart::Call { wire_id, call } => calls.push(written_call(wire_id, call)?),
        }
    }
    let mut message = Object::new();
    message.put("role", "assistant");
    // beside calls, some servers refuse an empty text and others a missing one; null is taken by all
    message.put("content", (!text.is_empty() || calls.is_empty()).then_some(text));
    for members in opaque {
        message.members(members);
    }
    if !calls.is_empty() {
        message.array("tool_calls", &calls);
    }
    Ok(message.end())
}

fn written_call(wire_id: &str, call: &Call) -> Result<String, Error> {
    let mut function = Object::new();
    function.put("name", call.name.as_str()).put("arguments", call.replayable_arguments());
    let mut outer = Object::new();
    outer.put("id", wire_id).put("type", "function");
    let mut vendor = match &call.vendor {
        Some(raw) => serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(raw).map_err(not_recorded_so)?,
        None => BTreeMap::new(),
    };
    if let Some(inner) = vendor.remove("function") {
        function.members(json::members_of(inner.get()).map_err(not_recorded_so)?);
    }
    outer.raw("function", &function.end());
    for (name, value) in &vendor {
        outer.raw(name, value.get());
    }
    Ok(outer.end())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        adapters::litellm::conversation::{after, assert_prefixes, empty},
        domain::model::Route,
    };

    const REASONING: &str = r#"{ "reasoning_content" : "caf\u00e9" , "n" : 1.50 }"#;
    const VENDOR: &str = r#"{"provider_specific_fields":{"sig" : "\u00e9"},"function":{"extra": 2.0}}"#;

    /// The body, with nothing written before.
    fn whole(request: &Request) -> Result<String, Error> {
        body(request, &mut Written::default())
    }

    #[test]
    fn a_task_grows_by_suffixes_and_messages_come_last() {
        let bodies: Vec<String> =
            (0..6).map(|turns| whole(&after(turns, Route::Normalized, REASONING, Some(VENDOR))).unwrap()).collect();
        assert_prefixes(&bodies);
        for body in &bodies {
            let value: Value = serde_json::from_str(body).unwrap();
            assert_eq!(value.as_object().unwrap().keys().next_back().map(String::as_str), Some("messages"));
            assert!(!body.contains("cache_control"));
        }
    }

    #[test]
    fn the_head_says_what_the_proxy_must_know() {
        let mut request = after(0, Route::Normalized, REASONING, None);
        let head = |request: &Request| {
            let mut value: Value = serde_json::from_str(&whole(request).unwrap()).unwrap();
            let value = value.as_object_mut().unwrap();
            value.remove("messages");
            value.remove("tools");
            json!(value)
        };
        let plain = json!({"model": "alias", "max_tokens": 1024, "stream": true,
            "stream_options": {"include_usage": true}, "num_retries": 0, "disable_fallbacks": true});
        assert_eq!(head(&request), plain);
        request.require_call = true;
        request.fallbacks = true;
        let mut forced = plain.clone();
        forced.as_object_mut().unwrap().remove("disable_fallbacks");
        forced["tool_choice"] = json!("required");
        assert_eq!(head(&request), forced);
        request.model.tool_choice = false;
        assert_eq!(head(&request).get("tool_choice"), None);
        let bare = Request { require_call: true, ..empty(Route::Normalized) };
        assert_eq!(head(&bare).get("tool_choice"), None, "nothing to choose from");
    }

    #[test]
    fn what_is_opaque_goes_back_byte_for_byte() {
        let written = whole(&after(1, Route::Normalized, REASONING, Some(VENDOR))).unwrap();
        for raw in [
            r#""reasoning_content" : "caf\u00e9" , "n" : 1.50"#,
            r#""provider_specific_fields":{"sig" : "\u00e9"}"#,
            r#""extra": 2.0"#,
            r#""arguments":"{\"path\" : \"a\\u00e9\", \"n\": 1.50}""#,
        ] {
            assert!(written.contains(raw), "{raw} is not in {written}");
        }
        assert!(whole(&after(1, Route::Normalized, "[]", None)).is_err());
        assert!(whole(&after(1, Route::Normalized, REASONING, Some("7"))).is_err());
    }

    #[test]
    fn results_are_tool_messages_and_unreadable_arguments_an_empty_object() {
        let mut request = after(2, Route::Normalized, REASONING, None);
        if let Message::Assistant { parts, .. } = Arc::make_mut(&mut request.messages[1])
            && let AssistantPart::Call { call, .. } = &mut parts[2]
        {
            "{not json".clone_into(&mut call.arguments);
        }
        let value: Value = serde_json::from_str(&whole(&request).unwrap()).unwrap();
        let roles: Vec<&str> =
            value["messages"].as_array().unwrap().iter().filter_map(|m| m["role"].as_str()).collect();
        assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant", "tool", "user"]);
        assert_eq!(value["messages"][3], json!({"role": "tool", "tool_call_id": "toolu_1", "content": "text"}));
        assert_eq!(value["messages"][2]["tool_calls"][0]["function"]["arguments"], "{}");
        assert_eq!(value["messages"][2]["content"], "I look.");
    }
}
