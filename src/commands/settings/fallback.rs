//! Whether the proxy may answer with another model than the requested one.

use std::fmt;

use super::given::Given;

/// What happens to a reply of another model than the requested one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fallback {
    /// It is refused, and the proxy is asked not to fall back.
    Refuse,
    /// It is accepted, and reported.
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
