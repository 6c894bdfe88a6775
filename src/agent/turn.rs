//! THE LOOP: start reading here.
//!
//! One loop for every role. It only *does*; what comes next is decided by [`next`], a pure function of the log. Starting
//! a task is resuming one that has a single event, so there is no separate way to resume. Whoever wants to watch
//! subscribes to the [`Journal`].

use super::{Error, act, ask, check, env::Env, nudge, prepare, recover, settle};
use crate::{
    domain::{
        event::EventKind,
        next::{Now, Step, next},
        outcome::Outcome,
    },
    log::Journal,
};

/// Works a task until it ends or rests.
pub async fn run(journal: &mut Journal, env: &mut Env<'_>) -> Result<Outcome, Error> {
    loop {
        let now = Now { spent_ms: journal.spent_ms(), stop: env.stop.requested() };
        match next(journal.task(), now) {
            Step::Prepare => prepare::prepare(journal, env)?,
            Step::Recover(found) => recover::recover(journal, env, &found).await?,
            Step::Act(call) => act::act(journal, env, &call).await?,
            Step::Skip(call, why) => act::skip(journal, env, &call, why)?,
            Step::Check(call) => check::check(journal, env, &call).await?,
            Step::Close => close(journal)?,
            Step::Ask => ask::ask(journal, env).await?,
            Step::Finish(outcome) => return settle::settle(journal, env, outcome),
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
