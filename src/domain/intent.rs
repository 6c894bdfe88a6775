//! Intents: durable statements of effects about to happen, and the table of what may follow what.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    id::{CallId, CommitId, Hash, IntentId},
    outcome::End,
};

/// An effect about to happen. Each kind names what will be true, so that recovery can see whether it already is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IntentKind {
    /// The task itself; opened by `task_started`, settled with its completion.
    Task,
    /// A file tool writes `path`: its bytes go from `before` to `after`.
    FileEdit {
        /// The call that asks for it.
        call: CallId,
        /// Relative to the worktree, links resolved.
        path: String,
        /// Hash of the bytes before; none if there is no such file.
        before: Option<Hash>,
        /// Hash of the bytes after.
        after: Hash,
        /// The answer to the call once it is done.
        answer: String,
    },
    /// A shell command of the model.
    Command {
        /// The call that asks for it.
        call: CallId,
        /// The command line.
        command: String,
    },
    /// The check commands, run by nisse after the ending call; they may be run any number of times.
    Check {
        /// The ending call.
        call: CallId,
    },
    /// The branch moves from `from` to `to`, one commit with the same tree.
    Squash {
        /// The old tip, kept under `refs/nisse/turns/<task>`.
        from: CommitId,
        /// The new tip.
        to: CommitId,
    },
    /// Branch and worktree are removed; the commits stay under `refs/nisse/discarded/<task>`.
    Discard {
        /// The tip that is kept there.
        tip: CommitId,
        /// How the task ends: decided when the discard began, and not again.
        end: End,
        /// Why, in one line.
        cause: String,
    },
    /// The worktree of a settled task is removed; its branch stays.
    CleanUp,
    /// The checkout is switched to the task's branch, or back to what it was; only for a task that works in place.
    CheckoutSwitch {
        /// To what.
        way: SwitchTo,
        /// Where the task's branch begins: the checkout's files, as a commit.
        snapshot: CommitId,
    },
    /// The work is applied to the checkout: each file changes from what it is to what it shall be, both in `plan`.
    Apply {
        /// A commit that holds the files as they are (`before/`) and as they shall be (`after/`).
        plan: CommitId,
        /// The task's commit that is applied.
        of: CommitId,
        /// The checkout's snapshot, kept under `refs/nisse/before-apply/<task>`.
        before: CommitId,
        /// As the user asked for it.
        manner: Manner,
        /// The branch that is fast-forwarded once the files are there.
        advance: Option<Advance>,
    },
    /// What was applied is committed as the user, with their hooks and signature.
    #[serde(rename = "land")]
    UserCommit(UserCommit),
    /// The files that `plan` changed in the checkout are put back.
    PutBack {
        /// The plan.
        plan: CommitId,
    },
}

/// What a checkout is switched to. Logs and their schema keep the names `Way`, `there` and `back`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Way")]
pub enum SwitchTo {
    /// The task's branch; no file changes.
    #[serde(rename = "there")]
    TaskBranch,
    /// What it was before: the branch, its files and the index.
    #[serde(rename = "back")]
    Original {
        /// How the task ends: decided when this intent was opened, and not again.
        end: End,
        /// Why, in one line.
        cause: String,
    },
}

/// How the work is applied to the checkout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Manner {
    /// As uncommitted changes; or as a fast-forward of the branch, where one is possible.
    Files,
    /// Each commit of the task is cherry-picked.
    Each,
    /// As one commit.
    Squash,
    /// As a merge commit.
    Merge,
}

/// A branch of the user's that is fast-forwarded once its files are in the checkout.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Advance {
    /// The branch, checked out.
    pub branch: String,
    /// Where it is.
    pub from: CommitId,
    /// Where it goes.
    pub to: CommitId,
}

/// A commit to make as the user, with their hooks and signature. Logs and their schema keep the names `land` and `Landing`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Landing")]
pub struct UserCommit {
    /// Where HEAD is; none before the first commit.
    pub parent: Option<CommitId>,
    /// The task's commit that it holds.
    pub of: CommitId,
    /// The files of this plan are committed; none for a merge.
    pub plan: Option<CommitId>,
    /// The second parent of a merge.
    pub merge: Option<CommitId>,
    /// The message.
    pub message: String,
    /// As the user asked for it.
    pub manner: Manner,
}

impl IntentKind {
    /// The call that it serves.
    #[must_use]
    pub fn call(&self) -> Option<&CallId> {
        match self {
            Self::FileEdit { call, .. } | Self::Command { call, .. } | Self::Check { call } => Some(call),
            Self::Task
            | Self::Squash { .. }
            | Self::Discard { .. }
            | Self::CleanUp
            | Self::CheckoutSwitch { .. }
            | Self::Apply { .. }
            | Self::UserCommit(_)
            | Self::PutBack { .. } => None,
        }
    }

    /// For a switch of the checkout: to what, and the commit at which the task's branch begins.
    #[must_use]
    pub fn switch(&self) -> Option<(&SwitchTo, &CommitId)> {
        match self {
            Self::CheckoutSwitch { way, snapshot } => Some((way, snapshot)),
            Self::Task
            | Self::FileEdit { .. }
            | Self::Command { .. }
            | Self::Check { .. }
            | Self::Squash { .. }
            | Self::Discard { .. }
            | Self::CleanUp
            | Self::Apply { .. }
            | Self::UserCommit(_)
            | Self::PutBack { .. } => None,
        }
    }

    /// Whether it changes the user's checkout for `nisse apply`.
    #[must_use]
    pub fn applies(&self) -> bool {
        match self {
            Self::Apply { .. } | Self::UserCommit(_) | Self::PutBack { .. } => true,
            Self::Task
            | Self::FileEdit { .. }
            | Self::Command { .. }
            | Self::Check { .. }
            | Self::Squash { .. }
            | Self::Discard { .. }
            | Self::CleanUp
            | Self::CheckoutSwitch { .. } => false,
        }
    }

    /// The command lines that it runs.
    #[must_use]
    pub fn runs(&self) -> Runs<'_> {
        match self {
            Self::Command { command, .. } => Runs::Command(command),
            Self::Check { .. } => Runs::Checks,
            Self::Task
            | Self::FileEdit { .. }
            | Self::Squash { .. }
            | Self::Discard { .. }
            | Self::CleanUp
            | Self::CheckoutSwitch { .. }
            | Self::Apply { .. }
            | Self::UserCommit(_)
            | Self::PutBack { .. } => Runs::Nothing,
        }
    }

    /// Whether it may stay pending, or be opened, after the task's completion.
    #[must_use]
    pub fn outlives_completion(&self) -> bool {
        match self {
            Self::Discard { .. } | Self::CleanUp | Self::Apply { .. } | Self::UserCommit(_) | Self::PutBack { .. } => {
                true
            }
            Self::Task
            | Self::FileEdit { .. }
            | Self::Command { .. }
            | Self::Check { .. }
            | Self::Squash { .. }
            | Self::CheckoutSwitch { .. } => false,
        }
    }
}

/// The command lines that an intent runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runs<'a> {
    /// The model's.
    Command(&'a str),
    /// The checks of the task.
    Checks,
    /// None.
    Nothing,
}

/// The state of an intent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Opened; the effect may or may not have happened.
    Pending,
    /// The effect happened.
    Settled,
    /// The effect did not happen, or was undone.
    Abandoned,
}

/// An intent and its status.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Intent {
    /// Its number.
    pub id: IntentId,
    /// The effect.
    pub kind: IntentKind,
    /// Its status.
    pub status: Status,
    /// When it was opened, in milliseconds since 1970 UTC: the date of the commits that it makes, so that their ids
    /// can be computed again.
    pub at_ms: u64,
}

/// A transition of an intent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// `intent_opened`.
    Open,
    /// `intent_settled`.
    Settle,
    /// `intent_abandoned`.
    Abandon,
}

/// The intents' transition table: the status after `step`, or none if the step is illegal.
/// The task's own intent is never abandoned.
#[must_use]
pub fn next_status(kind: &IntentKind, now: Option<Status>, step: Move) -> Option<Status> {
    match (now, step) {
        (None, Move::Open) => Some(Status::Pending),
        (Some(Status::Pending), Move::Settle) => Some(Status::Settled),
        (Some(Status::Pending), Move::Abandon) => (*kind != IntentKind::Task).then_some(Status::Abandoned),
        (None | Some(Status::Settled | Status::Abandoned), Move::Settle | Move::Abandon)
        | (Some(Status::Pending | Status::Settled | Status::Abandoned), Move::Open) => None,
    }
}
