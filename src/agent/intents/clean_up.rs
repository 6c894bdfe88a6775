//! Removes the worktree of a task that was handed back; its branch stays.

use super::{
    super::{
        Error, record,
        workplace::{Workplace, head},
    },
    removal,
};
use crate::{
    domain::{id::IntentId, intent::IntentKind},
    log::{Journal, crash},
};

/// Removes the worktree.
pub(in super::super) fn clean_up(journal: &mut Journal, place: &Workplace<'_>) -> Result<(), Error> {
    let intent = record::open(journal, IntentKind::CleanUp)?;
    crash::point("end.recorded");
    carry_out(journal, place, intent, None)
}

/// Runs a clean-up that was opened.
pub(super) fn carry_out(
    journal: &mut Journal,
    place: &Workplace<'_>,
    intent: IntentId,
    found: Option<&str>,
) -> Result<(), Error> {
    let head = head(journal.task())?;
    let done = match removal::empty_worktree(journal, place)? {
        Ok(()) => place.branch(journal.task(), &head)?.remove_worktree(),
        Err(error) => Err(error),
    };
    crash::point("clean_up.done");
    removal::settle(journal, intent, "clean-up", found, done)
}
