//! Moving the task's branch, and pinning the commits that it is moved away from.

use super::{Error, TaskBranch, Worktree, names::found_as, worktree_entry::refuse_elsewhere};
use crate::domain::{checkout::Isolation, id::CommitId, repository::RepositoryChange};

/// What a commit is found as.
const KEPT_AS: &[&str] = &["branch", "head", "autostash"];

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
}

impl TaskBranch {
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

    /// The commits that were found and are kept, with their refs.
    pub fn pinned_commits(&self) -> Result<Vec<RepositoryChange>, Error> {
        let all = KEPT_AS.iter().map(|what| found_as(self.task, what, 1)).collect::<Vec<_>>();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let listed = self.checkout.store().references(&[&format!("refs/nisse/found/{}/", self.task)])?;
        let listed = listed.into_iter().filter(|(name, _)| all.iter().any(|one| name.starts_with(one)));
        Ok(listed.map(|(kept, found)| RepositoryChange::Kept { found, kept }).collect())
    }

    /// Keeps a commit under a ref that says what it was found as, and gives the ref.
    pub(super) fn pin_commit(&self, what: &str, commit: &CommitId) -> Result<String, Error> {
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
