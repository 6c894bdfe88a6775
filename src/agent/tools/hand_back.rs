//! `hand_back`.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::domain::{note::Note, outcome::Handback};

pub(super) const DESCRIPTION: &str = "End the work and hand it back with a note. Call it once, when the work is done and \
                                      tested, or when you know that it cannot be done. Whoever reads the note sees \
                                      nothing else of what you did.";

/// Ends a delegation.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HandBack {
    /// What you changed, file by file; if nothing, say so.
    #[schemars(length(min = 1))]
    pub changed: String,
    /// What is true now, and how you know: tests that you ran, with their result.
    #[schemars(length(min = 1))]
    pub now_true: String,
    /// What remains to be done, or `nothing`.
    #[schemars(length(min = 1))]
    pub next: String,
    /// True if the work was done as asked; false if not.
    pub succeeded: bool,
}

impl From<HandBack> for Note {
    fn from(note: HandBack) -> Self {
        let HandBack { changed, now_true, next, succeeded } = note;
        Self::HandBack(Handback { changed, now_true, next, succeeded })
    }
}
