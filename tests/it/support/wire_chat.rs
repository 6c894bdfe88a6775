//! A reply as `POST /v1/chat/completions` streams it (`chat_tool_stream` among the recordings).

use serde_json::{Value, json};

use super::script::{Finish, Piece, Reply};

/// The stream for `reply`, the `nth` answer of the server.
pub(super) fn stream(reply: &Reply, alias: &str, nth: usize) -> Vec<Piece> {
    let mut out = String::new();
    let mut delta = |delta: Value| out.push_str(&chunk(alias, &json!([{"index": 0, "delta": delta}]), None));
    delta(json!({"role": "assistant"}));
    if let Some((text, signature)) = &reply.thinking {
        let block = json!([{"type": "thinking", "thinking": text, "signature": signature}]);
        delta(json!({"reasoning_content": text, "thinking_blocks": block}));
    }
    if let Some(text) = &reply.text {
        for piece in halves(text) {
            delta(json!({"content": piece}));
        }
    }
    for (index, call) in reply.calls.iter().enumerate() {
        let id = call.id.clone().unwrap_or_else(|| format!("call_{nth}_{index}"));
        let function = json!({"arguments": "", "name": call.name});
        delta(json!({"tool_calls": [{"id": id, "function": function, "type": "function", "index": index}]}));
        for piece in halves(&call.arguments) {
            let function = json!({"arguments": piece});
            delta(json!({"tool_calls": [{"function": function, "type": "function", "index": index}]}));
        }
    }
    if reply.cut {
        return vec![Piece::Bytes(out.into_bytes()), Piece::Cut];
    }
    let finish = match reply.finish {
        Some(Finish::Calls) => "tool_calls",
        Some(Finish::Length) => "length",
        Some(Finish::Declined) => "content_filter",
        None if !reply.calls.is_empty() => "tool_calls",
        Some(Finish::Stop) | None => "stop",
    };
    out.push_str(&chunk(alias, &json!([{"index": 0, "delta": {}, "finish_reason": finish}]), None));
    if let Some((input, output)) = reply.usage {
        out.push_str(&chunk(alias, &json!([{"index": 0, "delta": {}}]), Some(&usage(input, output))));
    }
    out.push_str("data: [DONE]\n\n");
    vec![Piece::Bytes(out.into_bytes())]
}

fn chunk(alias: &str, choices: &Value, usage: Option<&Value>) -> String {
    let mut chunk = json!({
        "id": "chatcmpl-test", "created": 1_795_975_210, "model": alias, "object": "chat.completion.chunk",
        "choices": choices,
    });
    if let Some(usage) = usage {
        chunk["usage"] = usage.clone();
    }
    format!("data: {chunk}\n\n")
}

fn usage(input: u64, output: u64) -> Value {
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let cost = (input as f64) * 1e-6 + (output as f64) * 2e-6;
    json!({
        "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
        "prompt_tokens_details": {"cached_tokens": 0}, "cost": cost,
    })
}

/// A text in two pieces, so that nothing is ever whole in one event.
pub(super) fn halves(text: &str) -> [&str; 2] {
    let mut middle = text.len() / 2;
    while !text.is_char_boundary(middle) {
        middle -= 1;
    }
    let (head, tail) = text.split_at(middle);
    [head, tail]
}
