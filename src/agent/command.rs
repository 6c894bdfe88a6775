//! The only runner of commands: tool calls, checks and the setup. Decides limits, masking, the recorded end of the output,
//! and the words for how a command ended.

use std::{pin::pin, time::Duration};

use tokio::sync::watch;

use super::outside::{Outside, Passing};
use crate::{
    log::Journal,
    ports::host::{self, CommandEnd, CommandOutput, Host},
};

/// How often the last line of a command's output is refreshed.
const GLANCE: Duration = Duration::from_millis(100);
/// Bytes of the output of a check or a setup kept from its start and from its end.
const KEEP: usize = 8 * 1024;
/// Characters of its end that are recorded.
const TAIL: usize = 4000;

/// The longest that a command of the task may run now: the limit of the project, or what is left of the time cap.
pub(super) fn limit(journal: &Journal) -> Duration {
    Duration::from_millis(journal.task().started.commands.time_ms).min(journal.time_left())
}

/// A check or a setup, as the host is to run it.
pub(super) fn of_project(journal: &Journal, line: &str) -> host::Command {
    host::Command {
        line: line.to_owned(),
        limit: limit(journal),
        keep: KEEP,
        pass_env: journal.task().started.commands.pass_env.clone(),
    }
}

/// Runs a command and shows its last line of output meanwhile. None: the user asked to stop, and it was killed.
pub(super) async fn run(
    host: &dyn Host,
    outside: &Outside<'_>,
    command: &host::Command,
) -> Result<Option<Ran>, host::Error> {
    tokio::select! {
        ran = run_showing(host, outside, command) => Ok(Some(Ran(ran?))),
        () = outside.stop.wait() => Ok(None),
    }
}

async fn run_showing(
    host: &dyn Host,
    outside: &Outside<'_>,
    command: &host::Command,
) -> Result<CommandOutput, host::Error> {
    let (line, mut said) = watch::channel(String::new());
    let mut running = pin!(host.run(command, &line));
    let showing = async {
        while said.changed().await.is_ok() {
            let line = said.borrow_and_update().clone();
            outside.show(Passing::Output(outside.mask.apply(&line).into_owned()));
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

/// A command that ended.
pub(super) struct Ran(CommandOutput);

impl Ran {
    /// Its output, which the host masked before it was cut.
    pub(super) fn output(&self) -> &CommandOutput {
        &self.0
    }

    /// Its exit status; none if it was ended by a signal or a limit.
    pub(super) fn status(&self) -> Option<i32> {
        match self.0.end {
            CommandEnd::Exited(status) => Some(status),
            CommandEnd::Signalled(_) | CommandEnd::TimedOut => None,
        }
    }

    /// How it ended, in words that follow its name.
    pub(super) fn how(&self) -> String {
        match self.0.end {
            CommandEnd::Exited(status) => format!("exited with status {status}"),
            CommandEnd::Signalled(signal) => format!("was ended by signal {signal}"),
            CommandEnd::TimedOut => format!("did not end within {} s", self.0.duration.as_secs()),
        }
    }

    /// The end of its output.
    pub(super) fn tail(&self) -> String {
        let skip = self.0.text.chars().count().saturating_sub(TAIL);
        self.0.text.chars().skip(skip).collect()
    }

    /// How long it took, in milliseconds.
    pub(super) fn duration_ms(&self) -> u64 {
        u64::try_from(self.0.duration.as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether the task's time cap ended it.
    pub(super) fn met_time_cap(&self, journal: &Journal) -> bool {
        self.0.end == CommandEnd::TimedOut && journal.time_left().is_zero()
    }
}
