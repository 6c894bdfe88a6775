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

/// Why the loop had to leave a task as it is: we or the world broke. Nothing is lost; the task stays pending.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log.
    #[error(transparent)]
    Log(#[from] log::Error),
    /// The repository or the worktree.
    #[error(transparent)]
    Repo(#[from] repo::Error),
    /// A denied glob that is none.
    #[error(transparent)]
    Globs(#[from] globs::Error),
    /// The machine on which the task works.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// The proxy refuses what is configured.
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
    /// No worktree could be made for a task of which nothing stands yet, and none will be: the task has ended.
    #[error("cannot make a worktree at {path}: {source}")]
    Unmade {
        /// Where.
        path: String,
        /// Why.
        source: repo::Error,
    },
    /// A step found the task in a state that the step before it rules out: a bug of ours.
    #[error("{0}")]
    Bug(&'static str),
}
