//! Taking back what a person gives up, without losing it: branch and files go back to a commit, and what was there
//! instead is kept under `refs/nisse/found/<task>/<number>`.
//!
//! Both steps may be done again after they were half done. What was kept first stays: the second time there is less.

use std::path::PathBuf;

use super::{
    Error, Worktree,
    commit::{Author, commit_tree},
    git::LONG,
    names::{found_as, found_ref},
    staging::{Staging, scratch},
};
use crate::domain::id::CommitId;

impl Worktree {
    /// A commit of the files as they are now, on top of `head`, where they differ from it; no ref and no index moves. What
    /// a commit cannot hold (a pipe) is left out.
    pub fn snapshot_files(&self, head: &CommitId, at_ms: u64) -> Result<Option<CommitId>, Error> {
        self.verify()?;
        let git = self.git()?;
        self.plain_index(&git, head)?;
        let scratch = scratch()?;
        let index = scratch.path().join("index");
        self.index_of(&git, head, Some(&index))?;
        git.call(["update-index", "-q", "--refresh"]).index(Some(&index)).limit(LONG).also_fine(1).run()?;
        let staging = Staging { git: &git, root: self.path(), index: Some(&index) };
        let changes = self.changes(&git, Some(&index))?;
        let fits = |path: &PathBuf| {
            let found = self.path().join(path).symlink_metadata();
            // a directory in the place of a tracked file: that is gone
            found.map_or(true, |found| found.is_file() || found.is_symlink() || found.is_dir())
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

    /// Keeps what the files hold beyond `head`, and says under which ref; none if that is nothing.
    pub fn save_files(&self, what: &str, head: &CommitId, at_ms: u64) -> Result<Option<String>, Error> {
        let Some(found) = self.snapshot_files(head, at_ms)? else { return Ok(None) };
        let (store, mut number) = (self.store(), 1);
        loop {
            let name = found_as(self.branch().task, what, number);
            let Some(kept) = store.reference(&name)? else {
                self.checkout().git().call(["update-ref", &name, &found.0]).run()?;
                return Ok(Some(name));
            };
            if store.tree(&kept)? == store.tree(&found)? {
                return Ok(Some(name));
            }
            number += 1;
        }
    }

    /// Keeps what branch and worktree hold beyond `head`, and says under which ref; none if that is nothing.
    pub fn save_state(&self, head: &CommitId, number: u64, at_ms: u64) -> Result<Option<String>, Error> {
        let task = self.branch().task;
        let kept = found_ref(task, number);
        if self.store().reference(&kept)?.is_some() {
            return Ok(Some(kept));
        }
        let tip = self.tip()?.unwrap_or_else(|| head.clone());
        let commit = self.snapshot_files(&tip, at_ms)?.unwrap_or(tip);
        if commit == *head {
            return Ok(None);
        }
        self.checkout().git().call(["update-ref", &kept, &commit.0]).run()?;
        Ok(Some(kept))
    }
}
