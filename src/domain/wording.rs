//! The words around what a request holds: fixed when a task begins, so that an upgrade in the middle of a task changes no
//! byte of what was sent before, and prompt caches go on hitting.
//!
//! What is plain text is kept as text; what code makes goes by [`Wording::version`]. A new version of the wording comes
//! with a new version of the events (`log::EVENTS`), so that an older nisse says that it is too old.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::message::{Call, Stop};

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
    ///
    /// - 1: what the model is told stands in a message of its own; a reply goes back with all of its text.
    /// - 2: what the model is told comes within the last result, or after a reply that stands for an empty one, since some
    ///   templates refuse two messages of one side in a row, and a `user` right after a `tool`; text that is no use, and
    ///   would be copied, goes back as one line that says so.
    pub const NEWEST: u32 = 2;

    /// What stands for a result of `bytes` bytes that is left out.
    #[must_use]
    pub fn stub(&self, call: &Call, bytes: usize) -> String {
        format!(
            "[{}: the result of this {}, {bytes} bytes, was left out to save room; call again if needed]",
            call.id, call.name
        )
    }

    /// Whether what the model is told comes within the last result.
    #[must_use]
    pub fn tells_within_results(&self) -> bool {
        self.version >= 2
    }

    /// What goes back in place of an empty reply, where one must.
    #[must_use]
    pub fn for_empty(&self) -> Option<&'static str> {
        (self.version >= 2).then_some("(an empty reply)")
    }

    /// What goes back in place of a reply's text without a call, where the text is no use: cut off, or the same again and
    /// again.
    #[must_use]
    pub fn for_useless(&self, text: &str, stop: &Stop) -> Option<String> {
        let useless = *stop == Stop::Truncated || repeats_itself(text);
        (self.version >= 2 && useless)
            .then(|| format!("({} characters of text without a tool call, left out)", text.chars().count()))
    }
}

/// Text of which the least part is new: lines, or in one long line words, that come again and again.
#[must_use]
pub fn repeats_itself(text: &str) -> bool {
    const LEAST: usize = 20;
    let mostly_old = |pieces: Vec<&str>| {
        let distinct = pieces.iter().collect::<BTreeSet<_>>().len();
        pieces.len() >= LEAST && distinct * 5 <= pieces.len()
    };
    mostly_old(text.lines().map(str::trim).collect()) || mostly_old(text.split_whitespace().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_again_and_again_is_told_from_prose() {
        assert!(repeats_itself(&"\n".repeat(500)));
        assert!(repeats_itself(&"{\"path\": \"a\"}\n".repeat(40)));
        assert!(repeats_itself(&"the same again ".repeat(40)));
        assert!(!repeats_itself(""));
        let prose = "First I look at the file that fails, then at the one that it tests, and when both are known I change \
                     the line that is wrong, run the tests once more, and hand the work back with a note.";
        assert!(!repeats_itself(prose));
    }
}
