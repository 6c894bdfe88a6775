//! SIGINT, SIGTERM and SIGHUP: the first one asks the work to stop, the second one stops the process at once. While git
//! commits as the user, the first one ends that git instead, and the command reports it.
//!
//! Ctrl-C at a terminal is also meant for a shell loop around nisse, which ends only if its program dies of the signal. So
//! nisse does, after everything else is done.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    task::AbortHandle,
};

use super::{
    error::ErrorObject,
    render::{self, Manner, progress::Progress},
};
use crate::{adapters::host::RunningCommands, agent::outside::Stopper, commands, domain::id::TaskId, repo::EndableGit};

/// How long the work may take to stop by itself; the process is gone within 5 s.
const GRACE: Duration = Duration::from_millis(3900);
/// How long the last output may take: its reader may have stopped reading.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Exit status of a stop.
const STOPPED: u8 = 7;

/// Whether the user pressed Ctrl-C.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Returns the exit status of a command, or dies of the signal if Ctrl-C stopped it, which a shell shows as 130.
pub(super) fn status(status: u8) -> u8 {
    if status == STOPPED && INTERRUPTED.load(Ordering::Relaxed) && render::on_terminal() {
        // if that does not end the process, the status does
        let _ = signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGINT);
    }
    status
}

/// The current listener; replaced by the next one.
static LISTENING: Mutex<Option<AbortHandle>> = Mutex::new(None);

/// Listens from now on. `way_on` says how to continue a task that had to stop at once.
pub(super) fn listen(
    stopper: Stopper,
    running: RunningCommands,
    manner: Manner,
    progress: Progress,
    way_on: fn(TaskId) -> String,
) -> Result<(), commands::Error> {
    let mut heard = Heard::new()?;
    let listening = tokio::spawn(async move {
        heard.any().await;
        stopper.stop();
        let told = progress.clone();
        // on its own thread: a reader that has stopped reading must not delay the second signal
        std::thread::spawn(move || told.note("stopping; another Ctrl-C stops at once"));
        tokio::select! {
            () = heard.any() => {}
            () = tokio::time::sleep(GRACE) => {}
        }
        leave(manner, progress, way_on, running).await;
    });
    replace(listening.abort_handle());
    Ok(())
}

/// Listens from now on to end the packing after a task; the process then ends with the task's exit status.
pub(super) fn listen_while_tidying(git: EndableGit) -> Result<(), commands::Error> {
    let mut heard = Heard::new()?;
    let listening = tokio::spawn(async move {
        loop {
            heard.any().await;
            // nothing is lost by it
            let _ = git.end();
        }
    });
    replace(listening.abort_handle());
    Ok(())
}

/// Replaces the listener: the work before has ended.
fn replace(listening: AbortHandle) {
    let earlier = LISTENING.lock().unwrap_or_else(PoisonError::into_inner).replace(listening);
    if let Some(earlier) = earlier {
        earlier.abort();
    }
}

/// Listens from now on during a command that may commit as the user. A signal ends that git and its hooks, and the command
/// reports the result. If no such git runs, the process ends at once, which is always safe.
pub(super) fn listen_for_commits(manner: Manner, git: EndableGit) -> Result<(), commands::Error> {
    let mut heard = Heard::new()?;
    tokio::spawn(async move {
        loop {
            heard.any().await;
            if !git.end() {
                let (message, hint) = ("stopped at once", "run it again to continue");
                if manner.json {
                    let object = ErrorObject::new("stopped", STOPPED, None, message.to_owned(), Some(hint.to_owned()));
                    render::last_data(&json!(object).to_string());
                }
                render::say(manner, &format!("{message}; {hint}"));
                #[expect(clippy::exit, reason = "the user does not want to wait; the log is complete at any time")]
                std::process::exit(i32::from(status(STOPPED)));
            }
        }
    });
    Ok(())
}

/// The three signals.
struct Heard {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Heard {
    fn new() -> Result<Self, commands::Error> {
        let heard = |kind| signal(kind).map_err(|source| commands::Error::Signals { source });
        Ok(Self {
            interrupt: heard(SignalKind::interrupt())?,
            terminate: heard(SignalKind::terminate())?,
            hangup: heard(SignalKind::hangup())?,
        })
    }

    async fn any(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => INTERRUPTED.store(true, Ordering::Relaxed),
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

/// Ends the process in the middle of the work; the log is complete at any time.
async fn leave(manner: Manner, progress: Progress, way_on: fn(TaskId) -> String, running: RunningCommands) {
    let words = tokio::task::spawn_blocking(move || {
        progress.finish();
        let task = progress.task();
        let hint = task.map(way_on);
        if manner.json {
            let message = "stopped at once, before the work could finish".to_owned();
            let object = ErrorObject::new("stopped", STOPPED, task, message, hint.clone());
            render::last_data(&json!(object).to_string());
        }
        render::say(manner, &format!("stopped at once{}", hint.map_or_else(String::new, |hint| format!("; {hint}"))));
    });
    let commands = tokio::task::spawn_blocking(move || running.kill());
    let _ = tokio::time::timeout(LAST_WORDS, words).await;
    // without a time limit: on a busy machine it takes long to find the processes, and none may be left behind
    let _ = commands.await;
    #[expect(clippy::exit, reason = "the user does not want to wait, or the work does not stop")]
    std::process::exit(i32::from(status(STOPPED)));
}
