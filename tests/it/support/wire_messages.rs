//! A reply as `POST /v1/messages` streams it (`msg_thinktool_stream` among the recordings).

use serde_json::{Value, json};

use super::{
    script::{Finish, Piece, Reply},
    wire_chat::halves,
};

/// The stream for `reply`, the `nth` answer of the server.
pub(super) fn stream(reply: &Reply, alias: &str, nth: usize) -> Vec<Piece> {
    let (input, output) = reply.usage.unwrap_or((0, 0));
    let mut out = String::new();
    let mut event = |kind: &str, mut data: Value| {
        data["type"] = json!(kind);
        for line in ["event: ", kind, "\ndata: ", &data.to_string(), "\n\n"] {
            out.push_str(line);
        }
    };
    let message = json!({
        "id": "msg_test", "type": "message", "role": "assistant", "model": alias, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": input, "output_tokens": u64::from(reply.usage.is_some())},
    });
    event("message_start", json!({"message": message}));
    event("ping", json!({}));
    for (index, block) in blocks(reply, nth).into_iter().enumerate() {
        event("content_block_start", json!({"index": index, "content_block": block.start}));
        for delta in block.deltas {
            event("content_block_delta", json!({"index": index, "delta": delta}));
        }
        event("content_block_stop", json!({"index": index}));
    }
    if reply.cut {
        return vec![Piece::Bytes(out.into_bytes()), Piece::Cut];
    }
    let stop = match reply.finish {
        Some(Finish::Calls) => "tool_use",
        Some(Finish::Length) => "max_tokens",
        Some(Finish::Declined) => "refusal",
        None if !reply.calls.is_empty() => "tool_use",
        Some(Finish::Stop) | None => "end_turn",
    };
    let usage = json!({"input_tokens": input, "output_tokens": output, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0});
    event("message_delta", json!({"delta": {"stop_reason": stop, "stop_sequence": null}, "usage": usage}));
    event("message_stop", json!({}));
    vec![Piece::Bytes(out.into_bytes())]
}

/// A content block as it is streamed.
struct Block {
    start: Value,
    deltas: Vec<Value>,
}

fn blocks(reply: &Reply, nth: usize) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some((text, signature)) = &reply.thinking {
        let mut deltas: Vec<Value> =
            halves(text).iter().map(|piece| json!({"type": "thinking_delta", "thinking": piece})).collect();
        deltas.push(json!({"type": "signature_delta", "signature": signature}));
        blocks.push(Block { start: json!({"type": "thinking", "thinking": "", "signature": ""}), deltas });
    }
    if let Some(text) = &reply.text {
        let deltas = halves(text).iter().map(|piece| json!({"type": "text_delta", "text": piece})).collect();
        blocks.push(Block { start: json!({"type": "text", "text": ""}), deltas });
    }
    for (index, call) in reply.calls.iter().enumerate() {
        let id = call.id.clone().unwrap_or_else(|| format!("toolu_{nth}_{index}"));
        let deltas = halves(&call.arguments)
            .iter()
            .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
            .collect();
        blocks.push(Block { start: json!({"type": "tool_use", "id": id, "name": call.name, "input": {}}), deltas });
    }
    blocks
}
