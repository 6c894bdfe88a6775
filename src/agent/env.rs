//! What the loop works with: the outside of one task, wired by its caller.

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::sync::{mpsc::UnboundedSender, watch};

use super::{Error, context::View, repository};
use crate::{
    domain::{
        event::{EventKind, ResultStatus, Seen, ToolResult},
        id::{CallId, CommitId},
        mask::Mask,
        task::Task,
    },
    log::Journal,
    ports::{
        host::{self, Host},
        llm::{Delta, Llm},
    },
    repo::{Checkout, Worktree},
};

/// The outside of one task.
pub struct Env<'a> {
    /// The model.
    pub llm: &'a dyn Llm,
    /// The machine, rooted at the task's worktree.
    pub host: &'a dyn Host,
    /// The caller's checkout.
    pub checkout: &'a Checkout,
    /// The task's worktree, once it stands.
    pub worktree: Option<Worktree>,
    /// The files that differed from the last checkpoint while the last reply arrived, where that was looked at, and until a
    /// command has taken it.
    pub found: Option<Vec<String>>,
    /// What was rendered for the model before.
    pub view: View,
    /// What must not be seen.
    pub mask: Mask,
    /// The person's wish to stop.
    pub stop: Stop,
    /// Where goes what is shown while it happens.
    pub live: Live,
}

/// Where goes what is shown while it happens, and never recorded.
pub type Live = UnboundedSender<Passing>;

/// Something that is shown while it happens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Passing {
    /// A piece of the reply that arrives.
    Reply(Delta),
    /// The last line of the running command's output, masked.
    Output(String),
}

/// How often the last line of a command's output is shown anew: an eye sees no more.
const GLANCE: Duration = Duration::from_millis(100);

impl Env<'_> {
    /// Runs a command on the host, and shows meanwhile what it says.
    pub(super) async fn run(&self, command: &host::Command) -> Result<host::CommandOutput, host::Error> {
        let (line, mut said) = watch::channel(String::new());
        let mut running = pin!(self.host.run(command, &line));
        let showing = async {
            while said.changed().await.is_ok() {
                let line = said.borrow_and_update().clone();
                // nobody may be watching
                let _ = self.live.send(Passing::Output(self.mask.apply(&line).into_owned()));
                tokio::time::sleep(GLANCE).await;
            }
        };
        tokio::select! {
            biased;
            ran = &mut running => return ran,
            () = showing => {}
        }
        running.await
    }

    /// The worktree, which [`Step::Prepare`](crate::domain::next::Step::Prepare) made or recovery opened.
    pub(super) fn worktree(&self) -> Result<&Worktree, Error> {
        self.worktree.as_ref().ok_or(Error::Bug("the worktree was needed before it was opened"))
    }

    /// Records the answer to a call, masked.
    pub(super) fn answer(&self, journal: &mut Journal, call: &CallId, answer: Answered) -> Result<(), Error> {
        if let Some(worktree) = &self.worktree {
            record_repairs(journal, worktree)?;
        }
        let content = repository::told(journal.task(), answer.content);
        journal.push(EventKind::ToolResult(ToolResult {
            call: call.clone(),
            status: answer.status,
            content: self.mask.apply(&content).into_owned(),
            checkpoint: answer.checkpoint,
            seen: answer.seen,
        }))?;
        Ok(())
    }
}

/// Records what had to be put back: what ties the worktree to its branch, and what a command did to the repository.
pub(super) fn record_repairs(journal: &mut Journal, worktree: &Worktree) -> Result<(), Error> {
    let what = worktree.take_repairs();
    if !what.is_empty() {
        journal.push(EventKind::WorktreeRepaired { what })?;
    }
    let changes = worktree.take_changes();
    if !changes.is_empty() {
        journal.push(EventKind::RepositoryChanged { changes })?;
    }
    Ok(())
}

/// An answer to a call, before it is masked and recorded.
pub(super) struct Answered {
    pub(super) status: ResultStatus,
    pub(super) content: String,
    pub(super) checkpoint: Option<CommitId>,
    pub(super) seen: Option<Seen>,
}

impl Answered {
    /// An answer that changed nothing.
    pub(super) fn new(status: ResultStatus, content: impl Into<String>) -> Self {
        Self { status, content: content.into(), checkpoint: None, seen: None }
    }
}

/// The commit that the task's tree stands at.
pub(super) fn head(task: &Task) -> Result<CommitId, Error> {
    task.head.clone().ok_or(Error::Bug("the task's tree was needed before it stood"))
}

/// What is left of the time cap.
pub(super) fn time_left(journal: &Journal) -> Duration {
    Duration::from_millis(journal.task().started.caps.time_ms.saturating_sub(journal.spent_ms()))
}

/// The person's wish to stop, seen by the loop.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

/// The other end: whoever hears the person.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<watch::Sender<bool>>);

impl Stopper {
    /// A pair of ends.
    #[must_use]
    pub fn new() -> (Self, Stop) {
        let (sender, receiver) = watch::channel(false);
        (Self(Arc::new(sender)), Stop(receiver))
    }

    /// Asks the loop to stop.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Whether the person asked.
    #[must_use]
    pub fn requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the person asks; for ever, if nobody can ask any more.
    pub async fn wait(&self) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
