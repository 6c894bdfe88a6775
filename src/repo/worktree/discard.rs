//! Removes the worktree and the branch of a task that is given up or finished.

use super::entry::{clear_branch, refuse_elsewhere, remove};
use crate::{
    domain::id::CommitId,
    log::crash,
    repo::{Error, TaskBranch, names::discarded_ref},
};

impl TaskBranch {
    /// Discards the task's work: `tip` is pinned under `refs/nisse/discarded/<task>`, worktree and branch go. Done
    /// already, or by half, it does the rest. The tip of a branch that was moved is pinned too, and its ref returned;
    /// one that is checked out elsewhere is left alone, and so is the worktree.
    pub fn discard(&self, tip: &CommitId) -> Result<Option<String>, Error> {
        let found = self.tip()?;
        let mut moved = None;
        if let Some(found) = &found {
            refuse_elsewhere(self)?;
            if found != tip {
                moved = Some(self.pin_commit("branch", found)?);
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

    /// Removes the worktree of a finished task, if it is there; the branch stays, free to be checked out.
    pub fn remove_worktree(&self) -> Result<(), Error> {
        remove(self)
    }

    /// Removes what a task left that had not begun to work: half a worktree, and a branch without a commit beyond
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
