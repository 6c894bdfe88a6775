//! Where a value came from, kept beside every value so that `nisse doctor` and every error can say so.

use std::{
    fmt,
    path::{Path, PathBuf},
};

/// Where a value came from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// Built in.
    Default,
    /// The user's own file.
    File {
        /// The file.
        path: PathBuf,
        /// The line of the key, from 1.
        line: usize,
    },
    /// The repository's `nisse.toml`, which is not trusted.
    Project {
        /// The file.
        path: PathBuf,
        /// The line of the key, from 1.
        line: usize,
    },
    /// An environment variable.
    Env(String),
    /// A flag of the command line.
    Flag(&'static str),
}

impl Source {
    /// The same place in the same kind of file, at the given line.
    pub(super) fn in_file(path: &Path, line: usize, project: bool) -> Self {
        let path = path.to_owned();
        if project { Self::Project { path, line } } else { Self::File { path, line } }
    }

    /// Whether the repository said it.
    #[must_use]
    pub fn is_project(&self) -> bool {
        match self {
            Self::Project { .. } => true,
            Self::Default | Self::File { .. } | Self::Env(_) | Self::Flag(_) => false,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("built in"),
            Self::File { path, line } | Self::Project { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Env(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A value that remembers its source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Where it came from.
    pub source: Source,
}

impl<T> Sourced<T> {
    /// A built-in value.
    #[must_use]
    pub fn built_in(value: T) -> Self {
        Self { value, source: Source::Default }
    }
}
