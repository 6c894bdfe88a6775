//! Renders the request from the log alone.
//!
//! Between two evictions, messages are only appended, so that prompt caches hit. An eviction is an event, so a resume renders
//! the same bytes; it replaces only results of old turns by stubs of one line (in the fold).

use std::{collections::BTreeMap, sync::Arc};

use crate::domain::{
    event::{ResultStatus, ToolResult},
    id::CallId,
    message::Part,
    reasoning::Reasoning,
    task::{Task, Turn},
    wording::Wording,
};
use crate::ports::llm::{Answer, AssistantPart, Message, Request};

/// Rendered messages of earlier turns. They stay valid until results are left out of them or another model answers.
#[derive(Debug, Default)]
pub struct View {
    evicted_through: u32,
    answering: Option<String>,
    brief: Option<Arc<Message>>,
    turns: Vec<Vec<Arc<Message>>>,
}

impl View {
    /// Drops what would now be rendered differently.
    fn bring_up_to_date(&mut self, task: &Task) {
        let same = self.evicted_through == task.evicted_through && self.answering.as_deref() == task.answering();
        if !same || self.turns.len() > task.turns.len() {
            *self = Self {
                evicted_through: task.evicted_through,
                answering: task.answering().map(str::to_owned),
                ..Self::default()
            };
        }
    }
}

/// The next request of a task, with the model's own output limit.
pub(super) fn request(task: &Task, view: &mut View) -> Request {
    let started = &task.started;
    let number = task.requests + 1;
    Request {
        id: format!("{}-{number}", task.id),
        turn: task.last_turn().map_or(0, |turn| turn.number) + 1,
        model: started.models.own.clone(),
        system: started.role.prompt.clone(),
        tools: started.role.tools.clone(),
        messages: messages(task, view),
        max_output: started.models.own.max_output,
        reasoning: reasoning(task),
        require_call: !task.tool_choice_dropped,
        fallbacks: started.role.fallbacks,
        vendor_ids: task
            .turns
            .iter()
            .flat_map(|turn| turn.reply.calls().filter_map(|call| call.vendor_id.clone()))
            .collect(),
    }
}

fn messages(task: &Task, view: &mut View) -> Vec<Arc<Message>> {
    view.bring_up_to_date(task);
    let brief = Message::User(brief(task));
    let shared = view.brief.take().filter(|shared| **shared == brief).unwrap_or_else(|| Arc::new(brief));
    let mut messages = vec![Arc::clone(&shared)];
    view.brief = Some(shared);
    for (index, turn) in task.turns.iter().enumerate() {
        if let Some(rendered) = view.turns.get(index) {
            messages.extend(rendered.iter().cloned());
            continue;
        }
        let rendered = of_turn(task, turn);
        messages.extend(rendered.iter().cloned());
        if turn.closed && view.turns.len() == index {
            view.turns.push(rendered);
        }
    }
    messages
}

fn of_turn(task: &Task, turn: &Turn) -> Vec<Arc<Message>> {
    let wire_ids = wire_ids(task, turn);
    let wording = &task.started.wording;
    let mut messages: Vec<_> = assistant(task, turn, &wire_ids).into_iter().collect();
    if messages.is_empty()
        && !turn.nudges.is_empty()
        && let Some(text) = wording.for_empty().map(str::to_owned)
    {
        messages.push(Message::Assistant { parts: vec![AssistantPart::Text(text.clone())], text });
    }
    let mut answers: Vec<Answer> = turn.results.iter().map(|result| answer(result, &wire_ids)).collect();
    match answers.last_mut() {
        Some(last) if wording.tells_within_results() => {
            for text in &turn.nudges {
                last.content.push_str("\n\n");
                last.content.push_str(text);
            }
            messages.push(Message::Results(answers));
        }
        Some(_) | None => {
            if !answers.is_empty() {
                messages.push(Message::Results(answers));
            }
            messages.extend(turn.nudges.iter().map(|text| Message::User(text.clone())));
        }
    }
    messages.into_iter().map(Arc::new).collect()
}

fn brief(task: &Task) -> String {
    let started = &task.started;
    let workspace = task.ready.as_ref().map_or("", |ready| ready.workspace.as_str());
    opening(&started.wording, started.brief(), &started.checks, workspace)
}

/// The first message: the brief, the checks, and the repository.
pub(super) fn opening(wording: &Wording, brief: &str, checks: &[String], workspace: &str) -> String {
    let mut text = format!("{}\n\n{}\n", wording.task, brief.trim());
    if !checks.is_empty() {
        text.push('\n');
        text.push_str(&wording.checks);
        text.push('\n');
        for check in checks {
            text.push_str("\n    ");
            text.push_str(check);
        }
        text.push('\n');
    }
    if !workspace.is_empty() {
        text.push('\n');
        text.push_str(&wording.repository);
        text.push_str("\n\n");
        text.push_str(workspace);
    }
    text
}

/// The vendor's id goes back only to the model that minted it.
fn wire_ids(task: &Task, turn: &Turn) -> BTreeMap<CallId, String> {
    let same_model = task.is_its_own(turn);
    turn.reply
        .calls()
        .map(|call| {
            let vendors = call.vendor_id.clone().filter(|_| same_model);
            (call.id.clone(), vendors.unwrap_or_else(|| call.id.0.clone()))
        })
        .collect()
}

/// None if nothing is left that may be sent: vendors refuse empty messages.
fn assistant(task: &Task, turn: &Turn, wire_ids: &BTreeMap<CallId, String>) -> Option<Message> {
    let has_calls = turn.reply.calls().next().is_some();
    let text = turn.reply.text();
    if !has_calls && text.trim().is_empty() {
        return None;
    }
    if !has_calls && let Some(text) = task.started.wording.for_useless(&text, &turn.reply.stop) {
        return Some(Message::Assistant { parts: vec![AssistantPart::Text(text.clone())], text });
    }
    // reasoning stands for the calls that follow from it; alone, or for another model, it is refused
    let with_reasoning = has_calls && task.is_its_own(turn);
    let parts = turn
        .reply
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => (!text.trim().is_empty()).then(|| AssistantPart::Text(text.clone())),
            Part::Reasoning(raw) => with_reasoning.then(|| AssistantPart::Reasoning(raw.clone())),
            Part::Call(call) => {
                let wire_id = wire_ids.get(&call.id).unwrap_or(&call.id.0).clone();
                let mut call = call.clone();
                // what cannot go back as it was written takes no room
                if call.replayable_arguments() != call.arguments {
                    call.arguments = call.replayable_arguments().to_owned();
                }
                if !with_reasoning {
                    call.vendor = None;
                }
                Some(AssistantPart::Call { wire_id, call })
            }
        })
        .collect();
    Some(Message::Assistant { text, parts })
}

fn answer(result: &ToolResult, wire_ids: &BTreeMap<CallId, String>) -> Answer {
    Answer {
        call: result.call.clone(),
        wire_id: wire_ids.get(&result.call).unwrap_or(&result.call.0).clone(),
        content: result.content.clone(),
        is_error: result.status != ResultStatus::Done,
    }
}

/// The bytes saved in a request if the results of this turn are stubs.
pub(super) fn saved_by_stubs(turn: &Turn, wording: &Wording) -> u64 {
    let saved = |result: &ToolResult| turn.stub(result, wording).map_or(0, |stub| result.content.len() - stub.len());
    turn.results.iter().map(|result| saved(result) as u64).sum()
}

/// The effort to ask for: a history whose last reasoning is another model's, or was left out with it, goes without.
///
/// A vendor refuses reasoning after calls that were made without it; so after another model has answered, requests do not
/// ask for reasoning until the model has reasoned again by itself.
fn reasoning(task: &Task) -> Reasoning {
    for turn in task.turns.iter().rev().filter(|turn| turn.reply.calls().next().is_some()) {
        if !task.is_its_own(turn) {
            return Reasoning::Off;
        }
        if turn.reply.parts.iter().any(|part| matches!(part, Part::Reasoning(_))) {
            break;
        }
    }
    task.started.models.own.reasoning
}
