//! Running a task's loop with its outside wired up: the one way in for every command that works on a task.

use std::path::Path;

use secrecy::SecretString;

use super::{Error, open::Opened, owned::owned, result::TaskResult};
use crate::{
    adapters::host::{self, Local},
    agent::{
        self,
        context::View,
        env::{Env, Live, Stop},
        mask::Mask,
        turn,
    },
    log::{Journal, Subscriber},
    ports::llm::Llm,
    repo::Checkout,
};

/// Whoever watches a run, and can stop it.
pub struct Watch {
    /// Called with each event once it is durable; the journal's.
    pub subscribers: Vec<Subscriber>,
    /// Where goes what is shown while it happens.
    pub live: Live,
    /// The person's wish to stop.
    pub stop: Stop,
}

/// Kills what the model's commands run, for a process that ends in the middle of its work.
pub fn kill_commands() {
    host::kill_all();
}

/// Works the task until it ends or rests, and says what it came to.
pub async fn run(
    opened: &Opened,
    checkout: &Checkout,
    llm: &dyn Llm,
    secrets: &[SecretString],
    mut journal: Journal,
    watch: Watch,
) -> Result<TaskResult, Error> {
    let checkout = &owned(opened.for_task(checkout, &journal.task().started)?, &mut journal)?;
    let host = Local::new(Path::new(&journal.task().started.worktree), opened.environment.variables())
        .beside(checkout.same_second());
    let mut secrets = secrets.to_vec();
    secrets.extend(opened.passed_secrets(&journal.task().started.pass_env));
    let mut env = Env {
        llm,
        host: &host,
        checkout,
        worktree: None,
        found: None,
        view: View::default(),
        mask: Mask::new(&secrets),
        stop: watch.stop,
        live: watch.live,
    };
    let task = journal.task().id;
    let outcome = turn::run(&mut journal, &mut env).await.map_err(|source| match source {
        source @ agent::Error::Unmade { .. } => Error::Unmade { task, source: Box::new(source) },
        source => Error::Cut { task, source: Box::new(source), offered: None },
    })?;
    TaskResult::new(journal.task(), &outcome, checkout)
}
