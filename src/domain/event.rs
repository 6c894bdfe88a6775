//! Events: a task's log consists of them. Disk, screen, JSON and chat use this one type.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    caps::Cap,
    gate,
    id::{CallId, CommitId, Hash, IntentId, TaskId},
    intent::IntentKind,
    message::Reply,
    model::{Route, Usage},
    note::Note,
    outcome::{End, Pause},
    repository::RepositoryChange,
    started::TaskStarted,
    upstream::Trouble,
};

/// An event with its place in its task's log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// The task.
    pub task: TaskId,
    /// From 1, without gaps.
    pub seq: u64,
    /// Civil time in milliseconds since 1970 UTC; shown, never decided on.
    pub at_ms: u64,
    /// The task's active time so far, over all spans, in milliseconds.
    pub spent_ms: u64,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The task began; opens the task's own intent. Contains everything that a resume needs.
    TaskStarted(Box<TaskStarted>),
    /// Another process continued the task.
    SpanStarted {
        /// Why, in one line.
        cause: String,
    },
    /// The setup command ran, before the worktree was ready or because it was made again.
    SetupRan {
        /// The command line.
        command: String,
        /// Exit status; none if it was ended by a signal or a limit.
        status: Option<i32>,
        /// The end of its output.
        output_tail: String,
        /// How long it took, in milliseconds.
        duration_ms: u64,
    },
    /// Snapshot and worktree are ready.
    WorktreeReady {
        /// The commit made of the checkout; the task starts there.
        snapshot: CommitId,
        /// The snapshot contains uncommitted work of the user's.
        dirty: bool,
        /// A description of the worktree for the model: languages, top of the tree, the project's own instructions.
        workspace: String,
        /// What was not copied, and what else the user should know.
        notices: Vec<String>,
    },
    /// A request is about to be sent; every attempt is its own.
    RequestSent {
        /// Attempt number within the task, from 1.
        request: u32,
        /// The turn that it is for, from 1.
        turn: u32,
        /// The route.
        route: Route,
        /// Estimated input tokens.
        estimated_input: u64,
        /// The output ceiling sent with it.
        max_output: u64,
    },
    /// A request ended without a complete reply.
    RequestEnded {
        /// Which.
        request: u32,
        /// What went wrong.
        trouble: Trouble,
        /// The upstream's words, masked.
        message: String,
        /// What it used, where known.
        usage: Option<Usage>,
        /// The wait before the next attempt, in milliseconds; none if there is none.
        retry_in_ms: Option<u64>,
    },
    /// A request was not sent, because its estimated input alone would reach a cap.
    RequestWithheld {
        /// Tokens or cost.
        cap: Cap,
        /// Estimated input tokens.
        estimated_input: u64,
    },
    /// From now on, requests have stubs instead of older tool results: the next one would not fit the window.
    ContextEvicted {
        /// The last turn whose results are left out; those of all earlier turns are, too.
        through_turn: u32,
    },
    /// A complete reply arrived.
    ReplyReceived {
        /// The request that it answers.
        request: u32,
        /// The turn that it begins.
        turn: u32,
        /// The reply.
        reply: Reply,
    },
    /// The model is told something about its last reply.
    Nudged {
        /// The text, as the model sees it.
        text: String,
    },
    /// An effect is about to happen.
    IntentOpened {
        /// Its number, one more than the last.
        intent: IntentId,
        /// The effect.
        kind: IntentKind,
    },
    /// The effect happened.
    IntentSettled {
        /// Which.
        intent: IntentId,
        /// What recovery found, in one line, if recovery settled it.
        cause: Option<String>,
    },
    /// The effect did not happen or was undone.
    IntentAbandoned {
        /// Which.
        intent: IntentId,
        /// Why, in one line.
        cause: String,
    },
    /// A call is answered.
    ToolResult(ToolResult),
    /// The ending call was valid and claims success: checks come next. The call is still unanswered.
    EndingAccepted {
        /// The ending call.
        call: CallId,
        /// The note.
        note: Note,
    },
    /// A check command ran.
    CheckRan {
        /// The ending call that it judges.
        call: CallId,
        /// The command line.
        command: String,
        /// Exit status; none if it was ended by a signal or a limit.
        status: Option<i32>,
        /// The end of its output.
        output_tail: String,
        /// How long it took, in milliseconds.
        duration_ms: u64,
    },
    /// All calls of the turn are answered and the turn is over.
    TurnEnded {
        /// Which.
        turn: u32,
    },
    /// Recovery examined what a dead process left.
    Recovered {
        /// What was found and done, in one line.
        cause: String,
        /// The last checkpoint, if the branch held one of ours that the log did not name yet.
        checkpoint: Option<CommitId>,
    },
    /// Files differ from the last checkpoint, but no call of the task changed them.
    FilesChanged {
        /// Their paths.
        paths: Vec<String>,
    },
    /// Something had changed the link between the worktree and its branch; it was restored before use.
    WorktreeRepaired {
        /// `.git` (the file of that name) or `HEAD`.
        what: Vec<String>,
    },
    /// A command of the task changed something in the repository, or something is not as the task needs it.
    RepositoryChanged {
        /// What changed, and what nisse did about it.
        changes: Vec<RepositoryChange>,
    },
    /// A command created something that no commit can hold: repositories within the tree, special files.
    UncommittableMade {
        /// Their paths; those of repositories end in a slash.
        paths: Vec<String>,
    },
    /// Something that no commit can hold was moved out of the tree, and is kept.
    KeptAside {
        /// Their paths; those of repositories end in a slash.
        paths: Vec<String>,
        /// The absolute path of the directory that holds them.
        place: String,
    },
    /// Git lock files that processes of the task had left were removed.
    LocksRemoved {
        /// Their paths.
        locks: Vec<String>,
    },
    /// The user decided how the task continues, or that it ends.
    GateAnswered {
        /// What was answered.
        answer: gate::Answer,
    },
    /// The task is paused; settles nothing.
    TaskPaused {
        /// Why it is paused.
        pause: Pause,
        /// The same, in one line.
        cause: String,
    },
    /// Files of the task that are removed with its worktree because git ignores them. Build artefacts are not named.
    LeftOut {
        /// The first twenty paths; one that ends in a slash is a directory of only such files.
        paths: Vec<String>,
    },
    /// The task ended; the last event of its run.
    TaskEnded {
        /// How it ended.
        end: End,
        /// Why, in one line.
        cause: String,
    },
}

impl EventKind {
    /// Its stored name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::TaskStarted(_) => "task_started",
            Self::SpanStarted { .. } => "span_started",
            Self::SetupRan { .. } => "setup_ran",
            Self::WorktreeReady { .. } => "worktree_ready",
            Self::RequestSent { .. } => "request_sent",
            Self::RequestEnded { .. } => "request_ended",
            Self::RequestWithheld { .. } => "request_withheld",
            Self::ContextEvicted { .. } => "context_evicted",
            Self::ReplyReceived { .. } => "reply_received",
            Self::Nudged { .. } => "nudged",
            Self::IntentOpened { .. } => "intent_opened",
            Self::IntentSettled { .. } => "intent_settled",
            Self::IntentAbandoned { .. } => "intent_abandoned",
            Self::ToolResult(_) => "tool_result",
            Self::EndingAccepted { .. } => "ending_accepted",
            Self::CheckRan { .. } => "check_ran",
            Self::TurnEnded { .. } => "turn_ended",
            Self::Recovered { .. } => "recovered",
            Self::FilesChanged { .. } => "files_changed",
            Self::WorktreeRepaired { .. } => "worktree_repaired",
            Self::RepositoryChanged { .. } => "repository_changed",
            Self::UncommittableMade { .. } => "uncommittable_made",
            Self::KeptAside { .. } => "kept_aside",
            Self::LocksRemoved { .. } => "locks_removed",
            Self::GateAnswered { .. } => "gate_answered",
            Self::TaskPaused { .. } => "task_paused",
            Self::LeftOut { .. } => "left_out",
            Self::TaskEnded { .. } => "task_ended",
        }
    }
}

/// How a call went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResultStatus {
    /// It did what it should.
    Done,
    /// It ran and failed (a command with a non-zero status, a failing check).
    Failed,
    /// It was refused: understood, but impossible or forbidden.
    Refused,
    /// It could not be run at all: no such tool is offered, or its arguments are not a JSON object.
    Unreadable,
    /// It was not run.
    NotRun,
}

/// The answer to a call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// The call.
    pub call: CallId,
    /// How it went.
    pub status: ResultStatus,
    /// The answer, as the model sees it.
    pub content: String,
    /// The checkpoint made after it, if the tree changed.
    pub checkpoint: Option<CommitId>,
    /// The file that the model has now seen, with the hash of its bytes.
    pub seen: Option<Seen>,
}

/// A file as a model last saw or wrote it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Seen {
    /// Relative to the worktree, links resolved.
    pub path: String,
    /// Hash of its bytes.
    pub hash: Hash,
}
