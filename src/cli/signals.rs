//! SIGINT, SIGTERM and SIGHUP: the first asks the work to stop, the second stops the process at once.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use super::render::{self, Manner};
use crate::{agent::env::Stopper, commands};

/// How long the work may take to stop by itself.
const GRACE: Duration = Duration::from_secs(5);
/// Exit status of a stop.
const STOPPED: i32 = 7;

/// Listens from now on.
pub(super) fn listen(stopper: Stopper, manner: Manner) -> Result<(), commands::Error> {
    let heard = |kind| signal(kind).map_err(|source| commands::Error::Signals { source });
    let (mut interrupt, mut terminate, mut hangup) =
        (heard(SignalKind::interrupt())?, heard(SignalKind::terminate())?, heard(SignalKind::hangup())?);
    tokio::spawn(async move {
        let mut any = async || {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
        };
        any().await;
        stopper.stop();
        render::say(manner, "stopping; once more to stop at once");
        tokio::select! {
            () = any() => {}
            () = tokio::time::sleep(GRACE) => {}
        }
        #[expect(clippy::exit, reason = "a second signal, or work that does not stop: the log is whole all the same")]
        std::process::exit(STOPPED);
    });
    Ok(())
}
