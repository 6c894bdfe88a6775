//! The native route: `POST /v1/messages`, Anthropic's own protocol, passed on by the proxy as it is.
//!
//! Cache marks are on the system prompt, the last tool and the last two user turns: four, the maximum. They are the only
//! difference between the beginning of a request and the previous one.

mod reply;

use std::sync::Arc;

use super::{
    error::not_recorded_so,
    json::{self, Object},
};
use crate::ports::llm::{Answer, AssistantPart, Error, Message, Request};

pub(super) use self::reply::Reading;

/// The path of this route.
pub(super) const PATH: &str = "/v1/messages";
/// The protocol's version, sent as `anthropic-version`.
pub(super) const VERSION: &str = "2023-06-01";

/// Bytes of a body beside its messages; an estimate.
const ROOM: usize = 10_000;

const MARK: &str = r#"{"type":"ephemeral"}"#;

/// The request's body. Everything that stays the same over a task comes before `messages`, which is last.
///
/// # Errors
/// A recorded opaque part that is not the JSON it should be, as
/// [`Trouble::BadRequest`](crate::domain::upstream::Trouble::BadRequest).
pub fn body(request: &Request) -> Result<String, Error> {
    let messages = messages(&request.messages)?;
    let mut body = Object::with_room_for(json::length(&messages) + ROOM);
    body.put("model", request.model.alias.as_str())
        .put("max_tokens", request.max_output)
        .put("stream", true)
        .put("num_retries", 0);
    if !request.fallbacks {
        body.put("disable_fallbacks", true);
    }
    let thinking = request.reasoning.budget(request.max_output);
    if let Some(budget) = thinking {
        body.raw("thinking", &format!(r#"{{"type":"enabled","budget_tokens":{budget}}}"#));
    }
    if !request.system.is_empty() {
        let mut system = text_block(&request.system);
        system.raw("cache_control", MARK);
        body.array("system", [system.end()]);
    }
    if let Some(last) = request.tools.len().checked_sub(1) {
        let written = request.tools.iter().enumerate().map(|(index, tool)| {
            let mut written = Object::new();
            written
                .put("name", tool.name.as_str())
                .put("description", tool.description.as_str())
                .put("input_schema", &tool.parameters);
            if index == last {
                written.raw("cache_control", MARK);
            }
            written.end()
        });
        body.array("tools", written);
        // the vendor refuses a forced call together with thinking, which the proxy's configuration too may have turned on
        let thinks = thinking.is_some() || has_reasoning(request);
        if request.require_call && request.model.tool_choice && !thinks {
            body.raw("tool_choice", r#"{"type":"any"}"#);
        }
    }
    body.array("messages", messages);
    Ok(body.end())
}

fn has_reasoning(request: &Request) -> bool {
    request.messages.iter().any(|message| match &**message {
        Message::Assistant { parts, .. } => parts.iter().any(|part| matches!(part, AssistantPart::Reasoning(_))),
        Message::User(_) | Message::Results(_) => false,
    })
}

/// A message with its blocks still open for a mark.
struct Turn {
    user: bool,
    blocks: Vec<Object>,
}

fn messages(messages: &[Arc<Message>]) -> Result<Vec<String>, Error> {
    let mut turns: Vec<Turn> = Vec::new();
    let mut after_results = false;
    for message in messages {
        match (&**message, turns.last_mut()) {
            // results must come first in the message after their calls, and texts may follow
            (Message::User(text), Some(turn)) if after_results => turn.blocks.push(text_block(text)),
            (Message::User(text), _) => turns.push(Turn { user: true, blocks: vec![text_block(text)] }),
            (Message::Results(answers), _) => {
                turns.push(Turn { user: true, blocks: answers.iter().map(result_block).collect() });
            }
            (Message::Assistant { parts, .. }, _) => turns.push(Turn { user: false, blocks: assistant(parts)? }),
        }
        after_results = match &**message {
            Message::Results(_) => true,
            Message::User(_) => after_results,
            Message::Assistant { .. } => false,
        };
    }
    turns.retain(|turn| !turn.blocks.is_empty());
    for turn in turns.iter_mut().rev().filter(|turn| turn.user).take(2) {
        if let Some(block) = turn.blocks.last_mut() {
            block.raw("cache_control", MARK);
        }
    }
    let written = turns.into_iter().map(|turn| {
        let blocks: Vec<String> = turn.blocks.into_iter().map(Object::end).collect();
        let mut message = Object::with_room_for(json::length(&blocks));
        message.put("role", if turn.user { "user" } else { "assistant" }).array("content", &blocks);
        message.end()
    });
    Ok(written.collect())
}

fn text_block(text: &str) -> Object {
    let mut block = Object::with_room_for(text.len());
    block.put("type", "text").put("text", text);
    block
}

fn result_block(answer: &Answer) -> Object {
    let mut block = Object::with_room_for(answer.content.len());
    block.put("type", "tool_result").put("tool_use_id", answer.wire_id.as_str());
    block.put("content", answer.content.as_str());
    if answer.is_error {
        block.put("is_error", true);
    }
    block
}

fn assistant(parts: &[AssistantPart]) -> Result<Vec<Object>, Error> {
    let mut blocks = Vec::new();
    for part in parts {
        match part {
            // the vendor refuses a text block without a visible character
            AssistantPart::Text(text) if text.trim().is_empty() => {}
            AssistantPart::Text(text) => blocks.push(text_block(text)),
            AssistantPart::Reasoning(raw) => {
                let mut block = Object::new();
                block.members(json::members_of(raw).map_err(not_recorded_so)?);
                blocks.push(block);
            }
            AssistantPart::Call { wire_id, call } => {
                let mut block = Object::new();
                block.put("type", "tool_use").put("id", wire_id.as_str()).put("name", call.name.as_str());
                block.raw("input", call.replayable_arguments());
                if let Some(vendor) = &call.vendor {
                    block.members(json::members_of(vendor).map_err(not_recorded_so)?);
                }
                blocks.push(block);
            }
        }
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        adapters::litellm::conversation::{after, assert_prefixes},
        domain::model::Route,
    };

    const THINKING: &str = r#"{"type": "thinking", "thinking": "caf\u00e9", "signature": "c2ln"}"#;

    fn written(turns: u32) -> String {
        body(&after(turns, Route::Native, THINKING, Some(r#"{"caller": {"type": "direct"}}"#))).unwrap()
    }

    #[test]
    fn a_task_grows_by_suffixes_marks_aside_and_messages_come_last() {
        let marked: Vec<String> = (0..6).map(written).collect();
        for (turns, body) in marked.iter().enumerate() {
            let value: Value = serde_json::from_str(body).unwrap();
            assert_eq!(value.as_object().unwrap().keys().next_back().map(String::as_str), Some("messages"));
            assert_eq!(body.matches("cache_control").count(), if turns == 0 { 3 } else { 4 }, "{body}");
        }
        let plain: Vec<String> =
            marked.iter().map(|b| b.replace(r#","cache_control":{"type":"ephemeral"}"#, "")).collect();
        assert_prefixes(&plain);
    }

    #[test]
    fn results_come_first_in_a_user_message_and_a_word_joins_them() {
        let value: Value = serde_json::from_str(&written(2)).unwrap();
        let messages = value["messages"].as_array().unwrap();
        let roles: Vec<&str> = messages.iter().filter_map(|message| message["role"].as_str()).collect();
        assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
        let last = json!([
            {"type": "tool_result", "tool_use_id": "toolu_2", "content": "text", "is_error": true},
            {"type": "text", "text": "Go on.", "cache_control": {"type": "ephemeral"}},
        ]);
        assert_eq!(messages[4]["content"], last);
        assert_eq!(messages[2]["content"][0]["cache_control"], json!({"type": "ephemeral"}));
        assert_eq!(value["system"][0]["cache_control"], json!({"type": "ephemeral"}));
        assert_eq!(value["tools"][0].get("cache_control"), None);
        assert_eq!(value["tools"][1]["cache_control"], json!({"type": "ephemeral"}));
    }

    #[test]
    fn what_is_opaque_goes_back_byte_for_byte_in_its_place() {
        let body = written(1);
        for raw in [
            r#"[{"type": "thinking", "thinking": "caf\u00e9", "signature": "c2ln"},{"type":"text""#,
            r#""input":{"path" : "a\u00e9", "n": 1.50},"caller": {"type": "direct"}}"#,
        ] {
            assert!(body.contains(raw), "{raw} is not in {body}");
        }
        assert!(super::body(&after(1, Route::Native, "nonsense", None)).is_err());
    }

    #[test]
    fn a_call_is_forced_only_where_that_works() {
        let mut request = after(0, Route::Native, THINKING, None);
        request.require_call = true;
        assert!(body(&request).unwrap().contains(r#""tool_choice":{"type":"any"}"#));
        let mut thinking = after(1, Route::Native, THINKING, None);
        thinking.require_call = true;
        assert!(!body(&thinking).unwrap().contains("tool_choice"));
        request.model.tool_choice = false;
        assert!(!body(&request).unwrap().contains("tool_choice"));
    }

    #[test]
    fn a_text_without_a_visible_character_is_left_out() {
        let mut request = after(1, Route::Native, THINKING, None);
        if let Message::Assistant { parts, .. } = Arc::make_mut(&mut request.messages[1]) {
            parts[1] = AssistantPart::Text("\n ".to_owned());
        }
        let value: Value = serde_json::from_str(&body(&request).unwrap()).unwrap();
        assert_eq!(value["messages"][1]["content"].as_array().unwrap().len(), 2);
    }
}
