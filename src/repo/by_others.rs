//! What somebody else changed in a checkout while a task worked in it: kept, never thrown away.

use std::path::PathBuf;

use super::{
    Error, Worktree,
    checkpoint::{Author, commit_tree},
    git::LONG,
    staging::{Staging, paths, scratch, shown},
};
use crate::domain::id::{CommitId, TaskId};

/// Where is kept what somebody else changed in a checkout while a task worked in it.
#[must_use]
pub fn others_ref(task: TaskId) -> String {
    format!("refs/nisse/found/{task}/by-others")
}

impl Worktree {
    /// The files that the checkout is to have again: those of the snapshot, save where somebody else changed what the
    /// task did not touch; and all paths that somebody else changed. Their state is kept under [`others_ref`].
    pub(super) fn files_to_give_back(&self, snapshot: &CommitId) -> Result<(CommitId, Vec<String>), Error> {
        let Some(tip) = self.tip()? else { return Ok((snapshot.clone(), Vec::new())) };
        let Some(found) = self.hold(&tip, 0)? else { return Ok((snapshot.clone(), Vec::new())) };
        let name = others_ref(self.branch().task);
        // the first look is the one that saw everything
        if self.checkout().store().reference(&name)?.is_none() {
            self.git()?.call(["update-ref", &name, &found.0]).run()?;
        }
        let git = self.git()?;
        let between = |from: &CommitId, to: &CommitId| {
            let call = git.call(["diff-tree", "-r", "-z", "--name-only", "--no-renames", &from.0, &to.0]);
            Ok::<_, Error>(paths(call.limit(LONG).parts()?))
        };
        let of_task = between(&tip, snapshot)?;
        let of_others = between(&tip, &found)?;
        let left: Vec<_> = of_others.iter().filter(|path| !of_task.contains(path)).cloned().collect();

        let scratch = scratch()?;
        let index = scratch.path().join("index");
        let staging = Staging { git: &git, root: self.path(), index: Some(&index) };
        git.call(["read-tree", &snapshot.0]).index(Some(&index)).limit(LONG).run()?;
        staging.add(&left)?;
        let tree = staging.write_tree()?;
        let author = Author { name: "nisse", email: "nisse@localhost", at_ms: 0 };
        let files = commit_tree(&git, &tree, &[snapshot], "nisse: the files as they are given back\n", &author)?;
        Ok((files, of_others.iter().map(|path| shown(path)).collect()))
    }

    /// A commit of the files as they are now, on top of `head`, where they differ from it; no ref and no index moves. What
    /// a commit cannot hold (a pipe) is left out.
    pub fn hold(&self, head: &CommitId, at_ms: u64) -> Result<Option<CommitId>, Error> {
        self.verify()?;
        let git = self.git()?;
        self.plain_index(&git, head)?;
        let scratch = scratch()?;
        let index = scratch.path().join("index");
        git.call(["read-tree", &head.0]).index(Some(&index)).limit(LONG).run()?;
        git.call(["update-index", "-q", "--refresh"]).index(Some(&index)).limit(LONG).also_fine(1).run()?;
        let staging = Staging { git: &git, root: self.path(), index: Some(&index) };
        let changes = self.changes(&git, Some(&index))?;
        let fits = |path: &PathBuf| {
            let found = self.path().join(path).symlink_metadata();
            found.map_or(true, |found| found.is_file() || found.is_symlink())
        };
        staging.add(&changes.tracked.into_iter().chain(changes.untracked).filter(fits).collect::<Vec<_>>())?;
        let tree = staging.write_tree()?;
        if self.store().tree(head)? == tree {
            return Ok(None);
        }
        let author = Author { name: "nisse", email: "nisse@localhost", at_ms };
        let message = format!("nisse: files as they were found\n\nNisse-Task: {}\n", self.branch().task);
        commit_tree(&git, &tree, &[head], &message, &author).map(Some)
    }

    /// Makes the files those that were held, and the index that of `head`.
    pub fn restore_held(&self, files: &CommitId, head: &CommitId) -> Result<(), Error> {
        self.restore(files)?;
        let git = self.git()?;
        git.call(["read-tree", "--reset", &head.0]).limit(LONG).run()?;
        git.call(["update-index", "-q", "--refresh"]).limit(LONG).also_fine(1).run().map(drop)
    }
}
