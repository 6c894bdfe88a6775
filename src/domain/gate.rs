//! What a person answers where only a person can decide.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An answer to a gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Branch and worktree go back to the last checkpoint; an open call is answered as interrupted.
    Rollback,
    /// What is in the worktree becomes a checkpoint; an open call is answered as interrupted.
    Keep,
    /// The task is given up. It may be given up at any time before its end.
    Drop,
}

/// An answer that has not had its effect yet. Giving up stays until the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// What was answered.
    pub answer: Answer,
    /// The number of the event that says so: what is kept aside is named by it.
    pub seq: u64,
    /// When, in milliseconds since 1970 UTC: the date of a commit that follows from it.
    pub at_ms: u64,
}
