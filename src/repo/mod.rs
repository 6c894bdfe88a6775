//! Git: the snapshot of a checkout, the task's worktree and branch, a checkpoint per call, squash, discard, diff, and
//! applying the work to the checkout.
//!
//! What always holds:
//!
//! - The caller's HEAD, branches, index, stash and files stay byte for byte what they were. In its `.git` only objects,
//!   `refs/heads/nisse/…`, `refs/nisse/…` and the task's worktree entry come and go. A task that works in place begins in a
//!   clean checkout, and gives it back at its end. Only what a person asks for with `nisse apply` (`apply`, `write_plan`,
//!   `user_commit`) changes more, and what they save meanwhile is not lost (`exchange`).
//! - Objects are on disk before a ref names them, and a ref moves by compare-and-swap only.
//! - Each step that an intent stands for may be done twice, or again after it was half done, with the same end.
//! - Nothing runs that a repository's configuration names, no hooks, signing, fsmonitor, external diff; only content
//!   filters that were configured before the task began. A commit of the person's (`user_commit`) is made by their own git.
//! - What would be read wrongly or damaged is refused with a sentence, before anything is changed.
//! - Nothing is removed that does not carry the task's own name.
//!
//! Two ways lead into a repository. [`git`] runs the git program: it writes whatever is the person's, and reads where the
//! library would be wrong. `store` is the face of both for reads and for checkpoints, which the library (libgit2) makes in
//! process; `stat_cache` spares both where no file's status has changed.
//!
//! | folder | what it is |
//! |---|---|
//! | `store` | reading objects, refs and the index; making a checkpoint |
//! | `snapshot` | from the checkout to the commit where a task begins |
//! | `worktree` | the task's directory and branch: checkpoint, restore, discard; what a command did to them |
//! | `apply` | from the task's commits to the files and branches of the checkout |
//! | `in_place` | a task that works in the checkout itself |
//!
//! Below them are git itself and its files, above them nothing; no two files know each other in a circle.

mod apply;
mod branch;
mod checkout;
mod commit;
mod configuration;
mod credentials;
mod diff;
pub(crate) mod directory;
mod environment;
mod excludes;
mod files_clock;
pub mod git;
mod in_place;
mod leftovers;
mod lock_files;
mod lock_holders;
mod locks;
mod moved_checkout;
mod names;
mod operation;
mod own_index;
mod pack;
mod paths;
mod process;
mod removal;
mod repository_id;
mod running_git;
mod same_second;
pub mod scratch;
mod small_files;
mod snapshot;
mod staging;
mod store;
pub mod workspace;
mod worktree;

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

pub(crate) use apply::draft::{Like, write as write_draft};
pub(crate) use apply::exchange::{Is, Outcome, Spot};
pub use apply::plan_state::PlanFiles;
pub use apply::write_plan::{Direction, Written};
pub use apply::{Conflict, Plan, PlanRequest, Planning};
pub use branch::{TaskBranch, WorktreeSpec};
pub use checkout::{Checkout, git_version};
pub use credentials::of_addresses as credentials_of_addresses;
pub use diff::{Diff, FileStat};
pub use environment::Environment;
pub use in_place::give_back::GivenBack;
pub use leftovers::{TaskRef, TaskWorktree};
pub use locks::ForeignLock;
pub use names::{before_apply_ref, branch_name, discarded_ref, found_ref};
pub use pack::{Loose, Packed, RefUsage};
pub use process::EndableGit;
pub use same_second::SameSecond;
pub use snapshot::never_staged::NeverStaged;
pub use snapshot::{Snapshot, SnapshotRequest};
pub use worktree::Worktree;
pub use worktree::checkpoint::CheckpointRequest;
pub use worktree::uncommittable::{MovedOut, move_whole, moved_out_to};

use crate::domain::id::CommitId;

/// Why something in a repository could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no repository at the path.
    #[error("{} is not inside a git repository; `git init` makes one", path.display())]
    NotARepository {
        /// The path.
        path: PathBuf,
    },
    /// There is nothing at the path that a repository could be in.
    #[error("there is no directory {}", path.display())]
    NoDirectory {
        /// The path.
        path: PathBuf,
    },
    /// The repository is one that tasks cannot work with, or not now.
    #[error("{}: {why}", checkout.display())]
    Refused {
        /// The repository, or the path that it was looked for.
        checkout: PathBuf,
        /// The sentence that says why, and the way on.
        why: String,
    },
    /// The checkout holds unfinished work, and a task in place needs one that holds none.
    #[error("{} holds unfinished work, and a task in place needs a clean checkout: {}", checkout.display(), path_list(paths))]
    Unclean {
        /// The checkout.
        checkout: PathBuf,
        /// The paths.
        paths: Vec<String>,
    },
    /// The git program cannot be started.
    #[error("the git program cannot be started: {source}")]
    NoGit {
        /// What the system said.
        source: io::Error,
    },
    /// The git program is older than 2.34.
    #[error("git {found} is too old: 2.34 or newer is needed")]
    OldGit {
        /// What it calls itself.
        found: String,
    },
    /// The git program failed.
    #[error("git {action} failed ({status}): {stderr}")]
    Git {
        /// The subcommand.
        action: String,
        /// How it ended.
        status: String,
        /// Its words.
        stderr: String,
    },
    /// The branch of a task is not to be merged.
    #[error("{why}; nothing was changed")]
    MergeRefused {
        /// Why not, in a sentence.
        why: &'static str,
    },
    /// The git program did not end in time, and was killed.
    #[error("git {action} did not end within {} s", limit.as_secs())]
    TimedOut {
        /// The subcommand.
        action: String,
        /// The limit.
        limit: Duration,
    },
    /// The git program answered something unreadable.
    #[error("git {action} gave an answer that cannot be read: {answer}")]
    Unreadable {
        /// The subcommand.
        action: String,
        /// The answer, or its beginning.
        answer: String,
    },
    /// A read in process failed.
    #[error("{what}: {}", source.message())]
    Read {
        /// What was read.
        what: String,
        /// What libgit2 said.
        source: git2::Error,
    },
    /// A file could not be read or written.
    #[error("{what}: {source}")]
    Io {
        /// What was attempted, with its object.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// No commit goes by that name.
    #[error("`{rev}` names no commit in this repository")]
    NoSuchCommit {
        /// The name.
        rev: String,
    },
    /// The checkout changed each time while it was read.
    #[error("{} keeps changing while it is read; wait for what is running there, then try again", checkout.display())]
    Unsteady {
        /// The checkout.
        checkout: PathBuf,
    },
    /// The worktree's directory is gone, or something else stands in its place.
    #[error("{} is no directory any more: a command took it away, or put something in its place", path.display())]
    Replaced {
        /// The directory.
        path: PathBuf,
    },
    /// The repository is gone, or another one by now, that holds nothing of the task.
    #[error("{} holds the task's commits no more: its repository was removed, or made anew", git_dir.display())]
    Gone {
        /// The git directory.
        git_dir: PathBuf,
    },
    /// A lock file that is not ours is in the way.
    #[error("{} is there, {age_s} s old: another git is at work, or died; if none is, remove the file", lock.display())]
    Locked {
        /// The file.
        lock: PathBuf,
        /// How old it is.
        age_s: u64,
    },
    /// HEAD is not at the base any more.
    #[error("the checkout has moved from {} to {} since the task was begun; begin it again", commit_name(base.as_ref()), commit_name(head.as_ref()))]
    HeadMoved {
        /// The task's base.
        base: Option<CommitId>,
        /// Where HEAD is.
        head: Option<CommitId>,
    },
    /// Something that is not this task's stands under its name.
    #[error("{what} is in the way and is not this task's ({why}); it was left alone")]
    Foreign {
        /// A path, a branch.
        what: String,
        /// How that was seen.
        why: String,
    },
    /// The branch is not where it was expected.
    #[error("branch {branch} is at {}, not at {expected}", commit_name(found.as_ref()))]
    BranchMoved {
        /// The branch.
        branch: String,
        /// Where it was expected.
        expected: CommitId,
        /// Where it is; none if there is no such branch.
        found: Option<CommitId>,
    },
    /// What a task changed cannot come into the checkout as it is.
    #[error("nothing was touched, because of your own changes: {}", conflict_list(conflicts))]
    Conflicts {
        /// The paths that stand against it.
        conflicts: Vec<Conflict>,
    },
    /// Files are neither what they were nor what they are to be.
    #[error("changed since it was begun, and left as they are: {}", paths.join(", "))]
    Between {
        /// The paths.
        paths: Vec<String>,
    },
    /// A fast-forward that was begun cannot come to its end, nor be taken back.
    #[error("the fast-forward of {branch} was cut off, and cannot be finished: {why}")]
    NotForward {
        /// The branch.
        branch: String,
        /// What is in its way.
        why: String,
    },
    /// A commit of the person's was refused.
    #[error("no commit was made: {why}")]
    NotCommitted {
        /// The words of git, or of the hook.
        why: String,
    },
    /// A squash would change the tree.
    #[error("{from} and {to} do not hold the same files, so the branch is not moved")]
    TreesDiffer {
        /// The branch's tip.
        from: CommitId,
        /// The one commit.
        to: CommitId,
    },
}

/// What git says where the same may go well the next time: a full disk, another git, a process that was killed.
const PASSING: [&str; 5] = ["No space left", "quota exceeded", ".lock'", "failed to read", "died of signal"];

impl Error {
    /// Whether it comes again however often the same is tried, until somebody sees to it. What a wait, another program's end
    /// or free space on a disk mends does not last.
    #[must_use]
    pub fn lasts(&self) -> bool {
        match self {
            Self::Io { source, .. } => !matches!(
                source.kind(),
                io::ErrorKind::StorageFull
                    | io::ErrorKind::QuotaExceeded
                    | io::ErrorKind::Interrupted
                    | io::ErrorKind::OutOfMemory
            ),
            Self::Git { stderr, status, .. } => {
                !status.starts_with("signal") && !PASSING.iter().any(|words| stderr.contains(words))
            }
            Self::Foreign { .. } | Self::Replaced { .. } | Self::Gone { .. } => true,
            Self::NotARepository { .. }
            | Self::NoDirectory { .. }
            | Self::Refused { .. }
            | Self::MergeRefused { .. }
            | Self::Unclean { .. }
            | Self::NoGit { .. }
            | Self::OldGit { .. }
            | Self::TimedOut { .. }
            | Self::Unreadable { .. }
            | Self::Read { .. }
            | Self::NoSuchCommit { .. }
            | Self::Unsteady { .. }
            | Self::Locked { .. }
            | Self::HeadMoved { .. }
            | Self::BranchMoved { .. }
            | Self::Conflicts { .. }
            | Self::Between { .. }
            | Self::NotForward { .. }
            | Self::NotCommitted { .. }
            | Self::TreesDiffer { .. } => false,
        }
    }
}

/// Conflicts in words, twenty at most.
fn conflict_list(conflicts: &[Conflict]) -> String {
    let named: Vec<_> = conflicts.iter().take(20).map(|one| format!("{} ({})", one.path, one.why)).collect();
    let more = conflicts.len().saturating_sub(named.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}

/// The first twenty of these paths, and how many more there are.
fn path_list(paths: &[String]) -> String {
    let more = if paths.len() > 20 { format!(" and {} more", paths.len() - 20) } else { String::new() };
    format!("{}{more}", paths.iter().take(20).cloned().collect::<Vec<_>>().join(", "))
}

/// A commit that may be missing, in words.
fn commit_name(commit: Option<&CommitId>) -> String {
    commit.map_or_else(|| "no commit".to_owned(), ToString::to_string)
}

/// A path without links, as far as it is there.
pub fn real_path(path: &Path) -> Result<PathBuf, Error> {
    directory::real(path).map_err(io_error("find", path))
}

/// Turns an I/O error into ours: `what` is what was attempted, `path` its object.
fn io_error(what: &str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let what = format!("{what} {}", path.display());
    move |source| Error::Io { what, source }
}
