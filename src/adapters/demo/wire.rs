//! A step as `POST /v1/chat/completions` streams it.

use serde_json::{Value, json};

use super::{ALIAS, Step};

/// The events of the stream, each to be sent by itself. `asked` is the size of the request in bytes.
pub(super) fn pieces(step: &Step, asked: usize) -> Vec<String> {
    let mut events = vec![delta(&json!({"role": "assistant"}))];
    let mut written = step.text.len();
    events.extend(step.text.split_inclusive(' ').map(|word| delta(&json!({"content": word}))));
    for (index, (name, arguments)) in step.calls.iter().enumerate() {
        let arguments = arguments.to_string();
        written += arguments.len();
        let function = json!({"name": name, "arguments": ""});
        let id = format!("call_{name}_{index}");
        events.push(delta(&json!({"tool_calls": [
            {"index": index, "id": id, "type": "function", "function": function},
        ]})));
        events.extend(arguments.split_inclusive(' ').map(|part| {
            delta(&json!({"tool_calls": [{"index": index, "type": "function", "function": {"arguments": part}}]}))
        }));
    }
    let finish = if step.calls.is_empty() { "stop" } else { "tool_calls" };
    events.push(event(&json!([{"index": 0, "delta": {}, "finish_reason": finish}]), None));
    // four bytes a token, as far as anybody can tell
    let (input, output) = (asked / 4, written / 4);
    let usage = json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output});
    events.push(event(&json!([]), Some(usage)));
    events.push("data: [DONE]\n\n".to_owned());
    events
}

fn delta(delta: &Value) -> String {
    event(&json!([{"index": 0, "delta": delta}]), None)
}

fn event(choices: &Value, usage: Option<Value>) -> String {
    let mut chunk = json!({
        "id": "chatcmpl-demo", "object": "chat.completion.chunk", "created": 0, "model": ALIAS, "choices": choices,
    });
    if let Some(usage) = usage {
        chunk["usage"] = usage;
    }
    format!("data: {chunk}\n\n")
}
