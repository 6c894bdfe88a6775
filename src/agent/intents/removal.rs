//! What a discard and a clean-up share: nothing that no commit holds goes with a worktree unnamed, and a failure changes no
//! outcome.

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

/// Moves out of a worktree that is to go what would be lost with it. One that cannot be opened is for its removal to see to.
pub(super) fn empty_worktree(journal: &mut Journal, place: &Workplace<'_>) -> Result<Result<(), repo::Error>, Error> {
    // opened anew only where nothing of this process's is at work in it: that removes locks
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

/// A discard or a clean-up is tried once a run; if it fails it changes no outcome, but stays pending, with its reason in
/// the log. `found` is what recovery has to say where it was recovery that did it.
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
