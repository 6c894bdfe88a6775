//! The first event of a task, in parts. It contains everything that a resume needs, so that a newer nisse with other
//! settings continues the task as it began.

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
    /// Its place in a tree of tasks.
    pub tree: Tree,
    /// The role, as a value.
    pub role: Role,
    /// The wording of its requests.
    pub wording: Wording,
    /// What to do.
    pub assignment: Assignment,
    /// The models, pinned.
    pub models: Models,
    /// The caps.
    pub caps: Caps,
    /// Where it works.
    pub workplace: WorkplaceSpec,
    /// How to run its commands.
    pub commands: CommandRules,
    /// Which files it must not touch.
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

    /// The task's model.
    #[must_use]
    pub fn model(&self) -> &PinnedModel {
        &self.models.own
    }
}

/// A task's place in a tree of tasks, which share the caps of the root.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Tree {
    /// The task that began it; none if a person did.
    pub parent: Option<TaskId>,
    /// The task at the root, which a person began; possibly itself.
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

/// The models of a task and of the tasks that it may begin, pinned when it began.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Models {
    /// Its own.
    pub own: PinnedModel,
    /// Those of the roles to which it may delegate.
    pub others: BTreeMap<RoleName, PinnedModel>,
}

/// Where a task works.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WorkplaceSpec {
    /// The machine with checkout and worktree.
    pub host: HostName,
    /// The caller's checkout, an absolute path.
    pub checkout: String,
    /// Where the task starts from.
    pub base: Base,
    /// The task's branch.
    pub branch: String,
    /// The task's worktree, an absolute path.
    pub worktree: String,
    /// How it is isolated from the checkout.
    pub isolation: Isolation,
    /// The content filters that were configured; no other runs.
    pub filters: Filters,
    /// Globs of ignored files that are copied into the worktree.
    pub copy: Vec<String>,
    /// A command that prepares the worktree.
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
    /// The sandbox of commands.
    pub sandbox: Sandbox,
}

/// The sandbox of commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    /// None: a command can do what the user can.
    None,
}

/// The files that a task must not touch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FileLimits {
    /// Globs of paths that no file tool touches.
    pub deny: Vec<String>,
    /// Untracked files over this many bytes are not copied.
    pub max_untracked: u64,
}
