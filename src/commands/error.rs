//! The errors of use cases: those of everything below, and their own.
//!
//! `cli::error` gives each variant a kind, a hint and an exit code; without them a new variant does not compile.

use std::path::PathBuf;

use super::{bad_role::BadRole, brief, settings};
use crate::{adapters::litellm, agent, agent::first_request::TooSmall, domain::id::TaskId, log, ports::llm, repo};

/// Why a use case failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The settings are wrong or incomplete.
    #[error(transparent)]
    Settings(#[from] settings::Error),
    /// There is no brief.
    #[error(transparent)]
    Brief(#[from] brief::Error),
    /// The settings for the proxy are unusable.
    #[error(transparent)]
    Proxy(#[from] litellm::Error),
    /// The proxy did not send its list of models.
    #[error("cannot read the list of models from {address}")]
    Catalog {
        /// The proxy.
        address: String,
        /// What it said.
        source: llm::Error,
    },
    /// Every required role that has no usable model.
    #[error("{}", match .0.as_slice() {
        [one] => one.to_string(),
        many => format!("{} roles have no usable model", many.len()),
    })]
    Roles(Vec<BadRole>),
    /// A cost cap, and a model without known prices.
    #[error("a cost cap is set, but the prices of {alias:?} are unknown")]
    Unpriced {
        /// The model.
        alias: String,
    },
    /// The first request does not fit the model's window.
    #[error("{}", too_small(.0))]
    Window(TooSmall),
    /// The repository.
    #[error(transparent)]
    Repo(#[from] repo::Error),
    /// The repository, while a task's work was applied or undone.
    #[error("{source}")]
    Applying {
        /// The task.
        task: TaskId,
        /// Why not.
        source: repo::Error,
    },
    /// `--branch` conflicts with an existing branch.
    #[error("cannot make the branch {name:?}: there is a branch {taken:?}")]
    BranchTaken {
        /// The requested name.
        name: String,
        /// The existing branch: the same name, a parent or a child of it.
        taken: String,
    },
    /// `--branch` is no valid branch name.
    #[error("{name:?} is not a valid branch name")]
    BranchName {
        /// The name.
        name: String,
    },
    /// `worktree.dir` is inside of the checkout.
    #[error("worktree.dir is {}, inside of the checkout or its git directory", dir.display())]
    WorktreeInside {
        /// The directory.
        dir: PathBuf,
    },
    /// A task in place starts from the checkout as it is.
    #[error("--base does not work with --isolation in-place: a task in place starts from the checkout as it is")]
    BaseInPlace,
    /// The log.
    #[error(transparent)]
    Log(#[from] log::Error),
    /// The log could not be created.
    #[error("cannot create the log in {}", .path.display())]
    NoLog {
        /// The state directory.
        path: PathBuf,
    },
    /// A task has a worktree but is not in the log.
    #[error(
        "the log in {} does not have task {task:#}, but its worktree exists: a part of the log is lost, perhaps its write-ahead log",
        .path.display()
    )]
    Forgotten {
        /// The task.
        task: TaskId,
        /// Its worktree.
        worktree: PathBuf,
        /// The state directory.
        path: PathBuf,
    },
    /// The loop stopped at an error and left the task as it was.
    #[error("task {task:#} was interrupted: {source}{}", .offered.as_ref().map(|offered| format!("; this key may use {offered}")).unwrap_or_default())]
    Cut {
        /// The task; nothing of it is lost.
        task: TaskId,
        /// Why.
        source: Box<agent::Error>,
        /// What the key may use instead, if the proxy refused a model.
        offered: Option<String>,
    },
    /// The worktree cannot be made, now or later: the task ended before it began.
    #[error("{source}; task {task:#} ended before it began")]
    Unmade {
        /// The task.
        task: TaskId,
        /// Why.
        source: Box<agent::Error>,
    },
    /// The checkout disappeared while nisse read it.
    #[error("{} changed while nisse read it", .path.display())]
    Moved {
        /// Its path.
        path: PathBuf,
    },
    /// A path that the log cannot store.
    #[error("the path {} is not UTF-8 text", .path.display())]
    PathNotText {
        /// The path.
        path: PathBuf,
    },
    /// A file of nisse's own.
    #[error("cannot write {}: {source}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A settings file could not be written.
    #[error("cannot write {}", .path.display())]
    Unwritten {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The repository has no settings file.
    #[error("there is no nisse.toml at the root of the repository, {}", .root.display())]
    NoProject {
        /// The root of the repository.
        root: PathBuf,
    },
    /// Several tasks are pending, and there is no terminal to ask which one.
    #[error("this checkout has several pending tasks: {}", .0.iter().map(TaskId::short).collect::<Vec<_>>().join(", "))]
    Several(Vec<TaskId>),
    /// The task has ended otherwise than by being given up.
    #[error("task {task:#} has already ended ({outcome}); there is nothing to give up")]
    Over {
        /// The task.
        task: TaskId,
        /// How it ended.
        outcome: &'static str,
    },
    /// A text that the log stores unmasked holds a secret.
    #[error("{what} contains a secret, or what looks like one; nisse would store it and send it to the model")]
    HoldsSecret {
        /// The text.
        what: &'static str,
    },
    /// A task that has no commits yet.
    #[error("task {task:#} has not begun to work; there is no diff")]
    NoDiff {
        /// The task.
        task: TaskId,
    },
    /// The task belongs to another checkout.
    #[error("task {task:#} belongs to {checkout}, and this is {}; nothing was changed", here.display())]
    OtherCheckout {
        /// The task.
        task: TaskId,
        /// The checkout that it belongs to.
        checkout: String,
        /// The checkout of the command.
        here: PathBuf,
        /// The command.
        command: &'static str,
    },
    /// The task's repository is gone.
    #[error("the repository in {checkout} is gone, with the branch and the commits of task {task:#}")]
    RepositoryGone {
        /// The task.
        task: TaskId,
        /// The checkout that it belongs to.
        checkout: String,
    },
    /// Only work that was handed back can be applied.
    #[error("task {task:#} was not handed back ({outcome}); there is nothing to apply")]
    NotHandedBack {
        /// The task.
        task: TaskId,
        /// How it ended, or its state.
        outcome: &'static str,
    },
    /// The task is not applied in the checkout.
    #[error("there is nothing to undo of task {task:#}: {why}")]
    NothingToPutBack {
        /// The task.
        task: TaskId,
        /// Why.
        why: String,
        /// Paths that an earlier `--abort` left.
        left: Vec<String>,
    },
    /// An answer for a task that asked nothing.
    #[error("task {task:#} has no question about its files")]
    NoQuestion {
        /// The task.
        task: TaskId,
    },
    /// The files changed after the user was asked about them.
    #[error("these files changed after nisse asked you; nothing was done to them: {}", .paths.join(", "))]
    ChangedSinceAsked {
        /// The task.
        task: TaskId,
        /// Which files.
        paths: Vec<String>,
    },
    /// Signal handlers could not be installed.
    #[error("cannot listen for signals: {source}")]
    Signals {
        /// What it said.
        source: std::io::Error,
    },
    /// No thread could be started.
    #[error("cannot start a thread to work on the task: {source}")]
    NoThread {
        /// What it said.
        source: std::io::Error,
    },
    /// The demo's own server.
    #[error("cannot listen on 127.0.0.1: {source}")]
    Listen {
        /// What the system said.
        source: std::io::Error,
    },
    /// A bug in nisse.
    #[error("{0}")]
    Bug(&'static str),
}

/// Why the first request does not fit, in a sentence.
fn too_small(found: &TooSmall) -> String {
    let TooSmall { alias, window, max_output, tokens, budget, .. } = found;
    format!(
        "the first request of about {tokens} tokens does not fit the window of {alias:?}: of its {window} tokens, {max_output} \
         are reserved for output and {budget} are left for input"
    )
}
