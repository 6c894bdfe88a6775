//! The person's repository directory and how a task stands apart from it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::CommitId;

/// Where a task starts from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Base {
    /// The caller's commit; none in a repository without commits.
    pub commit: Option<CommitId>,
    /// The caller's branch (`main`), if HEAD is on one.
    pub branch: Option<String>,
    /// `--base` named the commit: the task starts there, without the checkout's unfinished work.
    pub explicit: bool,
}

/// Where a task works.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// In a git worktree of its own, on a branch of its own.
    Worktree,
}
