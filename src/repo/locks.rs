//! Git's lock files. Those that are a task's own by their name are removed by its next owner: whoever of ours could still
//! hold one would hold the task too. So are those of which it was seen that a git of the task's left them (`left_locks`).
//! Any other is named with its age, and never removed.

use std::{
    fs,
    io::ErrorKind,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::{Checkout, Error, TaskBranch, WorktreeSpec, io_error, removal::remove_file};
use crate::domain::id::TaskId;

/// A lock file that is nobody's of ours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForeignLock {
    /// Where it is.
    pub path: PathBuf,
    /// How old it is, in seconds.
    pub age_s: u64,
}

/// The copy of a checkout's index that a task works on.
pub(super) fn own_index(git_dir: &Path, task: TaskId) -> PathBuf {
    git_dir.join(format!("nisse-{task}.index"))
}

/// The error that names a lock that is in the way.
pub(super) fn in_the_way(lock: &Path) -> Error {
    Error::Locked { lock: lock.to_owned(), age_s: age(lock) }
}

/// How old a file is by this machine's clock, in seconds.
fn age(path: &Path) -> u64 {
    let modified = path.symlink_metadata().and_then(|found| found.modified());
    modified.ok().and_then(|time| time.elapsed().ok()).map_or(0, |age| age.as_secs())
}

/// The lock that git says is in its way.
pub(super) fn named_in(stderr: &str) -> Option<PathBuf> {
    let (_, rest) = stderr.split_once("Unable to create '")?;
    let (path, rest) = rest.split_once('\'')?;
    let path = PathBuf::from(path);
    (rest.starts_with(": File exists") && is_lock(&path)).then_some(path)
}

pub(super) fn is_lock(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "lock")
}

impl Checkout {
    /// Removes the lock files that the task's own processes left, and names them. For the task's owner alone.
    pub fn remove_own_locks(&self, spec: &WorktreeSpec) -> Result<Vec<String>, Error> {
        let found = self.own_locks(spec)?;
        for lock in &found {
            remove_file(lock)?;
        }
        self.forget_taking(spec.task)?;
        // the copy of an index that is in no process's hands is no lock, and is not worth a word
        remove_file(&own_index(self.git_dir(), spec.task))?;
        Ok(found.iter().map(|lock| lock.display().to_string()).collect())
    }

    /// The lock files that are the task's own by their name.
    pub fn own_locks(&self, spec: &WorktreeSpec) -> Result<Vec<PathBuf>, Error> {
        let branch = TaskBranch::new(self, spec)?;
        let mut found = vec![self.common_dir().join(format!("refs/heads/{}.lock", spec.branch))];
        // one that is somebody else's is no error here
        if let Ok(Some(entry)) = branch.entry() {
            found.extend(["index.lock", "HEAD.lock", "config.worktree.lock"].map(|name| entry.join(name)));
        }
        let own = own_index(self.git_dir(), spec.task);
        found.push(own.with_extension("index.lock"));
        let index_lock = self.git_dir().join("index.lock");
        let same = |one: fs::Metadata, other: fs::Metadata| (one.dev(), one.ino()) == (other.dev(), other.ino());
        if let (Ok(one), Ok(other)) = (own.symlink_metadata(), index_lock.symlink_metadata())
            && same(one, other)
        {
            found.push(index_lock);
        }
        found.retain(|lock| lock.symlink_metadata().is_ok());
        let id = spec.task.to_string();
        let of_task = |path: &Path| path.with_extension("").iter().any(|part| part == id.as_str());
        locks_below(&self.common_dir().join("refs/nisse"), &mut |lock| found.extend(of_task(&lock).then_some(lock)))?;
        for lock in self.taken_by_ours(spec.task)? {
            if !found.contains(&lock) {
                found.push(lock);
            }
        }
        Ok(found)
    }

    /// Lock files of others, which would keep a task, or what comes after it, from its work.
    #[must_use]
    pub fn foreign_locks(&self) -> Vec<ForeignLock> {
        let (own, common) = (self.git_dir(), self.common_dir());
        let branch = self.base().ok().and_then(|base| base.branch);
        let mut places = vec![own.to_owned(), common.to_owned(), common.join("reftable")];
        places.dedup();
        let ours = |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"nisse-"));
        let mut all: Vec<_> = places.iter().flat_map(|place| locks_in(place)).filter(|path| !ours(path)).collect();
        all.extend(branch.map(|branch| common.join(format!("refs/heads/{branch}.lock"))));
        all.retain(|lock| lock.symlink_metadata().is_ok());
        all.sort();
        all.into_iter().map(|path| ForeignLock { age_s: age(&path), path }).collect()
    }
}

/// The files of a directory that are named like locks.
pub(super) fn locks_in(directory: &Path) -> Vec<PathBuf> {
    let listing = fs::read_dir(directory).into_iter().flatten().flatten();
    listing.map(|entry| entry.path()).filter(|path| is_lock(path)).collect()
}

/// The files below a directory that are named like locks.
pub(super) fn locks_below(directory: &Path, each: &mut impl FnMut(PathBuf)) -> Result<(), Error> {
    let listing = match fs::read_dir(directory) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(()),
        listing => listing.map_err(io_error("list", directory))?,
    };
    for entry in listing {
        let entry = entry.map_err(io_error("list", directory))?;
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            locks_below(&path, each)?;
        } else if is_lock(&path) {
            each(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_that_is_in_the_way_is_known_from_gits_words() {
        let words = "fatal: cannot lock ref 'HEAD': Unable to create '/a b/.git/HEAD.lock': File exists.; Another git";
        assert_eq!(named_in(words), Some(PathBuf::from("/a b/.git/HEAD.lock")));
        for other in ["fatal: bad object", "Unable to create '/x/HEAD.lock': Permission denied", "Unable to create '"] {
            assert_eq!(named_in(other), None, "{other}");
        }
    }
}
