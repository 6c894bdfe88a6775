//! What ties a worktree's directory to its branch: its `.git` file, its entry in the repository, and HEAD in that. A
//! command can have written any of them, so they are compared before use and put back.

use std::{
    fs,
    os::fd::OwnedFd,
    path::Path,
    sync::{Arc, PoisonError},
};

use super::{
    Error, Worktree, directory, io_error,
    names::lock_reason,
    removal::remove_tree,
    small_files::{read_file, read_line, replace_file},
};
use crate::domain::checkout::Isolation;

impl Worktree {
    /// Puts back what ties the directory to its branch: its `.git` file, and HEAD in its entry. Says whether either
    /// had been changed.
    pub fn verify(&self) -> Result<bool, Error> {
        self.refuse_replaced()?;
        self.refuse_gone()?;
        let mut changed = false;
        if self.branch().isolation == Isolation::Worktree && self.verify_git_file()? {
            changed = true;
            self.repaired(".git");
        }
        let reference = format!("refs/heads/{}", self.branch().name);
        if self.symbolic_head()?.as_ref() != Some(&reference) {
            self.put_head_back(&reference)?;
            changed = true;
            self.repaired("HEAD");
        }
        Ok(changed)
    }

    /// Refuses a worktree without a repository: what was put back of its parts would make none.
    fn refuse_gone(&self) -> Result<(), Error> {
        let common = self.checkout().common_dir();
        if common.join("objects").is_dir() { Ok(()) } else { Err(Error::Gone { git_dir: common.to_owned() }) }
    }

    /// Refuses a worktree whose directory is gone, or is another one by now, or to which a link leads: nothing of ours may
    /// be written, and nothing removed, where a command let it point to.
    pub(super) fn refuse_replaced(&self) -> Result<(), Error> {
        self.directory().map(drop)
    }

    /// The directory as it was opened first, if it is the one that stands at the path.
    pub(super) fn directory(&self) -> Result<Arc<OwnedFd>, Error> {
        let path = self.path();
        let replaced = || replaced(path);
        let now = directory::open(path).map_err(|_| replaced())?;
        match self.opened.get() {
            Some(first) if directory::is_same(first, &now).map_err(io_error("look at", path))? => Ok(Arc::clone(first)),
            Some(_) => Err(replaced()),
            None => {
                let now = Arc::new(now);
                Ok(Arc::clone(self.opened.get_or_init(|| now)))
            }
        }
    }

    /// What [`Self::verify`] had to put back since this was asked last, its `.git` file or HEAD: something had changed it.
    #[must_use]
    pub fn take_repairs(&self) -> Vec<String> {
        let mut repairs = self.repairs.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *repairs).into_iter().map(str::to_owned).collect()
    }

    fn repaired(&self, what: &'static str) {
        self.repairs.lock().unwrap_or_else(PoisonError::into_inner).insert(what);
    }

    /// The `.git` file of a directory of its own.
    fn verify_git_file(&self) -> Result<bool, Error> {
        if self.git_dir().symlink_metadata().is_err() {
            self.remake_entry()?;
            self.repaired("entry");
        }
        let file = self.path().join(".git");
        let expected = format!("gitdir: {}\n", self.git_dir().display());
        if read_file(&file).as_ref() != Some(&expected) {
            if file.is_dir() && !file.is_symlink() {
                remove_tree(&file)?;
            }
            replace_file(&file, &expected)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// The entry in the repository, where it is gone. Its index is made again when it is needed.
    fn remake_entry(&self) -> Result<(), Error> {
        let entry = self.git_dir();
        fs::create_dir_all(entry).map_err(io_error("make", entry))?;
        // locked before it is one, so that no git prunes it; what names the directory comes last
        replace_file(&entry.join("locked"), &format!("{}\n", lock_reason(self.branch().task)))?;
        replace_file(&entry.join("commondir"), "../..\n")?;
        replace_file(&entry.join("HEAD"), &format!("ref: refs/heads/{}\n", self.branch().name))?;
        replace_file(&entry.join("gitdir"), &format!("{}\n", self.path().join(".git").display()))
    }

    /// The ref that its HEAD stands for; none where that cannot be read, as after a command's work.
    fn symbolic_head(&self) -> Result<Option<String>, Error> {
        if self.checkout().formats().refs_in_files {
            let line = read_line(&self.git_dir().join("HEAD"));
            return Ok(line.and_then(|line| line.strip_prefix("ref: ").map(str::to_owned)));
        }
        self.store().symbolic_head()
    }
}

/// The error for a path at which the task's directory does not stand any more: it names what stands in its way.
pub(super) fn replaced(path: &Path) -> Error {
    Error::Replaced { path: directory::link_on_the_way(path).unwrap_or_else(|| path.to_owned()) }
}
