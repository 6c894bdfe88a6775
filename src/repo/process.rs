//! A git process: apart from the terminal, held to its limit, its output collected.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::{fd::OwnedFd, unix::process::CommandExt},
    process::{Child, Command, ExitStatus},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{Mode, OFlags},
    io::{FdFlags, fcntl_setfd},
    ioctl::{NoArg, Opcode, ioctl},
    process::{Pid, Signal, kill_process_group},
};

/// How long what a process left behind may hold its outputs open.
const GRACE: Duration = Duration::from_millis(500);
/// Between TERM and KILL.
const PATIENCE: Duration = Duration::from_secs(2);

/// Gives up the terminal (`tty_ioctl(4)`).
const TIOCNOTTY: Opcode = if cfg!(target_os = "linux") { 0x5422 } else { 0x2000_7471 };

/// The git of one command that is running and may be ended: the person's with its hooks and whatever signs, or one whose
/// work is no loss.
#[derive(Clone, Default, Debug)]
pub struct EndableGit(Arc<Mutex<Option<Pid>>>);

impl EndableGit {
    /// Ends it; false if none runs. Whoever waits for it is told how it ended.
    #[must_use]
    pub fn end(&self) -> bool {
        let Some(group) = *self.running() else { return false };
        kill(Some(group), Signal::TERM);
        let later = self.clone();
        thread::spawn(move || {
            thread::sleep(PATIENCE);
            if *later.running() == Some(group) {
                kill(Some(group), Signal::KILL);
            }
        });
        true
    }

    fn running(&self) -> MutexGuard<'_, Option<Pid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What came of a process.
pub(super) struct Ended {
    /// How it ended; none: its limit came first, and it was killed.
    pub(super) status: Option<ExitStatus>,
    /// Its standard output.
    pub(super) stdout: Vec<u8>,
    /// Its standard error.
    pub(super) stderr: Vec<u8>,
}

/// Puts the process to be into a group of its own without a terminal: in the background nobody could answer what it
/// asks there. It holds `locks` for as long as it lives, so that what outlives a killed nisse keeps its task. It works in
/// `directory`, if that is given, wherever the path to it leads by now.
pub(super) fn set_apart(command: &mut Command, locks: Vec<Arc<File>>, directory: Option<Arc<OwnedFd>>) {
    command.process_group(0);
    let apart = move || {
        if let Ok(terminal) = rustix::fs::open(c"/dev/tty", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
            #[expect(unsafe_code, reason = "rustix has no call of its own for it")]
            // SAFETY: the opcode takes no argument and gives no value.
            let _ = unsafe { ioctl(&terminal, NoArg::<TIOCNOTTY>::new()) };
        }
        if let Some(directory) = &directory {
            rustix::process::fchdir(directory)?;
        }
        // here, in the child, so that no other child of ours ever gets one
        locks.iter().try_for_each(|lock| fcntl_setfd(lock, FdFlags::empty()).map_err(io::Error::from))
    };
    #[expect(unsafe_code, reason = "there is no other way to do something in the child")]
    // SAFETY: between fork and exec only open, ioctl, close, fchdir and fcntl are called: async-signal-safe, nothing is allocated.
    unsafe {
        command.pre_exec(apart);
    }
}

/// Feeds a process and takes what it prints until it has ended. What it left in the background and what holds its
/// outputs open is not waited for.
pub(super) fn exchange(
    mut child: Child,
    input: Option<Vec<u8>>,
    limit: Duration,
    endable: Option<&EndableGit>,
) -> io::Result<Ended> {
    if let (Some(mut stdin), Some(bytes)) = (child.stdin.take(), input) {
        // a child that ends early says why on its standard error
        thread::spawn(move || drop(stdin.write_all(&bytes)));
    }
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let _registered = endable.map(|endable| Registered::new(endable, group));
    let begun = Instant::now();
    let (stdout, stderr) = (Drain::of(child.stdout.take()), Drain::of(child.stderr.take()));
    let mut gone: Option<Instant> = None;
    loop {
        let closed = stdout.wait(GRACE) && stderr.wait(GRACE);
        if closed || gone.is_some_and(|gone| gone.elapsed() >= GRACE) {
            break;
        }
        if gone.is_none() && child.try_wait()?.is_some() {
            gone = Some(Instant::now());
        }
        if gone.is_none() && begun.elapsed() >= limit {
            kill(group, Signal::KILL);
            child.wait()?;
            return Ok(Ended { status: None, stdout: Vec::new(), stderr: Vec::new() });
        }
    }
    Ok(Ended { status: Some(child.wait()?), stdout: stdout.take(), stderr: stderr.take() })
}

fn kill(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        // gone already is as good
        let _ = kill_process_group(group, signal);
    }
}

/// A git that may be ended is known for as long as this lives.
struct Registered<'a>(&'a EndableGit);

impl<'a> Registered<'a> {
    fn new(endable: &'a EndableGit, group: Option<Pid>) -> Self {
        *endable.running() = group;
        Self(endable)
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        *self.0.running() = None;
    }
}

/// A pipe that is read to its end on a thread of its own.
struct Drain(Arc<(Mutex<Drained>, Condvar)>);

#[derive(Default)]
struct Drained {
    bytes: Vec<u8>,
    closed: bool,
}

impl Drain {
    fn of(mut pipe: Option<impl Read + Send + 'static>) -> Self {
        let shared = Arc::<(Mutex<Drained>, Condvar)>::default();
        let filled = Arc::clone(&shared);
        thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            while let Some(pipe) = &mut pipe {
                match pipe.read(&mut buffer) {
                    Ok(count) if count > 0 => lock(&filled.0).bytes.extend_from_slice(&buffer[..count]),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    // what came before a read error is kept: the exit status decides
                    Ok(_) | Err(_) => break,
                }
            }
            lock(&filled.0).closed = true;
            filled.1.notify_all();
        });
        Self(shared)
    }

    /// Waits until it is closed, for `limit` at most; whether it is.
    fn wait(&self, limit: Duration) -> bool {
        let waited = self.0.1.wait_timeout_while(lock(&self.0.0), limit, |drained| !drained.closed);
        waited.unwrap_or_else(PoisonError::into_inner).0.closed
    }

    /// What was read so far.
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut lock(&self.0.0).bytes)
    }
}

fn lock(drained: &Mutex<Drained>) -> MutexGuard<'_, Drained> {
    drained.lock().unwrap_or_else(PoisonError::into_inner)
}
