//! Git's lock files. Those that are a task's own by their name are removed by its next owner: whoever of ours could still
//! hold one would hold the task too. So are those of which it was seen that a git of the task's left them (`left_locks`).
//! Any other is named with its age, and never removed.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::{
    Checkout, Error, TaskBranch, WorktreeSpec,
    lock_files::{age, locks_below, locks_in, own_index},
    removal::remove_file,
};

/// A lock file that is nobody's of ours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForeignLock {
    /// Where it is.
    pub path: PathBuf,
    /// How old it is, in seconds.
    pub age_s: u64,
}

impl Checkout {
    /// Removes the lock files that the task's own processes left, and names them. For the task's owner alone.
    pub fn remove_own_locks(&self, spec: &WorktreeSpec) -> Result<Vec<String>, Error> {
        let found = self.own_locks(spec)?;
        for lock in &found {
            remove_file(lock)?;
        }
        self.forget_killed_gits(spec.task)?;
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
        for lock in self.locks_of_killed_gits(spec.task)? {
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
