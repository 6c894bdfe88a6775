//! What of a worktree's files belongs into a commit of the task: what changed, without what was ignored at its start and
//! what is never staged.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{
    Error, Worktree,
    git::{Git, LONG},
    paths::paths,
    staging::{Changes, Staging, Why},
};
use crate::domain::id::CommitId;

impl Worktree {
    /// What differs from an index, without what is set aside; what is never staged is told apart.
    pub(super) fn changes(&self, git: &Git, index: Option<&Path>) -> Result<Changes, Error> {
        let staging = Staging { git, root: self.path(), index };
        let mut changes = staging.changes()?;
        let ignored_at_start = self.ignored_at_start()?;
        changes.untracked.retain(|path| !ignored_at_start.contains(path));
        changes.repositories.retain(|path| !ignored_at_start.contains(path));
        self.checkout().rules().take_out(&mut changes, &staging, &*self.store())?;
        Ok(changes)
    }

    /// Where the state directory lies below the worktree, if it does.
    pub(super) fn kept_out(&self) -> Option<&Path> {
        self.checkout().rules().state_below(self.path())
    }

    /// Takes what is set aside, and what is never staged, out of an index above `commit`, where a command staged it; the
    /// files stay.
    pub(super) fn unstage_excluded(&self, git: &Git, commit: &CommitId) -> Result<(), Error> {
        let call = git.call(["diff-index", "-z", "--cached", "--name-only", "--diff-filter=A", "--no-renames"]);
        let added = paths(call.args([commit.0.as_str(), "--"]).limit(LONG).parts()?);
        let staged = self.wrongly_staged(git, added)?;
        Staging { git, root: self.path(), index: None }.remove(&staged)
    }

    /// Those of these untracked paths that are never staged.
    pub(super) fn never_staged(&self, git: &Git, untracked: &[PathBuf]) -> Result<BTreeSet<PathBuf>, Error> {
        let rules = self.checkout().rules();
        let left = rules.sort(git, self.path(), &*self.store(), untracked)?;
        Ok(left.into_iter().map(|left| left.path).collect())
    }

    /// What stands in the worktree and is never staged, whoever made it.
    pub(super) fn left_out(&self) -> Result<Vec<PathBuf>, Error> {
        let changes = self.changes(&self.git()?, None)?;
        Ok(changes.left_out.into_iter().filter(|left| left.why != Why::State).map(|left| left.path).collect())
    }

    /// Those of `added`, paths that an index has and a commit has not, that are to be in no commit: a command staged them.
    pub(super) fn wrongly_staged(&self, git: &Git, added: Vec<PathBuf>) -> Result<Vec<PathBuf>, Error> {
        let ignored_at_start = self.ignored_at_start()?;
        let never = self.never_staged(git, &added)?;
        Ok(added.into_iter().filter(|path| ignored_at_start.contains(path) || never.contains(path)).collect())
    }
}
