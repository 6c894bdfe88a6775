//! The note that ends a task: what its ending tool was called with.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::outcome::Handback;

/// The note of an ending call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// A delegate's.
    HandBack(Handback),
}

impl Note {
    /// Whether it says that the work was done, so that this is checked.
    #[must_use]
    pub fn claims_success(&self) -> bool {
        match self {
            Self::HandBack(note) => note.succeeded,
        }
    }

    /// The note, in the words of a handback.
    #[must_use]
    pub fn handback(&self) -> &Handback {
        match self {
            Self::HandBack(note) => note,
        }
    }
}
