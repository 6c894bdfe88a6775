//! A task on a thread of its own, so that one process can work on many: each blocks on git, the log and its files for
//! itself, each is watched and stopped by itself, and one that panics takes no other with it.

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

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Job {
    /// A delegation is begun.
    Delegate(Delegation),
    /// A task is gone on with.
    Resume {
        /// Which.
        task: TaskId,
        /// What a person answered to its question.
        answer: Option<Answer>,
    },
    /// A task is given up.
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
                // nobody may be waiting
                let _ = tell.send(result);
            };
            std::thread::Builder::new().name("task".to_owned()).spawn(work)
        });
        let thread = started.map_err(|source: io::Error| Error::NoThread { source })?;
        Ok(Self { thread, done })
    }

    /// What it came to. A panic of the thread goes on in whoever waits.
    pub async fn result(self) -> Result<TaskResult, Error> {
        let result = self.done.await;
        match (result, self.thread.join()) {
            (_, Err(panic)) => panic::resume_unwind(panic),
            (Ok(result), Ok(())) => result,
            (Err(source), Ok(())) => Err(Error::NoThread { source: io::Error::other(source) }),
        }
    }
}

/// Does it on a thread of its own, and waits.
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
