//! The end of a run: records that a task is paused, or settles one that ended.
//!
//! Squash and discard come before the completion, the clean-up after it. A discard or clean-up that fails changes no
//! outcome: it stays pending.

use super::{
    Error,
    intents::{clean_up, discard, in_place, squash},
    left_out, record,
    uncommittable::{self, Which},
    workplace::Workplace,
};
use crate::{
    domain::{
        checkout::Isolation,
        event::EventKind,
        id::IntentId,
        outcome::{End, Outcome},
        role::OnFailure,
    },
    log::Journal,
};

/// Records `outcome`, does what it requires, and returns it.
pub(super) fn finish(journal: &mut Journal, place: &Workplace<'_>, outcome: Outcome) -> Result<Outcome, Error> {
    if journal.task().outcome().is_none() {
        match &outcome {
            Outcome::Paused { pause, cause } => {
                journal.push(EventKind::TaskPaused { pause: *pause, cause: cause.clone() })?;
            }
            Outcome::Ended { end, cause } => complete(journal, place, end, cause)?,
        }
    }
    journal.commit()?;
    Ok(outcome)
}

fn complete(journal: &mut Journal, place: &Workplace<'_>, end: &End, cause: &str) -> Result<(), Error> {
    left_out::name(journal, place)?;
    if journal.task().started.workplace.isolation == Isolation::InPlace
        && let Some(worktree) = &place.worktree
    {
        uncommittable::move_out(journal, worktree, Which::Made)?;
    }
    match end {
        End::Handback => {
            squash::squash(journal, place)?;
            in_place::restore_checkout(journal, place, end, cause)?;
        }
        End::Failed | End::Capped(_) | End::Dropped => {
            in_place::restore_checkout(journal, place, end, cause)?;
            match journal.task().started.role.on_failure {
                OnFailure::Discard => discard::discard(journal, place, end, cause)?,
            }
        }
    }
    journal.push(EventKind::TaskEnded { end: end.clone(), cause: cause.to_owned() })?;
    record::done(journal, IntentId::TASK)?;
    if *end == End::Handback && journal.task().started.workplace.isolation == Isolation::Worktree {
        clean_up::clean_up(journal, place)?;
    }
    Ok(())
}
