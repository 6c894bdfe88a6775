//! The end of a task that is given up or settled: its worktree goes, its branch, and what had not begun to work.

use super::{
    Error, TaskBranch,
    names::discarded_ref,
    worktree_entry::{clear_branch, refuse_elsewhere, remove},
};
use crate::{domain::id::CommitId, log::crash};

impl TaskBranch {
    /// Gives the task's work up: `tip` is kept under `refs/nisse/discarded/<task>`, worktree and branch go. Done
    /// already, or by half, it does the rest. What a branch holds that was moved is kept too, under the ref that is given;
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

    /// Takes the worktree of a settled task away; the branch stays, free to be checked out. Gone already is as good.
    pub fn remove_worktree(&self) -> Result<(), Error> {
        remove(self)
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
