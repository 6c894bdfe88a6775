//! A request as the server got it, the same on both routes.

use serde_json::Value;

use super::server::Wire;

/// A request.
#[derive(Clone)]
pub(crate) struct Asked {
    /// The route that it came by.
    pub(crate) wire: Wire,
    /// The body as it was sent.
    pub(crate) raw: String,
    /// The body.
    pub(crate) body: Value,
}

/// An answer to a call, as the model sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Answered {
    /// The call's id on the wire.
    pub(crate) id: String,
    /// The text.
    pub(crate) text: String,
}

impl Asked {
    /// The messages, the system prompt of the normalized route left out.
    pub(crate) fn messages(&self) -> Vec<&Value> {
        list(&self.body["messages"]).iter().filter(|message| message["role"] != "system").collect()
    }

    /// How many replies of the model the history holds.
    pub(crate) fn replies(&self) -> usize {
        self.messages().iter().filter(|message| message["role"] == "assistant").count()
    }

    /// The names of the tools offered.
    pub(crate) fn offered(&self) -> Vec<&str> {
        list(&self.body["tools"])
            .iter()
            .filter_map(|tool| match self.wire {
                Wire::Chat => tool["function"]["name"].as_str(),
                Wire::Messages => tool["name"].as_str(),
            })
            .collect()
    }

    /// Every answer to a call in the history, oldest first.
    pub(crate) fn answers(&self) -> Vec<Answered> {
        self.messages().into_iter().flat_map(|message| answers_in(self.wire, message)).collect()
    }

    /// The answers since the model's last reply.
    pub(crate) fn last_answers(&self) -> Vec<Answered> {
        let messages = self.messages();
        let after = messages.iter().rposition(|message| message["role"] == "assistant").map_or(0, |at| at + 1);
        messages[after..].iter().flat_map(|message| answers_in(self.wire, message)).collect()
    }

    /// What the model is told since its last reply: the brief, a nudge, which may come within the last answer.
    pub(crate) fn last_told(&self) -> String {
        let messages = self.messages();
        let after = messages.iter().rposition(|message| message["role"] == "assistant").map_or(0, |at| at + 1);
        let told = messages[after..].iter().filter(|message| message["role"] == "user").map(|message| text_of(message));
        let within = self.last_answers().pop().map(|answer| answer.text);
        told.chain(within).collect()
    }

    /// The names of the calls in the history, oldest first.
    pub(crate) fn replayed_calls(&self) -> Vec<String> {
        let calls = self.messages().into_iter().flat_map(|message| calls_in(self.wire, message));
        calls.map(|call| call.name).collect()
    }
}

/// A call in the history.
pub(super) struct Replayed {
    pub(super) id: String,
    pub(super) name: String,
    /// None if they are no JSON object.
    pub(super) arguments: Option<Value>,
}

/// The calls of a message.
pub(super) fn calls_in(wire: Wire, message: &Value) -> Vec<Replayed> {
    if message["role"] != "assistant" {
        return Vec::new();
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match wire {
        Wire::Chat => list(&message["tool_calls"])
            .iter()
            .map(|call| Replayed {
                id: text(&call["id"]),
                name: text(&call["function"]["name"]),
                arguments: call["function"]["arguments"]
                    .as_str()
                    .and_then(|arguments| serde_json::from_str::<Value>(arguments).ok())
                    .filter(Value::is_object),
            })
            .collect(),
        Wire::Messages => list(&message["content"])
            .iter()
            .filter(|block| block["type"] == "tool_use")
            .map(|block| Replayed {
                id: text(&block["id"]),
                name: text(&block["name"]),
                arguments: Some(block["input"].clone()).filter(Value::is_object),
            })
            .collect(),
    }
}

/// The answers of a message.
pub(super) fn answers_in(wire: Wire, message: &Value) -> Vec<Answered> {
    let id = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match wire {
        Wire::Chat if message["role"] == "tool" => {
            vec![Answered { id: id(&message["tool_call_id"]), text: text_of(message) }]
        }
        Wire::Chat => Vec::new(),
        Wire::Messages => list(&message["content"])
            .iter()
            .filter(|block| block["type"] == "tool_result")
            .map(|block| Answered { id: id(&block["tool_use_id"]), text: text_of(block) })
            .collect(),
    }
}

/// The text of a message or a block: its content, or that of its text blocks.
pub(super) fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// The entries of a JSON array; none for anything else.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
