//! The task's branch: its name, its moves, and its ends (squash, discard). It outlives its worktree.

use std::path::{Path, PathBuf};

use super::{
    Checkout, Error,
    commit::{Author, commit_tree},
    directory, io_error,
};
use crate::{
    domain::{
        checkout::Isolation,
        id::{CommitId, TaskId},
    },
    log::crash,
};

/// What a worktree is called and where it starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorktreeSpec {
    /// The task.
    pub task: TaskId,
    /// The directory, absolute.
    pub path: PathBuf,
    /// The branch.
    pub branch: String,
    /// The snapshot that it starts from.
    pub start: CommitId,
    /// Whether the directory is the task's own, or the checkout itself.
    pub isolation: Isolation,
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

    /// Deletes the branch if it is at `tip`.
    pub(super) fn delete(&self, tip: &CommitId) -> Result<(), Error> {
        let name = format!("refs/heads/{}", self.name);
        self.checkout.git().call(["update-ref", "--no-deref", "-d", &name, &tip.0]).run().map(drop)
    }
}
