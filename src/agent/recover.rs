//! Recovers what a dead process left, from what can be observed, before any new work.
//!
//! Every verdict is either *clean* (what happened is known, and the task continues) or a gate: a person must decide.

use super::{
    Error, after_command, decisions, intents,
    outside::Outside,
    record, reopen,
    workplace::{Workplace, head},
};
use crate::{
    domain::{gate::Answer, next::Recovery},
    log::Journal,
};

/// Examines, decides, and records the verdict.
pub(super) async fn recover(
    journal: &mut Journal,
    place: &mut Workplace<'_>,
    outside: &Outside<'_>,
    found: &Recovery,
) -> Result<(), Error> {
    match found {
        Recovery::Worktree => worktree(journal, place, outside).await?,
        Recovery::Intent(id) => {
            let Some(intent) = journal.task().intent(*id).cloned() else {
                return Err(Error::Bug("an intent was to be recovered that was never opened"));
            };
            intents::recover(journal, place, outside, &intent).await?;
        }
    }
    after_command::name_what_is_kept(journal, place)
}

/// Branch and worktree, if no intent is open.
async fn worktree(journal: &mut Journal, place: &mut Workplace<'_>, outside: &Outside<'_>) -> Result<(), Error> {
    if journal.task().checkout_restored().is_some() {
        return record::recovered(journal, "the checkout was already switched back");
    }
    let answer = journal.task().answer();
    if answer == Some(Answer::Rollback) {
        return decisions::roll_back(journal, place, outside).await;
    }
    if !reopen::reopen(journal, place, outside).await? {
        return Ok(());
    }
    if answer == Some(Answer::Keep) {
        return decisions::keep(journal, place);
    }
    let changed = place.worktree()?.changed_since(&head(journal.task())?)?;
    if !changed.is_empty() {
        let names = record::first_of(&changed);
        let cause = format!("the worktree has changed since the last checkpoint, and not by the task: {names}");
        return record::gate(journal, place.checkout, &cause);
    }
    record::recovered(journal, "branch and worktree are as the log says")
}
