//! Lock files of git: how they are named, where they lie, and the error for one that is in the way.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use super::{Error, io_error};
use crate::domain::id::TaskId;

/// The copy of a checkout's index that a task works on.
pub(super) fn own_index(git_dir: &Path, task: TaskId) -> PathBuf {
    git_dir.join(format!("nisse-{task}.index"))
}

/// The error that names a lock that is in the way.
pub(super) fn in_the_way(lock: &Path) -> Error {
    Error::Locked { lock: lock.to_owned(), age_s: age(lock) }
}

/// How old a file is by this machine's clock, in seconds.
pub(super) fn age(path: &Path) -> u64 {
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
