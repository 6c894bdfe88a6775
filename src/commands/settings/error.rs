//! Errors in settings.

use std::{fmt, io, path::PathBuf};

use super::{source::Source, state_dir, token};
use crate::domain::role::RoleName;

/// Why settings cannot be loaded, or a needed one is missing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Invalid values: all of all layers.
    #[error("{}", match .0.as_slice() { [one] => one.to_string(), many => format!("{} settings are wrong", many.len()) })]
    Wrong(Vec<Problem>),
    /// A file that cannot be read.
    #[error("cannot read {}", .path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A repository's settings file that is not a regular file.
    #[error("{} is a link or not a regular file; nisse does not read it", .0.display())]
    NotAFile(PathBuf),
    /// A settings file of more than a mebibyte.
    #[error("{} is too large for a settings file (over 1 MiB)", .0.display())]
    TooLarge(PathBuf),
    /// The platform has no directory for state.
    #[error("this system has no default state directory")]
    NoStateDirectory,
    /// The state directory cannot be used.
    #[error(transparent)]
    StateDir(#[from] state_dir::Error),
    /// The proxy's address is not set.
    #[error("the proxy's address is not set")]
    NoAddress,
    /// No model is set for the role.
    #[error("no model is set for the role {0}")]
    NoRole(RoleName),
    /// Commands or copies from an untrusted repository.
    #[error("{}:{line} names {what}", .path.display())]
    Untrusted {
        /// The repository's file.
        path: PathBuf,
        /// The line of the key, from 1.
        line: usize,
        /// What that is, and what it would do.
        what: &'static str,
        /// What is named.
        named: Vec<String>,
    },
    /// There is no token for the proxy.
    #[error(transparent)]
    Token(#[from] token::Error),
}

/// An invalid value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Its source.
    pub at: Source,
    /// What is wrong with it: a sentence without a full stop, without secrets, safe to print.
    pub what: String,
    /// The known name that was probably intended.
    pub near: Option<String>,
}

impl Problem {
    pub(super) fn new(at: Source, what: impl Into<String>) -> Self {
        Self { at, what: what.into(), near: None }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.at {
            Source::File { .. } | Source::Project { .. } => write!(f, "{}: {}", self.at, self.what)?,
            Source::Default | Source::Env(_) | Source::Flag(_) => write!(f, "{} {}", self.at, self.what)?,
        }
        match &self.near {
            Some(near) => write!(f, " (did you mean {near}?)"),
            None => Ok(()),
        }
    }
}
