//! The index of a person's checkout is written by way of a file of our own.
//!
//! Who writes an index takes `index.lock` first, and when it is killed the lock stays: nobody can tell any more whose it
//! was. So what of ours writes such an index works on a copy under the task's own name, whose lock is ours by its name.
//! The copy is then put in place as git does it, but that `index.lock` comes to be as a second name of our file: a killed
//! process leaves a lock that is provably ours, and the task's next owner removes it.

use std::{
    fs::{self, File, FileTimes, Metadata},
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use super::{
    Error, io_error,
    lock_files::{self, in_the_way},
    removal::remove_file,
};
use crate::domain::id::TaskId;

/// How often it is tried to write an index that changes meanwhile.
const TRIES: usize = 5;

/// Does `work`, which writes an index, on a copy of that in `git_dir`, and puts it in place: for the owner of `task`. What
/// is done may be done again, where somebody else wrote the index meanwhile.
pub(super) fn through<T>(
    git_dir: &Path,
    work_tree: &Path,
    task: TaskId,
    work: impl Fn(&Path) -> Result<T, Error>,
) -> Result<T, Error> {
    for _ in 0..TRIES {
        let copy = OwnIndex::copy(git_dir, task)?;
        match work(&copy.own) {
            Ok(done) => {
                if copy.put()? {
                    return Ok(done);
                }
            }
            Err(error) => {
                remove_file(&copy.own)?;
                return Err(error);
            }
        }
    }
    Err(Error::Unsteady { checkout: work_tree.to_owned() })
}

/// A copy of an index, to be changed and put in its place.
#[derive(Debug)]
struct OwnIndex {
    index: PathBuf,
    own: PathBuf,
    /// The index as it was copied; none if there was none.
    was: Option<Stamp>,
    /// The copy as it was made.
    copied: Option<Stamp>,
}

/// What tells one state of a file from another: each writer makes a new file.
type Stamp = (u64, u64, i64, i64);

fn stamp(found: &Metadata) -> Stamp {
    (found.ino(), found.size(), found.mtime(), found.mtime_nsec())
}

fn stamp_at(path: &Path) -> Option<Stamp> {
    path.symlink_metadata().ok().map(|found| stamp(&found))
}

impl OwnIndex {
    /// Copies the index of a git directory, for the owner of `task`.
    fn copy(git_dir: &Path, task: TaskId) -> Result<Self, Error> {
        let (index, own) = (git_dir.join("index"), lock_files::own_index(git_dir, task));
        // it may be the index itself, where a process was killed right after it had put it in place: never written into
        remove_file(&own)?;
        let copy = || -> io::Result<Option<Stamp>> {
            let mut from = match File::open(&index) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                opened => opened?,
            };
            let found = from.metadata()?;
            let mut to = File::create_new(&own)?;
            io::copy(&mut from, &mut to)?;
            // git compares the index's time with the files'
            to.set_times(FileTimes::new().set_modified(found.modified()?))?;
            to.set_permissions(found.permissions())?;
            Ok(Some(stamp(&found)))
        };
        let was = copy().map_err(io_error("copy", &index))?;
        Ok(Self { copied: stamp_at(&own), index, own, was })
    }

    /// Puts the copy in place, if it was changed. False: the index has changed meanwhile, and nothing was done.
    fn put(self) -> Result<bool, Error> {
        let Some(now) = stamp_at(&self.own) else { return Ok(true) };
        if Some(now) == self.copied {
            return remove_file(&self.own).map(|()| true);
        }
        let lock = self.index.with_extension("lock");
        let own_lock = match rustix::fs::link(&self.own, &lock) {
            Ok(()) => true,
            Err(Errno::EXIST) => {
                remove_file(&self.own)?;
                return Err(in_the_way(&lock));
            }
            // a file system without second names: then the lock is a file like everybody's
            Err(Errno::PERM | Errno::NOTSUP | Errno::MLINK | Errno::NOSYS) => {
                drop(File::create_new(&lock).map_err(io_error("take the lock", &lock))?);
                false
            }
            Err(error) => return Err(io_error("take the lock", &lock)(error.into())),
        };
        if stamp_at(&self.index) != self.was {
            remove_file(&lock)?;
            return remove_file(&self.own).map(|()| false);
        }
        let from = if own_lock { &lock } else { &self.own };
        let put = fs::rename(from, &self.index).map_err(io_error("write", &self.index));
        if put.is_err() || !own_lock {
            remove_file(&lock)?;
        }
        put?;
        remove_file(&self.own).map(|()| true)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn task() -> TaskId {
        "01993c5e-7b1a-7000-8000-0123456789ab".parse().unwrap()
    }

    fn put(path: &Path, text: &str) {
        let beside = path.with_extension("new");
        File::create(&beside).and_then(|mut file| file.write_all(text.as_bytes())).unwrap();
        fs::rename(&beside, path).unwrap();
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_changed_copy_comes_in_place_and_nothing_else_stays() {
        let directory = tempfile::tempdir().unwrap();
        let (directory, index) = (directory.path(), directory.path().join("index"));
        for (before, after) in [(None, "new"), (Some("old"), "new"), (Some("old"), "old")] {
            remove_file(&index).unwrap();
            if let Some(before) = before {
                put(&index, before);
            }
            let inode = stamp_at(&index);
            let own = OwnIndex::copy(directory, task()).unwrap();
            if before != Some(after) {
                put(&own.own, after);
            }
            assert!(own.put().unwrap());
            assert_eq!(fs::read_to_string(&index).unwrap(), after);
            assert_eq!(names(directory), ["index"]);
            assert_eq!(stamp_at(&index) == inode, before == Some(after), "what did not change is not written");
        }
    }

    #[test]
    fn an_index_that_changed_meanwhile_and_one_that_is_locked_are_left() {
        let directory = tempfile::tempdir().unwrap();
        let (directory, index) = (directory.path(), directory.path().join("index"));
        put(&index, "old");
        let own = OwnIndex::copy(directory, task()).unwrap();
        put(&own.own, "ours");
        put(&index, "theirs");
        assert!(!own.put().unwrap());
        assert_eq!(
            (fs::read_to_string(&index).unwrap(), names(directory)),
            ("theirs".to_owned(), vec!["index".to_owned()])
        );

        let own = OwnIndex::copy(directory, task()).unwrap();
        put(&own.own, "ours");
        put(&directory.join("index.lock"), "theirs");
        assert!(matches!(own.put(), Err(Error::Locked { .. })));
        assert_eq!(names(directory), ["index", "index.lock"]);
    }
}
