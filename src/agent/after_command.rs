//! What a command may have done to the repository beside its files: seen to after it, and told to the model.

use super::{
    Error, record, uncommittable,
    workplace::{Workplace, existing_worktree},
};
use crate::{
    domain::{checkout::Isolation, event::EventKind, id::CommitId, task::Task},
    log::Journal,
    repo::{Checkout, Worktree},
};

/// What a model is told whose command took something of the user's away.
const PERSONS: &str = "Branches, tags and stash of this repository are the person's; leave them alone. The stash is the \
                       same in every worktree: to put changes aside, use `git diff > file`.";

/// After a command: branch and HEAD go back to where the task has them, and what is the user's and gone comes back. Gives
/// what the model has to know of the latter.
pub(super) fn see_to(journal: &mut Journal, worktree: &Worktree, head: &CommitId) -> Result<Option<String>, Error> {
    // nothing of the command runs any more
    record_locks(journal, worktree.remove_left_locks()?)?;
    worktree.take_in(head)?;
    worktree.see_to_persons()?;
    let before = journal.task().changes.len();
    record::repairs(journal, worktree)?;
    let put_back = journal.task().changes.iter().skip(before).filter(|change| change.is_put_back());
    let lines: Vec<String> = put_back.map(|change| format!("Note: {change}.")).collect();
    Ok((!lines.is_empty()).then(|| format!("{}\n{PERSONS}", lines.join("\n"))))
}

fn record_locks(journal: &mut Journal, locks: Vec<String>) -> Result<(), Error> {
    if !locks.is_empty() {
        journal.push(EventKind::LocksRemoved { locks })?;
    }
    Ok(())
}

/// The user's, where the process was cut off that ran a command.
pub(super) fn see_to_again(journal: &mut Journal, checkout: &Checkout) -> Result<(), Error> {
    let worktree = match existing_worktree(journal.task(), checkout) {
        // what is given up needs nothing of a place that cannot be reached any more, or whose commits are gone
        Err(Error::Repo(_)) if journal.task().is_given_up() => return Ok(()),
        worktree => worktree?,
    };
    let Some(worktree) = worktree else { return Ok(()) };
    record_locks(journal, worktree.remove_left_locks_again()?)?;
    worktree.see_to_persons_again()?;
    record::repairs(journal, &worktree)
}

/// Names what a process kept that was cut off before it could say so.
pub(super) fn name_what_is_kept(journal: &mut Journal, place: &Workplace<'_>) -> Result<(), Error> {
    let task = journal.task();
    // whoever goes on with a task that rests looks again
    let (Some(head), None) = (&task.head, &task.paused) else { return Ok(()) };
    let mut changes = place.branch(task, head)?.pinned_commits()?;
    changes.retain(|kept| !task.changes.iter().any(|told| told.kept() == kept.kept()));
    if !changes.is_empty() {
        journal.push(EventKind::RepositoryChanged { changes })?;
    }
    uncommittable::name_kept(journal)
}

/// Makes the files of a worktree those of `at` again, after `what` ran. In a checkout no one can tell what that left from
/// what its person did meanwhile, nor anywhere where its end went `unseen`: all of it is kept, and this says where.
pub(super) fn taken_back(
    task: &Task,
    at_ms: u64,
    worktree: &Worktree,
    at: &CommitId,
    what: &str,
    unseen: bool,
) -> Result<Option<String>, Error> {
    let kept = match task.started.workplace.isolation {
        Isolation::Worktree if !unseen => None,
        Isolation::InPlace | Isolation::Worktree => worktree.save_files(what, at, at_ms)?,
    };
    let torn = record::torn(&worktree.restore(at)?);
    let kept = kept.map(|kept| format!("nisse undid that; a copy is kept at {kept}"));
    let told: Vec<_> = kept.into_iter().chain(torn).collect();
    Ok((!told.is_empty()).then(|| told.join("; ")))
}
