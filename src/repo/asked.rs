//! What branch and worktree held when a person was asked about it, so that a change since is seen.

use super::{
    Error, TaskBranch, Worktree,
    git::LONG,
    names::asked_ref,
    paths::{path_text, paths},
};
use crate::domain::id::CommitId;

impl Worktree {
    /// Notes what branch and worktree hold as what a person is asked about.
    pub fn note_asked(&self) -> Result<(), Error> {
        let Some(now) = self.state_now()? else { return Ok(()) };
        self.checkout().git().call(["update-ref", &asked_ref(self.branch().task), &now.0]).run().map(drop)
    }

    /// The files that changed since a person was asked about them; with none, what was noted is forgotten.
    pub fn changed_since_asked(&self) -> Result<Vec<String>, Error> {
        let name = asked_ref(self.branch().task);
        let git = self.checkout().git();
        let (Some(asked), Some(now)) = (self.store().reference(&name)?, self.state_now()?) else {
            return Ok(Vec::new());
        };
        let call = git.call(["diff-tree", "-r", "-z", "--name-only", "--no-renames", &asked.0, &now.0]);
        let changed: Vec<_> = paths(call.limit(LONG).parts()?).iter().map(|path| path_text(path)).collect();
        if changed.is_empty() {
            self.branch().forget_asked()?;
        }
        Ok(changed)
    }

    fn state_now(&self) -> Result<Option<CommitId>, Error> {
        let Some(tip) = self.tip()? else { return Ok(None) };
        Ok(Some(self.snapshot_files(&tip, 0)?.unwrap_or(tip)))
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
}
