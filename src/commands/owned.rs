//! The checkout in the hands of a task's owner.

use super::Error;
use crate::{
    agent::workplace,
    domain::{
        event::EventKind,
        id::{CommitId, TaskId},
        started::TaskStarted,
    },
    log::Journal,
    repo::{Checkout, WorktreeSpec},
};

/// The checkout for the owner of the journal's task: its git processes hold the task too, and what killed ones had left
/// locked is free again, which the log says.
pub(super) fn owned(checkout: Checkout, journal: &mut Journal) -> Result<Checkout, Error> {
    let task = journal.task();
    let checkout = checkout.with_task_locks(task.id, journal.locks());
    let locks = checkout.remove_own_locks(&names(task.id, &task.started))?;
    if !locks.is_empty() {
        journal.push(EventKind::LocksRemoved { locks })?;
        journal.commit()?;
    }
    Ok(checkout)
}

/// The names under which things of a task's stand in its repository; where it begins is not asked for.
pub(super) fn names(task: TaskId, started: &TaskStarted) -> WorktreeSpec {
    workplace::names(task, started, &CommitId(String::new()))
}
