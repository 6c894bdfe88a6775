//! How much a model is asked to reason before it answers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The least budget that the native route takes, in tokens.
const LEAST_BUDGET: u64 = 1024;

/// An effort, as a setting per model; pinned, and the same over a task.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reasoning {
    /// Nothing is asked for: the model does as the proxy's configuration says.
    #[default]
    Off,
    /// A little.
    Low,
    /// More.
    Medium,
    /// Much.
    High,
}

impl Reasoning {
    /// All of them, from none to much.
    pub const ALL: [Self; 4] = [Self::Off, Self::Low, Self::Medium, Self::High];

    /// The word used in settings, output and `reasoning_effort`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// The output tokens that it may take, on top of those of the answer.
    #[must_use]
    pub fn tokens(self) -> u64 {
        match self {
            Self::Off => 0,
            Self::Low => 1024,
            Self::Medium => 4096,
            Self::High => 16_384,
        }
    }

    /// The budget within an output ceiling of `max_output`: at most half of it, so that an answer has room; none
    /// where the least that is taken does not fit.
    #[must_use]
    pub fn budget(self, max_output: u64) -> Option<u64> {
        Some(self.tokens().min(max_output / 2)).filter(|budget| *budget >= LEAST_BUDGET)
    }
}

impl fmt::Display for Reasoning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
