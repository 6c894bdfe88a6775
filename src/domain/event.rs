//! Events: what a task's log is made of. Disk, screen, JSON and chat use this one type.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    caps::{Cap, Caps},
    checkout::{Base, Isolation},
    filters::Filters,
    gate,
    id::{CallId, CommitId, Hash, IntentId, TaskId},
    intent::IntentKind,
    message::Reply,
    model::{PinnedModel, Route, Usage},
    outcome::{End, Handback, Pause},
    repository::RepositoryChange,
    role::Role,
    upstream::Trouble,
    wording::Wording,
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
        handback: Handback,
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

/// The content of a task's first event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TaskStarted {
    /// The role, as a value.
    pub role: Role,
    /// The words that its requests are rendered with.
    pub wording: Wording,
    /// What is to be done.
    pub brief: String,
    /// The model, pinned.
    pub model: PinnedModel,
    /// The caps.
    pub caps: Caps,
    /// The caller's checkout, an absolute path.
    pub checkout: String,
    /// Where it starts from.
    pub base: Base,
    /// The task's branch.
    pub branch: String,
    /// The task's worktree, an absolute path.
    pub worktree: String,
    /// How it stands apart from the checkout.
    pub isolation: Isolation,
    /// The content filters that were configured; no other runs.
    pub filters: Filters,
    /// Globs of ignored files that are copied into the worktree.
    pub copy: Vec<String>,
    /// A command that makes the worktree fit for work.
    pub setup: Option<String>,
    /// Command lines that must all exit 0 for success.
    pub checks: Vec<String>,
    /// A command's time limit, in milliseconds.
    pub command_time_ms: u64,
    /// Globs of paths that no file tool touches.
    pub deny: Vec<String>,
    /// Untracked files over this many bytes are not carried over.
    pub max_untracked: u64,
    /// Further environment variables that commands see.
    pub pass_env: Vec<String>,
    /// The branch keeps its commit per call instead of one commit.
    pub keep_turns: bool,
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
