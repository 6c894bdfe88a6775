//! What a model is told about its last reply, so that the next one is better. Pure.

use super::tools;
use crate::domain::{
    message::Stop,
    task::{Task, Turn},
};

/// The nudge for the turn that is about to be closed, if it needs one.
///
/// A nudge is an event and a message, never a change of the system prompt: what was sent before must stay a prefix.
pub(super) fn nudge(task: &Task) -> Option<String> {
    let turn = task.last_turn()?;
    // no request follows for which it could be a lesson
    if !turn.nudges.is_empty() || task.out_of_tokens.is_some() {
        return None;
    }
    let role = &task.started.role;
    if turn.is_bad() && turn.results.is_empty() {
        return Some(about_bad_reply(task, turn));
    }
    if task.repeat.count + 1 >= role.repeats && task.repeat.told == 0 {
        return Some(format!(
            "You have made the same call with the same result {} times in a row. Nothing has changed in between, so it \
             will not help to make it again: do something else, or end with {}.",
            task.repeat.count, role.ending
        ));
    }
    None
}

/// For replies whose badness no tool result tells.
fn about_bad_reply(task: &Task, turn: &Turn) -> String {
    let role = &task.started.role;
    let tools = role.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ");
    let text = turn.reply.text();
    if turn.reply.stop == Stop::Truncated {
        return format!(
            "Your last reply was cut off by its output limit of {} tokens, and nothing of it was done. Work in smaller \
             steps: write long files in several parts, and keep text short.",
            task.started.model.max_output
        );
    }
    let what = if text.trim().is_empty() {
        "Your last reply held no tool call and no text."
    } else if tools::written_call(&text) {
        "Your last reply had a tool call written out as text, which is never executed. Use the tool-calling interface \
         itself."
    } else {
        "Your last reply held no tool call."
    };
    format!(
        "{what} Every reply must call at least one of these tools: {tools}. When the work is done, or cannot be done, call \
         {}.",
        role.ending
    )
}
