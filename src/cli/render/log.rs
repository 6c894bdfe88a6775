//! `nisse log TASK`: the events of one task.

use clap::builder::styling::Style;

use super::{
    Manner, Width, data, json,
    layout::{BOLD, DIM, GREEN, RED, YELLOW},
    live::{cut, wrap},
    moment, plain, story, try_data,
};
use crate::domain::{
    amount::span,
    event::{Event, EventKind, ResultStatus},
    message::Part,
    outcome::{End, Outcome},
    task::Task,
};

/// The most columns of the story's text, beside the times.
const TEXT: usize = 88;
/// Columns of the times, with the space after them.
const TIMES: usize = 13;

/// One task's events as text, or with `--json` in one document.
///
/// `held`: a process is working on it.
pub fn one(manner: Manner, task: &Task, events: &[Event], held: bool) {
    if manner.json {
        let events: Vec<_> = events.iter().map(json::event).collect();
        let outcome = task.outcome().map_or("pending", |outcome| outcome.word());
        let document = serde_json::json!({
            "v": 1, "type": "log", "task": task.id, "outcome": outcome, "running": held, "events": events,
        });
        data(manner, &document.to_string());
        return;
    }
    let mut teller = Teller::new(manner);
    for event in events {
        if !teller.tell(event) {
            return;
        }
    }
    if held {
        data(manner, &format!("\nanother process is working on it; to follow it: nisse log --follow {:#}", task.id));
    } else {
        teller.end(task);
    }
}

/// Prints a task's events one after the other.
pub struct Teller {
    manner: Manner,
    width: Width,
    turn: u32,
}

impl Teller {
    /// Nothing printed yet.
    #[must_use]
    pub fn new(manner: Manner) -> Self {
        Self { manner, width: Width::of_stdout(), turn: 0 }
    }

    /// Prints an event; false if the reader has closed the pipe.
    pub fn tell(&mut self, event: &Event) -> bool {
        if self.manner.json {
            return try_data(self.manner, &json::event(event).to_string()).is_ok();
        }
        self.lines(event).iter().all(|line| try_data(self.manner, line).is_ok())
    }

    /// Prints what to do next.
    pub fn end(&self, task: &Task) {
        if self.manner.json {
            return;
        }
        let way_on = match task.outcome() {
            Some(Outcome::Ended { .. }) => return,
            Some(Outcome::Paused { .. }) if task.asks_about_files() => {
                format!("to resume it, choose: nisse resume {:#} --rollback, --keep or --drop", task.id)
            }
            Some(Outcome::Paused { .. }) => format!("to resume it: nisse resume {:#}", task.id),
            None => format!("no process is working on it; to resume it: nisse resume {:#}", task.id),
        };
        data(self.manner, &format!("\n{way_on}"));
    }

    fn lines(&mut self, event: &Event) -> Vec<String> {
        let mut told = Vec::new();
        let plainly = |lines: Vec<String>| lines.into_iter().map(|line| (Style::new(), line)).collect::<Vec<_>>();
        match &event.kind {
            EventKind::TaskStarted(started) => {
                told.push(format!("{BOLD}task {:#}{BOLD:#}", event.task));
                told.push(format!("branch {}, begun {}", plain(&started.workplace.branch), moment(event.at_ms)));
                told.extend(story::lines(event).iter().take(1).flat_map(|line| self.width.folded(&plain(line), 0)));
                told.push(String::new());
                told.extend(self.folded(started.brief(), 0));
                return told;
            }
            EventKind::RequestSent { turn, .. } => {
                if *turn != self.turn {
                    self.turn = *turn;
                    told.extend([String::new(), format!("{BOLD}turn {turn}{BOLD:#}")]);
                }
                if self.manner.verbose {
                    told.extend(self.timed(event, plainly(story::lines(event))));
                }
            }
            EventKind::ReplyReceived { reply, .. } => {
                let mut words = Vec::new();
                for part in &reply.parts {
                    match part {
                        Part::Text(text) => words.extend(self.folded(text, TIMES)),
                        Part::Call(call) => words.push(format!("→ {}", story::shown_call(call))),
                        Part::Reasoning(_) => {}
                    }
                }
                words.extend(story::remarks(reply));
                told.extend(self.timed(event, plainly(words)));
            }
            EventKind::ToolResult(result) => {
                let style = match result.status {
                    ResultStatus::Done => DIM,
                    ResultStatus::Failed | ResultStatus::Refused | ResultStatus::Unreadable => RED,
                    ResultStatus::NotRun => YELLOW,
                };
                let lines: Vec<String> = if self.manner.verbose {
                    result.content.lines().map(|line| format!("    {line}")).collect()
                } else {
                    story::lines(event)
                };
                told.extend(self.timed(event, lines.into_iter().map(|line| (style, line)).collect()));
            }
            EventKind::TaskEnded { end, .. } => {
                let style = match end {
                    End::Handback => GREEN,
                    End::Failed | End::Capped(_) => RED,
                    End::Dropped => BOLD,
                };
                told.push(String::new());
                told.extend(self.timed(event, story::lines(event).into_iter().map(|line| (style, line)).collect()));
            }
            EventKind::TaskPaused { .. } => {
                told.push(String::new());
                told.extend(self.timed(event, plainly(story::lines(event))));
            }
            EventKind::SetupRan { status, .. } | EventKind::CheckRan { status, .. } => {
                let style = if *status == Some(0) { GREEN } else { RED };
                told.extend(self.timed(event, story::lines(event).into_iter().map(|line| (style, line)).collect()));
            }
            EventKind::SpanStarted { .. }
            | EventKind::WorktreeReady { .. }
            | EventKind::RequestEnded { .. }
            | EventKind::RequestWithheld { .. }
            | EventKind::ContextEvicted { .. }
            | EventKind::Nudged { .. }
            | EventKind::IntentOpened { .. }
            | EventKind::IntentSettled { .. }
            | EventKind::IntentAbandoned { .. }
            | EventKind::EndingAccepted { .. }
            | EventKind::TurnEnded { .. }
            | EventKind::GateAnswered { .. }
            | EventKind::FilesChanged { .. }
            | EventKind::WorktreeRepaired { .. }
            | EventKind::RepositoryChanged { .. }
            | EventKind::UncommittableMade { .. }
            | EventKind::KeptAside { .. }
            | EventKind::LocksRemoved { .. }
            | EventKind::LeftOut { .. }
            | EventKind::Recovered { .. } => told.extend(self.timed(event, plainly(story::lines(event)))),
        }
        told
    }

    /// The lines beside the event's active time. On a terminal, output and calls are cut to the width; all else is
    /// wrapped with a hanging indent.
    fn timed(&self, event: &Event, lines: Vec<(Style, String)>) -> Vec<String> {
        let mut shown = Vec::new();
        for (style, line) in lines {
            let line = plain(&line.replace('\t', "    "));
            let is_cut = line.trim_start().starts_with(['│', '→']) || line.starts_with("  ");
            let parts = match self.width.columns() {
                Some(columns) if is_cut => vec![cut(&line, columns.saturating_sub(TIMES))],
                Some(_) | None => self.width.folded(&line, TIMES),
            };
            for part in parts {
                let at = if shown.is_empty() { span(event.spent_ms) } else { String::new() };
                shown.push(format!("{DIM}{at:>11}{DIM:#}  {style}{part}{style:#}"));
            }
        }
        shown
    }

    /// A text of several lines, each wrapped to a readable width.
    fn folded(&self, text: &str, indent: usize) -> Vec<String> {
        let most = self.width.columns().map_or(TEXT, |columns| columns.saturating_sub(indent).clamp(20, TEXT));
        let lines = text.trim().lines().flat_map(|line| wrap(&plain(line), most));
        lines.map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
    }
}
