//! The words around what a request holds: fixed when a task begins, so that an upgrade in the middle of a task changes no
//! byte of what was sent before, and prompt caches go on hitting.
//!
//! What is plain text is kept as text; what code makes goes by [`Wording::version`]. A new version of the wording comes
//! with a new version of the events (`log::EVENTS`), so that an older nisse says that it is too old.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::message::Call;

/// The words that a task's requests are rendered with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Wording {
    /// The version of what code renders: stubs for results that are left out, and the form of the messages.
    pub version: u32,
    /// What stands before the brief.
    pub task: String,
    /// What stands before the check commands.
    pub checks: String,
    /// What stands before the description of the repository.
    pub repository: String,
}

impl Wording {
    /// The newest version of what code renders.
    pub const NEWEST: u32 = 1;

    /// What stands for a result of `bytes` bytes that is left out.
    #[must_use]
    pub fn stub(&self, call: &Call, bytes: usize) -> String {
        // a second version is a second arm here
        format!(
            "[{}: the result of this {}, {bytes} bytes, was left out to save room; call again if needed]",
            call.id, call.name
        )
    }
}
