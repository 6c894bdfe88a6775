//! How many commits a finished branch has.

use std::fmt;

use super::given::Given;

/// The commits of a finished branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum History {
    /// One commit.
    Squash,
    /// One commit per call that changed something.
    Turns,
}

impl History {
    pub(super) fn read(given: &Given<'_>) -> Result<Self, String> {
        match given.string() {
            Some("squash") => Ok(Self::Squash),
            Some("turns") => Ok(Self::Turns),
            Some(_) | None => Err(format!("takes \"squash\" or \"turns\", not {}", given.quoted())),
        }
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Squash => "squash",
            Self::Turns => "turns",
        })
    }
}
