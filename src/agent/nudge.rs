//! Tells a model what was wrong with its last reply. Pure.
//!
//! Short, with one call that can be copied unchanged: weak models copy what they see, placeholders included.

use crate::domain::{
    message::Stop,
    role::ToolName,
    task::{Task, Turn},
    written_call::written_call,
};

/// The nudge for the turn that is about to close, if it needs one.
///
/// A nudge is an event, never a change of the system prompt: earlier requests must stay a prefix.
pub(super) fn nudge(task: &Task) -> Option<String> {
    let turn = task.last_turn()?;
    // no request follows for which it could be a lesson
    if !turn.nudges.is_empty() || task.no_room.is_some() {
        return None;
    }
    let role = &task.started.role;
    if turn.is_bad() && !turn.results.iter().any(|result| !result.content.starts_with("There is no tool")) {
        return Some(about_bad_reply(task, turn));
    }
    if task.repeat.count + 1 >= role.limits.repeats && task.repeat.told == 0 {
        return Some(format!(
            "You have made the same call with the same result {} times in a row. Nothing has changed in between, so it \
             will not help to make it again: do something else, or end with {}.",
            task.repeat.count, role.ending
        ));
    }
    None
}

/// For bad replies without tool results, or only with results that say that a tool does not exist.
fn about_bad_reply(task: &Task, turn: &Turn) -> String {
    let example = example(task);
    if !turn.results.is_empty() {
        return format!("Call one tool now, for example {example}.");
    }
    let role = &task.started.role;
    let what = match (&turn.reply.stop, turn.reply.text()) {
        (Stop::Truncated, _) => "Your last reply was cut off before it called a tool, so nothing was done.",
        (_, text) if written_call(&text, &role.tools) => {
            "Your last reply had a tool call written out as text, which is never executed, so nothing was done."
        }
        (_, _) => "Your last reply called no tool, so nothing was done.",
    };
    let tools = role.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ");
    format!("{what} Nobody reads text. Call one tool now, for example {example}. The tools are: {tools}.")
}

/// A call that can be copied unchanged: a file that the model knows, or one of the repository; else a list.
fn example(task: &Task) -> String {
    let role = &task.started.role;
    let known = task.seen.keys().next_back().cloned().or_else(|| top_file(task));
    match known {
        Some(path) if role.offers(ToolName::ReadFile).is_some() => {
            format!("{} with {}", ToolName::ReadFile, serde_json::json!({ "path": path }))
        }
        _ if role.offers(ToolName::ListFiles).is_some() => format!("{} with {{}}", ToolName::ListFiles),
        _ => role.ending.to_string(),
    }
}

/// A file at the top of the worktree, or in one of its directories, as the description of the workspace names it.
fn top_file(task: &Task) -> Option<String> {
    let workspace = &task.ready.as_ref()?.workspace;
    let tree = workspace.lines().skip(1).take_while(|line| !line.is_empty());
    let (mut directory, mut nested) = (None, None);
    for line in tree.filter(|line| !line.contains('?') && !line.starts_with('…')) {
        match (line.strip_prefix("  "), line.ends_with('/')) {
            (None, true) => directory = Some(line),
            (None, false) => return Some(line.to_owned()),
            (Some(name), false) => nested = nested.or_else(|| Some(format!("{}{name}", directory?))),
            (Some(_), true) => {}
        }
    }
    nested
}
