//! Shared by discard and clean-up: everything that is removed with a worktree and is in no commit is named, and a failure does
//! not change the outcome.

use super::super::{
    Error, record,
    uncommittable::{self, Which},
    workplace::{Workplace, existing_worktree},
};
use crate::{
    domain::{id::IntentId, line::one_line},
    log::Journal,
    repo,
};

/// Moves out of a worktree what would be lost with it. If it cannot be opened, its removal handles that.
pub(super) fn empty_worktree(journal: &mut Journal, place: &Workplace<'_>) -> Result<Result<(), repo::Error>, Error> {
    // opening removes locks, so only if this process is not using it
    let worktree = match &place.worktree {
        Some(worktree) => worktree.clone(),
        None => match existing_worktree(journal.task(), place.checkout) {
            Ok(Some(worktree)) => worktree,
            Ok(None) | Err(_) => return Ok(Ok(())),
        },
    };
    match uncommittable::move_out(journal, &worktree, Which::All) {
        Err(Error::Repo(error)) => Ok(Err(error)),
        moved => moved.map(Ok),
    }
}

/// A discard or clean-up is tried once per run; if it fails, it stays pending, with the reason in the log. `found` is
/// recovery's verdict, if recovery did it.
pub(super) fn settle(
    journal: &mut Journal,
    intent: IntentId,
    what: &str,
    found: Option<&str>,
    done: Result<(), repo::Error>,
) -> Result<(), Error> {
    match (done, found) {
        (Ok(()), Some(found)) => record::settled(journal, intent, found),
        (Ok(()), None) => record::done(journal, intent),
        (Err(error), _) => record::recovered(journal, one_line(&format!("the {what} failed: {error}"))),
    }
}
