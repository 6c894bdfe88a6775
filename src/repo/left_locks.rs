//! Lock files of git's that are not the task's by their name, and of which it was seen that its git left them: one that came
//! to be while a command of the task ran, or while a git of ours did that never came to its end, and that no living process
//! holds. Any other is somebody else's, and stays.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use super::{
    Checkout, Error, Worktree,
    lock_files::{is_lock, locks_below, locks_in},
    lock_holders,
    removal::{remove_file, remove_tree},
};
use crate::domain::{checkout::Isolation, id::TaskId};

/// A git of somebody's that works from inside an editor holds a lock for so long at most.
const MOMENT: Duration = Duration::from_millis(200);
/// How often it is looked again whether a lock that may be held is free.
const MOMENTS: usize = 3;
/// How long after its begin a git of ours takes its last lock.
const SOON: Duration = Duration::from_secs(10);
/// Locks of the person's own checkout, which a command in a worktree has no business with.
const OF_A_CHECKOUT: [&str; 4] = ["index.lock", "HEAD.lock", "ORIG_HEAD.lock", "config.worktree.lock"];

impl Checkout {
    /// The locks that a git of the task's took which never came to its end.
    pub(super) fn locks_of_killed_gits(&self, task: TaskId) -> Result<Vec<PathBuf>, Error> {
        let mut all = BTreeSet::new();
        for path in self.markers(task) {
            all.extend(self.locks_made_after(&path)?);
        }
        Ok(all.into_iter().filter(|lock| !self.may_be_held(lock)).collect())
    }

    /// What says that such a git ran.
    fn markers(&self, task: TaskId) -> Vec<PathBuf> {
        let own = format!("nisse-{task}.");
        let listing = fs::read_dir(self.git_dir()).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_one = |path: &PathBuf| {
            let named = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(own.as_bytes()));
            named && path.extension() == Some("git".as_ref())
        };
        listing.filter(is_one).collect()
    }

    /// Forgets that such a git ran, unless a lock is left of which it cannot be told yet.
    pub(super) fn forget_killed_gits(&self, task: TaskId) -> Result<(), Error> {
        for path in self.markers(task) {
            if self.locks_made_after(&path)?.is_empty() {
                remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// The locks that were made soon after the file was.
    fn locks_made_after(&self, path: &Path) -> Result<Vec<PathBuf>, Error> {
        let Ok(begun) = path.metadata().and_then(|found| found.modified()) else { return Ok(Vec::new()) };
        let mut all: BTreeSet<PathBuf> = [self.git_dir(), self.common_dir()].into_iter().flat_map(locks_in).collect();
        locks_below(&self.common_dir().join("refs"), &mut |lock| all.extend([lock]))?;
        let soon = |lock: &PathBuf| {
            let made = lock.symlink_metadata().and_then(|found| found.modified());
            made.is_ok_and(|made| made.duration_since(begun).is_ok_and(|after| after <= SOON))
        };
        Ok(all.into_iter().filter(soon).collect())
    }

    /// Removes those of the locks that nobody living holds, and gives them.
    fn remove_left(&self, locks: &[PathBuf]) -> Result<Vec<String>, Error> {
        if locks.is_empty() {
            return Ok(Vec::new());
        }
        let mut left = Vec::new();
        for _ in 0..MOMENTS {
            thread::sleep(MOMENT);
            let there = locks.iter().filter(|lock| is_there(lock));
            let (held, free) = there.cloned().partition::<Vec<_>, _>(|lock| self.may_be_held(lock));
            left = free;
            if held.is_empty() {
                break;
            }
        }
        for lock in &left {
            remove_tree(lock)?;
        }
        Ok(left.iter().map(|lock| lock.display().to_string()).collect())
    }

    fn may_be_held(&self, lock: &Path) -> bool {
        lock_holders::may_be_held(lock, &[self.root(), self.git_dir(), self.common_dir()])
    }
}

impl Worktree {
    /// Removes the lock files that a command left of the git that it ran, once nothing of it runs any more, and names them:
    /// those that were not there when the command was begun ([`Self::note_persons`]).
    pub fn remove_left_locks(&self) -> Result<Vec<String>, Error> {
        let Some(before) = self.noted_locks() else { return Ok(Vec::new()) };
        self.remove_new(&before)
    }

    /// Removes those that were not there before.
    fn remove_new(&self, before: &BTreeSet<String>) -> Result<Vec<String>, Error> {
        let mut new: Vec<_> = self.locks_of_commands()?.into_iter().collect();
        new.retain(|lock| !before.contains(&self.named(lock)));
        self.checkout().remove_left(&new)
    }

    /// The same after a process that was cut off while its command ran. Only in place: what all worktrees share the person
    /// has used since.
    pub fn remove_left_locks_again(&self) -> Result<Vec<String>, Error> {
        let before = match self.branch().isolation {
            Isolation::InPlace => self.read_note().map(|note| note.locks),
            Isolation::Worktree => None,
        };
        before.map_or_else(|| Ok(Vec::new()), |before| self.remove_new(&before))
    }

    /// The lock files that the git of a command may have left.
    pub(super) fn locks_of_commands(&self) -> Result<BTreeSet<PathBuf>, Error> {
        let common = self.checkout().common_dir();
        let mut all: BTreeSet<PathBuf> =
            [common.to_owned(), common.join("reftable")].iter().flat_map(|place| locks_in(place)).collect();
        if self.branch().isolation == Isolation::Worktree {
            all.retain(|lock| !OF_A_CHECKOUT.iter().any(|name| lock.ends_with(name)));
        }
        all.extend(locks_in(self.git_dir()));
        locks_below(&common.join("refs"), &mut |lock| all.extend([lock]))?;
        // a copy of an index that is being written is ours, and no command's
        all.retain(|lock| !lock.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"nisse-")));
        Ok(all)
    }

    /// A lock's name in a note: from the repository on, which may be moved in between.
    pub(super) fn named(&self, lock: &Path) -> String {
        lock.strip_prefix(self.checkout().common_dir()).unwrap_or(lock).display().to_string()
    }
}

fn is_there(lock: &Path) -> bool {
    is_lock(lock) && lock.symlink_metadata().is_ok()
}
