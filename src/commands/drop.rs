//! `nisse drop`: gives up a task that has not ended; its commits are kept as discarded.

use super::{
    Error,
    open::Opened,
    result::TaskResult,
    run::{Watch, run},
    secrets,
};
use crate::{
    adapters::host::RunningCommands,
    agent::{self, outside::Stopper},
    domain::{
        checkout::Isolation,
        event::EventKind,
        gate::Answer,
        id::TaskId,
        outcome::{End, Outcome},
        task::Task,
    },
    log::{Journal, crash},
    repo::Checkout,
};

/// Gives up the task. If it was given up before, returns the same result; if it ended otherwise, an error.
pub async fn drop_task(opened: &Opened, id: TaskId, mut watch: Watch) -> Result<TaskResult, Error> {
    let log = opened.log()?;
    let task = log.task(id)?;
    let checkout = opened.checkout_of_any(&task.started)?;
    match task.outcome() {
        Some(outcome @ Outcome::Ended { end: End::Dropped, .. }) if task.pending_intents().next().is_none() => {
            let mask = secrets::mask(&opened.environment, checkout.as_ref(), None, &task.started.commands.pass_env);
            let gone = checkout.as_ref().map_or(Ok(true), |checkout| commits_are_gone(&task, checkout))?;
            return TaskResult::new(&task, &outcome, checkout.as_ref().filter(|_| !gone), &mask);
        }
        Some(outcome @ Outcome::Ended { end: End::Handback | End::Failed | End::Capped(_), .. }) => {
            return Err(Error::Over { task: id, outcome: outcome.word() });
        }
        Some(Outcome::Ended { end: End::Dropped, .. } | Outcome::Paused { .. }) | None => {}
    }
    let subscribers = std::mem::take(&mut watch.subscribers);
    let mut journal = Journal::resume(log, opened.clock(), id, "drop", subscribers)?;
    if journal.task().ended.is_none() && !journal.task().is_given_up() {
        journal.push(EventKind::GateAnswered { answer: Answer::Drop })?;
        // the decision is durable before it has effects
        journal.commit()?;
        crash::point("answer.recorded");
    }
    let mask = secrets::mask(&opened.environment, checkout.as_ref(), None, &journal.task().started.commands.pass_env);
    match checkout {
        Some(checkout) if !commits_are_gone(journal.task(), &checkout)? => {
            run(opened, &checkout, None, mask, journal, watch).await
        }
        checkout => {
            let why = "its repository is gone, and its commits with it; its files are untouched";
            let outcome = agent::gone::give_up(&mut journal, why).map_err(|source| Error::Cut {
                task: id,
                source: Box::new(source),
                offered: None,
            })?;
            checkout.as_ref().map_or(Ok(()), |checkout| checkout.forget_in_place(id))?;
            TaskResult::new(journal.task(), &outcome, None, &mask)
        }
    }
}

/// Whether a new repository has nothing of a task in place, so that the checkout cannot be switched back.
fn commits_are_gone(task: &Task, checkout: &Checkout) -> Result<bool, Error> {
    match (&task.ready, task.started.workplace.isolation) {
        (Some(ready), Isolation::InPlace) => Ok(!checkout.has_commit(&ready.snapshot)?),
        (Some(_) | None, Isolation::InPlace | Isolation::Worktree) => Ok(false),
    }
}

/// Runs the pending discard or clean-up of a task that has ended. No one watches.
pub(super) async fn carry_out(opened: &Opened, id: TaskId) -> Result<TaskResult, Error> {
    let log = opened.log()?;
    let checkout = opened.checkout_of(&log.task(id)?.started)?;
    let journal = Journal::resume(log, opened.clock(), id, "clean-up", Vec::new())?;
    let (_stopper, stop) = Stopper::new();
    let (live, _shown) = tokio::sync::mpsc::unbounded_channel();
    let mask = secrets::mask(&opened.environment, Some(&checkout), None, &journal.task().started.commands.pass_env);
    run(
        opened,
        &checkout,
        None,
        mask,
        journal,
        Watch { subscribers: Vec::new(), live, stop, commands: RunningCommands::default() },
    )
    .await
}
