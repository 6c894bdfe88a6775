//! The turn loop and what it needs. Start reading at [`turn`].

mod act;
mod after_command;
mod ask;
pub mod budget;
mod command;
mod commit_message;
pub mod context;
pub mod decisions;
mod finish;
pub mod first_request;
pub mod gone;
pub mod intents;
mod left_out;
mod masked;
mod nudge;
pub mod outside;
mod prepare;
mod record;
mod recover;
mod reopen;
pub mod retry;
pub mod roles;
mod set_up;
pub mod tools;
pub mod turn;
mod uncommittable;
pub mod workplace;

use crate::{
    domain::{command_line, globs, upstream::Trouble},
    log,
    ports::host,
    repo,
};

/// Why the loop stopped at a task without an outcome. Nothing is lost; the task stays pending.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log.
    #[error(transparent)]
    Log(#[from] log::Error),
    /// The repository or the worktree.
    #[error(transparent)]
    Repo(#[from] repo::Error),
    /// An invalid glob in the list of denied files.
    #[error(transparent)]
    Globs(#[from] globs::Error),
    /// The machine on which the task works.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// The proxy refuses the configuration.
    #[error("the proxy answered: {message}")]
    Upstream {
        /// The class.
        trouble: Trouble,
        /// The proxy's words.
        message: String,
    },
    /// The setup command did not succeed.
    #[error("the setup command `{}` {how}; its output ends with: {output_tail}", command_line::one_line(.command))]
    Setup {
        /// The command line.
        command: String,
        /// How it ended.
        how: String,
        /// The end of its output, masked.
        output_tail: String,
    },
    /// No worktree can be made for a task that has not begun, now or later: the task has ended.
    #[error("cannot make a worktree at {path}: {source}")]
    Unmade {
        /// Where.
        path: String,
        /// Why.
        source: repo::Error,
    },
    /// A step found the task in a state that the previous step rules out: a bug in nisse.
    #[error("{0}")]
    Bug(&'static str),
}
