//! A file in the git directory says that a git of ours takes locks, for as long as it runs: one that stays tells the task's
//! next owner that its git never came to its end.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::domain::id::TaskId;

/// Subcommands that take locks which the whole repository shares, or HEAD's.
const TAKERS: [&str; 5] = ["update-ref", "symbolic-ref", "worktree", "stash", "branch"];

/// Says that a git of ours takes locks, for as long as it runs: the file goes when it has come to its end.
#[derive(Debug)]
pub(super) struct RunningGit {
    path: PathBuf,
}

impl RunningGit {
    /// For a call of a task's owner; none where the call takes none, or it cannot be said.
    pub(super) fn begin(git_dir: &Path, task: TaskId, action: &str) -> Option<Self> {
        if !TAKERS.contains(&action) {
            return None;
        }
        let path = marker(git_dir, task);
        // made anew, so that it is dated by the clock that dates the locks
        let _ = fs::remove_file(&path);
        fs::File::create_new(&path).is_ok().then_some(Self { path })
    }

    /// It was killed: what says so stays for the task's next owner, beside what other calls say.
    pub(super) fn killed(self) {
        let left = |number: u32| self.path.with_extension(format!("{number}.git"));
        if let Some(left) = (1..100).map(left).find(|left| !left.exists()) {
            let _ = fs::rename(&self.path, left); // its locks are then somebody's
        }
    }

    /// It came to its end by itself.
    pub(super) fn end(self) {
        let _ = fs::remove_file(&self.path); // one that stays makes no lock of others' ours that is not of its moment
    }
}

fn marker(git_dir: &Path, task: TaskId) -> PathBuf {
    git_dir.join(format!("nisse-{task}.git"))
}
