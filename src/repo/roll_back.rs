//! Taking back what a person gives up, without losing it: branch and files go back to a commit, and what was there
//! instead is kept under `refs/nisse/found/<task>/<number>`.
//!
//! Both steps may be done again after they were half done. What was kept first stays: the second time there is less.

use std::path::PathBuf;

use super::{
    Error, TaskBranch, Worktree,
    checkpoint::{Author, commit_tree},
    git::LONG,
    staging::{Staging, paths, scratch, shown},
    worktree::{clear_branch, refuse_elsewhere, remove},
};
use crate::domain::{
    checkout::Isolation,
    id::{CommitId, TaskId},
};

/// Where what a worktree held is kept; `number` tells the times apart.
#[must_use]
pub fn found_ref(task: TaskId, number: u64) -> String {
    format!("refs/nisse/found/{task}/{number}")
}

/// The same for what is kept without a person's decision, by what it is: `setup`, and `setup-2` where that holds
/// something else already.
pub(super) fn found_as(task: TaskId, what: &str, number: usize) -> String {
    let more = if number == 1 { String::new() } else { format!("-{number}") };
    format!("refs/nisse/found/{task}/{what}{more}")
}

impl Worktree {
    /// A commit of the files as they are now, on top of `head`, where they differ from it; no ref and no index moves. What
    /// a commit cannot hold (a pipe) is left out.
    pub fn hold(&self, head: &CommitId, at_ms: u64) -> Result<Option<CommitId>, Error> {
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
    pub fn keep_as(&self, what: &str, head: &CommitId, at_ms: u64) -> Result<Option<String>, Error> {
        let Some(found) = self.hold(head, at_ms)? else { return Ok(None) };
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
    pub fn keep_found(&self, head: &CommitId, number: u64, at_ms: u64) -> Result<Option<String>, Error> {
        let task = self.branch().task;
        let kept = found_ref(task, number);
        if self.store().reference(&kept)?.is_some() {
            return Ok(Some(kept));
        }
        let tip = self.tip()?.unwrap_or_else(|| head.clone());
        let commit = self.hold(&tip, at_ms)?.unwrap_or(tip);
        if commit == *head {
            return Ok(None);
        }
        self.checkout().git().call(["update-ref", &kept, &commit.0]).run()?;
        Ok(Some(kept))
    }
}

/// Where is kept what a worktree held when a person was asked about it.
fn asked_ref(task: TaskId) -> String {
    format!("refs/nisse/found/{task}/asked")
}

impl Worktree {
    /// Notes what branch and worktree hold as what a person is asked about.
    pub fn note_asked(&self) -> Result<(), Error> {
        let Some(now) = self.held_now()? else { return Ok(()) };
        self.checkout().git().call(["update-ref", &asked_ref(self.branch().task), &now.0]).run().map(drop)
    }

    /// The files that changed since a person was asked about them; with none, what was noted is forgotten.
    pub fn changed_since_asked(&self) -> Result<Vec<String>, Error> {
        let name = asked_ref(self.branch().task);
        let git = self.checkout().git();
        let (Some(asked), Some(now)) = (self.store().reference(&name)?, self.held_now()?) else {
            return Ok(Vec::new());
        };
        let call = git.call(["diff-tree", "-r", "-z", "--name-only", "--no-renames", &asked.0, &now.0]);
        let changed: Vec<_> = paths(call.limit(LONG).parts()?).iter().map(|path| shown(path)).collect();
        if changed.is_empty() {
            self.branch().forget_asked()?;
        }
        Ok(changed)
    }

    fn held_now(&self) -> Result<Option<CommitId>, Error> {
        let Some(tip) = self.tip()? else { return Ok(None) };
        Ok(Some(self.hold(&tip, 0)?.unwrap_or(tip)))
    }
}

impl TaskBranch {
    /// Forgets what a person was asked about: it is decided.
    pub fn forget_asked(&self) -> Result<(), Error> {
        let name = asked_ref(self.task);
        match self.checkout.store().reference(&name)? {
            Some(asked) => self.checkout.git().call(["update-ref", "-d", &name, &asked.0]).run().map(drop),
            None => Ok(()),
        }
    }

    /// Puts the branch at `head`, wherever it is, also where it is gone. Another tip is kept under `kept`.
    pub fn put_back(&self, head: &CommitId, kept: &str) -> Result<(), Error> {
        let found = self.tip()?;
        if found.as_ref() == Some(head) {
            return Ok(());
        }
        let git = self.checkout.git();
        let name = format!("refs/heads/{}", self.name());
        // a tip of zeros stands for a branch that is not there
        let old = found.as_ref().map_or_else(|| "0".repeat(head.0.len()), |tip| tip.0.clone());
        if let Some(tip) = &found {
            let here =
                self.isolation == Isolation::InPlace && self.checkout.store().symbolic_head()?.as_ref() == Some(&name);
            if !here {
                refuse_elsewhere(self)?;
            }
            if self.checkout.store().reference(kept)?.is_none() {
                git.call(["update-ref", kept, &tip.0]).run()?;
            }
        }
        git.call(["update-ref", "--no-deref", &name, &head.0, &old]).run().map(drop)
    }

    /// Whether the branch has gone on from `head`, and where to: the checkpoint of a call that was cut off.
    pub fn beyond(&self, head: &CommitId) -> Result<Option<CommitId>, Error> {
        match self.tip()? {
            Some(tip) if tip != *head && self.checkout.store().reaches(&tip, head)? => Ok(Some(tip)),
            Some(_) | None => Ok(None),
        }
    }

    /// Takes away what a task left that had not begun to work: half a worktree, and a branch that holds nothing beyond
    /// `base` but the task's snapshot.
    pub fn remove_unready(&self, base: Option<&CommitId>) -> Result<(), Error> {
        let start = match base {
            Some(base) => Some(base.clone()),
            None => self.tip()?,
        };
        match start {
            Some(start) => clear_branch(self, &start, || remove(self)),
            None => remove(self),
        }
    }
}
