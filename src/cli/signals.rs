//! SIGINT, SIGTERM and SIGHUP: the first asks the work to stop, the second stops the process at once. A commit of the
//! person's is ended instead, and told of.
//!
//! Whoever pressed Ctrl-C at a terminal means the loop of the shell around nisse too, and a shell ends that only where its
//! program died of the signal: so it does, after everything else is done.

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
/// How long the last words may take: whoever reads may have stopped reading.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Exit status of a stop.
const STOPPED: u8 = 7;

/// The person pressed Ctrl-C.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The exit status of a command that came to `status`; of one that Ctrl-C stopped there is none, since the process dies of
/// the signal, which a shell shows as 130.
pub(super) fn status(status: u8) -> u8 {
    if status == STOPPED && INTERRUPTED.load(Ordering::Relaxed) && render::on_terminal() {
        // where it cannot die so, the status says it
        let _ = signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGINT);
    }
    status
}

/// Who listens. They do so until the next: a question may be asked in between.
static LISTENING: Mutex<Option<AbortHandle>> = Mutex::new(None);

/// Listens from now on. `way_on` is what is said of a task that is left in the middle.
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
        // on a thread of its own: a reader that has stopped reading must not keep the second signal from being heard
        std::thread::spawn(move || told.note("stopping; once more to stop at once"));
        tokio::select! {
            () = heard.any() => {}
            () = tokio::time::sleep(GRACE) => {}
        }
        leave(manner, progress, way_on, running).await;
    });
    replace(listening.abort_handle());
    Ok(())
}

/// Listens from now on for a person who does not want to wait for the packing after a task: it is ended, and the process
/// with the status that the task has come to.
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

/// One listens at a time: whatever was worked on before has ended.
fn replace(listening: AbortHandle) {
    let earlier = LISTENING.lock().unwrap_or_else(PoisonError::into_inner).replace(listening);
    if let Some(earlier) = earlier {
        earlier.abort();
    }
}

/// Listens from now on for a command that may make a commit of the person's: that git is ended, with its hooks, and the
/// command tells what came of it. Where none runs, the process ends at once, as it may at any time.
pub(super) fn listen_for_commits(manner: Manner, git: EndableGit) -> Result<(), commands::Error> {
    let mut heard = Heard::new()?;
    tokio::spawn(async move {
        loop {
            heard.any().await;
            if !git.end() {
                let (message, hint) = ("stopped at once", "run it again to go on");
                if manner.json {
                    let object = ErrorObject::new("stopped", STOPPED, None, message.to_owned(), Some(hint.to_owned()));
                    render::last_data(&json!(object).to_string());
                }
                render::say(manner, &format!("{message}; {hint}"));
                #[expect(clippy::exit, reason = "the person does not want to wait; the log is whole all the same")]
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

/// Ends the process in the middle of the work: the log is whole all the same.
async fn leave(manner: Manner, progress: Progress, way_on: fn(TaskId) -> String, running: RunningCommands) {
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
    let commands = tokio::task::spawn_blocking(move || running.kill());
    let _ = tokio::time::timeout(LAST_WORDS, words).await;
    // this waits for nobody, and on a busy machine the look for the processes takes its time: none is left behind
    let _ = commands.await;
    #[expect(clippy::exit, reason = "the person does not want to wait, or the work does not stop")]
    std::process::exit(i32::from(status(STOPPED)));
}
