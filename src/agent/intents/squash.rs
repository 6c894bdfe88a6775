//! Squashes the task's commits into one, whose message is the handback note.

use super::super::{
    Error, commit_message,
    outside::Outside,
    record, reopen,
    workplace::{Workplace, head},
};
use crate::{
    domain::{
        id::{CommitId, IntentId},
        intent::{IntentKind, Status},
        role::OnSuccess,
    },
    log::{Journal, crash},
};

/// One commit whose message is the handback note.
pub(in super::super) fn squash(journal: &mut Journal, place: &Workplace<'_>) -> Result<(), Error> {
    let task = journal.task();
    let squashed = task
        .intents
        .iter()
        .any(|intent| matches!(intent.kind, IntentKind::Squash { .. }) && intent.status == Status::Settled);
    let (Some(ready), Some(note)) = (&task.ready, &task.note) else {
        return Err(Error::Bug("a handback was to be settled that was not accepted"));
    };
    if squashed || task.started.role.on_success == OnSuccess::Keep {
        return Ok(());
    }
    let worktree = place.worktree()?;
    let from = head(task)?;
    let to = worktree.squash_commit(
        &ready.snapshot,
        &from,
        &commit_message::of_note(task, note),
        journal.clock().civil_ms(),
    )?;
    crash::point("squash.commit");
    let intent = record::open(journal, IntentKind::Squash { from: from.clone(), to: to.clone() })?;
    crash::point("squash.opened");
    worktree.squash_apply(&from, &to)?;
    record::done(journal, intent)
}

/// Moves the branch, unless it is already there.
pub(super) async fn recover(
    journal: &mut Journal,
    place: &mut Workplace<'_>,
    outside: &Outside<'_>,
    intent: IntentId,
    (from, to): (&CommitId, &CommitId),
) -> Result<(), Error> {
    if journal.task().is_given_up() {
        place.branch(journal.task(), to)?.squash_apply(from, to)?;
    } else if reopen::reopen(journal, place, outside).await? {
        place.worktree()?.squash_apply(from, to)?;
    } else {
        return Ok(());
    }
    record::settled(journal, intent, "the branch holds the one commit")
}
