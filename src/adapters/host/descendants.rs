//! A command's processes, also those that left its group or its session, and their end.
//!
//! On Linux `/proc` is walked. nisse asks the kernel to be given its descendants' orphans (child subreaper), so a
//! process belongs to a command if it is in the shell's session, or its chain of parents leads to one that is, or it
//! is an orphan that carries the command's mark in its environment. What threw away parents, session and environment
//! alike is not found: only a process namespace holds that. Elsewhere only the shell's process group is known.
//!
//! A child of nisse's that is in another session than nisse is a shell of this module's or an orphan; nothing else in
//! nisse may start such children, since dead orphans are collected here.

use std::{
    collections::BTreeSet,
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal};

/// Between TERM and KILL.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// How long KILL is repeated for what goes on making new processes.
const LAST: Duration = Duration::from_secs(5);
/// How often it is looked whether they are gone.
const GLANCE: Duration = Duration::from_millis(10);
/// The variable that marks a command's processes.
const MARK: &str = "NISSE_COMMAND";

/// The shells that are running, of all tasks: what is a child of this process and none of these is an orphan.
static SHELLS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
/// Numbers the marks of this process.
static MARKS: AtomicU64 = AtomicU64::new(0);

/// The commands that run for one who watches.
#[derive(Clone, Default, Debug)]
pub struct RunningCommands(Arc<Mutex<Vec<Descendants>>>);

impl RunningCommands {
    /// Kills their processes, without a word and without waiting: for a process that ends at once itself.
    pub fn kill(&self) {
        // one that is being started is known when this is free
        drop(SHELLS.lock().unwrap_or_else(PoisonError::into_inner));
        let running = self.list().clone();
        for descendants in running {
            descendants.signal(Signal::KILL);
        }
    }

    /// Counts one in.
    fn add(&self, descendants: &Descendants) {
        self.list().push(descendants.clone());
    }

    /// One whose shell is collected: its process id means nothing any more.
    pub(super) fn remove(&self, descendants: &Descendants) {
        self.list().retain(|other| other.shell != descendants.shell);
        descendants.forget();
    }

    fn list(&self) -> MutexGuard<'_, Vec<Descendants>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A command's processes, found anew at each look.
#[derive(Clone, Debug)]
pub(super) struct Descendants {
    shell: i32,
    /// Orphans of the shell's are given to nisse: whatever lives of it is below one of nisse's children.
    #[cfg(target_os = "linux")]
    adopts: bool,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only /proc tells the environment"))]
    mark: String,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only /proc tells the time"))]
    started: u64,
}

impl Descendants {
    /// Starts a shell by `start`, which is given the name and value of a variable to put into its environment, and
    /// must return the shell's process id besides. It counts as running from then on.
    pub(super) fn begin<T>(
        running: &RunningCommands,
        start: impl FnOnce(&str, &str) -> io::Result<(T, Option<u32>)>,
    ) -> io::Result<(T, Self)> {
        // where it may not be asked for, orphans go to process 1 and are looked for there
        #[cfg(target_os = "linux")]
        let adopts = rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok();
        let mark = format!("{}-{}", std::process::id(), MARKS.fetch_add(1, Ordering::Relaxed));
        // held meanwhile, so that the shell is never taken for an orphan
        let mut shells = SHELLS.lock().unwrap_or_else(PoisonError::into_inner);
        let (started, id) = start(MARK, &mark)?;
        let shell =
            id.and_then(|id| i32::try_from(id).ok()).ok_or_else(|| io::Error::other("the shell has no process id"))?;
        shells.insert(shell);
        #[cfg(target_os = "linux")]
        let since = procfs::Process::of(shell).map_or(0, |process| process.started);
        #[cfg(not(target_os = "linux"))]
        let since = 0;
        let descendants = Self {
            shell,
            #[cfg(target_os = "linux")]
            adopts,
            mark,
            started: since,
        };
        running.add(&descendants);
        Ok((started, descendants))
    }

    /// Those that are alive.
    #[cfg(target_os = "linux")]
    pub(super) fn living(&self) -> Vec<Pid> {
        if self.adopts && is_childless() {
            return Vec::new();
        }
        let shells = SHELLS.lock().unwrap_or_else(PoisonError::into_inner);
        let nisse = rustix::process::getpid().as_raw_nonzero().get();
        // 0 if it began outside of this process namespace, as in many a container; `getsid`'s wrapper panics at that
        let own_session = procfs::Process::of(nisse).map_or(0, |process| process.session);
        let processes = procfs::since(self.started);
        let is_orphan = |process: &procfs::Process| {
            (process.parent == nisse || process.parent == 1)
                && process.session != own_session
                && !shells.contains(&process.id)
        };
        for dead in processes.iter().filter(|process| process.dead && process.parent == nisse && is_orphan(process)) {
            let _ = rustix::process::waitpid(Pid::from_raw(dead.id), rustix::process::WaitOptions::NOHANG);
        }
        let mut ours: BTreeSet<i32> = processes
            .iter()
            .filter(|process| {
                process.id == self.shell
                    || process.session == self.shell
                    || (is_orphan(process) && procfs::variable(process.id, MARK).as_deref() == Some(&self.mark))
            })
            .map(|process| process.id)
            .collect();
        loop {
            let before = ours.len();
            let children = processes.iter().filter(|process| ours.contains(&process.parent));
            let children: Vec<i32> = children.map(|process| process.id).collect();
            ours.extend(children);
            if ours.len() == before {
                break;
            }
        }
        let alive = processes.iter().filter(|process| !process.dead && ours.contains(&process.id));
        alive.filter_map(|process| Pid::from_raw(process.id)).collect()
    }

    /// The shell's group, as long as it is alive.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn living(&self) -> Vec<Pid> {
        Pid::from_raw(self.shell)
            .filter(|shell| rustix::process::test_kill_process_group(*shell).is_ok())
            .into_iter()
            .collect()
    }

    /// Ends them: TERM, and KILL after [`PATIENCE`]. Blocks until they are gone; for a moment, as a rule.
    pub(super) fn end(&self) {
        let term_until = Instant::now() + PATIENCE;
        if !self.signal(Signal::TERM) {
            return;
        }
        // one that is stopped sees TERM only when it goes on
        self.signal(Signal::CONT);
        while Instant::now() < term_until && !self.living().is_empty() {
            thread::sleep(GLANCE);
        }
        let kill_until = Instant::now() + LAST;
        while self.signal(Signal::KILL) && Instant::now() < kill_until {
            thread::sleep(GLANCE);
        }
    }

    /// Its shell is no longer one that runs.
    fn forget(&self) {
        SHELLS.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.shell);
    }

    /// Signals those that are alive; whether there were any.
    fn signal(&self, signal: Signal) -> bool {
        let living = self.living();
        // the group at once, so that what forks just now is met too; it exists as long as one of it is alive
        if let Some(group) = Pid::from_raw(self.shell)
            && living.iter().any(|pid| rustix::process::getpgid(Some(*pid)) == Ok(group))
        {
            let _ = rustix::process::kill_process_group(group, signal);
        }
        for pid in &living {
            // gone in between is as good
            let _ = rustix::process::kill_process(*pid, signal);
        }
        !living.is_empty()
    }
}

/// Whether this process has no children, not even dead ones: cheaper to ask than to walk `/proc`.
#[cfg(target_os = "linux")]
fn is_childless() -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let looked = waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT);
    matches!(looked, Err(rustix::io::Errno::CHILD))
}

/// What Linux tells of processes (`proc_pid_stat(5)`, `proc_pid_environ(5)`).
#[cfg(target_os = "linux")]
mod procfs {
    use std::fs;

    /// A process, as it is right now.
    #[derive(Debug)]
    pub(super) struct Process {
        pub(super) id: i32,
        pub(super) parent: i32,
        pub(super) session: i32,
        /// Clock ticks after the machine's start.
        pub(super) started: u64,
        /// It has ended and waits to be collected.
        pub(super) dead: bool,
    }

    impl Process {
        pub(super) fn of(id: i32) -> Option<Self> {
            let stat = fs::read(format!("/proc/{id}/stat")).ok()?;
            let stat = String::from_utf8_lossy(&stat);
            // the name is in parentheses and may hold anything, `)` too
            let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
            Some(Self {
                id,
                dead: matches!(*fields.first()?, "Z" | "X"),
                parent: fields.get(1)?.parse().ok()?,
                session: fields.get(3)?.parse().ok()?,
                started: fields.get(19)?.parse().ok()?,
            })
        }
    }

    /// The processes that began at `started` or later.
    pub(super) fn since(started: u64) -> Vec<Process> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter_map(Process::of)
            .filter(|process| process.started >= started)
            .collect()
    }

    /// A variable of the environment that a process was started with.
    pub(super) fn variable(id: i32, name: &str) -> Option<String> {
        let environment = fs::read(format!("/proc/{id}/environ")).ok()?;
        environment.split(|byte| *byte == 0).find_map(|entry| {
            let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            Some(String::from_utf8_lossy(value).into_owned())
        })
    }
}
