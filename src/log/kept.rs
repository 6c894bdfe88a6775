//! Directories beside the database for what was moved out of tasks' trees because no commit can hold it, until
//! `nisse doctor --fix` removes them.

use std::{fs, path::PathBuf};

use super::{Error, Journal, Log};
use crate::domain::id::TaskId;

impl Log {
    /// The tasks of which something is kept, in this log or not.
    #[must_use]
    pub fn kept(&self) -> Vec<TaskId> {
        let listing = fs::read_dir(self.state_dir.join("kept")).into_iter().flatten().flatten();
        listing.filter_map(|entry| entry.file_name().into_string().ok()?.parse().ok()).collect()
    }

    /// The directory for what is kept of a task, with a subdirectory for each time; it may not exist.
    #[must_use]
    pub fn kept_dir(&self, task: TaskId) -> PathBuf {
        self.state_dir.join("kept").join(task.to_string())
    }

    /// Removes what is kept of a task.
    pub fn remove_kept(&self, task: TaskId) -> Result<(), Error> {
        let path = self.kept_dir(task);
        fs::remove_dir_all(&path).map_err(|source| Error::Io { what: "removing", path, source })
    }
}

impl Journal {
    /// See [`Log::kept_dir`].
    #[must_use]
    pub fn kept_dir(&self) -> PathBuf {
        self.log().kept_dir(self.task().id)
    }
}
