//! A task's state: its events, [folded](super::fold).

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

/// The name of a worktree that was kept whole, because the repository no longer has its task's commits.
pub const WHOLE_WORKTREE: &str = "worktree/";

/// A task's state.
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
    /// Snapshot and worktree, once they are ready.
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
    /// Requests have stubs for the results of turns up to this number; 0 if none.
    pub evicted_through: u32,
    /// Since the last reply, the proxy has rejected a request as too large for the window.
    pub overflow: Option<Overflow>,
    /// The cap that leaves no room for the next request, and that request's estimated input.
    pub no_room: Option<(Cap, u64)>,
    /// What has been spent.
    pub spend: Spend,
    /// The last checkpoint; the snapshot before the first one.
    pub head: Option<CommitId>,
    /// The files that the model has seen, with the hash that it last saw.
    pub seen: BTreeMap<String, Hash>,
    /// `tool_choice` was refused and is no longer sent.
    pub tool_choice_dropped: bool,
    /// Bad replies in a row.
    pub bad_replies: u32,
    /// The last call, and how often it had the same result.
    pub repeat: Repeat,
    /// Checks that failed after an ending call.
    pub failed_checks: u32,
    /// Claims of success on an unchanged tree.
    pub unchanged_claims: u32,
    /// The accepted note.
    pub note: Option<Note>,
    /// The worktree has not been checked since another process continued the task, or since its files were found changed.
    pub uninspected: bool,
    /// Changes that commands made to the repository, oldest first.
    pub changes: Vec<RepositoryChange>,
    /// What commands created that no commit can hold.
    pub made: BTreeSet<String>,
    /// What was moved out of the tree: where it is kept, and its paths.
    pub kept_aside: Vec<(String, Vec<String>)>,
    /// Ignored files that are removed with the worktree; none before the end.
    pub left_out: Option<Vec<String>>,
    /// The user's answer, until it has had its effect.
    pub decision: Option<Decision>,
    /// It is paused.
    pub paused: Option<(Pause, String)>,
    /// It ended.
    pub ended: Option<(End, String)>,
}

/// The phase of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Started; no worktree yet.
    Preparing,
    /// Between turns.
    Idle,
    /// A request is in flight.
    Asking,
    /// The calls of a reply are being answered.
    Acting,
    /// It is paused.
    Paused,
    /// It ended.
    Ended,
}

/// Snapshot and worktree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ready {
    /// The commit made of the checkout.
    pub snapshot: CommitId,
    /// It contains uncommitted work of the user's.
    pub dirty: bool,
    /// A description of the worktree for the model.
    pub workspace: String,
    /// What the user should know.
    pub notices: Vec<String>,
}

/// A reply and the answers to its calls.
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
    /// What else the model is told.
    pub nudges: Vec<String>,
    /// The valid ending call, and its note.
    pub ending: Option<(CallId, Note)>,
    /// The checks that ran on it.
    pub checks: Vec<CheckResult>,
    /// The turn is over.
    pub closed: bool,
}

/// The result of a check command.
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

/// Why the last attempt got no reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LastTrouble {
    /// The class.
    pub trouble: Trouble,
    /// The upstream's words.
    pub message: String,
    /// The wait before the next attempt; none if there is no next one.
    pub retry_in_ms: Option<u64>,
    /// Attempts in a row that failed.
    pub attempts: u32,
    /// Active time when the first of them was sent.
    pub since_ms: u64,
}

/// A request that the proxy rejected as too large although it fits by our count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overflow {
    /// How often, since the last reply.
    pub count: u32,
    /// The estimated input of the last such request: the next one must be smaller.
    pub estimated_input: u64,
    /// The proxy's words.
    pub message: String,
}

/// How often the same call had the same result. A model is warned before it fails: one reply may have many calls.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Repeat {
    /// Hash of name, arguments, status and result of the last call.
    pub key: Option<Hash>,
    /// How often in a row.
    pub count: u32,
    /// How often, when the model was warned; 0 if it was not.
    pub told: u32,
}

impl Task {
    /// The task's phase.
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

    /// For a task in place, the last switch of the checkout that was not undone.
    #[must_use]
    pub fn last_switch(&self) -> Option<&Intent> {
        let switches = self.intents.iter().filter(|intent| intent.kind.switch().is_some());
        switches.rev().find(|intent| intent.status != Status::Abandoned)
    }

    /// For a task in place that has switched the checkout back, how it ends and why.
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

    /// The model behind the alias, according to its last reply; none before the first one.
    #[must_use]
    pub fn answering(&self) -> Option<&str> {
        let mut told = self.turns.iter().rev().filter_map(|turn| turn.reply.answered_by.as_ref());
        told.find(|who| !who.fallback).map(|who| who.backing.as_str())
    }

    /// Whether the current model made this turn's reply, so that its opaque parts may be sent back.
    #[must_use]
    pub fn is_its_own(&self, turn: &Turn) -> bool {
        // if nothing says who answered, assume the requested model
        let Some(who) = &turn.reply.answered_by else { return true };
        !who.fallback && self.answering() == Some(who.backing.as_str())
    }

    /// The last turn.
    #[must_use]
    pub fn last_turn(&self) -> Option<&Turn> {
        self.turns.last()
    }

    /// The user's answer, if it has not had its effect yet.
    #[must_use]
    pub fn answer(&self) -> Option<Answer> {
        self.decision.map(|decision| decision.answer)
    }

    /// Whether the user must decide about the files: it is paused with that question, or a command was interrupted.
    #[must_use]
    pub fn asks_about_files(&self) -> bool {
        // recovery asks before it has checked everything; a later gate is about something else
        let gated = matches!(self.paused, Some((Pause::Gated, _))) && self.uninspected;
        let open = self.unanswered().map(|call| &call.id);
        let cut = |intent: &Intent| matches!(&intent.kind, IntentKind::Command { call, .. } if open == Some(call));
        self.ended.is_none() && (gated || self.pending_intents().any(cut))
    }

    /// Whether the user gave it up.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.answer() == Some(Answer::Drop)
    }

    /// How it ended, or why it is paused; none while it can continue.
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
