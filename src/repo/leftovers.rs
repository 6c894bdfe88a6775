//! What tasks have left in a repository: worktrees, branches and refs that carry a task's name. Looked at here, judged by
//! whoever knows the log; and taken away only where nothing is lost by it.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use super::{Checkout, Error, TaskBranch, Worktree, WorktreeSpec, git::LONG, io_error, small_files::read_line};
use crate::domain::id::{CommitId, TaskId};

/// A ref of nisse's.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TaskRef {
    /// Its full name.
    pub name: String,
    /// Where it is.
    pub commit: CommitId,
}

/// A worktree that is locked in a task's name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskWorktree {
    /// The task.
    pub task: TaskId,
    /// Its directory, which need not exist.
    pub path: PathBuf,
}

impl Checkout {
    /// The refs below `refs/nisse` and the branches `nisse/…`.
    pub fn task_refs(&self) -> Result<Vec<TaskRef>, Error> {
        let found = self.store().references(&["refs/nisse/", "refs/heads/nisse/"])?;
        Ok(found.into_iter().map(|(name, commit)| TaskRef { name, commit }).collect())
    }

    /// The task that a commit of nisse's names.
    pub fn task_of_commit(&self, commit: &CommitId) -> Result<Option<TaskId>, Error> {
        let message = self.store().message(commit)?.unwrap_or_default();
        Ok(message.lines().find_map(|line| line.strip_prefix("Nisse-Task: ")?.parse().ok()))
    }

    /// The worktrees that are locked in a task's name.
    pub fn task_worktrees(&self) -> Result<Vec<TaskWorktree>, Error> {
        registered(self.common_dir())
    }

    /// A ref that holds `commit`, other than those that begin so; none if it would be lost with them.
    pub fn ref_containing(&self, commit: &CommitId, except: &[&str]) -> Result<Option<String>, Error> {
        let call = self.git().call(["for-each-ref", "--format=%(refname)", "--contains", &commit.0]);
        let listed = String::from_utf8_lossy(&call.limit(LONG).run()?).into_owned();
        let other = |name: &&str| !except.iter().any(|one| name.starts_with(one));
        Ok(listed.lines().find(other).map(str::to_owned))
    }

    /// Takes a ref away, if it is still where it was seen.
    pub fn remove_ref(&self, found: &TaskRef) -> Result<(), Error> {
        let call = self.git().call(["update-ref", "--no-deref", "-d", &found.name, &found.commit.0]);
        call.run().map(drop)
    }

    /// Takes a branch of a settled task away; one that is checked out somewhere is an error, and stays.
    pub fn remove_branch(&self, spec: &WorktreeSpec) -> Result<(), Error> {
        let branch = TaskBranch::new(self, spec)?;
        super::worktree_entry::refuse_elsewhere(&branch)?;
        match branch.tip()? {
            Some(tip) => branch.delete(&tip),
            None => Ok(()),
        }
    }
}

impl TaskBranch {
    /// Why the worktree must stay, although its task is settled; none if nothing is lost with it. `head` is the task's
    /// last commit.
    pub fn worth_keeping(checkout: &Checkout, spec: &WorktreeSpec, head: &CommitId) -> Result<Option<String>, Error> {
        let Some(worktree) = Worktree::open(checkout, spec)? else { return Ok(None) };
        let at = worktree.tip()?.unwrap_or_else(|| head.clone());
        let changed = worktree.changed_since(&at)?;
        if !changed.is_empty() {
            let named = changed.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
            return Ok(Some(format!("it holds changes that are not committed: {named}")));
        }
        let own = format!("refs/heads/{}", spec.branch);
        // a branch stays when its worktree goes
        let safe = worktree.tip()?.is_some() || checkout.ref_containing(&at, &[&own])?.is_some();
        Ok((!safe).then(|| format!("no ref holds its commit {}", at.short())))
    }
}

/// The worktrees of a repository that are locked in a task's name.
fn registered(common_dir: &Path) -> Result<Vec<TaskWorktree>, Error> {
    let all = common_dir.join("worktrees");
    let listing = match fs::read_dir(&all) {
        Ok(listing) => listing,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io_error("list", &all)(error)),
    };
    let mut found = Vec::new();
    for entry in listing {
        let entry = entry.map_err(io_error("list", &all))?.path();
        let lock = read_line(&entry.join("locked"));
        let task = lock.and_then(|lock| lock.strip_prefix("nisse ")?.split(' ').next()?.parse().ok());
        let path = read_line(&entry.join("gitdir")).and_then(|line| Some(Path::new(&line).parent()?.to_owned()));
        found.extend(task.zip(path).map(|(task, path)| TaskWorktree { task, path }));
    }
    Ok(found)
}
