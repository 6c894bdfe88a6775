//! The event log: one `SQLite` database per state directory.
//!
//! - Events are appended, never changed or deleted (triggers), numbered from 1 without gaps per task.
//! - A transaction is durable when [`Log::append`] returns (WAL, `synchronous=FULL`).
//! - An event that the [fold](crate::domain::task::Task::apply) refuses cannot be written, and a stored one that it
//!   refuses, or that does not encode to what is stored, is [corruption](Error::Corrupt) with its task and number.
//! - A task has one writer at a time, by an [operating system's file lock](lock) beside the database; and in a
//!   checkout, only one process at a time applies work or works in place.
//! - Old logs load forever: tables are [migrated](schema) forward, events are [brought to today's form](upcast) when they
//!   are read, and stay as they were written. What a newer nisse wrote is refused as that, never as corruption.
//! - Files of the database are only touched through `SQLite` while it is open; all are private to their owner.

mod codec;
pub mod crash;
mod heartbeat;
mod journal;
mod kept;
mod lock;
mod open;
mod read;
mod schema;
mod upcast;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

pub use codec::{decode, encode};
pub use journal::{Journal, Subscriber};
pub use open::{Access, is_network_file_system, stuck_wal};

use crate::domain::{fold::Illegal, id::TaskId};

/// The version of the events that this nisse writes; older ones are [brought to it](upcast) when they are read.
pub const EVENTS: u32 = 3;
/// The version of the database's tables; older ones are [migrated](schema) when the log is opened for writing.
pub const SCHEMA: u32 = 2;

/// An open log: a handle, of which each task that a process works on has its own.
#[derive(Clone, Debug)]
pub struct Log {
    connection: Arc<Mutex<rusqlite::Connection>>,
    state_dir: PathBuf,
    notice: Option<String>,
    /// This task's hold on its checkout.
    checkout: Option<Arc<lock::CheckoutLock>>,
    /// Goes after the connection to what is in it.
    _copy: Option<Arc<tempfile::TempDir>>,
}

/// Why the log could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory of the state directory.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The database.
    #[error("{what} in {}: {source}", path.display())]
    Database {
        /// What was attempted.
        what: &'static str,
        /// The database file.
        path: PathBuf,
        /// What `SQLite` said.
        source: rusqlite::Error,
    },
    /// The linked `SQLite` can corrupt a database with several writers.
    #[error("nisse is linked with SQLite {found}; versions before 3.51.3 can corrupt a log that several tasks write")]
    OldLibrary {
        /// Its version.
        found: String,
    },
    /// The database holds nothing, though tasks were begun beside it.
    #[error("the log {} is empty although tasks exist: what they did is lost", path.display())]
    Emptied {
        /// The database file.
        path: PathBuf,
    },
    /// A newer nisse has written the database.
    #[error("{} has version {found}, but this nisse supports versions up to {SCHEMA}", path.display())]
    Newer {
        /// The database file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// A newer nisse has written the event.
    #[error("event {seq} of task {task:#} has version {found}, but this nisse supports versions up to {EVENTS}")]
    NewerEvent {
        /// The task.
        task: TaskId,
        /// The event.
        seq: u64,
        /// Its version.
        found: u32,
    },
    /// A stored event cannot be what it says.
    #[error("the log is corrupt: task {task:#}, event {seq}: {what}")]
    Corrupt {
        /// The task.
        task: TaskId,
        /// The event.
        seq: u64,
        /// What is wrong.
        what: String,
    },
    /// An event may not be written here: a bug of ours.
    #[error("an event was refused: {0}")]
    Illegal(#[from] Illegal),
    /// Another process works on the task.
    #[error("task {task:#} is in use by {holder}")]
    Held {
        /// The task.
        task: TaskId,
        /// Who holds it.
        holder: String,
    },
    /// Another process brings work into the checkout, or works in it.
    #[error("the checkout of {} is in use by {holder}", git_dir.display())]
    CheckoutHeld {
        /// Its git directory.
        git_dir: PathBuf,
        /// Who holds it.
        holder: String,
    },
    /// No task has that id.
    #[error("there is no task {name}")]
    NoSuchTask {
        /// The name that was given.
        name: String,
    },
    /// Several tasks have ids that begin so.
    #[error("{} tasks have ids that begin with {name}: {}", among.len(), among.iter().map(TaskId::short).collect::<Vec<_>>().join(", "))]
    Ambiguous {
        /// The prefix that was given.
        name: String,
        /// The tasks.
        among: Vec<TaskId>,
    },
}

impl Log {
    fn connection(&self) -> MutexGuard<'_, rusqlite::Connection> {
        // a transaction that a panic cut off was rolled back
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds the checkout with this git directory for a task until the log is closed: of those that bring work into it, or
    /// work in it, only one does. Held already, nothing changes.
    pub fn hold_checkout(&mut self, git_dir: &Path, task: TaskId) -> Result<(), Error> {
        let held = self.checkout.as_ref().map_or(Ok(false), |held| held.is_of(&self.state_dir, git_dir))?;
        if !held {
            self.checkout = Some(Arc::new(lock::CheckoutLock::take(&self.state_dir, git_dir, task)?));
        }
        Ok(())
    }
}

impl Error {
    /// One task cannot be read, and the others are not concerned.
    #[must_use]
    pub fn concerns_one_task(&self) -> bool {
        matches!(self, Self::Corrupt { .. } | Self::NewerEvent { .. })
    }
}
