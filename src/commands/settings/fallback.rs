//! Whether the proxy may answer with another model than the one asked for.

use std::fmt;

use super::given::Given;

/// What becomes of a reply that another model gives in place of the one asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fallback {
    /// It is refused, and the proxy is told not to try.
    Refuse,
    /// It is taken, and told.
    Allow,
}

impl Fallback {
    pub(super) fn read(given: &Given<'_>) -> Result<Self, String> {
        match given.string() {
            Some("refuse") => Ok(Self::Refuse),
            Some("allow") => Ok(Self::Allow),
            Some(_) | None => Err(format!("takes \"refuse\" or \"allow\", not {}", given.quoted())),
        }
    }
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refuse => "refuse",
            Self::Allow => "allow",
        })
    }
}
