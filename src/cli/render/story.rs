//! Events as sentences.

use super::{first_line, grouped, tail};
use crate::{
    commands::result::{kept_aside, left_out},
    domain::{
        amount::{counted, span},
        command_line,
        event::{Event, EventKind, ResultStatus},
        gate::Answer,
        intent::{Advance, IntentKind, SwitchTo},
        message::{Call, Part, Reply, Stop},
        outcome::{End, Pause},
        repetition,
    },
};

/// The lines for an event; none if it says nothing to a reader.
#[must_use]
pub fn lines(event: &Event) -> Vec<String> {
    match &event.kind {
        EventKind::TaskStarted(started) => vec![
            format!(
                "{} on {} ({}, {} route), up to {}, {} tokens, {}{}",
                started.role.name,
                started.models.own.alias,
                started.models.own.backing,
                started.models.own.route,
                counted(u64::from(started.caps.turns), "turn"),
                grouped(started.caps.tokens),
                span(started.caps.time_ms),
                started.caps.cost.map_or_else(String::new, |cost| format!(", {cost}")),
            ),
            format!("task: {}", first_line(started.brief(), 200)),
        ],
        EventKind::WorktreeReady { snapshot, dirty, notices, .. } => {
            let unfinished = if *dirty { ", with your uncommitted work" } else { "" };
            let mut lines = vec![format!("starts from {}{unfinished}", snapshot.short())];
            lines.extend(notices.iter().map(|notice| format!("note: {notice}")));
            lines
        }
        EventKind::RequestSent { request, turn, estimated_input, .. } => {
            vec![format!("turn {turn}: request {request}, about {} tokens", grouped(*estimated_input))]
        }
        EventKind::RequestEnded { trouble, message, retry_in_ms, .. } => {
            let then = asking_again(*retry_in_ms);
            vec![format!("no reply: {trouble}: {}{then}", first_line(message, 240))]
        }
        EventKind::RequestWithheld { cap, estimated_input } => {
            let of = grouped(*estimated_input);
            vec![format!("the {cap} cap leaves no room for the next request (about {of} input tokens)")]
        }
        EventKind::ContextEvicted { through_turn } => {
            vec![format!(
                "the context window is full: requests no longer include the tool results of turns 1 to {through_turn}"
            )]
        }
        EventKind::ReplyReceived { reply, .. } => {
            let mut lines: Vec<String> = reply
                .parts
                .iter()
                .filter_map(|part| match part {
                    Part::Text(text) if !text.trim().is_empty() => Some(format!("says: {}", first_line(text, 200))),
                    Part::Call(call) => Some(format!("calls {}", shown_call(call))),
                    Part::Text(_) | Part::Reasoning(_) => None,
                })
                .collect();
            lines.extend(remarks(reply));
            lines
        }
        EventKind::Nudged { text } => vec![format!("told: {}", first_line(text, 200))],
        EventKind::IntentOpened { kind, .. } => match kind {
            IntentKind::Squash { to, .. } => vec![format!("squashes the branch into one commit: {}", to.short())],
            IntentKind::Discard { tip, .. } => vec![format!("discards the branch at {}", tip.short())],
            IntentKind::Apply { before, advance, .. } => {
                let how = match advance {
                    Some(Advance { branch, to, .. }) => format!("fast-forwards {branch} to {}", to.short()),
                    None => "applies the files to your checkout".to_owned(),
                };
                vec![format!("{how} (before: {})", before.short())]
            }
            IntentKind::UserCommit(_) => vec!["commits the work in your name".to_owned()],
            IntentKind::PutBack { .. } => vec!["restores your checkout".to_owned()],
            IntentKind::Task
            | IntentKind::FileEdit { .. }
            | IntentKind::Command { .. }
            | IntentKind::Check { .. }
            | IntentKind::CleanUp => Vec::new(),
            IntentKind::CheckoutSwitch { way: SwitchTo::TaskBranch, .. } => {
                vec!["switches the checkout to the task's branch".to_owned()]
            }
            IntentKind::CheckoutSwitch { way: SwitchTo::Original { .. }, .. } => {
                vec!["switches the checkout back".to_owned()]
            }
        },
        EventKind::IntentSettled { cause: None, .. } | EventKind::TurnEnded { .. } => Vec::new(),
        EventKind::SpanStarted { cause } | EventKind::IntentAbandoned { cause, .. } => vec![cause.clone()],
        EventKind::ToolResult(result) => {
            let how = match result.status {
                ResultStatus::Done => "",
                ResultStatus::Failed => "failed: ",
                ResultStatus::Refused => "refused: ",
                ResultStatus::Unreadable => "unusable: ",
                ResultStatus::NotRun => "not run: ",
            };
            let at = result.checkpoint.as_ref().map_or_else(String::new, |at| format!(" [{}]", at.short()));
            vec![format!("  {how}{}{at}", first_line(&result.content, 160))]
        }
        EventKind::EndingAccepted { note, .. } => {
            let claim = if note.claims_success() { "done" } else { "not done" };
            vec![format!("hands back as {claim}: {}", first_line(&note.handback().now_true, 200))]
        }
        EventKind::SetupRan { command, status, duration_ms, output_tail } => {
            ran("setup", command, *status, *duration_ms, output_tail)
        }
        EventKind::CheckRan { command, status, duration_ms, output_tail, .. } => {
            ran("check", command, *status, *duration_ms, output_tail)
        }
        EventKind::GateAnswered { answer } => vec![
            match answer {
                Answer::Rollback => "you decided: restore the last checkpoint",
                Answer::Keep => "you decided: keep the files as they are",
                Answer::Drop => "you gave up the task",
            }
            .to_owned(),
        ],
        EventKind::Recovered { cause, .. } | EventKind::IntentSettled { cause: Some(cause), .. } => {
            vec![format!("recovery: {cause}")]
        }
        EventKind::FilesChanged { paths } => {
            vec![format!("changed by something other than the task: {}", paths.join(", "))]
        }
        EventKind::WorktreeRepaired { what } => {
            vec![format!("restored the worktree's {}, which something had changed", what.join(" and "))]
        }
        EventKind::RepositoryChanged { changes } => changes.iter().map(ToString::to_string).collect(),
        EventKind::UncommittableMade { paths } => {
            vec![format!("created something that no commit can hold: {}", paths.join(", "))]
        }
        EventKind::KeptAside { paths, place } => {
            vec![kept_aside(place, paths)]
        }
        EventKind::LocksRemoved { locks } => {
            vec![format!("removed git lock files that processes of this task had left: {}", locks.join(", "))]
        }
        EventKind::LeftOut { paths } => {
            vec![left_out(paths)]
        }
        EventKind::TaskPaused { pause, cause } => {
            let word = match pause {
                Pause::Interrupted => "interrupted",
                Pause::Gated => "waits for you",
                Pause::Stopped => "stopped",
            };
            vec![format!("{word}: {cause}")]
        }
        EventKind::TaskEnded { end, cause } => {
            let word = match end {
                End::Handback => "handed back",
                End::Failed => "failed",
                End::Capped(_) => "capped",
                End::Dropped => "dropped",
            };
            let link = if cause.starts_with("not checked") { ", " } else { ": " };
            vec![format!("{word}{link}{cause}")]
        }
    }
}

/// Remarks on an unusual reply.
#[must_use]
pub fn remarks(reply: &Reply) -> Vec<String> {
    let mut lines = match &reply.stop {
        Stop::Truncated if repetition::ends_repeating(reply) => {
            vec!["the reply repeated itself endlessly and was stopped".to_owned()]
        }
        Stop::Truncated => vec!["the reply was cut off by its output limit".to_owned()],
        Stop::Declined(text) => vec![format!("the model declined: {}", first_line(text, 200))],
        Stop::Calls | Stop::End => Vec::new(),
    };
    if let Some(who) = reply.fallback() {
        lines.push(format!("answered by {} ({}) instead", who.alias, who.backing));
    }
    lines
}

/// What follows a request without a reply.
#[must_use]
pub fn asking_again(retry_in_ms: Option<u64>) -> String {
    match retry_in_ms {
        None => String::new(),
        Some(0) => "; asking again at once".to_owned(),
        Some(ms) => format!("; asking again in {}", span(ms)),
    }
}

/// The most lines of a failed command's output.
const MOST_LINES: usize = 10;

/// How a check or setup command ended, and the end of its output if it failed.
fn ran(what: &str, command: &str, status: Option<i32>, duration_ms: u64, output: &str) -> Vec<String> {
    let how = match status {
        Some(0) => "passed".to_owned(),
        Some(status) => format!("failed with status {status}"),
        None => "was killed".to_owned(),
    };
    let shown = first_line(&command_line::one_line(command), 100);
    let mut lines = vec![format!("{what} `{shown}` {how} after {}", span(duration_ms))];
    if status != Some(0) {
        lines.extend(tail(output, MOST_LINES).iter().map(|line| format!("  │ {line}")));
    }
    lines
}

/// A call in a few words: its name and its most telling argument.
#[must_use]
pub fn shown_call(call: &Call) -> String {
    let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let told = ["path", "command", "pattern", "glob", "changed"]
        .into_iter()
        .find_map(|name| arguments.get(name).and_then(serde_json::Value::as_str))
        .unwrap_or_default();
    let told = first_line(&command_line::one_line(told), 80);
    if told.is_empty() { call.name.clone() } else { format!("{} {told}", call.name) }
}
