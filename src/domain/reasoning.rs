//! How much a model reasons before it answers.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The smallest budget that the native route accepts, in tokens.
const LEAST_BUDGET: u64 = 1024;

/// The reasoning effort: a setting per model, pinned for a task.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reasoning {
    /// Not set: the proxy's configuration decides.
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
    /// All efforts, in rising order.
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

    /// The output tokens for reasoning, in addition to those for the answer.
    #[must_use]
    pub fn tokens(self) -> u64 {
        match self {
            Self::Off => 0,
            Self::Low => 1024,
            Self::Medium => 4096,
            Self::High => 16_384,
        }
    }

    /// The budget within an output limit of `max_output`: at most half of it, to leave room for the answer; none if the
    /// smallest budget does not fit.
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
