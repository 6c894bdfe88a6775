//! A worktree's entry in the repository, `.git/worktrees/<name>`: found, refused where it is somebody else's, removed with
//! its directory.

use std::{
    ffi::OsStr,
    fs,
    io::ErrorKind,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    Error, TaskBranch,
    commit::is_snapshot_of,
    directory, io_error,
    names::{discarded_ref, is_lock_reason_of},
    paths::path_text,
    removal::remove_tree,
    small_files::read_line,
};
use crate::{
    domain::{checkout::Isolation, id::CommitId},
    log::crash,
};

impl TaskBranch {
    /// Refuses a path to the worktree that leads over a link.
    pub(super) fn refuse_link_above(&self) -> Result<(), Error> {
        match self.path.parent().and_then(directory::link_on_the_way) {
            Some(path) => Err(Error::Replaced { path }),
            None => Ok(()),
        }
    }

    /// The entry of the task's worktree, if there is one.
    pub(super) fn entry(&self) -> Result<Option<PathBuf>, Error> {
        find_entry(self)
    }
}

/// The task's entry; an [`Error::Foreign`] if its directory is registered for something else.
pub(super) fn find_entry(branch: &TaskBranch) -> Result<Option<PathBuf>, Error> {
    let all = branch.checkout.common_dir().join("worktrees");
    let listing = match fs::read_dir(&all) {
        Ok(listing) => listing,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("list", &all)(error)),
    };
    for found in listing {
        let entry = found.map_err(io_error("list", &all))?.path();
        let lock = read_line(&entry.join("locked"));
        let ours = lock.as_ref().is_some_and(|lock| is_lock_reason_of(branch.task, lock));
        let registered = read_line(&entry.join("gitdir")).map(PathBuf::from);
        let here = match registered.as_deref().and_then(Path::parent) {
            Some(directory) => directory == branch.path,
            // a killed `worktree add` left the lock and nothing else
            None => ours,
        };
        if here && !ours {
            let why = match lock {
                Some(lock) => format!("its worktree is locked with the words `{lock}`"),
                None => "its worktree is not locked by this task".to_owned(),
            };
            return Err(Error::Foreign { what: path_text(&branch.path), why });
        }
        if here {
            return Ok(Some(entry));
        }
    }
    Ok(None)
}

/// Removes the task's branch if it holds nothing beyond `start`, after `before` freed it.
pub(super) fn clear_branch(
    branch: &TaskBranch,
    start: &CommitId,
    before: impl Fn() -> Result<(), Error>,
) -> Result<(), Error> {
    let Some(tip) = branch.tip()? else { return before() };
    refuse_elsewhere(branch)?;
    let store = branch.checkout.store();
    // the snapshot of an attempt that was killed may be another one than this attempt's
    let spare = store.reaches(start, &tip)?
        || store.message(&tip)?.is_some_and(|message| is_snapshot_of(&message, branch.task));
    if !spare {
        let why = format!("it holds commits beyond {start}");
        return Err(Error::Foreign { what: format!("branch {}", branch.name), why });
    }
    before()?;
    branch.delete(&tip)
}

/// Refuses to touch a branch that is checked out in another place than the task's worktree.
pub(super) fn refuse_elsewhere(branch: &TaskBranch) -> Result<(), Error> {
    let common = branch.checkout.common_dir();
    let own = find_entry(branch)?;
    let wanted = format!("refs/heads/{}", branch.name);
    let place = if branch.checkout.formats().refs_in_files {
        let entries = fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten().map(|entry| entry.path());
        let others = entries.chain([common.to_owned()]).filter(|entry| Some(entry) != own.as_ref());
        let head = format!("ref: {wanted}");
        others.into_iter().find(|entry| read_line(&entry.join("HEAD")).as_ref() == Some(&head))
    } else {
        listed_at(branch, &wanted)?
    };
    match place {
        Some(place) => Err(Error::Foreign {
            what: format!("branch {}", branch.name),
            why: format!("it is checked out elsewhere, see {}", place.display()),
        }),
        None => Ok(()),
    }
}

/// Another worktree than the task's that git lists as being on the ref.
fn listed_at(branch: &TaskBranch, wanted: &str) -> Result<Option<PathBuf>, Error> {
    let listing = branch.checkout.git().call(["worktree", "list", "--porcelain"]).run()?;
    let mut place = PathBuf::new();
    for line in listing.split(|byte| *byte == b'\n') {
        if let Some(path) = line.strip_prefix(b"worktree ") {
            place = PathBuf::from(OsStr::from_bytes(path));
        } else if line.strip_prefix(b"branch ") == Some(wanted.as_bytes()) && place != branch.path {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

/// Removes directory and entry of the task's worktree, whatever is left of them. The entry goes last: it says whose the
/// directory is.
pub(super) fn remove(branch: &TaskBranch) -> Result<(), Error> {
    if branch.isolation == Isolation::InPlace {
        return Ok(());
    }
    // half of an entry would look like somebody else's: it goes by one rename, and what a killed process left of it here
    let aside = branch.checkout.common_dir().join(format!("nisse-{}.entry", branch.task));
    remove_tree(&aside)?;
    let entry = find_entry(branch)?;
    let path = &branch.path;
    if entry.is_none() && path.symlink_metadata().is_ok() && !is_left_over(branch) {
        let why = "it is no worktree of this repository".to_owned();
        return Err(Error::Foreign { what: path_text(path), why });
    }
    // behind a link is somebody else's
    if branch.refuse_link_above().is_ok() {
        remove_tree(path)?;
    }
    crash::point("remove.directory");
    if let Some(entry) = entry {
        fs::rename(&entry, &aside).map_err(io_error("remove", &entry))?;
        remove_tree(&aside)?;
        crash::point("remove.entry");
        // as git does; others may still have theirs
        let _ = fs::remove_dir(branch.checkout.common_dir().join("worktrees"));
    }
    Ok(())
}

/// Whether a directory without an entry is empty, or was a worktree of this repository.
fn is_left_over(branch: &TaskBranch) -> bool {
    let empty = fs::read_dir(&branch.path).is_ok_and(|mut listing| listing.next().is_none());
    empty || entry_in_git_file(branch).is_some_and(|to| to.starts_with(branch.checkout.common_dir().join("worktrees")))
}

/// Where the entry of a directory was that has none any more, and stands: what is in it may be work.
pub(super) fn lost_entry(branch: &TaskBranch) -> Option<PathBuf> {
    let entry = entry_in_git_file(branch).filter(|entry| entry.symlink_metadata().is_err())?;
    // of a task that was given up it is a rest of what is kept
    if branch.checkout.store().reference(&discarded_ref(branch.task)).ok()?.is_some() {
        return None;
    }
    let all = branch.checkout.common_dir().join("worktrees");
    (branch.checkout.formats().refs_in_files && entry.parent() == Some(&all)).then_some(entry)
}

/// The entry that the directory says is its own.
pub(super) fn entry_in_git_file(branch: &TaskBranch) -> Option<PathBuf> {
    read_line(&branch.path.join(".git"))?.strip_prefix("gitdir: ").map(PathBuf::from)
}
