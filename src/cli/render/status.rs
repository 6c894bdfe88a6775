//! The status of a run in one line: the turn, the current action, what was spent and what is left; and streamed output.

use std::time::{Duration, Instant};

use unicode_width::UnicodeWidthStr as _;

use super::{first_line, live::cut, plain};
use crate::{
    commands::settings::units::about,
    domain::{
        amount::{short, span},
        command_line,
        event::{Event, EventKind},
        intent::Runs,
        task::Task,
    },
    ports::llm::Delta,
};

/// An action that takes longer than this is reported with its time.
const LONG: Duration = Duration::from_secs(10);
/// The most columns: a line that is not full stays one line when the terminal becomes narrower.
const WIDEST: usize = 120;
/// A reply that streams nothing for longer than this is reported as silent.
const SILENT: Duration = Duration::from_secs(3);
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// The status of a run.
pub(super) struct Status {
    began: Instant,
    /// The current action, if it is worth showing, and its start.
    doing: Option<String>,
    since: Instant,
    /// Its duration when it was last reported.
    told: Duration,
    /// Checks of the current ending call that have run.
    checked: usize,
    facts: Option<Facts>,
    awaits: Awaits,
    /// What has been streamed of the current reply.
    heard: Option<Heard>,
    /// What is being streamed: the call so far, or a command's last line.
    arriving: Option<String>,
}

/// What may be streamed now. Pieces may come late, after the event that ends it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaits {
    Nothing,
    Reply,
    Output,
}

/// What has been streamed of a reply.
struct Heard {
    bytes: u64,
    last: Instant,
}

struct Facts {
    alias: String,
    turn: u32,
    turns: u32,
    spent: String,
    left: Duration,
    at: Instant,
}

impl Status {
    /// Before the first event.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            began: now,
            doing: Some("starting".to_owned()),
            since: now,
            told: Duration::ZERO,
            checked: 0,
            facts: None,
            awaits: Awaits::Nothing,
            heard: None,
            arriving: None,
        }
    }

    /// Takes note of an event.
    pub(super) fn see(&mut self, event: &Event, task: &Task, now: Instant) {
        let last = task.last_turn().map_or(0, |turn| turn.number);
        let left_ms = task.started.caps.time_ms.saturating_sub(event.spent_ms);
        self.facts = Some(Facts {
            alias: plain(&task.started.models.own.alias),
            turn: task.request.map_or(last, |request| request.turn),
            turns: task.started.caps.turns,
            spent: spent(task, short),
            left: Duration::from_millis(left_ms),
            at: now,
        });
        (self.heard, self.arriving) = (None, None);
        if let Some(awaits) = awaited_after(&event.kind) {
            self.awaits = awaits;
        }
        match &event.kind {
            EventKind::TaskStarted(_) => {
                let setup = task.started.workplace.setup.as_ref();
                let setup = setup.map_or_else(String::new, |line| {
                    format!(", then {}", first_line(&command_line::one_line(line), 80))
                });
                self.does(&format!("making the worktree{setup}"), now);
            }
            EventKind::SpanStarted { .. } => self.does("checking the worktree", now),
            EventKind::RequestSent { .. } => self.does(&format!("waiting for {}", task.started.models.own.alias), now),
            EventKind::RequestEnded { retry_in_ms: Some(_), .. } => self.does("waiting before the next attempt", now),
            EventKind::IntentOpened { kind, .. } => match kind.runs() {
                Runs::Command(command) => {
                    self.does(&format!("running {}", first_line(&command_line::one_line(command), 80)), now);
                }
                Runs::Checks => {
                    self.checked = 0;
                    self.checks(task, now);
                }
                Runs::Nothing => self.doing = None,
            },
            EventKind::CheckRan { .. } => {
                self.checked += 1;
                self.checks(task, now);
            }
            EventKind::WorktreeReady { .. }
            | EventKind::SetupRan { .. }
            | EventKind::RequestEnded { .. }
            | EventKind::ReplyReceived { .. }
            | EventKind::IntentSettled { .. }
            | EventKind::IntentAbandoned { .. }
            | EventKind::TaskPaused { .. }
            | EventKind::TaskEnded { .. } => self.doing = None,
            EventKind::RequestWithheld { .. }
            | EventKind::ContextEvicted { .. }
            | EventKind::Nudged { .. }
            | EventKind::GateAnswered { .. }
            | EventKind::ToolResult(_)
            | EventKind::EndingAccepted { .. }
            | EventKind::TurnEnded { .. }
            | EventKind::FilesChanged { .. }
            | EventKind::WorktreeRepaired { .. }
            | EventKind::RepositoryChanged { .. }
            | EventKind::UncommittableMade { .. }
            | EventKind::KeptAside { .. }
            | EventKind::LocksRemoved { .. }
            | EventKind::LeftOut { .. }
            | EventKind::Recovered { .. } => {}
        }
    }

    /// The check that runs now.
    fn checks(&mut self, task: &Task, now: Instant) {
        let all = &task.started.checks;
        match all.get(self.checked) {
            Some(line) => {
                let which = if all.len() > 1 { format!(" {}/{}", self.checked + 1, all.len()) } else { String::new() };
                self.does(&format!("check{which}: {}", first_line(&command_line::one_line(line), 80)), now);
            }
            None => self.doing = None,
        }
    }

    /// A piece of the reply has come.
    pub(super) fn hears(&mut self, delta: &Delta, now: Instant) {
        if self.awaits != Awaits::Reply {
            return;
        }
        let more = match delta {
            Delta::Text(text) | Delta::Reasoning(text) => {
                self.arriving = None;
                text.len() as u64
            }
            Delta::Call { name, bytes, more } => {
                self.arriving = Some(format!("→ {} {}", plain(name), about(*bytes)));
                *more
            }
        };
        let bytes = self.heard.as_ref().map_or(0, |heard| heard.bytes) + more;
        self.heard = Some(Heard { bytes, last: now });
    }

    /// The running command has said something.
    pub(super) fn says(&mut self, line: &str) {
        if self.awaits == Awaits::Output {
            self.arriving = Some(format!("│ {}", plain(&line.replace('\t', "    "))));
        }
    }

    /// What is being streamed, if anything.
    pub(super) fn arriving(&self) -> Option<&str> {
        self.arriving.as_deref()
    }

    /// The current action, how much of a reply has been streamed, and how long the action has taken.
    fn doing(&self, now: Instant) -> Option<(String, String, String)> {
        let doing = self.doing.as_ref()?;
        let lasted = now.saturating_duration_since(self.since);
        let time =
            if lasted >= Duration::from_secs(2) { format!(" ({})", span(millis(lasted))) } else { String::new() };
        let (Some(heard), Some(facts)) = (&self.heard, &self.facts) else {
            return Some((doing.clone(), String::new(), time));
        };
        let silent = now.saturating_duration_since(heard.last);
        let came = about(heard.bytes);
        Some(if silent < SILENT {
            (format!("{} is writing", facts.alias), format!(", {came}"), time)
        } else {
            ("silent".to_owned(), format!(" for {} after {came}", span(millis(silent))), String::new())
        })
    }

    /// A line about an action that takes long: after 10 s, 30 s, and then every minute.
    pub(super) fn long(&mut self, now: Instant) -> Option<String> {
        let lasted = now.saturating_duration_since(self.since);
        let next = match self.told.as_secs() {
            0..10 => LONG,
            10..30 => Duration::from_secs(30),
            told => Duration::from_secs((told / 60 + 1) * 60),
        };
        let (doing, came, _) = self.doing(now).filter(|_| lasted >= next)?;
        self.told = lasted;
        let said = self.arriving.as_ref().map_or_else(String::new, |said| format!(": {said}"));
        Some(format!("{doing}{came}: {} so far{said}", span(millis(lasted))))
    }

    /// The live line, in at most `columns`. The action is cut first.
    pub(super) fn line(&self, now: Instant, columns: usize) -> String {
        let columns = columns.min(WIDEST);
        let frame = millis(now.saturating_duration_since(self.began)) / 100 % SPINNER.len() as u64;
        let spinner = usize::try_from(frame).ok().and_then(|frame| SPINNER.get(frame)).unwrap_or(&" ");
        let (doing, came, time) = self.doing(now).unwrap_or_default();
        let time = format!("{came}{time}");
        let Some(facts) = &self.facts else { return cut(&format!("{spinner} {doing}{time}"), columns) };
        let head = format!("{spinner} turn {}/{}  {}", facts.turn.max(1), facts.turns, facts.spent);
        let left = facts.left.saturating_sub(now.saturating_duration_since(facts.at));
        let tail = format!("  {} left", remaining(left));
        let room = columns.saturating_sub(head.width() + tail.width() + time.width() + 2);
        if room >= 8 {
            let doing = cut(&doing, room);
            return if doing.is_empty() { format!("{head}{tail}") } else { format!("{head}{tail}  {doing}{time}") };
        }
        cut(&format!("{head}  {doing}{time}"), columns)
    }

    fn does(&mut self, what: &str, now: Instant) {
        (self.doing, self.since, self.told) = (Some(plain(what)), now, Duration::ZERO);
    }
}

/// What may be streamed after an event; none if the event does not change that.
fn awaited_after(event: &EventKind) -> Option<Awaits> {
    match event {
        EventKind::RequestSent { .. } => Some(Awaits::Reply),
        EventKind::TaskStarted(_) | EventKind::SpanStarted { .. } => Some(Awaits::Output),
        EventKind::IntentOpened { kind, .. } => Some(match kind.runs() {
            Runs::Command(_) | Runs::Checks => Awaits::Output,
            Runs::Nothing => Awaits::Nothing,
        }),
        EventKind::WorktreeReady { .. }
        | EventKind::RequestEnded { .. }
        | EventKind::ReplyReceived { .. }
        | EventKind::ToolResult(_)
        | EventKind::IntentSettled { .. }
        | EventKind::IntentAbandoned { .. }
        | EventKind::TurnEnded { .. }
        | EventKind::TaskPaused { .. }
        | EventKind::TaskEnded { .. } => Some(Awaits::Nothing),
        EventKind::SetupRan { .. }
        | EventKind::CheckRan { .. }
        | EventKind::RequestWithheld { .. }
        | EventKind::ContextEvicted { .. }
        | EventKind::Nudged { .. }
        | EventKind::GateAnswered { .. }
        | EventKind::EndingAccepted { .. }
        | EventKind::FilesChanged { .. }
        | EventKind::WorktreeRepaired { .. }
        | EventKind::RepositoryChanged { .. }
        | EventKind::UncommittableMade { .. }
        | EventKind::KeptAside { .. }
        | EventKind::LocksRemoved { .. }
        | EventKind::LeftOut { .. }
        | EventKind::Recovered { .. } => None,
    }
}

/// Whole minutes if there are several.
fn remaining(left: Duration) -> String {
    match left.as_secs() {
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        _ => span(millis(left)),
    }
}

/// Tokens, written as `number` says, and the cost where it is known.
pub(super) fn spent(task: &Task, number: fn(u64) -> String) -> String {
    let tokens = format!("{} tokens", number(task.spend.usage.total()));
    if task.spend.cost_unknown { tokens } else { format!("{tokens}  {}", task.spend.cost) }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(what: &str, begun: Instant) -> Status {
        let facts = Facts {
            alias: "strong".into(),
            turn: 3,
            turns: 30,
            spent: "12.3k tokens  $0.0123".into(),
            left: Duration::from_mins(12),
            at: begun,
        };
        let mut status = Status { facts: Some(facts), ..Status::new(begun) };
        status.does(what, begun);
        status
    }

    #[test]
    fn the_line_fits_and_says_what_runs_and_what_is_left() {
        let begun = Instant::now();
        let status = running("running cargo test --workspace --all-features", begun);
        let later = begun + Duration::from_secs(12);
        let line = status.line(later, 200);
        for part in ["turn 3/30", "12.3k tokens", "$0.0123", "11 min left", "--all-features (12 s)"] {
            assert!(line.contains(part), "{line}");
        }
        for columns in 19..130 {
            assert!(status.line(later, columns).width() <= columns, "{columns}");
        }
        assert!(status.line(later, 79).ends_with("(12 s)"), "{}", status.line(later, 79));
    }

    #[test]
    fn a_reply_that_stops_to_come_is_said_to_be_silent() {
        let begun = Instant::now();
        let mut status = running("waiting for strong", begun);
        let at = |seconds| begun + Duration::from_secs(seconds);
        assert!(status.line(at(42), 80).ends_with("waiting for strong (42 s)"), "{}", status.line(at(42), 80));
        status.hears(&Delta::Text("of an earlier one".into()), at(42));
        assert!(status.heard.is_none());
        status.awaits = Awaits::Reply;
        status.hears(&Delta::Text("x".repeat(1200)), at(42));
        assert!(status.line(at(43), 80).ends_with("strong is writing, 1 kB (43 s)"), "{}", status.line(at(43), 80));
        status.hears(&Delta::Call { name: "write_file".into(), bytes: 3_000, more: 1_000 }, at(44));
        assert_eq!(status.arriving(), Some("→ write_file 3 kB"));
        let line = status.line(at(90), 80);
        assert!(line.ends_with("silent for 46 s after 2 kB"), "{line}");
        assert_eq!(status.long(at(90)).unwrap(), "silent for 46 s after 2 kB: 90 s so far: → write_file 3 kB");
    }

    #[test]
    fn what_lasts_is_told_after_ten_seconds_and_then_ever_less_often() {
        let begun = Instant::now();
        let mut status = running("running make", begun);
        let told: Vec<u64> =
            (0..200).filter(|second| status.long(begun + Duration::from_secs(*second)).is_some()).collect();
        assert_eq!(told, [10, 30, 60, 120, 180]);
    }

    /// What the live line shows, and what arrives below it, where a run may be for long.
    #[test]
    fn every_long_state_has_its_line_on_every_screen() {
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let state = |what: &str, awaits, heard: &[Delta], says: Option<&str>| {
            let mut status = running(what, begun);
            status.awaits = awaits;
            for delta in heard {
                status.hears(delta, at(40));
            }
            if let Some(line) = says {
                status.says(line);
            }
            status
        };
        let call = Delta::Call { name: "write_file".into(), bytes: 24_000, more: 24_000 };
        let said = "test pages::the_last_page_is_counted_where_it_is_not_full ... ok";
        let command = "running cargo test --workspace --all-features -- --include-ignored";
        let shown = |columns: usize| {
            let mut text = String::new();
            for (status, seconds) in [
                (state("waiting for strong", Awaits::Reply, &[], None), 9),
                (state("waiting for strong", Awaits::Reply, &[Delta::Text("x".repeat(2400))], None), 41),
                (state("waiting for strong", Awaits::Reply, std::slice::from_ref(&call), None), 42),
                (state("waiting for strong", Awaits::Reply, std::slice::from_ref(&call), None), 95),
                (state(command, Awaits::Output, &[], Some(said)), 75),
                (state("check 2/3: make lint", Awaits::Output, &[], Some("checking src/page.rs")), 8),
            ] {
                let below = status.arriving().map(|arrives| cut(arrives, columns - 1));
                for line in std::iter::once(status.line(at(seconds), columns - 1)).chain(below) {
                    text.push_str(&line);
                    text.push('\n');
                }
            }
            text
        };
        let all: String = [80, 100, 120, 200].map(|columns| format!("{columns} columns\n{}", shown(columns))).concat();
        let kept = "../../../tests/it/snapshots";
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true, snapshot_path => kept }, {
            insta::assert_snapshot!("live_line", all);
        });
    }
}
