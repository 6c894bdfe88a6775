//! A task's state: nothing but its events, [folded](super::fold).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    caps::{Cap, Spend},
    event::{ResultStatus, ToolResult},
    gate::{Answer, Decision},
    id::{CallId, CommitId, Hash, IntentId, TaskId},
    intent::{Intent, IntentKind, Status, SwitchTo},
    message::{Call, Reply, Stop},
    note::Note,
    outcome::{End, Outcome, Pause},
    repository::RepositoryChange,
    started::TaskStarted,
    upstream::Trouble,
};

/// A task as its events tell it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// The sequence number of its last event.
    pub seq: u64,
    /// Active time over all spans, in milliseconds.
    pub spent_ms: u64,
    /// The sequence number of the event with which the last process began.
    pub span: u64,
    /// Its first event.
    pub started: Arc<TaskStarted>,
    /// Snapshot and worktree, once they stand.
    pub ready: Option<Ready>,
    /// Its turns, oldest first.
    pub turns: Vec<Turn>,
    /// Its intents; the index is the number.
    pub intents: Vec<Intent>,
    /// The request in flight.
    pub request: Option<OpenRequest>,
    /// Requests sent so far, every attempt counted.
    pub requests: u32,
    /// The trouble of the last attempt, until a reply arrives or another process takes over.
    pub trouble: Option<LastTrouble>,
    /// Turns up to this number are shown to the model with stubs for results; 0 if all are whole.
    pub evicted_through: u32,
    /// Since the last reply the proxy found a request too large for the window.
    pub overflow: Option<Overflow>,
    /// A cap leaves no room for the next request: which, and the estimated input of the request that found none.
    pub no_room: Option<(Cap, u64)>,
    /// What has been spent.
    pub spend: Spend,
    /// The last checkpoint; the snapshot before the first one.
    pub head: Option<CommitId>,
    /// The files that the model knows, with the hash that it last saw.
    pub seen: BTreeMap<String, Hash>,
    /// `tool_choice` was refused: it is sent no more.
    pub tool_choice_dropped: bool,
    /// Bad replies in a row.
    pub bad_replies: u32,
    /// The last call and how often it came with the same result.
    pub repeat: Repeat,
    /// Checks that failed after an ending call.
    pub failed_checks: u32,
    /// Claims of success on an unchanged tree.
    pub unchanged_claims: u32,
    /// The accepted note.
    pub note: Option<Note>,
    /// Nobody has looked at the worktree since a later process took over, or since its files were found changed.
    pub uninspected: bool,
    /// What was not as it should be in the repository, oldest first.
    pub changes: Vec<RepositoryChange>,
    /// What commands made that no commit can hold: there when they ended, and not when they began.
    pub made: BTreeSet<String>,
    /// What was moved out of the tree: where it is kept, and the paths.
    pub kept_aside: Vec<(String, Vec<String>)>,
    /// What goes with the worktree because git ignores it; none before the end is at hand.
    pub left_out: Option<Vec<String>>,
    /// What a person answered, until it has had its effect.
    pub decision: Option<Decision>,
    /// It rests.
    pub paused: Option<(Pause, String)>,
    /// It ended.
    pub ended: Option<(End, String)>,
}

/// Where a task stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Started; no worktree yet.
    Preparing,
    /// Between turns.
    Idle,
    /// A request is in flight.
    Asking,
    /// A reply is being worked off.
    Acting,
    /// It rests.
    Paused,
    /// It ended.
    Ended,
}

/// Snapshot and worktree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ready {
    /// The commit made of the checkout.
    pub snapshot: CommitId,
    /// It holds unfinished work of the person's.
    pub dirty: bool,
    /// What the worktree holds, for the model.
    pub workspace: String,
    /// What the person should know.
    pub notices: Vec<String>,
}

/// A reply and what became of its calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Turn {
    /// From 1.
    pub number: u32,
    /// The estimated input of the request that it answers.
    pub estimated_input: u64,
    /// The reply.
    pub reply: Reply,
    /// The answers to its calls, in the order of the calls.
    pub results: Vec<ToolResult>,
    /// What the model is told besides.
    pub nudges: Vec<String>,
    /// The valid ending call, and its note.
    pub ending: Option<(CallId, Note)>,
    /// The checks that ran on it.
    pub checks: Vec<CheckResult>,
    /// The turn is over.
    pub closed: bool,
}

/// What a check command said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckResult {
    /// The command line.
    pub command: String,
    /// Its exit status; none if a signal or a limit ended it.
    pub status: Option<i32>,
    /// The end of its output.
    pub output_tail: String,
}

/// A request in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenRequest {
    /// Its number.
    pub request: u32,
    /// The turn that it is for.
    pub turn: u32,
    /// Estimated input tokens.
    pub estimated_input: u64,
    /// Its output ceiling.
    pub max_output: u64,
}

/// Why the last attempt brought no reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LastTrouble {
    /// The class.
    pub trouble: Trouble,
    /// The upstream's words.
    pub message: String,
    /// The wait before the next attempt; none if there is to be none.
    pub retry_in_ms: Option<u64>,
    /// Attempts in a row that failed.
    pub attempts: u32,
    /// Active time when the first of them was sent.
    pub since_ms: u64,
}

/// A request that the proxy found too large, though it fitted by our count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overflow {
    /// How often, since the last reply.
    pub count: u32,
    /// The estimated input of the last such request: the next one must be smaller.
    pub estimated_input: u64,
    /// The proxy's words.
    pub message: String,
}

/// How often the same call came with the same result. A model is told before it fails: one reply may hold many calls.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Repeat {
    /// Hash of name, arguments, status and result of the last call.
    pub key: Option<Hash>,
    /// How often in a row.
    pub count: u32,
    /// How often it had come when the model was told; 0 if it was not.
    pub told: u32,
}

impl Task {
    /// Where the task stands.
    #[must_use]
    pub fn phase(&self) -> Phase {
        if self.ended.is_some() {
            Phase::Ended
        } else if self.paused.is_some() {
            Phase::Paused
        } else if self.ready.is_none() {
            Phase::Preparing
        } else if self.request.is_some() {
            Phase::Asking
        } else if self.turns.last().is_some_and(|turn| !turn.closed) {
            Phase::Acting
        } else {
            Phase::Idle
        }
    }

    /// The intent with that number.
    #[must_use]
    pub fn intent(&self, id: IntentId) -> Option<&Intent> {
        self.intents.get(id.0 as usize)
    }

    /// Pending intents but the task's own, oldest first.
    pub fn pending_intents(&self) -> impl Iterator<Item = &Intent> {
        self.intents.iter().filter(|intent| intent.status == Status::Pending && intent.id != IntentId::TASK)
    }

    /// Where a task that works in place has the checkout: the last switch that was begun and not taken back.
    #[must_use]
    pub fn last_switch(&self) -> Option<&Intent> {
        let switches = self.intents.iter().filter(|intent| intent.kind.switch().is_some());
        switches.rev().find(|intent| intent.status != Status::Abandoned)
    }

    /// How a task that worked in place ends, and why, once it has given the checkout back.
    #[must_use]
    pub fn checkout_restored(&self) -> Option<(&End, &str)> {
        let intent = self.last_switch().filter(|intent| intent.status == Status::Settled)?;
        match intent.kind.switch()? {
            (SwitchTo::Original { end, cause }, _) => Some((end, cause)),
            (SwitchTo::TaskBranch, _) => None,
        }
    }

    /// The first call of the open turn that has no answer.
    #[must_use]
    pub fn unanswered(&self) -> Option<&Call> {
        let turn = self.turns.last().filter(|turn| !turn.closed)?;
        turn.reply.calls().nth(turn.results.len())
    }

    /// The model that the alias stands for, as its last answer told; none before one did.
    #[must_use]
    pub fn answering(&self) -> Option<&str> {
        let mut told = self.turns.iter().rev().filter_map(|turn| turn.reply.answered_by.as_ref());
        told.find(|who| !who.fallback).map(|who| who.backing.as_str())
    }

    /// Whether the model that is asked now made this turn's reply, so that what is opaque in it may go back.
    #[must_use]
    pub fn is_its_own(&self, turn: &Turn) -> bool {
        // where nothing tells who answered, it is taken for the model that was asked
        let Some(who) = &turn.reply.answered_by else { return true };
        !who.fallback && self.answering() == Some(who.backing.as_str())
    }

    /// The last turn.
    #[must_use]
    pub fn last_turn(&self) -> Option<&Turn> {
        self.turns.last()
    }

    /// What a person answered, where it has not had its effect yet.
    #[must_use]
    pub fn answer(&self) -> Option<Answer> {
        self.decision.map(|decision| decision.answer)
    }

    /// Whether a person has to decide what becomes of the files: it rests with that question, or a command was cut off.
    #[must_use]
    pub fn asks_about_files(&self) -> bool {
        // recovery asks before it has looked at all there is; whoever asks later asks about something else
        let gated = matches!(self.paused, Some((Pause::Gated, _))) && self.uninspected;
        let open = self.unanswered().map(|call| &call.id);
        let cut = |intent: &Intent| matches!(&intent.kind, IntentKind::Command { call, .. } if open == Some(call));
        self.ended.is_none() && (gated || self.pending_intents().any(cut))
    }

    /// A person gave it up.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.answer() == Some(Answer::Drop)
    }

    /// How it ended, or why it rests; none while it can go on.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        if let Some((end, cause)) = &self.ended {
            return Some(Outcome::Ended { end: end.clone(), cause: cause.clone() });
        }
        self.paused.as_ref().map(|(pause, cause)| Outcome::Paused { pause: *pause, cause: cause.clone() })
    }
}

impl Turn {
    /// A bad reply has no runnable call: prose, empty, only reasoning, truncated, only unoffered or unreadable calls.
    #[must_use]
    pub fn is_bad(&self) -> bool {
        self.reply.stop == Stop::Truncated
            || !self.results.iter().any(|result| result.status != ResultStatus::Unreadable)
    }
}
