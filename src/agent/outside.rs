//! What a run needs from outside, shared by all tasks of a process: the model, the mask, and the user who watches and may ask
//! to stop.

use std::sync::Arc;

use tokio::sync::{mpsc::UnboundedSender, watch};

use super::Error;
use crate::{
    domain::mask::Mask,
    ports::llm::{Delta, Llm},
};

/// The outside of a run.
#[derive(Clone)]
pub struct Outside<'a> {
    /// The model; none for a run that only ends a task.
    pub llm: Option<&'a dyn Llm>,
    /// The mask for secrets.
    pub mask: Mask,
    /// The user's wish to stop.
    pub stop: Stop,
    /// Receives what is shown while it happens.
    pub live: Live,
}

impl std::fmt::Debug for Outside<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outside").field("llm", &self.llm.is_some()).field("stop", &self.stop).finish_non_exhaustive()
    }
}

impl Outside<'_> {
    /// The model.
    pub(super) fn llm(&self) -> Result<&dyn Llm, Error> {
        self.llm.ok_or(Error::Bug("a model was to be asked by a run that has none"))
    }

    /// Shows something while it happens, to observers.
    pub(super) fn show(&self, passing: Passing) {
        // no one may be watching
        let _ = self.live.send(passing);
    }
}

/// Receives what is shown while it happens, and never recorded.
pub type Live = UnboundedSender<Passing>;

/// Something that is shown while it happens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Passing {
    /// A piece of the reply that arrives.
    Reply(Delta),
    /// The last line of the running command's output, masked.
    Output(String),
}

/// The user's wish to stop, on the loop's side.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

/// The user's wish to stop, on the user's side.
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
    /// Whether the user asked.
    #[must_use]
    pub fn requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the user asks; forever, if the other side is gone.
    pub async fn wait(&self) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
