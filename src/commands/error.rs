//! What can go wrong in a use case: the errors of everything below, and those of putting it together.
//!
//! `cli::error` maps each variant to a kind, a hint and an exit code; a new one does not compile until it has them.

use std::path::PathBuf;

use super::{bad_role::BadRole, brief, settings};
use crate::{adapters::litellm, agent, agent::first_request::TooSmall, domain::id::TaskId, log, ports::llm, repo};

/// Why a use case could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The settings are wrong, or lack something.
    #[error(transparent)]
    Settings(#[from] settings::Error),
    /// There is no brief.
    #[error(transparent)]
    Brief(#[from] brief::Error),
    /// The proxy cannot be spoken to as the settings say.
    #[error(transparent)]
    Proxy(#[from] litellm::Error),
    /// The proxy does not say what it offers.
    #[error("cannot read the model catalog of {address}")]
    Catalog {
        /// The proxy.
        address: String,
        /// What it said.
        source: llm::Error,
    },
    /// Roles without a usable model: all that are needed.
    #[error("{}", match .0.as_slice() {
        [one] => one.to_string(),
        many => format!("{} roles have no usable model", many.len()),
    })]
    Roles(Vec<BadRole>),
    /// A cost cap that nothing could be counted against.
    #[error("a cost cap is set, but the prices of {alias:?} are unknown")]
    Unpriced {
        /// The model.
        alias: String,
    },
    /// A window that does not hold the first request.
    #[error("{}", too_small(.0))]
    Window(TooSmall),
    /// The repository.
    #[error(transparent)]
    Repo(#[from] repo::Error),
    /// The repository, where the work of a task was to be brought in or taken back.
    #[error("{source}")]
    Applying {
        /// The task.
        task: TaskId,
        /// Why not.
        source: repo::Error,
    },
    /// `--branch` names one that cannot be made beside one that is there.
    #[error("no branch {name:?} can be made: there is a branch {taken:?} already")]
    BranchTaken {
        /// Which was to be made.
        name: String,
        /// Which is there: the same, one above it, one below it.
        taken: String,
    },
    /// `--branch` names what no branch can be called.
    #[error("no branch can be called {name:?}")]
    BranchName {
        /// The name.
        name: String,
    },
    /// `worktree.dir` lies where worktrees would be in the way.
    #[error("worktree.dir is {}, which lies in the checkout or in its git directory", dir.display())]
    WorktreeInside {
        /// The directory.
        dir: PathBuf,
    },
    /// A task in place starts from the checkout as it is.
    #[error("--base names another start than the checkout, and a task in place starts from the checkout as it is")]
    BaseInPlace,
    /// The log.
    #[error(transparent)]
    Log(#[from] log::Error),
    /// The log could be neither found nor made.
    #[error("the log in {} could not be made", .path.display())]
    NoLog {
        /// The state directory.
        path: PathBuf,
    },
    /// A task has a worktree, and the log knows nothing of it.
    #[error(
        "the log in {} does not know task {task:#}, whose worktree stands: a part of the log is gone, as its write-ahead log",
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
    /// The loop had to leave a task as it is.
    #[error("task {task:#} had to be left: {source}{}", .offered.as_ref().map(|offered| format!("; this key may use {offered}")).unwrap_or_default())]
    Cut {
        /// The task; nothing of it is lost.
        task: TaskId,
        /// Why.
        source: Box<agent::Error>,
        /// What the key may use, where the proxy refused a model.
        offered: Option<String>,
    },
    /// No worktree could be made, and none will be: the task has ended before anything of it was begun.
    #[error("{source}; task {task:#} has ended, and nothing of it was begun")]
    Unmade {
        /// The task.
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
    /// A settings file that was to be written.
    #[error("cannot write {}", .path.display())]
    Unwritten {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A repository without settings of its own.
    #[error("there is no nisse.toml at the root of the repository, {}", .root.display())]
    NoProject {
        /// The top of the repository.
        root: PathBuf,
    },
    /// Several tasks are pending and nobody can be asked which.
    #[error("several tasks of this checkout are pending: {}", .0.iter().map(TaskId::short).collect::<Vec<_>>().join(", "))]
    Several(Vec<TaskId>),
    /// The task has ended, and not by being given up.
    #[error("task {task:#} has ended ({outcome}): there is nothing to give up")]
    Over {
        /// Which.
        task: TaskId,
        /// How it ended.
        outcome: &'static str,
    },
    /// Something that a task keeps and shows as it is holds a secret.
    #[error("{what} holds a secret, or what looks like one; it would be stored and sent to the model")]
    HoldsSecret {
        /// What does.
        what: &'static str,
    },
    /// A task that has no commits yet.
    #[error("task {task:#} has not begun to work: there is no diff")]
    NoDiff {
        /// Which.
        task: TaskId,
    },
    /// A task of another checkout than the one that the command stands in.
    #[error("task {task:#} was begun in {checkout}, and this is {}: nothing was done there or here", here.display())]
    OtherCheckout {
        /// Which.
        task: TaskId,
        /// Where it was begun.
        checkout: String,
        /// Where the command stands.
        here: PathBuf,
        /// The command.
        command: &'static str,
    },
    /// The repository that a task was begun in is gone.
    #[error("there is no repository in {checkout} any more: the branch and the commits of task {task:#} went with it")]
    RepositoryGone {
        /// Which.
        task: TaskId,
        /// Where it was begun.
        checkout: String,
    },
    /// Only what was handed back can be applied.
    #[error("task {task:#} was not handed back ({outcome}), so there is nothing to apply")]
    NotHandedBack {
        /// Which.
        task: TaskId,
        /// How it ended, or stands.
        outcome: &'static str,
    },
    /// Nothing of the task is in the checkout that could be taken back.
    #[error("nothing was taken back of task {task:#}: {why}")]
    NothingToPutBack {
        /// Which.
        task: TaskId,
        /// What was seen.
        why: String,
        /// Paths that were left when it was taken back before.
        left: Vec<String>,
    },
    /// An answer for a task that asks nothing.
    #[error("task {task:#} does not wait for a decision about its files")]
    NoQuestion {
        /// Which.
        task: TaskId,
    },
    /// An answer is about what the person was asked about, not about what came since.
    #[error("changed since you were asked, and left as it is: {}", .paths.join(", "))]
    ChangedSinceAsked {
        /// The task.
        task: TaskId,
        /// Which files.
        paths: Vec<String>,
    },
    /// The system lets us hear no signals.
    #[error("cannot listen for signals: {source}")]
    Signals {
        /// What it said.
        source: std::io::Error,
    },
    /// The system gives no thread to work on.
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
    /// Something that cannot be: a bug of ours.
    #[error("{0}")]
    Bug(&'static str),
}

/// A window that does not hold the first request, in a sentence.
fn too_small(found: &TooSmall) -> String {
    let TooSmall { alias, window, max_output, tokens, budget, .. } = found;
    format!(
        "the window of {alias:?} is too small for the first request: that has about {tokens} tokens, and of {window} \
         {budget} are left for input, {max_output} kept for output"
    )
}
