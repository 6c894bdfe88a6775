//! Tool calls that a model wrote into its text, in one of the dialects that models are trained on.
//!
//! They are recognised so that the model can be told how to call. They are never executed: text may quote anything.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use super::role::OfferedTool;

/// The beginnings of a call in the dialects that mark it: Qwen's and Hermes', Llama's, Claude's, Mistral's, `DeepSeek`'s,
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

/// Whether the text contains a written-out tool call: marked as in one of the dialects, or with the name of an offered tool
/// where a call has it, or with members that only an ending call has, whatever tags, fences, lists or braces surround it.
#[must_use]
pub fn written_call(text: &str, offered: &[OfferedTool]) -> bool {
    let lower = text.to_ascii_lowercase();
    MARKS.iter().any(|mark| lower.contains(mark))
        || is_call(text)
        || fenced(text).any(is_call)
        || names_a_tool(text, offered)
        || ["\"now_true\"", "\"succeeded\""].iter().all(|member| text.contains(member))
}

/// `"name": "read_file"`, `name='read_file'`, `<read_file>`, `read_file({`.
fn names_a_tool(text: &str, offered: &[OfferedTool]) -> bool {
    static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let key = r#"["']?\b(?:name|tool|tool_name|function|action|recipient_name)["']?\s*[:=]\s*["'](?:functions\.)?([A-Za-z_]+)["']"#;
        Regex::new(&format!(r"{key}|<([a-z_]+)>|\b([a-z_]+)\s*\(\s*\{{")).ok()
    });
    let Some(named) = NAMED.as_ref() else { return false };
    let is_offered = |name: &str| offered.iter().any(|tool| tool.name.as_str() == name);
    named.captures_iter(text).any(|found| found.iter().skip(1).flatten().any(|name| is_offered(name.as_str())))
}

/// The content of code fences, without their language.
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
    use crate::domain::role::ToolName;

    fn written_call(text: &str) -> bool {
        let offer = |name| OfferedTool { name, description: String::new(), parameters: Value::Null };
        super::written_call(text, &ToolName::ALL.map(offer))
    }

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
            "[{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.txt\"}}]",
            "<tools>\n{\"name\": \"run_command\", \"arguments\": {\"command\": \"ls\"}}\n</tools>",
            "{{\"name\": \"edit_file\", \"parameters\": {\"path\": \"a\"}}}}",
            "{\"name\": \"read_file\", \"arguments\": {}}\n{\"name\": \"list_files\", \"arguments\": {}}",
            "I call it:\n{\n  \"name\":\n    \"search\",\n  \"args\": {\"pattern\": \"x\"}",
            "{\"changed\": \"a\", \"now_true\": \"b\", \"next\": \"nothing\", \"succeeded\": true}",
            "read_file({\"path\": \"a.txt\"})",
            "<read_file>\n<path>a.txt</path>\n</read_file>",
            "functions: name='functions.run_command' args",
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
            "{\"name\": \"nisse\", \"dependencies\": {\"search\": \"1.0\"}}",
            "call read_file (it takes a path)",
        ] {
            assert!(!written_call(text), "{text}");
        }
    }
}
