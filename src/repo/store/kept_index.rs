//! A worktree's index, once it was read: to parse a large one costs more than all else that a checkpoint does.

use std::{
    fmt,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use git2::{Index, Repository};

use super::read_error;
use crate::repo::Error;

/// An index with more entries is read anew each time: it would hold too much memory.
const LARGEST: usize = 200_000;

/// A repository whose index has been read. Cloned, it is the same.
#[derive(Clone, Default)]
pub(in crate::repo) struct KeptIndex(Arc<Mutex<Option<Repository>>>);

impl fmt::Debug for KeptIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeptIndex")
    }
}

impl KeptIndex {
    fn lock(&self) -> MutexGuard<'_, Option<Repository>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works with the index as it is in its file, which libgit2 knows by its checksum. What fails half-way leaves nothing
    /// that would be used again.
    pub(super) fn with<T>(
        &self,
        git_dir: &Path,
        open: impl FnOnce() -> Result<Repository, Error>,
        work: impl FnOnce(&mut Index) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let there = git_dir.join("index").is_file();
        let kept = self.lock().take().filter(|_| there);
        let repository = kept.map_or_else(open, Ok)?;
        let mut index = repository.index().map_err(read_error("read the index"))?;
        index.read(false).map_err(read_error("read the index"))?;
        let done = work(&mut index)?;
        if index.len() <= LARGEST {
            *self.lock() = Some(repository);
        }
        Ok(done)
    }
}
