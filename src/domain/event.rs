//! Events: what a task's log is made of. Disk, screen, JSON and chat use this one type.

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
    /// The task began; opens the task's own intent. Everything that a resume needs stands here.
    TaskStarted(Box<TaskStarted>),
    /// A later process took the task up again.
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
    /// Snapshot and worktree stand.
    WorktreeReady {
        /// The commit made of the checkout; the task starts there.
        snapshot: CommitId,
        /// The snapshot holds unfinished work of the person's.
        dirty: bool,
        /// What the worktree holds, for the model: languages, top of the tree, the project's own instructions.
        workspace: String,
        /// What was not carried over, and other things that the person should know.
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
    /// A request ended without a whole reply.
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
    /// Older tool results are shown to the model as stubs from now on, since the next request would not fit its window.
    ContextEvicted {
        /// The last turn whose results they are; those of all turns before it too.
        through_turn: u32,
    },
    /// A reply arrived whole.
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
        /// Its number, one above the last.
        intent: IntentId,
        /// What it is about.
        kind: IntentKind,
    },
    /// The effect happened.
    IntentSettled {
        /// Which.
        intent: IntentId,
        /// What recovery found, in one line, where it was recovery that settled it.
        cause: Option<String>,
    },
    /// The effect did not happen or was taken back.
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
    /// Recovery looked at what a dead process left, and this is the verdict.
    Recovered {
        /// What was found and done, in one line.
        cause: String,
        /// The last checkpoint, if the branch held one of ours that the log did not name yet.
        checkpoint: Option<CommitId>,
    },
    /// Files were found to differ from the last checkpoint, though no call of the task had changed them.
    FilesChanged {
        /// Their paths.
        paths: Vec<String>,
    },
    /// Something had changed what ties the worktree to its branch, and it was put back before it was used.
    WorktreeRepaired {
        /// `.git`, the file of that name; `HEAD`.
        what: Vec<String>,
    },
    /// Something in the repository is not as it was before a command of the task, or as the task needs it.
    RepositoryChanged {
        /// What it is, and what became of it.
        changes: Vec<RepositoryChange>,
    },
    /// A command made what no commit can hold: repositories within the tree, special files.
    UncommittableMade {
        /// Their paths, repositories with a slash behind.
        paths: Vec<String>,
    },
    /// What no commit can hold was moved out of the tree, and is kept.
    KeptAside {
        /// Their paths, repositories with a slash behind.
        paths: Vec<String>,
        /// The directory below which they are, an absolute path.
        place: String,
    },
    /// Lock files of git's that processes of the task had left were removed.
    LocksRemoved {
        /// Their paths.
        locks: Vec<String>,
    },
    /// A person decided how the task goes on, or that it does not.
    GateAnswered {
        /// What was answered.
        answer: gate::Answer,
    },
    /// The task rests; settles nothing.
    TaskPaused {
        /// Why it rests.
        pause: Pause,
        /// The same, in one line.
        cause: String,
    },
    /// Files that the task made and that go with its worktree, because git ignores them. Build artefacts are not named.
    LeftOut {
        /// Their paths, and those of directories that hold nothing else, with a slash behind; the first twenty.
        paths: Vec<String>,
    },
    /// The task's one completion.
    TaskEnded {
        /// How it ended.
        end: End,
        /// Why, in one line.
        cause: String,
    },
}

impl EventKind {
    /// Its name, as it is stored.
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
    /// It did what it says.
    Done,
    /// It ran and failed (a command with another status than 0, a failing check).
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
    /// The file that the model knows now, with the hash of its bytes.
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
