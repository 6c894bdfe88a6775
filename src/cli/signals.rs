//! SIGINT, SIGTERM and SIGHUP: the first asks the work to stop, the second stops the process at once.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use serde_json::json;
use tokio::{
    signal::unix::{SignalKind, signal},
    task::AbortHandle,
};

use super::{
    error::ErrorObject,
    render::{self, Manner, progress::Progress},
};
use crate::{agent::env::Stopper, commands, domain::id::TaskId};

/// How long the work may take to stop by itself; the process is gone within 5 s.
const GRACE: Duration = Duration::from_millis(3900);
/// How long the last words, and the end of the commands, may take: whoever reads may have stopped reading.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Exit status of a stop.
const STOPPED: u8 = 7;

/// Who listens. They do so until the next: a question may be asked in between.
static LISTENING: Mutex<Option<AbortHandle>> = Mutex::new(None);

/// Listens from now on. `way_on` is what is said of a task that is left in the middle.
pub(super) fn listen(
    stopper: Stopper,
    manner: Manner,
    progress: Progress,
    way_on: fn(TaskId) -> String,
) -> Result<(), commands::Error> {
    let heard = |kind| signal(kind).map_err(|source| commands::Error::Signals { source });
    let (mut interrupt, mut terminate, mut hangup) =
        (heard(SignalKind::interrupt())?, heard(SignalKind::terminate())?, heard(SignalKind::hangup())?);
    let listening = tokio::spawn(async move {
        let mut any = async || {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
        };
        any().await;
        stopper.stop();
        let told = progress.clone();
        // on a thread of its own: a reader that has stopped reading must not keep the second signal from being heard
        std::thread::spawn(move || told.note("stopping; once more to stop at once"));
        tokio::select! {
            () = any() => {}
            () = tokio::time::sleep(GRACE) => {}
        }
        leave(manner, progress, way_on).await;
    });
    // one at a time: whatever was worked on before has ended
    let earlier = LISTENING.lock().unwrap_or_else(PoisonError::into_inner).replace(listening.abort_handle());
    if let Some(earlier) = earlier {
        earlier.abort();
    }
    Ok(())
}

/// Ends the process in the middle of the work: the log is whole all the same.
async fn leave(manner: Manner, progress: Progress, way_on: fn(TaskId) -> String) {
    let words = tokio::task::spawn_blocking(move || {
        progress.finish();
        let task = progress.task();
        let hint = task.map(way_on);
        if manner.json {
            let message = "stopped before the work could end by itself".to_owned();
            let object = ErrorObject::new("stopped", STOPPED, task, message, hint.clone());
            render::last_data(&json!(object).to_string());
        }
        render::say(manner, &format!("stopped at once{}", hint.map_or_else(String::new, |hint| format!("; {hint}"))));
    });
    let commands = tokio::task::spawn_blocking(commands::run::kill_commands);
    let _ = tokio::time::timeout(LAST_WORDS, futures_util::future::join(words, commands)).await;
    #[expect(clippy::exit, reason = "the person does not want to wait, or the work does not stop")]
    std::process::exit(i32::from(STOPPED));
}
