//! Running a command line, to its end or its limit, and leaving nothing of it behind.
//!
//! - The shell leads a session of its own: no controlling terminal, a process group of its own, stdin at its end.
//! - stdout and stderr are one pipe, read all the time; memory holds head and tail.
//! - The call ends with the shell. What runs on in the background has [`GRACE`] to end, then it is ended, and the
//!   output says so: nothing that the model began works on behind its back, and nothing holds the call open.
//! - At the limit, or when the future is dropped, the shell and all its descendants get TERM, and KILL after
//!   [`PATIENCE`](super::descendants::PATIENCE). The drop waits for that: a process that ends right after it leaves
//!   nothing either.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt::Write as _,
    future::Future,
    io::{self, ErrorKind, PipeWriter},
    os::{
        fd::OwnedFd,
        unix::process::{CommandExt as _, ExitStatusExt as _},
    },
    path::Path,
    pin::pin,
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rustix::process::Pid;
use tokio::{io::AsyncReadExt as _, net::unix::pipe, process::Child, time::sleep};

use super::{
    descendants::{Descendants, RunningCommands},
    environment,
    output::{HeadAndTail, Recent},
    root_directory::RootDirectory,
};
use crate::{
    domain::mask::{BEYOND, Mask},
    ports::host::{Command, CommandEnd, CommandOutput, Error, LastLine},
};

/// How long output and background processes may last beyond the shell.
const GRACE: Duration = Duration::from_millis(300);
/// How often it is looked whether they are gone.
const GLANCE: Duration = Duration::from_millis(5);

/// See [`crate::ports::host::Host::run`].
pub(super) async fn run(
    root: &RootDirectory,
    own: &BTreeMap<OsString, OsString>,
    mask: &Mask,
    command: &Command,
    last_line: &LastLine,
    running: &RunningCommands,
) -> Result<CommandOutput, Error> {
    if command.line.contains('\0') {
        return Err(Error::Refused("a command line cannot hold a NUL character; write \\0 for printf".to_owned()));
    }
    let began = Instant::now();
    let mut environment = environment::of_command(own, &command.pass_env);
    let ((mut child, reader), descendants) = Descendants::begin(running, |name, mark| {
        environment.insert(name.into(), mark.into());
        let (child, reader) = start(root, &command.line, &environment)?;
        let id = child.id();
        Ok(((child, reader), id))
    })
    .map_err(|source| not_started(root.path(), source))?;
    let guard = EndOnDrop(descendants, running);
    let lost = |source| Error::Io { what: "cannot follow a command".to_owned(), source };
    let mut output = Output::new(reader, command.keep, last_line).map_err(lost)?;

    let exited = output
        .during(async {
            tokio::select! {
                biased;
                status = child.wait() => Some(status),
                () = sleep(command.limit) => None,
            }
        })
        .await
        .transpose()
        .map_err(lost)?;
    let left = if exited.is_some() { settle(&mut output, &guard.0).await } else { guard.0.living() };
    let duration = began.elapsed();
    if !left.is_empty() {
        let descendants = guard.0.clone();
        let ended = output.during(tokio::task::spawn_blocking(move || descendants.end())).await;
        ended.map_err(|error| lost(io::Error::other(error)))?;
    }
    // collects the shell, which is gone by now, unless the kernel itself holds it
    let _ = output.during(tokio::time::timeout(GRACE, child.wait())).await;
    // nobody writes any more
    let _ = tokio::time::timeout(GRACE, output.read_to_end()).await;
    drop(guard);

    let kept = output.kept.into_text(mask);
    let mut text = kept.clean;
    if exited.is_some() && !left.is_empty() {
        let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let _ = writeln!(
            text,
            "{newline}[processes left in the background when the shell exited: {}; ended: start and use them in one command]",
            left.len()
        );
    }
    Ok(CommandOutput {
        end: exited.map_or(CommandEnd::TimedOut, end_of),
        text,
        omitted: kept.omitted,
        lossy: kept.lossy,
        duration,
    })
}

fn end_of(status: ExitStatus) -> CommandEnd {
    match (status.code(), status.signal()) {
        (Some(code), _) => CommandEnd::Exited(code),
        (None, Some(signal)) => CommandEnd::Signalled(signal),
        // a wait without WUNTRACED reports nothing else
        (None, None) => CommandEnd::Exited(status.into_raw()),
    }
}

/// Waits, within [`GRACE`], until the output has ended and no descendant lives; returns those that do.
async fn settle(output: &mut Output<'_>, descendants: &Descendants) -> Vec<Pid> {
    let until = Instant::now() + GRACE;
    loop {
        // as a rule the end of the output is there already, and nobody has to wait for the next glance
        let _ = tokio::time::timeout(GLANCE, output.read_to_end()).await;
        let living = descendants.living();
        if (output.ended && living.is_empty()) || Instant::now() >= until {
            return living;
        }
        if output.ended {
            sleep(GLANCE).await;
        }
    }
}

fn not_started(root: &Path, source: io::Error) -> Error {
    if source.kind() == ErrorKind::ArgumentListTooLong {
        return Error::Refused(
            "the command line is too long for the system: write it to a file and run that".to_owned(),
        );
    }
    Error::Io { what: format!("cannot start a shell in {}", root.display()), source }
}

/// Starts the shell: bash, or sh where there is none.
fn start(root: &RootDirectory, line: &str, environment: &BTreeMap<OsString, OsString>) -> io::Result<(Child, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    let child = match spawn("bash", root, line, environment, writer.try_clone()?) {
        Err(error) if error.kind() == ErrorKind::NotFound => spawn("sh", root, line, environment, writer)?,
        started => started?,
    };
    Ok((child, reader.into()))
}

fn spawn(
    shell: &str,
    root: &RootDirectory,
    line: &str,
    environment: &BTreeMap<OsString, OsString>,
    output: PipeWriter,
) -> io::Result<Child> {
    #[expect(clippy::disallowed_methods, reason = "the one place that starts a model's commands")]
    let mut command = std::process::Command::new(shell);
    command
        .args(["-c", line])
        .env_clear()
        .envs(environment)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    let directory = root.directory().try_clone()?;
    #[expect(unsafe_code, reason = "there is no other way to start a child in a session of its own")]
    // SAFETY: between fork and exec only fchdir and setsid are called: async-signal-safe, nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            // wherever the path to it leads by now
            rustix::process::fchdir(&directory)?;
            Ok(rustix::process::setsid().map(drop)?)
        });
    }
    tokio::process::Command::from(command).spawn()
}

/// Ends what is left when the future is dropped.
struct EndOnDrop<'a>(Descendants, &'a RunningCommands);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end();
        self.1.remove(&self.0);
    }
}

/// The output pipe with what was kept of it.
struct Output<'a> {
    pipe: pipe::Receiver,
    buffer: Vec<u8>,
    kept: HeadAndTail,
    recent: Recent,
    last_line: &'a LastLine,
    ended: bool,
}

impl<'a> Output<'a> {
    fn new(reader: OwnedFd, keep: usize, last_line: &'a LastLine) -> io::Result<Self> {
        Ok(Self {
            pipe: pipe::Receiver::from_owned_fd(reader)?,
            buffer: vec![0; 64 * 1024],
            kept: HeadAndTail::new(keep, BEYOND),
            recent: Recent::default(),
            last_line,
            ended: false,
        })
    }

    /// Reads on while `work` goes on.
    async fn during<F: Future>(&mut self, work: F) -> F::Output {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = self.read(), if !self.ended => {}
            }
        }
    }

    /// Reads one piece. Cancelled, it loses nothing.
    async fn read(&mut self) {
        match self.pipe.read(&mut self.buffer).await {
            Ok(0) | Err(_) => self.ended = true,
            Ok(count) => {
                let bytes = &self.buffer[..count];
                self.kept.push(bytes);
                if !self.last_line.is_closed()
                    && let Some(line) = self.recent.last_line(bytes)
                {
                    self.last_line.send_replace(line);
                }
            }
        }
    }

    /// Reads until everybody has closed it. Cancelled, it loses nothing.
    async fn read_to_end(&mut self) {
        while !self.ended {
            self.read().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root_at(path: &Path) -> RootDirectory {
        RootDirectory::open(&path.canonicalize().unwrap()).unwrap()
    }

    async fn ran_in(root: &Path, line: &str, limit: Duration) -> CommandOutput {
        let own = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/nowhere"), ("A_SECRET", "canary")]
            .map(|(name, value)| (name.into(), value.into()))
            .into();
        let command = Command { line: line.to_owned(), limit, keep: 1000, pass_env: Vec::new() };
        run(&root_at(root), &own, &Mask::default(), &command, &LastLine::default(), &RunningCommands::default())
            .await
            .unwrap()
    }

    async fn ran(line: &str) -> CommandOutput {
        ran_in(tempfile::tempdir().unwrap().path(), line, Duration::from_mins(1)).await
    }

    /// A time to sleep that only this test process uses, so that its sleepers are told from all others.
    fn nap(seconds: u32) -> String {
        format!("{seconds}.{}", std::process::id())
    }

    /// Whether a living process has `word` in its command line.
    fn lives(word: &str) -> bool {
        std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(word)
        })
    }

    #[tokio::test]
    async fn both_streams_come_in_order_with_the_exit_status() {
        let output = ran("echo one; echo two >&2; echo three; exit 5").await;
        assert_eq!((output.end, output.text.as_str()), (CommandEnd::Exited(5), "one\ntwo\nthree\n"));
        assert_eq!(ran("kill -9 $$").await.end, CommandEnd::Signalled(9));
    }

    #[tokio::test]
    async fn it_runs_in_the_root_with_a_clean_environment_and_nothing_to_read() {
        let directory = tempfile::tempdir().unwrap();
        let output = ran_in(
            directory.path(),
            "pwd -P; cat; read x; echo \"got:$x\"; env | grep -c canary; (: < /dev/tty) 2>&1 || echo no terminal",
            Duration::from_mins(1),
        )
        .await;
        let root = directory.path().canonicalize().unwrap();
        assert!(output.text.starts_with(&format!("{}\ngot:\n0\n", root.display())), "{output:?}");
        assert!(output.text.ends_with("no terminal\n"), "{output:?}");
    }

    #[tokio::test]
    async fn a_character_that_comes_in_two_pieces_is_one() {
        let output = ran("printf '\\303'; sleep 0.2; printf '\\244 split'; printf ' caf\\351'; exit 5").await;
        assert_eq!((output.text.as_str(), output.lossy), ("ä split caf\u{fffd}", true));
    }

    #[tokio::test]
    async fn a_flood_keeps_head_and_tail() {
        let output = ran("echo HEAD; head -c 50000000 /dev/zero | tr '\\0' x; echo TAIL-CANARY; exit 4").await;
        assert_eq!(output.end, CommandEnd::Exited(4));
        assert!(output.text.starts_with("HEAD\n") && output.text.ends_with("TAIL-CANARY\n"));
        assert_eq!(output.omitted, 50_000_000 + 5 + 12 - 2000);
        assert!(output.text.len() < 2100);
    }

    #[tokio::test]
    async fn a_command_with_nul_or_without_end_is_refused() {
        let command = |line: String| Command { line, limit: GRACE, keep: 9, pass_env: Vec::new() };
        for line in ["echo a\0b".to_owned(), format!("echo {}", "x".repeat(4_000_000))] {
            let refused = run(
                &root_at(Path::new("/")),
                &BTreeMap::new(),
                &Mask::default(),
                &command(line),
                &LastLine::default(),
                &RunningCommands::default(),
            )
            .await;
            assert!(matches!(refused, Err(Error::Refused(_))));
        }
    }

    #[tokio::test]
    async fn background_processes_neither_hold_the_call_open_nor_live_on() {
        let began = Instant::now();
        let nap = nap(31415);
        let line =
            format!("sleep {nap} & setsid sleep {nap} & (setsid sleep {nap} > /dev/null 2>&1 &); echo up; exit 3");
        let output = ran(&line).await;
        assert_eq!(output.end, CommandEnd::Exited(3));
        assert!(output.text.starts_with("up\n[processes left in the background"), "{output:?}");
        assert!(began.elapsed() < Duration::from_secs(20));
        assert!(!lives(&nap));
    }

    #[tokio::test]
    async fn short_lived_background_processes_are_waited_for() {
        let output = ran("(sleep 0.02; echo late) & echo early").await;
        assert_eq!(output.text, "early\nlate\n");
    }

    #[tokio::test]
    async fn the_limit_ends_everything_also_what_ignores_term_and_left_the_session() {
        let nap = nap(27182);
        let began = Instant::now();
        let output = ran_in(
            tempfile::tempdir().unwrap().path(),
            &format!("trap '' TERM; echo begun; setsid sleep {nap} & while true; do sleep 0.05; done"),
            Duration::from_millis(1500),
        )
        .await;
        assert_eq!((output.end, output.text.as_str()), (CommandEnd::TimedOut, "begun\n"));
        assert!(began.elapsed() < Duration::from_secs(30));
        assert!(!lives(&nap));
    }

    #[tokio::test]
    async fn a_dropped_run_leaves_no_process() {
        let directory = tempfile::tempdir().unwrap();
        let nap = nap(16180);
        let line = format!("setsid sleep {nap} & touch begun; sleep {nap}; echo never");
        let running = ran_in(directory.path(), &line, Duration::from_mins(10));
        tokio::select! {
            output = running => panic!("{output:?}"),
            () = async { while !directory.path().join("begun").exists() { sleep(GLANCE).await; } } => {}
        }
        assert!(!lives(&nap));
    }

    #[tokio::test]
    async fn one_that_was_stopped_is_ended_at_the_limit() {
        let output = ran_in(tempfile::tempdir().unwrap().path(), "kill -STOP $$", Duration::from_millis(200)).await;
        assert_eq!(output.end, CommandEnd::TimedOut);
    }
}
