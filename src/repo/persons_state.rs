//! What was noted of the person's refs, stash and configuration before a command: plain state, of which one part lies in a
//! file.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};

use super::files_clock::Stamp;
use crate::domain::{id::Hash, repository::RepositoryChange};

/// What was noted before a command. Cloned, it is the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes(Arc<Mutex<Option<Note>>>);

/// What there was, and how the files looked that it lies in.
#[derive(Debug)]
pub(super) struct Note {
    pub(super) stamps: BTreeMap<PathBuf, Stamp>,
    pub(super) noted: Noted,
    /// It lies in the file.
    pub(super) written: bool,
}

#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(super) struct Noted {
    /// Refs with what they are at.
    pub(super) refs: BTreeMap<String, String>,
    /// The branch that HEAD of the person's checkout is on; none where that is the task's own, or detached.
    #[serde(default)]
    pub(super) head: Option<String>,
    /// The stash's entries, newest first: commit and words.
    pub(super) stash: Vec<(String, String)>,
    /// What the configuration says of each branch: git forgets it with the branch.
    #[serde(default)]
    pub(super) of_branches: BTreeMap<String, Vec<(String, String)>>,
    /// The hash of all that it says.
    #[serde(default)]
    pub(super) settings: Option<Hash>,
    /// Configuration files, named from the shared git directory on, with a hash of their bytes.
    pub(super) configuration: BTreeMap<String, Hash>,
    /// Lock files that were there, named from the shared git directory on.
    #[serde(default)]
    pub(super) locks: BTreeSet<String>,
    /// What was put back since, so that it is told also by whoever goes on.
    pub(super) done: Vec<RepositoryChange>,
}

/// The hash of what a configuration says.
pub(super) fn hash_of(entries: &[(String, String)]) -> Hash {
    let words: Vec<&str> = entries.iter().flat_map(|(key, value)| [key.as_str(), value]).collect();
    Hash::of(words.join("\0").as_bytes())
}

impl Notes {
    pub(super) fn lock(&self) -> MutexGuard<'_, Option<Note>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
