//! The person's refs, stash and configuration as recorded before a command: plain state, of which one part is stored in a
//! file.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::{
    domain::{id::Hash, repository::RepositoryChange},
    repo::files_clock::Stamp,
};

/// What was noted before a command. Cloned, it is the same.
#[derive(Clone, Debug, Default)]
pub(in crate::repo) struct Notes(Arc<Mutex<Option<Note>>>);

/// What there was, and the status of the files that store it.
#[derive(Debug)]
pub(in crate::repo) struct Note {
    pub(in crate::repo) stamps: BTreeMap<PathBuf, Stamp>,
    pub(in crate::repo) noted: Noted,
    /// It lies in the file.
    pub(in crate::repo) written: bool,
}

#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(in crate::repo) struct Noted {
    /// Refs with what they are at.
    pub(in crate::repo) refs: BTreeMap<String, String>,
    /// The branch that HEAD of the person's checkout is on; none where that is the task's own, or detached.
    #[serde(default)]
    pub(in crate::repo) head: Option<String>,
    /// The stash's entries, newest first: commit and words.
    pub(in crate::repo) stash: Vec<(String, String)>,
    /// What the configuration says of each branch: git forgets it with the branch.
    #[serde(default)]
    pub(in crate::repo) of_branches: BTreeMap<String, Vec<(String, String)>>,
    /// The hash of all that it says.
    #[serde(default)]
    pub(in crate::repo) settings: Option<Hash>,
    /// Configuration files, named from the shared git directory on, with a hash of their bytes.
    pub(in crate::repo) configuration: BTreeMap<String, Hash>,
    /// Lock files that were there, named from the shared git directory on.
    #[serde(default)]
    pub(in crate::repo) locks: BTreeSet<String>,
    /// What was restored since, so that whoever goes on reports it too.
    pub(in crate::repo) done: Vec<RepositoryChange>,
}

/// The hash of what a configuration says.
pub(in crate::repo) fn hash_of(entries: &[(String, String)]) -> Hash {
    let words: Vec<&str> = entries.iter().flat_map(|(key, value)| [key.as_str(), value]).collect();
    Hash::of(words.join("\0").as_bytes())
}

impl Notes {
    pub(in crate::repo) fn lock(&self) -> MutexGuard<'_, Option<Note>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
