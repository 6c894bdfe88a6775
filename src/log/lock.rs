//! One owner per task, and one process that changes a checkout: file locks that the system releases when their holder dies.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read as _, Seek as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::Duration,
};

use super::{Error, heartbeat, open::private_dir};
use crate::domain::id::TaskId;

/// A lock, held until dropped; child processes that inherited it hold it until they end.
#[derive(Debug)]
pub(super) struct Lock {
    file: Arc<File>,
}

/// The lock of a checkout. Its file is removed with it, since nothing else would.
#[derive(Debug)]
pub(super) struct CheckoutLock {
    lock: Lock,
    path: PathBuf,
}

impl CheckoutLock {
    /// The file by which it is held, for processes that are to hold it too.
    pub(super) fn file(&self) -> Weak<File> {
        self.lock.file()
    }

    /// Whether it is the lock of this git directory.
    pub(super) fn is_of(&self, state_dir: &Path, git_dir: &Path) -> Result<bool, Error> {
        Ok(self.path == checkout_path(state_dir, git_dir)?)
    }

    /// Takes the lock of the checkout with this git directory for a task, or says who has it.
    pub(super) fn take(state_dir: &Path, git_dir: &Path, task: TaskId) -> Result<Self, Error> {
        let path = checkout_path(state_dir, git_dir)?;
        let words = format!("{}, for task {task:#}", this_process());
        let held = |holder| Error::CheckoutHeld { git_dir: git_dir.to_owned(), holder };
        Ok(Self { lock: Lock::take_at(&path, &words, held)?, path })
    }
}

impl Drop for CheckoutLock {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path); // one that stays is taken by the next
    }
}

/// A checkout is identified by its git directory itself, not by a path to it.
fn checkout_path(state_dir: &Path, git_dir: &Path) -> Result<PathBuf, Error> {
    let found = git_dir.metadata();
    let found = found.map_err(|source| Error::Io { what: "looking at", path: git_dir.to_owned(), source })?;
    Ok(state_dir.join("locks").join(format!("checkout-{}-{}.lock", found.dev(), found.ino())))
}

fn this_process() -> String {
    format!("process {} on {}", std::process::id(), rustix::system::uname().nodename().to_string_lossy())
}

/// How often, and after what pause, to retry a held lock.
const GLANCES: u32 = 5;
const GLANCE: Duration = Duration::from_millis(10);

/// Whether a process is working on the task.
pub(super) fn is_held(state_dir: &Path, task: TaskId) -> bool {
    let file = File::open(path(&state_dir.join("locks"), task));
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn path(dir: &Path, task: TaskId) -> PathBuf {
    dir.join(format!("{task}.lock"))
}

/// Whether the file is the one at the path.
fn is_there(file: &File, path: &Path) -> bool {
    let same = |found: std::fs::Metadata| {
        file.metadata().is_ok_and(|held| (held.dev(), held.ino()) == (found.dev(), found.ino()))
    };
    path.metadata().is_ok_and(same)
}

/// The tasks that have a lock file, held or not.
pub(super) fn all(state_dir: &Path) -> Vec<TaskId> {
    let listing = std::fs::read_dir(state_dir.join("locks")).into_iter().flatten().flatten();
    let task = |name: String| name.strip_suffix(".lock")?.parse().ok();
    listing.filter_map(|entry| task(entry.file_name().into_string().ok()?)).collect()
}

/// Removes a lock's file, unless the lock is held.
pub(super) fn remove(state_dir: &Path, task: TaskId) -> Result<(), Error> {
    let _held = Lock::take(state_dir, task)?;
    let _ = std::fs::remove_file(heartbeat::path(state_dir, task)); // most tasks left none
    let path = path(&state_dir.join("locks"), task);
    std::fs::remove_file(&path).map_err(|source| Error::Io { what: "removing the lock", path, source })
}

impl Lock {
    /// The file by which it is held, for processes that are to hold it too.
    pub(super) fn file(&self) -> Weak<File> {
        Arc::downgrade(&self.file)
    }

    /// Takes the task's lock, or says who holds it.
    pub(super) fn take(state_dir: &Path, task: TaskId) -> Result<Self, Error> {
        let path = path(&state_dir.join("locks"), task);
        Self::take_at(&path, &this_process(), |holder| Error::Held { task, holder })
    }

    /// Takes the lock that is a file at `path`, and writes `words` into it; `held` makes an error of another holder's.
    fn take_at(path: &Path, words: &str, held: impl FnOnce(String) -> Error) -> Result<Self, Error> {
        path.parent().map_or(Ok(()), private_dir)?;
        let io = |what| {
            let path = path.to_owned();
            move |source| Error::Io { what, path, source }
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(path).map_err(io("opening the lock"))?;
        let mut taken = file.try_lock();
        // a process that only checks holds it for a moment
        for _ in 0..GLANCES {
            if !matches!(taken, Err(TryLockError::WouldBlock)) {
                break;
            }
            std::thread::sleep(GLANCE);
            taken = file.try_lock();
        }
        match taken {
            // whoever cleans up takes it away with the lock held: then it is no longer this file that counts
            Ok(()) if !is_there(&file, path) => return Self::take_at(path, words, held),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                let holder = if holder.trim().is_empty() { "another process" } else { holder.trim() };
                return Err(held(holder.to_owned()));
            }
            Err(TryLockError::Error(source)) => return Err(io("locking")(source)),
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{words}"))
            .map_err(io("writing to the lock"))?;
        Ok(Self { file: Arc::new(file) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether two handles of this process have the file open.
    fn is_open_twice(path: &Path) -> bool {
        let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        open.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|at| at == path)).count() == 2
    }

    #[test]
    fn a_lock_whose_file_was_taken_away_meanwhile_is_not_the_lock() {
        let state = tempfile::tempdir().unwrap();
        let state = state.path().canonicalize().unwrap();
        let task = TaskId(uuid::Uuid::from_u128(1));
        let path = path(&state.join("locks"), task);
        // whoever waits gives up soon; then once more
        let taken = (0..1000).find_map(|_| {
            let first = Lock::take(&state, task).unwrap();
            std::thread::scope(|scope| {
                let second = scope.spawn(|| Lock::take(&state, task));
                while !is_open_twice(&path) && !second.is_finished() {
                    std::thread::yield_now();
                }
                // as `remove` does, with the lock held
                std::fs::remove_file(&path).unwrap();
                drop(first);
                second.join().unwrap().ok()
            })
        });
        let second = taken.unwrap();
        assert!(matches!(Lock::take(&state, task), Err(Error::Held { .. })), "two hold it");
        drop(second);
        remove(&state, task).unwrap();
        assert!(!path.exists() && !is_held(&state, task));
    }
}
