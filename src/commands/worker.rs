//! Runs a task on its own thread, so that one process can run many: each may block on git, the log and its files, each has
//! its own observers and stop, and a panic in one does not affect the others.

use std::{io, panic, sync::Arc, thread::JoinHandle};

use tokio::sync::oneshot;

use super::{
    Error,
    delegate::{Delegation, delegate},
    drop::drop_task,
    open::Opened,
    result::TaskResult,
    resume::resume,
    run::Watch,
};
use crate::domain::{gate::Answer, id::TaskId};

/// The work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Job {
    /// Begin a delegation.
    Delegate(Delegation),
    /// Resume a task.
    Resume {
        /// Which.
        task: TaskId,
        /// The user's answer to its question.
        answer: Option<Answer>,
    },
    /// Give up a task.
    Drop(TaskId),
}

/// A thread that does it.
#[derive(Debug)]
pub struct Worker {
    thread: JoinHandle<()>,
    done: oneshot::Receiver<Result<TaskResult, Error>>,
}

impl Worker {
    /// Begins it.
    pub fn start(opened: Arc<Opened>, job: Job, watch: Watch) -> Result<Self, Error> {
        let (tell, done) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let started = runtime.and_then(|runtime| {
            let work = move || {
                let result = runtime.block_on(Box::pin(work(&opened, job, watch)));
                // no one may be waiting
                let _ = tell.send(result);
            };
            std::thread::Builder::new().name("task".to_owned()).spawn(work)
        });
        let thread = started.map_err(|source: io::Error| Error::NoThread { source })?;
        Ok(Self { thread, done })
    }

    /// The result. A panic of the thread continues in the waiting thread.
    pub async fn result(self) -> Result<TaskResult, Error> {
        let result = self.done.await;
        match (result, self.thread.join()) {
            (_, Err(panic)) => panic::resume_unwind(panic),
            (Ok(result), Ok(())) => result,
            (Err(source), Ok(())) => Err(Error::NoThread { source: io::Error::other(source) }),
        }
    }
}

/// Runs it on its own thread, and waits.
pub async fn run(opened: &Arc<Opened>, job: Job, watch: Watch) -> Result<TaskResult, Error> {
    Worker::start(Arc::clone(opened), job, watch)?.result().await
}

async fn work(opened: &Opened, job: Job, watch: Watch) -> Result<TaskResult, Error> {
    match job {
        Job::Delegate(delegation) => delegate(opened, &delegation, watch).await,
        Job::Resume { task, answer } => resume(opened, task, answer, watch).await,
        Job::Drop(task) => drop_task(opened, task, watch).await,
    }
}
