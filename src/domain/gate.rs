//! Answers to questions that only a person can decide.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An answer to a gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Restore branch and worktree of the last checkpoint; an open call is answered as interrupted.
    Rollback,
    /// Make a checkpoint of what is in the worktree; an open call is answered as interrupted.
    Keep,
    /// Give up the task; possible at any time before its end.
    Drop,
}

/// An answer that has not had its effect yet. Giving up stays until the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// What was answered.
    pub answer: Answer,
    /// The number of its event; refs of what is kept are named after it.
    pub seq: u64,
    /// When, in milliseconds since 1970 UTC: the date of a commit that follows from it.
    pub at_ms: u64,
}
