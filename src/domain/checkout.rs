//! The user's checkout, and how a task is isolated from it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::CommitId;

/// Where a task starts from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Base {
    /// The commit at HEAD; none in a repository without commits.
    pub commit: Option<CommitId>,
    /// The branch (`main`), if HEAD is on one.
    pub branch: Option<String>,
    /// Whether `--base` named the commit: the task starts there, without the checkout's uncommitted work.
    pub explicit: bool,
}

/// Where a task works.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// In a git worktree of its own, on a branch of its own.
    Worktree,
    /// In the checkout itself, which is switched to the task's branch and back at the end.
    InPlace,
}
