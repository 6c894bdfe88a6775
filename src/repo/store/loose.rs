//! Making durable what the library wrote: objects synced before a ref names them, a ref by lock and rename.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use crate::{
    domain::id::CommitId,
    repo::{Error, io_error, lock_files::in_the_way},
};

/// Syncs these objects, where they lie in files of their own; packed ones were synced by whoever packed them.
pub(super) fn sync_objects(common_dir: &Path, ids: &BTreeSet<String>) -> Result<(), Error> {
    for id in ids {
        let (directory, name) = id.split_at(2);
        let path = common_dir.join("objects").join(directory).join(name);
        match File::open(&path) {
            Ok(file) => file.sync_all().map_err(io_error("sync", &path))?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(io_error("sync", &path)(error)),
        }
    }
    Ok(())
}

/// A ref's lock file, as git takes it; gone when it is dropped.
pub(super) struct RefLock {
    place: PathBuf,
    lock: PathBuf,
    file: Option<File>,
}

impl RefLock {
    /// Takes the lock of `refs/…`; an error if somebody holds it.
    pub(super) fn take(common_dir: &Path, name: &str) -> Result<Self, Error> {
        let place = common_dir.join(name);
        let lock = common_dir.join(format!("{name}.lock"));
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(io_error("make", parent))?;
        }
        let file = match File::create_new(&lock) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(in_the_way(&lock)),
            taken => taken.map_err(io_error("take the lock", &lock))?,
        };
        Ok(Self { place, lock, file: Some(file) })
    }

    /// Puts the ref at `commit`.
    pub(super) fn put(mut self, commit: &CommitId) -> Result<(), Error> {
        let Some(mut file) = self.file.take() else { return Ok(()) };
        let done = file.write_all(format!("{commit}\n").as_bytes()).and_then(|()| file.sync_all());
        let done = done.and_then(|()| fs::rename(&self.lock, &self.place)).and_then(|()| match self.place.parent() {
            Some(parent) => File::open(parent)?.sync_all(),
            None => Ok(()),
        });
        done.map_err(|error| {
            let _ = fs::remove_file(&self.lock);
            io_error("write", &self.place)(error)
        })
    }
}

impl Drop for RefLock {
    fn drop(&mut self) {
        if self.file.is_some() {
            // a lock that stays is removed by the task's next owner
            let _ = fs::remove_file(&self.lock);
        }
    }
}
