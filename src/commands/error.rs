//! Why a command could not do its work.

use std::path::PathBuf;

use super::{brief, open::BadRole, settings, settings::state_dir};
use crate::{adapters::litellm, agent, domain::id::TaskId, log, ports::llm, repo};

/// Why a command could not do its work. What a task came to is no error, but a result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Settings.
    #[error(transparent)]
    Settings(#[from] settings::Error),
    /// The brief.
    #[error(transparent)]
    Brief(#[from] brief::Error),
    /// The state directory.
    #[error(transparent)]
    StateDir(#[from] state_dir::Error),
    /// The proxy's client could not be made.
    #[error(transparent)]
    Client(#[from] litellm::Error),
    /// The proxy did not answer, before any task began.
    #[error("cannot read the proxy's catalog: {0}")]
    Proxy(llm::Error),
    /// Roles whose models cannot be used.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Roles(Vec<BadRole>),
    /// A cost cap without prices would be no cap.
    #[error("--max-cost is set, but the prices of {alias:?} are unknown")]
    UnknownPrices {
        /// The model.
        alias: String,
    },
    /// The repository.
    #[error(transparent)]
    Repo(#[from] repo::Error),
    /// The log.
    #[error(transparent)]
    Log(#[from] log::Error),
    /// The log could be neither found nor made.
    #[error("the log in {} could not be made", .path.display())]
    NoLog {
        /// The state directory.
        path: PathBuf,
    },
    /// The loop had to leave a task as it is.
    #[error("task {task} had to be left: {source}")]
    Cut {
        /// The task; nothing of it is lost.
        task: TaskId,
        /// Why.
        source: Box<agent::Error>,
    },
    /// The checkout was there a moment ago.
    #[error("{} changed while nisse looked at it", .path.display())]
    Moved {
        /// Where it was.
        path: PathBuf,
    },
    /// A path that the log cannot keep.
    #[error("the path {} is not UTF-8 text", .path.display())]
    PathNotText {
        /// Which.
        path: PathBuf,
    },
    /// A file of nisse's own.
    #[error("cannot write {}: {source}", .path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Several tasks are pending and nobody can be asked which.
    #[error("several tasks of this checkout are pending: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Several(Vec<TaskId>),
    /// The system lets us hear no signals.
    #[error("cannot listen for signals: {source}")]
    Signals {
        /// What it said.
        source: std::io::Error,
    },
    /// Something that cannot be: a bug of ours.
    #[error("{0}")]
    Bug(&'static str),
}
