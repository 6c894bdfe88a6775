//! A machine with a task's files, on which its commands run.
//!
//! Every path is relative to the root that the host was opened for (the task's worktree), with `/` between its parts.

use std::time::Duration;

use tokio::sync::watch;

use super::BoxFuture;
use crate::domain::id::Hash;

/// A machine. Real implementations: this one, and one reached over SSH.
pub trait Host: Send + Sync {
    /// The real path inside the root: links are followed, but not out of it.
    /// The last part need not exist; `.git`, at any depth, is refused.
    fn resolve<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Resolved, Error>>;

    /// The bytes of the regular file at a resolved path, at most `limit` of them.
    fn read<'a>(&'a self, path: &'a str, limit: u64) -> BoxFuture<'a, Result<FileBytes, Error>>;

    /// Writes the file at a resolved path atomically (temporary file beside it, fsync, exchange of names), keeping its mode
    /// and, where it has several names, its inode; makes missing directories. Nothing is written unless the file's hash is
    /// `expected` (none: there is no such file), which is looked at right before, and again of what came out.
    fn write<'a>(
        &'a self,
        path: &'a str,
        expected: Option<&'a Hash>,
        bytes: &'a [u8],
    ) -> BoxFuture<'a, Result<(), Error>>;

    /// Clears up beside a resolved path after a write from `before` (none: there was no such file) to `after` that was cut
    /// off: what someone saved in that moment is at the path again, and nothing of ours is left.
    fn settle<'a>(
        &'a self,
        path: &'a str,
        before: Option<&'a Hash>,
        after: &'a Hash,
    ) -> BoxFuture<'a, Result<(), Error>>;

    /// Paths of files under the root, ignore rules applied, sorted, at most `limit`.
    fn list<'a>(&'a self, listing: &'a Listing) -> BoxFuture<'a, Result<Listed, Error>>;

    /// Matching lines of files under the root, ignore rules applied, sorted by path.
    fn search<'a>(&'a self, search: &'a Search) -> BoxFuture<'a, Result<Found, Error>>;

    /// Runs a shell command line in the root, to its end or its limit. Dropping the future ends the command. Meanwhile
    /// `last_line` holds the last line of its output that is not blank, as far as someone looks.
    fn run<'a>(&'a self, command: &'a Command, last_line: &'a LastLine) -> BoxFuture<'a, Result<CommandOutput, Error>>;
}

/// Where the last line of a running command's output is found: shown, never recorded.
pub type LastLine = watch::Sender<String>;

/// A path after its links were followed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resolved {
    /// Relative to the root.
    pub path: String,
    /// What is there.
    pub kind: FileKind,
}

/// What is at a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileKind {
    /// Nothing.
    Absent,
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A device, a socket, a pipe.
    Other,
}

/// The content of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileBytes {
    /// The bytes, at most as many as were asked for.
    pub bytes: Vec<u8>,
    /// How many there are in all.
    pub size: u64,
    /// The hash of all of them.
    pub hash: Hash,
}

/// A question for files by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listing {
    /// A directory to look under; empty for the root.
    pub under: String,
    /// A glob over the path relative to the root; none for all.
    pub glob: Option<String>,
    /// Globs of paths that are never named.
    pub deny: Vec<String>,
    /// The most paths to name.
    pub limit: usize,
}

/// The answer to a [`Listing`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listed {
    /// The paths, sorted.
    pub paths: Vec<String>,
    /// There are more than the limit.
    pub more: bool,
}

/// A question for lines by content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Search {
    /// A regular expression (the `regex` crate's syntax).
    pub pattern: String,
    /// Letters match in either case.
    pub ignore_case: bool,
    /// Where to look.
    pub listing: Listing,
    /// The most lines to name.
    pub max_lines: usize,
}

/// The answer to a [`Search`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Found {
    /// The lines, by path and number.
    pub lines: Vec<FoundLine>,
    /// There are more than the limit.
    pub more: bool,
}

/// A line that matched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundLine {
    /// The file.
    pub path: String,
    /// From 1.
    pub number: u64,
    /// The line without its ending, lossily decoded, masked, and then cut at 500 characters.
    pub text: String,
}

/// A shell command to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// The command line, for `bash -c` (else `sh -c`).
    pub line: String,
    /// When it is ended: TERM, KILL after 2 s, to all its descendants.
    pub limit: Duration,
    /// Bytes kept from the start, and from the end, of its output.
    pub keep: usize,
    /// Names of further environment variables that it sees.
    pub pass_env: Vec<String>,
}

/// What a command left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandOutput {
    /// How it ended.
    pub end: CommandEnd,
    /// Standard output and standard error in the order in which they came, masked, then head and tail, bounded by
    /// [`Command::keep`] on each side, cut at character boundaries, as text: control bytes and escape sequences stripped, NUL and bytes
    /// that are not UTF-8 replaced by U+FFFD.
    pub text: String,
    /// Bytes of output that were left out between head and tail.
    pub omitted: u64,
    /// Bytes that were not UTF-8 were replaced.
    pub lossy: bool,
    /// How long it ran.
    pub duration: Duration,
}

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandEnd {
    /// It exited with this status.
    Exited(i32),
    /// A signal ended it.
    Signalled(i32),
    /// The time limit ended it.
    TimedOut,
}

/// Why a host could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was asked is impossible or forbidden; the sentence is for the model.
    #[error("{0}")]
    Refused(String),
    /// The file is not what it was expected to be.
    #[error("{path} has changed")]
    Changed {
        /// Which.
        path: String,
    },
    /// The machine could not do it.
    #[error("{what}: {source}")]
    Io {
        /// What was attempted, with its object.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
}
