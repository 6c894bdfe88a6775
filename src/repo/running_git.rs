//! A marker file in the git directory while a git of ours runs that takes locks: one that stays tells the task's
//! next owner that its git was killed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::domain::id::TaskId;

/// Subcommands that take locks which the whole repository shares, or HEAD's.
const TAKERS: [&str; 5] = ["update-ref", "symbolic-ref", "worktree", "stash", "branch"];

/// The marker of a git that runs; it is removed when the git ends by itself.
#[derive(Debug)]
pub(super) struct RunningGit {
    path: PathBuf,
}

impl RunningGit {
    /// Writes it for a call of a task's owner; none if the call takes no locks, or the file cannot be made.
    pub(super) fn begin(git_dir: &Path, task: TaskId, action: &str) -> Option<Self> {
        if !TAKERS.contains(&action) {
            return None;
        }
        let path = marker(git_dir, task);
        // made anew, so that it is dated by the clock that dates the locks
        let _ = fs::remove_file(&path);
        fs::File::create_new(&path).is_ok().then_some(Self { path })
    }

    /// It was killed: the marker stays for the task's next owner, beside those of other calls.
    pub(super) fn killed(self) {
        let left = |number: u32| self.path.with_extension(format!("{number}.git"));
        if let Some(left) = (1..100).map(left).find(|left| !left.exists()) {
            let _ = fs::rename(&self.path, left); // its locks are then somebody's
        }
    }

    /// It ended by itself.
    pub(super) fn end(self) {
        let _ = fs::remove_file(&self.path); // one that stays makes no lock of others' ours that is not of its moment
    }
}

fn marker(git_dir: &Path, task: TaskId) -> PathBuf {
    git_dir.join(format!("nisse-{task}.git"))
}
