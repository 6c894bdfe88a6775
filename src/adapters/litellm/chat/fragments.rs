//! What comes in pieces: tool calls, and the opaque members of a message.

use serde_json::{Map, Value};

use crate::{
    adapters::litellm::{json, lookout::Lookout},
    domain::{
        message::{Call, Part},
        role::OfferedTool,
    },
    ports::llm::Delta,
};

/// The members beside content and calls that go back to the model that made them.
pub(super) const OPAQUE: [&str; 3] = ["reasoning_content", "thinking_blocks", "provider_specific_fields"];

/// The calls of a reply, as far as they have come.
#[derive(Default, Debug)]
pub(super) struct OpenCalls(Vec<OpenCall>);

/// A call of which fragments have come.
#[derive(Default, Debug)]
struct OpenCall {
    choice: u64,
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    vendor: Map<String, Value>,
    vendor_function: Map<String, Value>,
}

impl OpenCalls {
    /// Takes a piece of a call of that choice, and tells of it. In a message that came whole every piece is a call,
    /// whatever its index says.
    pub(super) fn take(&mut self, choice: u64, fragment: &Value, streamed: bool, lookout: &mut Lookout) -> Delta {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let function = fragment.get("function");
        let index = fragment.get("index").and_then(json::whole_number);
        let (id, name) = (text(fragment.get("id")), text(function.and_then(|function| function.get("name"))));
        let arguments = function.and_then(|function| function.get("arguments"));
        let says_more = arguments.is_some_and(|arguments| !json::is_blank(arguments));
        let goes_on = |call: &OpenCall| call.choice == choice && (index.is_none() || call.index == index);
        let at = self.0.iter().rposition(goes_on);
        let at =
            at.filter(|at| streamed && !begins_another(&self.0[*at], &id, &name, says_more)).unwrap_or_else(|| {
                self.0.push(OpenCall { choice, index, ..OpenCall::default() });
                self.0.len() - 1
            });
        let call = &mut self.0[at];
        let before = call.arguments.len();
        if call.id.is_empty() {
            call.id = id;
        }
        // a name comes whole, in pieces until the arguments begin, or whole again and again
        if name.starts_with(&call.name) {
            call.name = name;
        } else if call.arguments.is_empty() {
            call.name.push_str(&name);
        }
        match arguments {
            Some(Value::String(piece)) => call.arguments.push_str(lookout.arguments(piece)),
            // some servers send the object itself
            Some(Value::Object(whole)) => call.arguments.push_str(&Value::Object(whole.clone()).to_string()),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) | None => {}
        }
        keep_others(fragment, &["id", "type", "index", "function"], &mut call.vendor);
        if let Some(function) = function {
            keep_others(function, &["name", "arguments"], &mut call.vendor_function);
        }
        let bytes = call.arguments.len();
        Delta::Call { name: call.name.clone(), bytes: bytes as u64, more: (bytes - before) as u64 }
    }

    /// Whether all arguments have come, as far as can be seen: none at all may mean that they are still to come, and so
    /// may a member that the tool cannot do without.
    pub(super) fn are_whole(&self, tools: &[OfferedTool]) -> bool {
        let is_whole = |call: &OpenCall| match tools.iter().find(|tool| tool.name.as_str() == call.name) {
            Some(tool) => tool.is_whole(&call.arguments),
            // its answer will say that there is no such tool
            None => serde_json::from_str::<Map<String, Value>>(&call.arguments).is_ok_and(|given| !given.is_empty()),
        };
        self.0.iter().all(is_whole)
    }

    /// The calls, ids minted; `taken` are the vendor ids seen before in this task.
    pub(super) fn minted(self, turn: u32, mut taken: Vec<String>) -> Vec<Part> {
        let mint = |(index, open): (usize, OpenCall)| {
            let arguments = if open.arguments.trim().is_empty() { "{}" } else { &open.arguments };
            let mut call = Call::minted(turn, index, &open.id, &open.name, arguments, &taken);
            taken.extend(call.vendor_id.clone());
            let mut vendor = open.vendor;
            if !open.vendor_function.is_empty() {
                vendor.insert("function".to_owned(), Value::Object(open.vendor_function));
            }
            call.vendor = (!vendor.is_empty()).then(|| Value::Object(vendor).to_string());
            Part::Call(call)
        };
        self.0.into_iter().enumerate().map(mint).collect()
    }
}

/// Whether a fragment begins a call of its own although its index is that of `call`: streams are seen in which every
/// call has index 0.
fn begins_another(call: &OpenCall, id: &str, name: &str, says_more: bool) -> bool {
    if !id.is_empty() && !call.id.is_empty() {
        return id != call.id && !name.is_empty();
    }
    // without ids, a name after whole arguments; the same name alone is said once more by servers that repeat it
    let whole = || serde_json::from_str::<Value>(&call.arguments).is_ok();
    !name.is_empty() && !call.name.is_empty() && (says_more || name != call.name) && whole()
}

fn keep_others(from: &Value, known: &[&str], into: &mut Map<String, Value>) {
    for (name, value) in from.as_object().into_iter().flatten() {
        if !known.contains(&name.as_str()) && !json::is_blank(value) {
            into.insert(name.clone(), value.clone());
        }
    }
}

/// Puts a fragment of an opaque member to what has come of it.
pub(super) fn merge_opaque(opaque: &mut Map<String, Value>, name: &str, fragment: &Value) {
    match (name, fragment) {
        ("thinking_blocks", Value::Array(blocks)) => {
            let Value::Array(so_far) = opaque.entry(name).or_insert_with(|| Value::Array(Vec::new())) else { return };
            for block in blocks {
                merge_block(so_far, block);
            }
        }
        ("provider_specific_fields", Value::Object(fields)) => {
            // a refusal is no reasoning, and the thinking blocks stand beside
            let fields = fields.iter().filter(|(name, value)| {
                name.as_str() != "refusal" && name.as_str() != "thinking_blocks" && !json::is_blank(value)
            });
            for (field, value) in fields {
                let Value::Object(so_far) = opaque.entry(name).or_insert_with(|| Value::Object(Map::new())) else {
                    return;
                };
                match (so_far.get_mut(field), value) {
                    (Some(Value::Array(so_far)), Value::Array(more)) => so_far.extend(more.iter().cloned()),
                    (Some(_) | None, _) => {
                        so_far.insert(field.clone(), value.clone());
                    }
                }
            }
        }
        (_, Value::String(text)) => match opaque.get_mut(name) {
            Some(Value::String(so_far)) => so_far.push_str(text),
            Some(_) | None => {
                opaque.insert(name.to_owned(), fragment.clone());
            }
        },
        (_, _) => {
            opaque.insert(name.to_owned(), fragment.clone());
        }
    }
}

/// Takes away thinking that was stopped before its signature came: no vendor takes it back.
pub(super) fn drop_unsigned(opaque: &mut Map<String, Value>) {
    let Some(Value::Array(blocks)) = opaque.get_mut("thinking_blocks") else { return };
    let signed = |block: &Value| block.get("signature").and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    blocks.retain(|block| block.get("type").and_then(Value::as_str) != Some("thinking") || signed(block));
    if blocks.is_empty() {
        opaque.shift_remove("thinking_blocks");
    }
}

/// A thinking block comes in fragments, the last of which holds its signature.
fn merge_block(so_far: &mut Vec<Value>, block: &Value) {
    let text = |block: &Value, name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let goes_on = text(block, "type") == "thinking"
        && so_far.last().is_some_and(|last| text(last, "type") == "thinking" && text(last, "signature").is_empty());
    match so_far.last_mut() {
        Some(Value::Object(last)) if goes_on => {
            for name in ["thinking", "signature"] {
                let piece = text(block, name);
                if !piece.is_empty() {
                    let whole = text(&Value::Object(last.clone()), name) + &piece;
                    last.insert(name.to_owned(), whole.into());
                }
            }
        }
        Some(_) | None => so_far.push(block.clone()),
    }
}
