//! One owner a task: a file lock that the system releases when its holder dies.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read as _, Seek as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{Error, open::private_dir};
use crate::domain::id::TaskId;

/// The lock of a task, held until dropped.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

/// How often, and after what pause, a lock that is taken is tried again.
const GLANCES: u32 = 5;
const GLANCE: Duration = Duration::from_millis(10);

/// Whether somebody works on the task at this moment.
pub(super) fn is_held(state_dir: &Path, task: TaskId) -> bool {
    let file = File::open(path(&state_dir.join("locks"), task));
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn path(dir: &Path, task: TaskId) -> PathBuf {
    dir.join(format!("{task}.lock"))
}

impl Lock {
    /// Takes the task's lock, or says who has it.
    pub(super) fn take(state_dir: &Path, task: TaskId) -> Result<Self, Error> {
        let dir = state_dir.join("locks");
        private_dir(&dir)?;
        let path = path(&dir, task);
        let io = |what| {
            let path = path.clone();
            move |source| Error::Io { what, path, source }
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(&path).map_err(io("opening the lock"))?;
        let mut taken = file.try_lock();
        // whoever only looks holds it for a moment
        for _ in 0..GLANCES {
            if !matches!(taken, Err(TryLockError::WouldBlock)) {
                break;
            }
            std::thread::sleep(GLANCE);
            taken = file.try_lock();
        }
        match taken {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                let holder = if holder.trim().is_empty() { "another process" } else { holder.trim() };
                return Err(Error::Held { task, holder: holder.to_owned() });
            }
            Err(TryLockError::Error(source)) => return Err(io("locking")(source)),
        }
        let holder =
            format!("process {} on {}", std::process::id(), rustix::system::uname().nodename().to_string_lossy());
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{holder}"))
            .map_err(io("writing to the lock"))?;
        Ok(Self { _file: file })
    }
}
