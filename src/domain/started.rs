//! The first event of a task, in parts. Everything that a resume needs stands here, so that a newer nisse with other
//! settings goes on as the task was begun.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    caps::Caps,
    checkout::{Base, Isolation},
    filters::Filters,
    id::TaskId,
    model::PinnedModel,
    role::{Role, RoleName},
    wording::Wording,
};

/// The content of a task's first event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TaskStarted {
    /// Its place among the tasks that it belongs to.
    pub tree: Tree,
    /// The role, as a value.
    pub role: Role,
    /// The words that its requests are rendered with.
    pub wording: Wording,
    /// What is to be done.
    pub assignment: Assignment,
    /// The models, pinned.
    pub models: Models,
    /// The caps.
    pub caps: Caps,
    /// Where it works.
    pub workplace: WorkplaceSpec,
    /// How its commands run.
    pub commands: CommandRules,
    /// Which files it leaves alone.
    pub files: FileLimits,
    /// Command lines that must all exit 0 for success.
    pub checks: Vec<String>,
}

impl TaskStarted {
    /// What is to be done, in words.
    #[must_use]
    pub fn brief(&self) -> &str {
        match &self.assignment {
            Assignment::Brief(text) => text,
        }
    }

    /// The model that the task asks.
    #[must_use]
    pub fn model(&self) -> &PinnedModel {
        &self.models.own
    }
}

/// A task's place among those that work for one another. Their caps are shared from the root down.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Tree {
    /// The task that began it; none for one that a person began.
    pub parent: Option<TaskId>,
    /// The task that a person began: itself, if that is it.
    pub root: TaskId,
}

impl Tree {
    /// A task that a person began.
    #[must_use]
    pub fn root(task: TaskId) -> Self {
        Self { parent: None, root: task }
    }
}

/// What a task is to do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Assignment {
    /// What a person wrote.
    Brief(String),
}

/// The models of a task and of those that it may begin, as they were when it began.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Models {
    /// The one that it asks.
    pub own: PinnedModel,
    /// Those of the roles that it may give work to.
    pub others: BTreeMap<RoleName, PinnedModel>,
}

/// Where a task works.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WorkplaceSpec {
    /// The machine that holds checkout and worktree.
    pub host: HostName,
    /// The caller's checkout, an absolute path.
    pub checkout: String,
    /// Where the task starts from.
    pub base: Base,
    /// The task's branch.
    pub branch: String,
    /// The task's worktree, an absolute path.
    pub worktree: String,
    /// How it stands apart from the checkout.
    pub isolation: Isolation,
    /// The content filters that were configured; no other runs.
    pub filters: Filters,
    /// Globs of ignored files that are copied into the worktree.
    pub copy: Vec<String>,
    /// A command that makes the worktree fit for work.
    pub setup: Option<String>,
}

/// The machine that a task works on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostName {
    /// The one that nisse runs on.
    Here,
}

/// How the commands of a task run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CommandRules {
    /// A command's time limit, in milliseconds.
    pub time_ms: u64,
    /// Further environment variables that commands see.
    pub pass_env: Vec<String>,
    /// Bytes of a command's output that the model is shown, from its beginning and from its end each.
    pub keep_output: u64,
    /// What keeps commands from the rest of the machine.
    pub sandbox: Sandbox,
}

/// What keeps commands from the rest of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    /// Nothing: a command can do what the person can.
    None,
}

/// The files that a task leaves alone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FileLimits {
    /// Globs of paths that no file tool touches.
    pub deny: Vec<String>,
    /// Untracked files over this many bytes are not carried over.
    pub max_untracked: u64,
}
