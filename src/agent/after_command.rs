//! Checks and repairs after a command: what it may have done to the repository other than to files.

use super::{
    Error, record, uncommittable,
    workplace::{Workplace, existing_worktree},
};
use crate::{
    domain::{checkout::Isolation, event::EventKind, id::CommitId, task::Task},
    log::Journal,
    repo::{Checkout, Worktree},
};

/// What the model is told after its command deleted something of the user's.
const PERSONS: &str = "Branches, tags and stash of this repository are the person's; leave them alone. The stash is the \
                       same in every worktree: to put changes aside, use `git diff > file`.";

/// After a command, restores the task's branch and HEAD, and refs of the user's that are gone. Returns what the model must
/// know of the latter.
pub(super) fn see_to(journal: &mut Journal, worktree: &Worktree, head: &CommitId) -> Result<Option<String>, Error> {
    // no process of the command is running now
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

/// Restores refs of the user's after a process that ran a command was killed.
pub(super) fn see_to_again(journal: &mut Journal, checkout: &Checkout) -> Result<(), Error> {
    let worktree = match existing_worktree(journal.task(), checkout) {
        // giving up needs nothing from a repository that is unreachable or has lost the commits
        Err(Error::Repo(_)) if journal.task().is_given_up() => return Ok(()),
        worktree => worktree?,
    };
    let Some(worktree) = worktree else { return Ok(()) };
    record_locks(journal, worktree.remove_left_locks_again()?)?;
    worktree.see_to_persons_again()?;
    record::repairs(journal, &worktree)
}

/// Records what a killed process kept without saying so.
pub(super) fn name_what_is_kept(journal: &mut Journal, place: &Workplace<'_>) -> Result<(), Error> {
    let task = journal.task();
    // resuming a paused task checks again
    let (Some(head), None) = (&task.head, &task.paused) else { return Ok(()) };
    let mut changes = place.branch(task, head)?.pinned_commits()?;
    changes.retain(|kept| !task.changes.iter().any(|told| told.kept() == kept.kept()));
    if !changes.is_empty() {
        journal.push(EventKind::RepositoryChanged { changes })?;
    }
    uncommittable::name_kept(journal)
}

/// Restores the files of `at` in a worktree after `what` ran. In a checkout, or if its end was `unseen`, the user may have
/// made the changes, so a copy of them is kept, and the returned text says where.
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
