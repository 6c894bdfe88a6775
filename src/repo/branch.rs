//! The task's branch: its name, its moves, and its ends (squash, discard). It outlives its worktree.

use std::path::{Path, PathBuf};

use super::{
    Checkout, Diff, Error, Worktree, WorktreeSpec,
    checkpoint::{Author, commit_tree},
    directory, io_error,
    worktree::{refuse_elsewhere, remove},
};
use crate::{
    domain::{
        checkout::Isolation,
        id::{CommitId, TaskId},
    },
    log::crash,
};

/// The longest branch name, in bytes.
const LONGEST: usize = 60;

/// The branch of a task: `nisse/<short id>-<words of the brief>`; a legal ref in ASCII, at most 60 bytes.
#[must_use]
pub fn branch_name(task: TaskId, brief: &str) -> String {
    let mut name = format!("nisse/{}", task.short());
    let words = brief.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut any = false;
    for word in words {
        let room = LONGEST - name.len() - 1;
        if word.len() > room {
            if !any {
                name.push('-');
                name.push_str(&word[..room].to_ascii_lowercase());
                any = true;
            }
            break;
        }
        name.push('-');
        name.push_str(&word.to_ascii_lowercase());
        any = true;
        if name.len() + 2 > LONGEST {
            break;
        }
    }
    if !any {
        name.push_str("-task");
    }
    name
}

/// Where a discarded task's commits are kept until they are pruned.
#[must_use]
pub fn discarded_ref(task: TaskId) -> String {
    format!("refs/nisse/discarded/{task}")
}

/// A task's branch, whether its worktree stands or not.
#[derive(Clone, Debug)]
pub struct TaskBranch {
    pub(super) checkout: Checkout,
    pub(super) task: TaskId,
    /// The worktree's directory, its parent without links.
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) isolation: Isolation,
}

impl TaskBranch {
    /// The branch that `spec` names; it need not exist.
    pub fn new(checkout: &Checkout, spec: &WorktreeSpec) -> Result<Self, Error> {
        let nothing =
            || Error::Foreign { what: spec.path.display().to_string(), why: "it is no directory's name".into() };
        let (parent, name) = spec.path.parent().zip(spec.path.file_name()).ok_or_else(nothing)?;
        let path = match spec.isolation {
            Isolation::Worktree => &spec.path,
            // wherever it was when the task began
            Isolation::InPlace => checkout.root(),
        };
        let branch = Self {
            checkout: checkout.clone(),
            task: spec.task,
            path: path.to_owned(),
            name: spec.branch.clone(),
            isolation: spec.isolation,
        };
        // git registers worktrees by their real paths: one that is registered by this path was reached without a link
        let real = directory::real(parent).map_err(io_error("find", parent))?.join(name);
        if real == spec.path || spec.isolation == Isolation::InPlace || matches!(branch.entry(), Ok(Some(_))) {
            return Ok(branch);
        }
        Ok(Self { path: real, ..branch })
    }

    /// Its name, without `refs/heads/`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The worktree's directory, which need not exist.
    #[must_use]
    pub fn worktree_path(&self) -> &Path {
        &self.path
    }

    /// The commit at its tip; none if there is no such branch.
    pub fn tip(&self) -> Result<Option<CommitId>, Error> {
        self.checkout.branch_tip(&self.name)
    }

    /// Writes the one commit that the branch becomes: the files of `tip` on top of `parent` (the snapshot), under the
    /// person's identity. No ref moves; the same inputs give the same id.
    pub fn squash_commit(
        &self,
        parent: &CommitId,
        tip: &CommitId,
        message: &str,
        at_ms: u64,
    ) -> Result<CommitId, Error> {
        let tree = self.checkout.store().tree(tip)?;
        let (name, email) = self.checkout.identity();
        commit_tree(self.checkout.git(), &tree, &[parent], message, &Author { name, email, at_ms })
    }

    /// Moves the branch from `from` to `to`, which must hold the same files, and keeps `from` under
    /// `refs/nisse/turns/<task>`: both or neither. Already at `to`, it only sees to the latter.
    pub fn squash_apply(&self, from: &CommitId, to: &CommitId) -> Result<(), Error> {
        if !self.checkout.tree_equal(from, to)? {
            return Err(Error::TreesDiffer { from: from.clone(), to: to.clone() });
        }
        let found = self.tip()?;
        let keep = format!("update refs/nisse/turns/{} {from}\n", self.task);
        let moves = if found.as_ref() == Some(to) {
            String::new()
        } else if found.as_ref() == Some(from) {
            format!("update refs/heads/{} {to} {from}\n", self.name)
        } else {
            return Err(Error::BranchMoved { branch: self.name.clone(), expected: from.clone(), found });
        };
        let call = self.checkout.git().call(["update-ref", "--stdin"]);
        call.input(format!("start\n{keep}{moves}commit\n").into_bytes()).run()?;
        crash::point("squash.applied");
        Ok(())
    }

    /// Gives the task's work up: `tip` is kept under `refs/nisse/discarded/<task>`, worktree and branch go. Done
    /// already, or by half, it does the rest. What a branch holds that was moved is kept too, under the ref that is given;
    /// one that is checked out elsewhere is left alone, and so is the worktree.
    pub fn discard(&self, tip: &CommitId) -> Result<Option<String>, Error> {
        let found = self.tip()?;
        let mut moved = None;
        if let Some(found) = &found {
            refuse_elsewhere(self)?;
            if found != tip {
                moved = Some(self.keep_commit("branch", found)?);
            }
        }
        let kept = discarded_ref(self.task);
        // a repository that was cloned anew has no commits of it to keep
        if self.checkout.store().reference(&kept)?.as_ref() != Some(tip) && self.checkout.has_commit(tip)? {
            self.checkout.git().call(["update-ref", &kept, &tip.0]).run()?;
        }
        crash::point("discard.kept");
        remove(self)?;
        crash::point("discard.worktree");
        if let Some(found) = found {
            self.delete(&found)?;
        }
        crash::point("discard.branch");
        Ok(moved)
    }

    /// Takes the worktree of a settled task away; the branch stays, free to be checked out. Gone already is as good.
    pub fn remove_worktree(&self) -> Result<(), Error> {
        remove(self)
    }

    /// Deletes the branch if it is at `tip`.
    pub(super) fn delete(&self, tip: &CommitId) -> Result<(), Error> {
        let name = format!("refs/heads/{}", self.name);
        self.checkout.git().call(["update-ref", "--no-deref", "-d", &name, &tip.0]).run().map(drop)
    }
}

impl Worktree {
    /// Moves the branch by compare-and-swap; already there is as good.
    pub(super) fn move_branch(&self, from: &CommitId, to: &CommitId) -> Result<(), Error> {
        let branch = self.branch();
        let elsewhere = |found| Err(Error::BranchMoved { branch: branch.name.clone(), expected: from.clone(), found });
        let found = branch.tip()?;
        if found.as_ref() == Some(to) {
            return Ok(());
        }
        if found.as_ref() != Some(from) {
            return elsewhere(found);
        }
        let name = format!("refs/heads/{}", branch.name);
        match self.store().move_ref(&self.git()?, &name, from, to) {
            Ok(()) => Ok(()),
            Err(error) => match branch.tip()? {
                // somebody was faster
                found if found.as_ref() != Some(from) => elsewhere(found),
                _ => Err(error),
            },
        }
    }

    /// See [`TaskBranch::squash_commit`].
    pub fn squash_commit(
        &self,
        parent: &CommitId,
        tip: &CommitId,
        message: &str,
        at_ms: u64,
    ) -> Result<CommitId, Error> {
        self.branch().squash_commit(parent, tip, message, at_ms)
    }

    /// See [`TaskBranch::squash_apply`].
    pub fn squash_apply(&self, from: &CommitId, to: &CommitId) -> Result<(), Error> {
        self.branch().squash_apply(from, to)
    }

    /// See [`TaskBranch::discard`].
    pub fn discard(&self, tip: &CommitId) -> Result<Option<String>, Error> {
        self.branch().discard(tip)
    }

    /// See [`TaskBranch::remove_worktree`].
    pub fn remove_worktree(&self) -> Result<(), Error> {
        self.branch().remove_worktree()
    }

    /// See [`Checkout::tree_equal`].
    pub fn tree_equal(&self, a: &CommitId, b: &CommitId) -> Result<bool, Error> {
        self.checkout().tree_equal(a, b)
    }

    /// See [`Checkout::diff`].
    pub fn diff(&self, from: &CommitId, to: &CommitId) -> Result<Diff, Error> {
        self.checkout().diff(from, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> TaskId {
        "01993c5e-7b1a-7000-8000-0123456789ab".parse().unwrap()
    }

    #[test]
    fn a_branch_is_named_after_the_brief() {
        assert_eq!(branch_name(task(), "Fix the  off-by-one!"), "nisse/0123456789ab-fix-the-off-by-one");
        assert_eq!(branch_name(task(), "исправь"), "nisse/0123456789ab-task");
        assert_eq!(branch_name(task(), ""), "nisse/0123456789ab-task");
    }

    #[test]
    fn a_branch_name_is_bounded_whatever_the_brief() {
        for length in 0..120 {
            for brief in ["a".repeat(length), "ab ".repeat(length), format!("{} b c", "x".repeat(length))] {
                let name = branch_name(task(), &brief);
                assert!(name.len() <= LONGEST, "{name}");
                assert!(!name.ends_with('-') && !name.contains("--"), "{name}");
            }
        }
    }
}
