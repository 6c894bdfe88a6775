//! Runs a task's loop with its outside wired up: the only entry for every command that works on a task.

use std::path::Path;

use super::{Error, open::Opened, owned::owned, result::TaskResult};
use crate::{
    adapters::host::{Local, RunningCommands},
    agent::{
        self,
        outside::{Live, Outside, Stop},
        turn,
        workplace::Workplace,
    },
    domain::{checkout::Isolation, mask::Mask, task::Task},
    log::{Journal, Subscriber},
    ports::llm::Llm,
    repo::Checkout,
};

/// The observers of a run, and the means to stop it.
pub struct Watch {
    /// Called with each event once it is durable; the journal's.
    pub subscribers: Vec<Subscriber>,
    /// Receives what is shown while it happens.
    pub live: Live,
    /// The user's wish to stop.
    pub stop: Stop,
    /// The running commands, to be killed at once.
    pub commands: RunningCommands,
}

/// Whether going on with a task changes the checkout itself.
fn works_in_checkout(task: &Task) -> bool {
    task.started.workplace.isolation == Isolation::InPlace || task.pending_intents().any(|intent| intent.kind.applies())
}

/// Runs the task until it ends or pauses, and returns the result. Ending a task needs no model.
pub async fn run(
    opened: &Opened,
    checkout: &Checkout,
    llm: Option<&dyn Llm>,
    mask: Mask,
    mut journal: Journal,
    watch: Watch,
) -> Result<TaskResult, Error> {
    if works_in_checkout(journal.task()) {
        journal.hold_checkout(checkout.git_dir())?;
    }
    checkout.write_repository_id().map_err(|error| Error::Cut {
        task: journal.task().id,
        source: Box::new(error.into()),
        offered: None,
    })?;
    let checkout = &owned(opened.for_task(checkout, &journal.task().started)?, &mut journal)?;
    let started = &journal.task().started;
    let root = match started.workplace.isolation {
        Isolation::Worktree => Path::new(&started.workplace.worktree),
        // wherever it was when the task began
        Isolation::InPlace => checkout.root(),
    };
    let host = Local::new(root, opened.environment.variables())
        .beside(checkout.same_second())
        .masking(&mask)
        .counting(&watch.commands);
    let outside = Outside { llm, mask, stop: watch.stop, live: watch.live };
    let mut place = Workplace::new(&host, checkout);
    let task = journal.task().id;
    let outcome = turn::run(&mut journal, &mut place, &outside).await.map_err(|source| match source {
        source @ agent::Error::Unmade { .. } => Error::Unmade { task, source: Box::new(source) },
        source => Error::Cut { task, source: Box::new(source), offered: None },
    })?;
    let result = || TaskResult::new(journal.task(), &outcome, Some(checkout), &outside.mask);
    // the task is what it is: a git that was killed while it was described is asked once more
    result().or_else(|_| result())
}
