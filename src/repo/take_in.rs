//! Taking in what a command did with git in the task's worktree: its files are the work, and branch and HEAD go back to
//! where the task had them. What was found there is kept under `refs/nisse/found/<task>`.
//!
//! Each step may be done again after it was half done; what is kept is kept before anything is moved.

use std::sync::PoisonError;

use super::{
    Checkout, Error, Worktree,
    git::LONG,
    operation::{AUTOSTASH, BISECT, BISECT_STATE, REFS, STATE, operation},
    removal::remove_tree,
    small_files::{read_line, replace_file},
};
use crate::{
    domain::{checkout::Isolation, id::CommitId, repository::RepositoryChange},
    log::crash,
};

impl Worktree {
    /// Puts branch and HEAD back to `head`, the task's last checkpoint, and ends what git left half done; the files stay as
    /// they are. [`Self::take_changes`] tells what was found.
    pub fn take_in(&self, head: &CommitId) -> Result<(), Error> {
        self.verify()?;
        self.fill_sparse()?;
        self.end_operation()?;
        let found = self.tip()?;
        if found.as_ref() == Some(head) {
            return Ok(());
        }
        self.clear_stat_cache();
        if !self.checkout().has_commit(head)? {
            return Err(Error::Gone { git_dir: self.checkout().common_dir().to_owned() });
        }
        let kept = found.as_ref().map(|found| self.branch().pin_commit("branch", found)).transpose()?;
        crash::point("take_in.kept");
        self.branch().put_back(head, kept.as_deref().unwrap_or_default())?;
        crash::point("take_in.branch");
        let branch = self.branch().name().to_owned();
        self.changed(RepositoryChange::BranchMoved { branch, found, kept });
        Ok(())
    }

    /// What was not as it should be, since this was asked last.
    #[must_use]
    pub fn take_changes(&self) -> Vec<RepositoryChange> {
        std::mem::take(&mut *self.changes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn changed(&self, change: RepositoryChange) {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).push(change);
    }

    /// Puts HEAD back on the task's branch, keeping the commit that it is at.
    pub(super) fn put_head_back(&self, reference: &str) -> Result<(), Error> {
        // what cannot be read names nothing that could be kept
        let was = self.store().head().ok();
        let branch = was.as_ref().and_then(|was| was.branch.clone());
        let found = was.and_then(|was| was.commit);
        let kept = match (&found, self.tip()?) {
            (Some(found), Some(tip)) if self.store().reaches(&tip, found)? => None,
            (Some(found), _) => Some(self.branch().pin_commit("head", found)?),
            (None, _) => None,
        };
        if self.checkout().formats().refs_in_files {
            // where HEAD is no ref, git takes the directory for no repository
            replace_file(&self.git_dir().join("HEAD"), &format!("ref: {reference}\n"))?;
        } else {
            self.git()?.call(["symbolic-ref", "HEAD", reference]).run()?;
        }
        self.changed(RepositoryChange::HeadMoved { found, branch, kept });
        Ok(())
    }

    /// Brings back the files that a command left out of a checkout which was not sparse when the task was opened: they are not
    /// deleted. The configuration that changed is named.
    fn fill_sparse(&self) -> Result<(), Error> {
        if self.checkout().formats().sparse || !self.git_dir().join("info/sparse-checkout").exists() {
            return Ok(());
        }
        let git = self.git()?;
        let is_on = git.call(["config", "--type=bool", "--get", "core.sparseCheckout"]).also_fine(1).run()?;
        if is_on.starts_with(b"true") {
            self.clear_stat_cache();
            git.call(["sparse-checkout", "disable"]).limit(LONG).run()?;
        }
        Ok(())
    }

    /// Ends a rebase, a merge, a cherry-pick, a revert, a bisect.
    fn end_operation(&self) -> Result<(), Error> {
        let refs_in_files = self.checkout().formats().refs_in_files;
        let (git_dir, store) = (self.git_dir(), self.store());
        // in place it may be its person's
        let bisects = self.branch().isolation == Isolation::Worktree && git_dir.join(BISECT).symlink_metadata().is_ok();
        let found = operation(git_dir, &*store, refs_in_files)?;
        if found.is_none() && !bisects {
            return Ok(());
        }
        self.clear_stat_cache();
        let mut kept = None;
        for name in AUTOSTASH {
            if let Some(commit) = read_line(&git_dir.join(name)).map(CommitId)
                && store.message(&commit).is_ok_and(|message| message.is_some())
            {
                kept = Some(self.branch().pin_commit("autostash", &commit)?);
            }
        }
        let git = self.git()?;
        if bisects {
            let listed = git.call(["for-each-ref", "--format=delete %(refname)", "refs/bisect"]).run()?;
            git.call(["update-ref", "--no-deref", "--stdin"]).input(listed).run()?;
        }
        let bisect = if bisects { BISECT_STATE } else { &[] };
        for name in STATE.iter().chain(bisect) {
            // some of them are refs
            if !refs_in_files && REFS.contains(name) {
                git.call(["update-ref", "--no-deref", "-d", name]).run()?;
            }
            remove_tree(&git_dir.join(name))?;
        }
        crash::point("take_in.ended");
        for operation in found.into_iter().chain(bisects.then_some("a bisect")) {
            self.changed(RepositoryChange::OperationEnded { operation: operation.to_owned(), kept: kept.take() });
        }
        Ok(())
    }
}

impl Checkout {
    /// The commits of `to` that none of the others holds, newest first, ten at most: id, author and subject.
    pub fn commits_beyond(&self, to: &str, others: &[&CommitId]) -> Result<Vec<String>, Error> {
        let call = self.git().call(["log", "--max-count=10", "--format=%h by %an (%s)", to, "--not"]);
        let listed = call.args(others.iter().map(|commit| &commit.0)).run()?;
        Ok(String::from_utf8_lossy(&listed).lines().map(str::to_owned).collect())
    }
}
