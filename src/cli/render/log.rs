//! `nisse log`: the list of tasks, and one task's story.

use clap::builder::styling::{AnsiColor, Effects, Style};

use super::{Manner, data, first_line, grouped, json, live::wrap, moment, plain, say, span, story, try_data};
use crate::{
    cli::error::Report,
    commands::log::Listed,
    domain::{
        event::{Event, EventKind, ResultStatus},
        message::Part,
        outcome::Outcome,
        task::Task,
    },
};

/// Columns of the story's text, beside the times.
const TEXT: usize = 88;
const BOLD: Style = Style::new().effects(Effects::BOLD);
const DIM: Style = Style::new().effects(Effects::DIMMED);

/// The list of tasks, and what is wrong with those that cannot be read.
pub fn list(manner: Manner, tasks: &[Listed], unreadable: &[Report]) {
    unreadable.iter().flat_map(Report::lines).for_each(|line| say(manner, &line));
    if manner.json {
        let unreadable: Vec<_> = unreadable.iter().map(|report| &report.message).collect();
        data(manner, &serde_json::json!({"v": 1, "type": "log", "tasks": tasks, "unreadable": unreadable}).to_string());
        return;
    }
    for task in tasks {
        let cost = task.cost_usd.map_or_else(String::new, |usd| format!("  ${usd:.4}"));
        let turns = if task.turns == 1 { "1 turn".to_owned() } else { format!("{} turns", task.turns) };
        data(
            manner,
            &format!(
                "{}  {}  {}{:<11}{:#}  {turns:>8}  {:>9} tokens{cost}  {}",
                task.task.short(),
                moment(task.begun_ms),
                colour(task.outcome),
                task.outcome,
                colour(task.outcome),
                grouped(task.tokens),
                plain(&first_line(&task.brief, 60))
            ),
        );
    }
}

/// One task's story, or with `--json` its events in one document.
///
/// `held`: a process works on it at this moment.
pub fn one(manner: Manner, task: &Task, events: &[Event], held: bool) {
    if manner.json {
        let events: Vec<_> = events.iter().map(json::event).collect();
        let outcome = task.outcome().map_or("pending", |outcome| outcome.word());
        let document = serde_json::json!({
            "v": 1, "type": "log", "task": task.id, "outcome": outcome, "events": events,
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
        data(
            manner,
            &format!("\na process works on it at this moment; follow it with: nisse log --follow {:#}", task.id),
        );
    } else {
        teller.end(task);
    }
}

/// Tells a task's events one after the other.
pub struct Teller {
    manner: Manner,
    turn: u32,
}

impl Teller {
    /// Nothing is told yet.
    #[must_use]
    pub fn new(manner: Manner) -> Self {
        Self { manner, turn: 0 }
    }

    /// Tells an event; false if nobody listens any more.
    pub fn tell(&mut self, event: &Event) -> bool {
        if self.manner.json {
            return try_data(self.manner, &json::event(event).to_string()).is_ok();
        }
        self.lines(event).iter().all(|line| try_data(self.manner, line).is_ok())
    }

    /// What there is to do about the task now.
    pub fn end(&self, task: &Task) {
        if self.manner.json {
            return;
        }
        let way_on = match task.outcome() {
            Some(Outcome::Ended { .. }) => return,
            Some(Outcome::Paused { .. }) if task.asks_about_files() => {
                format!("it goes on with: nisse resume {:#} and one of --rollback, --keep, --drop", task.id)
            }
            Some(Outcome::Paused { .. }) => format!("it goes on with: nisse resume {:#}", task.id),
            None => format!("nobody works on it; it goes on with: nisse resume {:#}", task.id),
        };
        data(self.manner, &format!("\n{way_on}"));
    }

    fn lines(&mut self, event: &Event) -> Vec<String> {
        let mut told = Vec::new();
        match &event.kind {
            EventKind::TaskStarted(started) => {
                told.push(format!("{BOLD}task {:#}{BOLD:#}", event.task));
                told.push(format!("branch {}, begun {}", plain(&started.branch), moment(event.at_ms)));
                told.extend(story::lines(event).iter().take(1).map(|line| plain(line)));
                told.push(String::new());
                told.extend(folded(&started.brief));
                return told;
            }
            EventKind::RequestSent { turn, .. } => {
                if *turn != self.turn {
                    self.turn = *turn;
                    told.extend([String::new(), format!("{BOLD}turn {turn}{BOLD:#}")]);
                }
                if !self.manner.verbose {
                    return told;
                }
                told.extend(timed(event, story::lines(event)));
            }
            EventKind::ReplyReceived { reply, .. } => {
                let mut words = Vec::new();
                for part in &reply.parts {
                    match part {
                        Part::Text(text) => words.extend(folded(text)),
                        Part::Call(call) => words.push(format!("→ {}", plain(&story::shown_call(call)))),
                        Part::Reasoning(_) => {}
                    }
                }
                words.extend(story::remarks(reply));
                told.extend(timed(event, words));
            }
            EventKind::ToolResult(result) => {
                let style = match result.status {
                    ResultStatus::Done => DIM,
                    ResultStatus::Failed | ResultStatus::Refused | ResultStatus::Unreadable => {
                        Style::new().fg_color(Some(AnsiColor::Red.into()))
                    }
                    ResultStatus::NotRun => Style::new().fg_color(Some(AnsiColor::Yellow.into())),
                };
                let lines = if self.manner.verbose {
                    result.content.lines().map(|line| format!("    {}", plain(line))).collect()
                } else {
                    story::lines(event).iter().map(|line| plain(line)).collect::<Vec<_>>()
                };
                let lines = lines.iter().map(|line| format!("{style}{line}{style:#}")).collect();
                told.extend(timed(event, lines));
            }
            EventKind::TaskPaused { .. } | EventKind::TaskEnded { .. } => {
                told.push(String::new());
                told.extend(timed(event, story::lines(event)));
            }
            EventKind::SpanStarted { .. }
            | EventKind::SetupRan { .. }
            | EventKind::WorktreeReady { .. }
            | EventKind::RequestEnded { .. }
            | EventKind::RequestWithheld { .. }
            | EventKind::ContextEvicted { .. }
            | EventKind::Nudged { .. }
            | EventKind::IntentOpened { .. }
            | EventKind::IntentSettled { .. }
            | EventKind::IntentAbandoned { .. }
            | EventKind::EndingAccepted { .. }
            | EventKind::CheckRan { .. }
            | EventKind::TurnEnded { .. }
            | EventKind::GateAnswered { .. }
            | EventKind::FilesChanged { .. }
            | EventKind::WorktreeRepaired { .. }
            | EventKind::RepositoryChanged { .. }
            | EventKind::UncommittableMade { .. }
            | EventKind::KeptAside { .. }
            | EventKind::LocksRemoved { .. }
            | EventKind::LeftOut { .. }
            | EventKind::Recovered { .. } => {
                let lines = story::lines(event).iter().map(|line| plain(line)).collect();
                told.extend(timed(event, lines));
            }
        }
        told
    }
}

/// The lines beside the active time at which the event came.
fn timed(event: &Event, lines: Vec<String>) -> Vec<String> {
    let at = span(event.spent_ms);
    let beside = |(index, line): (usize, String)| {
        let at = if index == 0 { at.as_str() } else { "" };
        format!("{DIM}{at:>11}{DIM:#}  {line}")
    };
    lines.into_iter().enumerate().map(beside).collect()
}

/// A text of several lines, each folded to the story's width.
fn folded(text: &str) -> Vec<String> {
    text.trim()
        .lines()
        .flat_map(|line| wrap(&plain(line), TEXT))
        .map(|line| line.trim_end().to_owned())
        .filter(|line| !line.is_empty())
        .collect()
}

fn colour(outcome: &str) -> Style {
    let colour = match outcome {
        "handback" => AnsiColor::Green,
        "failed" | "capped" => AnsiColor::Red,
        _ => AnsiColor::Yellow,
    };
    Style::new().fg_color(Some(colour.into()))
}
