//! How a task ends, or pauses, and the exit code that says so.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::caps::Cap;

/// The note that ends a delegation, written for a weaker model that sees nothing else.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Handback {
    /// What was changed, and where.
    pub changed: String,
    /// What is true now that was not before.
    pub now_true: String,
    /// What remains, or what to do next.
    pub next: String,
    /// Whether the sub-task was done.
    pub succeeded: bool,
}

/// The end of a task; written once.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The ending tool was accepted and the checks passed.
    Handback,
    /// The model reported failure, broke the contract past its limits, or the check never passed.
    Failed,
    /// A cap was reached.
    Capped(Cap),
    /// The user gave it up.
    Dropped,
}

/// Why a task is paused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pause {
    /// Upstream trouble that is not the work's fault.
    Interrupted,
    /// A person must decide.
    Gated,
    /// The user asked.
    Stopped,
}

/// The result of a run of the loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The task ended.
    Ended {
        /// How.
        end: End,
        /// Why, in one line.
        cause: String,
    },
    /// The task is paused and can be resumed.
    Paused {
        /// Why it is paused.
        pause: Pause,
        /// The same, in one line.
        cause: String,
    },
}

impl Outcome {
    /// The word used in output and JSON.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Ended { end: End::Handback, .. } => "handback",
            Self::Ended { end: End::Failed, .. } => "failed",
            Self::Ended { end: End::Capped(_), .. } => "capped",
            Self::Ended { end: End::Dropped, .. } => "dropped",
            Self::Paused { pause: Pause::Interrupted, .. } => "interrupted",
            Self::Paused { pause: Pause::Gated, .. } => "gated",
            Self::Paused { pause: Pause::Stopped, .. } => "stopped",
        }
    }

    /// The line that says why.
    #[must_use]
    pub fn cause(&self) -> &str {
        match self {
            Self::Ended { cause, .. } | Self::Paused { cause, .. } => cause,
        }
    }

    /// The process's exit status for it.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Ended { end: End::Handback | End::Dropped, .. } => 0,
            Self::Ended { end: End::Failed, .. } => 3,
            Self::Ended { end: End::Capped(_), .. } => 4,
            Self::Paused { pause: Pause::Interrupted, .. } => 5,
            Self::Paused { pause: Pause::Gated, .. } => 6,
            Self::Paused { pause: Pause::Stopped, .. } => 7,
        }
    }
}
