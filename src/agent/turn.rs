//! THE LOOP: start reading here.
//!
//! One loop for every role. It only *does*; what comes next is decided by [`next`], a pure function of the log. Starting
//! a task is resuming one that has a single event, so there is no separate way to resume. Observers
//! subscribe to the [`Journal`].

use super::{Error, act, ask, finish, intents::check, nudge, outside::Outside, prepare, recover, workplace::Workplace};
use crate::{
    domain::{
        event::EventKind,
        next::{Now, Step, next},
        outcome::Outcome,
    },
    log::Journal,
};

/// Runs a task until it ends or pauses.
pub async fn run(journal: &mut Journal, place: &mut Workplace<'_>, outside: &Outside<'_>) -> Result<Outcome, Error> {
    loop {
        let now = Now { spent_ms: journal.spent_ms(), stop: outside.stop.requested() };
        match next(journal.task(), now) {
            Step::Prepare => prepare::prepare(journal, place, outside).await?,
            Step::Recover(found) => recover::recover(journal, place, outside, &found).await?,
            Step::Act(call) => act::act(journal, place, outside, &call).await?,
            Step::Skip(call, why) => act::skip(journal, place, outside, &call, why)?,
            Step::Check(call) => check::check(journal, place, outside, &call).await?,
            Step::Close => close(journal)?,
            Step::Ask => ask::ask(journal, place, outside).await?,
            Step::Finish(outcome) => return finish::finish(journal, place, outcome),
        }
    }
}

/// Records the turn's end, and what the model is told about its reply.
fn close(journal: &mut Journal) -> Result<(), Error> {
    let Some(turn) = journal.task().last_turn().map(|turn| turn.number) else {
        return Err(Error::Bug("a turn was to be closed although there is none"));
    };
    if let Some(text) = nudge::nudge(journal.task()) {
        journal.push(EventKind::Nudged { text })?;
    }
    journal.push(EventKind::TurnEnded { turn })?;
    Ok(())
}
