//! Where a run stands, in one line: the turn, what is being done, what was spent, what is left.

use std::time::{Duration, Instant};

use unicode_width::UnicodeWidthStr as _;

use super::{first_line, grouped, live::cut, plain, span};
use crate::domain::{
    event::{Event, EventKind},
    intent::IntentKind,
    task::Task,
};

/// What is being done for longer than this is named with its time.
const LONG: Duration = Duration::from_secs(10);
/// The most columns: a line that is not full stays one line when the terminal becomes narrower.
const WIDEST: usize = 120;
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Where a run stands.
pub(super) struct Status {
    began: Instant,
    /// What is being done, if it is worth a word, and since when.
    doing: Option<String>,
    since: Instant,
    /// For how long it had been done when that was last told.
    told: Duration,
    /// Checks of the current ending call that have run.
    checked: usize,
    facts: Option<Facts>,
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
        }
    }

    /// Takes note of an event.
    pub(super) fn see(&mut self, event: &Event, task: &Task, now: Instant) {
        let last = task.last_turn().map_or(0, |turn| turn.number);
        let left_ms = task.started.caps.time_ms.saturating_sub(event.spent_ms);
        self.facts = Some(Facts {
            alias: plain(&task.started.model.alias),
            turn: task.request.map_or(last, |request| request.turn),
            turns: task.started.caps.turns,
            spent: spent(task),
            left: Duration::from_millis(left_ms),
            at: now,
        });
        match &event.kind {
            EventKind::TaskStarted(_) => {
                let setup = task.started.setup.as_ref();
                let setup = setup.map_or_else(String::new, |line| format!(", then {}", first_line(line, 80)));
                self.does(&format!("making the worktree{setup}"), now);
            }
            EventKind::SpanStarted { .. } => self.does("looking at what is there", now),
            EventKind::RequestSent { .. } => self.does(&format!("waiting for {}", task.started.model.alias), now),
            EventKind::RequestEnded { retry_in_ms: Some(_), .. } => self.does("waiting to ask again", now),
            EventKind::IntentOpened { kind, .. } => match kind {
                IntentKind::Command { command, .. } => self.does(&format!("running {}", first_line(command, 80)), now),
                IntentKind::Check { .. } => {
                    self.checked = 0;
                    self.checks(task, now);
                }
                IntentKind::Task
                | IntentKind::FileEdit { .. }
                | IntentKind::Squash { .. }
                | IntentKind::Discard { .. }
                | IntentKind::CleanUp
                | IntentKind::CheckoutSwitch { .. }
                | IntentKind::Apply { .. }
                | IntentKind::Land(_)
                | IntentKind::PutBack { .. } => self.doing = None,
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

    /// The check that runs now, of those that are not behind it.
    fn checks(&mut self, task: &Task, now: Instant) {
        let all = &task.started.checks;
        match all.get(self.checked) {
            Some(line) => {
                let which = if all.len() > 1 { format!(" {}/{}", self.checked + 1, all.len()) } else { String::new() };
                self.does(&format!("check{which}: {}", first_line(line, 80)), now);
            }
            None => self.doing = None,
        }
    }

    /// The reply has begun to arrive.
    pub(super) fn writes(&mut self) {
        if let (Some(doing), Some(facts)) = (&mut self.doing, &self.facts) {
            *doing = format!("{} is writing", facts.alias);
        }
    }

    /// A word on what has been done for long: after 10 s, half a minute, and then every minute.
    pub(super) fn long(&mut self, now: Instant) -> Option<String> {
        let lasted = now.saturating_duration_since(self.since);
        let next = match self.told.as_secs() {
            0..10 => LONG,
            10..30 => Duration::from_secs(30),
            told => Duration::from_secs((told / 60 + 1) * 60),
        };
        let doing = self.doing.as_ref().filter(|_| lasted >= next)?;
        self.told = lasted;
        Some(format!("{doing}: {} so far", span(millis(lasted))))
    }

    /// The live line, in at most `columns`. What is being done gives way first.
    pub(super) fn line(&self, now: Instant, columns: usize) -> String {
        let columns = columns.min(WIDEST);
        let frame = millis(now.saturating_duration_since(self.began)) / 100 % SPINNER.len() as u64;
        let spinner = usize::try_from(frame).ok().and_then(|frame| SPINNER.get(frame)).unwrap_or(&" ");
        let mut doing = self.doing.clone().unwrap_or_default();
        let lasted = now.saturating_duration_since(self.since);
        let time = if self.doing.is_some() && lasted >= Duration::from_secs(2) {
            format!(" ({})", span(millis(lasted)))
        } else {
            String::new()
        };
        let Some(facts) = &self.facts else { return cut(&format!("{spinner} {doing}{time}"), columns) };
        let head = format!("{spinner} turn {}/{}  {}", facts.turn.max(1), facts.turns, facts.spent);
        let left = facts.left.saturating_sub(now.saturating_duration_since(facts.at));
        let tail = format!("  {} left", span(millis(left)));
        let room = columns.saturating_sub(head.width() + tail.width() + time.width() + 2);
        if room >= 8 {
            doing = cut(&doing, room);
            return if doing.is_empty() { format!("{head}{tail}") } else { format!("{head}{tail}  {doing}{time}") };
        }
        cut(&format!("{head}  {doing}{time}"), columns)
    }

    fn does(&mut self, what: &str, now: Instant) {
        (self.doing, self.since, self.told) = (Some(plain(what)), now, Duration::ZERO);
    }
}

/// Tokens, and the cost where it is known.
pub(super) fn spent(task: &Task) -> String {
    let tokens = format!("{} tokens", grouped(task.spend.usage.total()));
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
            spent: "12,345 tokens  $0.0123".into(),
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
        for part in ["turn 3/30", "12,345 tokens", "$0.0123", "11 min 48 s left", "--all-features (12 s)"] {
            assert!(line.contains(part), "{line}");
        }
        for columns in 19..130 {
            assert!(status.line(later, columns).width() <= columns, "{columns}");
        }
        assert!(status.line(later, 79).ends_with("(12 s)"), "{}", status.line(later, 79));
    }

    #[test]
    fn what_lasts_is_told_after_ten_seconds_and_then_ever_less_often() {
        let begun = Instant::now();
        let mut status = running("running make", begun);
        let told: Vec<u64> =
            (0..200).filter(|second| status.long(begun + Duration::from_secs(*second)).is_some()).collect();
        assert_eq!(told, [10, 30, 60, 120, 180]);
    }
}
