//! Where a task works: the machine, the checkout that it began in, its worktree and branch.

use std::{fmt, path::PathBuf};

use super::{Error, context::View};
use crate::{
    domain::{
        checkout::Isolation,
        id::{CallId, CommitId, IntentId, TaskId},
        started::TaskStarted,
        task::Task,
    },
    ports::host::Host,
    repo::{Checkout, CheckpointRequest, TaskBranch, Worktree, WorktreeSpec},
};

/// The workplace of one task.
pub struct Workplace<'a> {
    /// The machine, rooted at the task's worktree.
    pub host: &'a dyn Host,
    /// The caller's checkout.
    pub checkout: &'a Checkout,
    /// The task's worktree, once it is ready.
    pub(super) worktree: Option<Worktree>,
    /// The files that differed from the last checkpoint while the last reply arrived, if that was checked, until a command
    /// uses it.
    pub(super) found: Option<Vec<String>>,
    /// What was rendered for the model before.
    pub(super) view: View,
}

impl fmt::Debug for Workplace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { checkout, worktree, .. } = self;
        f.debug_struct("Workplace").field("checkout", checkout).field("worktree", worktree).finish_non_exhaustive()
    }
}

impl<'a> Workplace<'a> {
    /// A workplace in which nothing was checked yet.
    #[must_use]
    pub fn new(host: &'a dyn Host, checkout: &'a Checkout) -> Self {
        Self { host, checkout, worktree: None, found: None, view: View::default() }
    }

    /// The worktree, which [`Step::Prepare`](crate::domain::next::Step::Prepare) made or recovery opened.
    pub(super) fn worktree(&self) -> Result<&Worktree, Error> {
        self.worktree.as_ref().ok_or(Error::Bug("the worktree was needed before it was opened"))
    }

    /// The task's branch, whether its worktree exists or not.
    pub(super) fn branch(&self, task: &Task, tip: &CommitId) -> Result<TaskBranch, Error> {
        Ok(TaskBranch::new(self.checkout, &spec(task, tip))?)
    }

    /// A commit of the task's tree, if it changed. Its date is the intent's, so that it can be made again with the same id.
    pub(super) fn checkpoint(
        &self,
        task: &Task,
        intent: IntentId,
        call: &CallId,
        path: Option<&str>,
    ) -> Result<Option<CommitId>, Error> {
        let at_ms = task.intent(intent).map_or(0, |intent| intent.at_ms);
        let turn = task.last_turn().map_or(0, |turn| turn.number);
        let paths = path.map(|path| [path.to_owned()]);
        Ok(self.worktree()?.checkpoint(&CheckpointRequest {
            task: task.id,
            turn,
            call,
            parent: &head(task)?,
            subject: &format!("nisse: turn {turn}, call {call}"),
            at_ms,
            paths: paths.as_ref().map(<[String; 1]>::as_slice),
        })?)
    }
}

/// The worktree's names, begun at `start`.
#[must_use]
pub fn spec(task: &Task, start: &CommitId) -> WorktreeSpec {
    names(task.id, &task.started, start)
}

/// The same from the task's first event alone.
#[must_use]
pub fn names(task: TaskId, started: &TaskStarted, start: &CommitId) -> WorktreeSpec {
    WorktreeSpec {
        task,
        path: PathBuf::from(&started.workplace.worktree),
        branch: started.workplace.branch.clone(),
        start: start.clone(),
        isolation: started.workplace.isolation,
    }
}

/// The task's worktree, if it exists.
pub(super) fn existing_worktree(task: &Task, checkout: &Checkout) -> Result<Option<Worktree>, Error> {
    if task.ready.is_none() {
        return Ok(None);
    }
    let spec = spec(task, &head(task)?);
    Ok(match spec.isolation {
        Isolation::Worktree => Worktree::open(checkout, &spec)?,
        Isolation::InPlace => Worktree::open_in_place(checkout, &spec)?,
    })
}

/// The last commit of the task.
pub(super) fn head(task: &Task) -> Result<CommitId, Error> {
    task.head.clone().ok_or(Error::Bug("the task's tree was needed before it stood"))
}
