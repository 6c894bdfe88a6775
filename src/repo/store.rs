//! Reading a repository, and writing a checkpoint into it: one face, two hands.
//!
//! The library (libgit2, in process, a tenth of a millisecond a question) serves plain repositories. The program serves
//! those that the library refuses or reads wrongly: sparse, split, partial, SHA-256, reftable. Which of them it is, is
//! decided when the checkout is opened; `tests/it/repo/twins.rs` holds that both give the same answers and ids.

mod agreement;
mod conversion;
mod kept_index;
mod library;
mod loose;
mod program;
mod trees;

use std::path::{Path, PathBuf};

pub(super) use kept_index::KeptIndex;
pub(super) use library::Library;
pub(super) use program::Program;

use super::{Error, commit::Author, git::Git};
use crate::domain::id::CommitId;

/// The error for a read of libgit2's that failed: `what` was read.
fn read_error(what: impl Into<String>) -> impl FnOnce(git2::Error) -> Error {
    let what = what.into();
    move |source| Error::Read { what, source }
}

/// How git stands to a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TrackState {
    /// It is in the index.
    Tracked,
    /// It is not, and could be.
    Untracked,
    /// It is not, and git's rules leave it out, or it lies in a submodule.
    Ignored,
}

/// Where HEAD is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Head {
    /// The commit; none before the first.
    pub(super) commit: Option<CommitId>,
    /// The branch (`main`); none where HEAD is detached.
    pub(super) branch: Option<String>,
}

/// A submodule of a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Submodule {
    /// Its path.
    pub(super) path: Vec<u8>,
    /// The commit of its own that the tree names.
    pub(super) commit: String,
}

/// A repository as seen from one git directory: the main one, or a worktree's entry.
pub(super) trait Store {
    /// Where HEAD is.
    fn head(&self) -> Result<Head, Error>;

    /// The full name of the ref that HEAD stands for; none where HEAD is detached.
    fn symbolic_head(&self) -> Result<Option<String>, Error>;

    /// The commit that a ref (`refs/heads/main`) is at; none if there is no such ref.
    fn reference(&self, name: &str) -> Result<Option<CommitId>, Error>;

    /// The refs below any of these prefixes (`refs/nisse/`), by their full names, each with what it is at.
    fn references(&self, prefixes: &[&str]) -> Result<Vec<(String, CommitId)>, Error>;

    /// The commit that a person's expression (`HEAD~2`, `v1.0`) names.
    fn resolve(&self, rev: &str) -> Result<CommitId, Error>;

    /// The id of a commit's tree.
    fn tree(&self, commit: &CommitId) -> Result<String, Error>;

    /// A commit's message, lossily decoded; none if there is no such commit.
    fn message(&self, commit: &CommitId) -> Result<Option<String>, Error>;

    /// Whether `commit` is `tip` or one of its ancestors.
    fn reaches(&self, tip: &CommitId, commit: &CommitId) -> Result<bool, Error>;

    /// Whether a cherry-pick or a revert has stopped half-way: those are told by refs, all else by files.
    fn picking(&self) -> Result<Option<&'static str>, Error>;

    /// Paths of the index with unresolved conflicts.
    fn conflicts(&self) -> Result<Vec<String>, Error>;

    /// Paths of the index.
    fn tracked(&self) -> Result<Vec<Vec<u8>>, Error>;

    /// Paths of the index whose last part is `name`.
    fn named(&self, name: &str) -> Result<Vec<Vec<u8>>, Error>;

    /// Paths of the index that git is told not to look at (assume-unchanged, skip-worktree where it is not a sparse
    /// checkout that says so), with their blobs' ids.
    fn unwatched(&self) -> Result<Vec<(Vec<u8>, String)>, Error>;

    /// Whether the index can be read and hides nothing: no such marks, no conflicts.
    fn index_is_plain(&self) -> Result<bool, Error>;

    /// How git stands to each of `paths` (relative to the working tree).
    fn track_states(&self, paths: &[String]) -> Result<Vec<TrackState>, Error>;

    /// The content filters that the configuration defines now: name and part (`clean`), for each part.
    fn filters(&self) -> Result<Vec<(String, String)>, Error>;

    /// The submodules that a commit's tree names.
    fn submodules(&self, commit: &CommitId) -> Result<Vec<Submodule>, Error>;

    /// Makes the working tree's own index hold what is at `changed` now and nothing at `gone`, and writes its tree;
    /// objects are on disk when this returns.
    fn stage(&self, git: &Git, root: &Path, changed: &[PathBuf], gone: &[PathBuf]) -> Result<String, Error>;

    /// Writes a commit object and gives its id; it is on disk when this returns.
    fn commit(
        &self,
        git: &Git,
        tree: &str,
        parent: &CommitId,
        message: &str,
        author: &Author<'_>,
    ) -> Result<CommitId, Error>;

    /// Moves a ref from one commit to another, durably, if it is still at the first.
    fn move_ref(&self, git: &Git, name: &str, from: &CommitId, to: &CommitId) -> Result<(), Error>;

    /// The paths that a tree (by its id) holds and `commit` does not.
    fn added(&self, commit: &CommitId, tree: &str) -> Result<Vec<PathBuf>, Error>;

    /// Whether a commit holds a file at a path.
    fn contains(&self, commit: &CommitId, path: &Path) -> Result<bool, Error>;

    /// Whether both commits hold the same files.
    fn same_tree(&self, a: &CommitId, b: &CommitId) -> Result<bool, Error> {
        Ok(self.tree(a)? == self.tree(b)?)
    }
}
