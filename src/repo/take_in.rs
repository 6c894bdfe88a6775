//! Taking in what a command did with git in the task's worktree: its files are the work, and branch and HEAD go back to
//! where the task had them. What was found there is kept under `refs/nisse/found/<task>`.
//!
//! Each step may be done again after it was half done; what is kept is kept before anything is moved.

use std::{path::Path, sync::PoisonError};

use super::{
    Checkout, Error, TaskBranch, Worktree, git::LONG, removal::remove_tree, roll_back::found_as, store::Store,
    tie::replace_file, worktree::read_line,
};
use crate::{
    domain::{checkout::Isolation, id::CommitId, repository::RepositoryChange},
    log::crash,
};

/// Files and directories by which git knows that it stopped half-way, with the words for it. The first counts.
const OPERATIONS: &[(&str, &str)] = &[
    ("rebase-apply/applying", "`git am`"),
    ("rebase-apply", "a rebase"),
    ("rebase-merge", "a rebase"),
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("sequencer", "a cherry-pick or revert"),
];

/// By which git knows that it bisects.
const BISECT: &str = "BISECT_START";

/// What belongs to an operation, and goes with it.
const STATE: &[&str] = &[
    "rebase-apply",
    "rebase-merge",
    "sequencer",
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "MERGE_RR",
    "MERGE_AUTOSTASH",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "AUTO_MERGE",
    "SQUASH_MSG",
];

/// The same of a bisect, whose refs lie elsewhere.
const BISECT_STATE: &[&str] = &[
    "BISECT_LOG",
    "BISECT_NAMES",
    "BISECT_RUN",
    "BISECT_TERMS",
    "BISECT_EXPECTED_REV",
    "BISECT_ANCESTORS_OK",
    "BISECT_FIRST_PARENT",
    BISECT,
];

/// Those of them that are refs, which need not lie in files.
const REFS: &[&str] = &["CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "AUTO_MERGE", "BISECT_EXPECTED_REV"];

/// What a commit is found as.
const KEPT_AS: &[&str] = &["branch", "head", "autostash"];

/// Where a rebase or a merge notes the changes that it put aside for its end.
const AUTOSTASH: &[&str] = &["rebase-apply/autostash", "rebase-merge/autostash", "MERGE_AUTOSTASH"];

/// What git has left half done at a git directory (`a merge`), if anything; a bisect, which leaves the files whole, aside.
pub(super) fn operation(git_dir: &Path, store: &dyn Store, refs_in_files: bool) -> Result<Option<&'static str>, Error> {
    match OPERATIONS.iter().find(|(name, _)| git_dir.join(name).symlink_metadata().is_ok()) {
        Some((_, what)) => Ok(Some(what)),
        None if refs_in_files => Ok(None),
        None => store.picking(),
    }
}

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
        self.forget();
        if !self.checkout().has_commit(head)? {
            return Err(Error::Gone { git_dir: self.checkout().common_dir().to_owned() });
        }
        let kept = found.as_ref().map(|found| self.branch().keep_commit("branch", found)).transpose()?;
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
            (Some(found), _) => Some(self.branch().keep_commit("head", found)?),
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
            self.forget();
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
        self.forget();
        let mut kept = None;
        for name in AUTOSTASH {
            if let Some(commit) = read_line(&git_dir.join(name)).map(CommitId)
                && store.message(&commit).is_ok_and(|message| message.is_some())
            {
                kept = Some(self.branch().keep_commit("autostash", &commit)?);
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

impl TaskBranch {
    /// The commits that were found and are kept, with their refs.
    pub fn kept_commits(&self) -> Result<Vec<RepositoryChange>, Error> {
        let all = KEPT_AS.iter().map(|what| found_as(self.task, what, 1)).collect::<Vec<_>>();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let listed = self.checkout.store().references(&[&format!("refs/nisse/found/{}/", self.task)])?;
        let listed = listed.into_iter().filter(|(name, _)| all.iter().any(|one| name.starts_with(one)));
        Ok(listed.map(|(kept, found)| RepositoryChange::Kept { found, kept }).collect())
    }

    /// Keeps a commit under a ref that says what it was found as, and gives the ref.
    pub(super) fn keep_commit(&self, what: &str, commit: &CommitId) -> Result<String, Error> {
        let store = self.checkout.store();
        let mut number = 1;
        loop {
            let name = found_as(self.task, what, number);
            match store.reference(&name)? {
                Some(kept) if kept == *commit => return Ok(name),
                Some(_) => number += 1,
                None => {
                    let none = "0".repeat(commit.0.len());
                    self.checkout.git().call(["update-ref", &name, &commit.0, &none]).run()?;
                    return Ok(name);
                }
            }
        }
    }
}
