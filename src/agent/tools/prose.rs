//! Tool calls that a model wrote into its text, in one of the dialects that models are trained on.
//!
//! They are recognised so that the model can be told how to call. They are never executed: text may quote anything.

use serde_json::{Map, Value};

/// What begins a call in the dialects that mark one: Qwen's and Hermes', Llama's, Claude's, Mistral's, `DeepSeek`'s,
/// Kimi's, and the ones seen in bug reports of other agents.
const MARKS: &[&str] = &[
    "<function=",
    "<function_call>",
    "<tool_call>",
    "<tool_calls>",
    "<tool_use>",
    "<invoke name=",
    "<|tool_call",
    "<|python_tag|>",
    "<\u{ff5c}tool",
    "[tool_call]",
    "[tool_calls]",
    "[tool_request]",
];

/// Whether the text holds a tool call that should have been made as one.
#[must_use]
pub fn written_call(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    MARKS.iter().any(|mark| lower.contains(mark)) || is_call(text) || fenced(text).any(is_call)
}

/// What stands between fences, their language aside.
fn fenced(text: &str) -> impl Iterator<Item = &str> {
    text.split("```").skip(1).step_by(2).map(|block| {
        let (first, rest) = block.split_once('\n').unwrap_or((block, ""));
        if first.trim().bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') { rest } else { block }
    })
}

/// Whether it is a JSON object that names a tool.
fn is_call(text: &str) -> bool {
    let text = text.trim();
    if !text.starts_with('{') {
        return false;
    }
    let Ok(object) = serde_json::from_str::<Map<String, Value>>(text) else { return false };
    let named = |name: &str| object.get(name).is_some_and(Value::is_string);
    let has = |names: &[&str]| names.iter().any(|name| object.contains_key(*name));
    named("tool")
        || named("tool_name")
        || object.get("tool_calls").is_some_and(Value::is_array)
        || (named("function") || named("action") || named("name"))
            && has(&["arguments", "args", "parameters", "input", "action_input"])
        || object.get("function").is_some_and(|function| function.get("name").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dialects_are_recognised() {
        for text in [
            "I will write it.\n<function=write_file>\n<parameter=path>\nb.txt\n</parameter>",
            "<tool_call>{\"name\": \"write_file\", \"arguments\": {\"path\": \"b.txt\"}}</tool_call>",
            "[TOOL_CALL] {tool => \"write_file\", args => {--path \"b.txt\"}} [/TOOL_CALL]",
            "```json\n{\"tool\": \"write_file\"}\n```",
            "{\"name\": \"read_file\", \"arguments\": {}}",
            "Now:\n```\n{\"function\": {\"name\": \"read_file\"}}\n```\nDone.",
            "<\u{ff5c}tool\u{2581}calls\u{2581}begin\u{ff5c}>",
        ] {
            assert!(written_call(text), "{text}");
        }
    }

    #[test]
    fn ordinary_prose_is_not() {
        for text in [
            "",
            "I called read_file and it works.",
            "```json\n{\"name\": \"nisse\", \"version\": 1}\n```",
            "```rust\nfn tool() {}\n```",
            "{not json",
            "The function = sum.",
        ] {
            assert!(!written_call(text), "{text}");
        }
    }
}
