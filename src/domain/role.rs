//! Roles as data: planner, executor and delegate are values of one type, for one loop.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The roles that have a model.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoleName {
    /// Explores read-only and submits a plan.
    Planner,
    /// Executes an approved plan.
    Executor,
    /// Does one bounded sub-task and hands it back.
    Delegate,
    /// Answers one question of the executor.
    Consultant,
    /// Understands a go-ahead in plain language, for `serve`.
    Classifier,
}

impl RoleName {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 5] = [Self::Planner, Self::Executor, Self::Delegate, Self::Consultant, Self::Classifier];

    /// The name used in configuration, `NISSE_ROLE_<NAME>` and output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Planner => "planner",
            Self::Executor => "executor",
            Self::Delegate => "delegate",
            Self::Consultant => "consultant",
            Self::Classifier => "classifier",
        }
    }
}

impl fmt::Display for RoleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A tool that a role can have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolName {
    /// Reads a file, or a range of its lines.
    ReadFile,
    /// Lists files by glob.
    ListFiles,
    /// Searches file contents by regular expression.
    Search,
    /// Writes a whole file.
    WriteFile,
    /// Replaces an exact text in a file.
    EditFile,
    /// Runs a shell command.
    RunCommand,
    /// Ends a delegation with a note.
    HandBack,
}

impl ToolName {
    /// All of them, in the order in which they are offered.
    pub const ALL: [Self; 7] = [
        Self::ReadFile,
        Self::ListFiles,
        Self::Search,
        Self::WriteFile,
        Self::EditFile,
        Self::RunCommand,
        Self::HandBack,
    ];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadFile => "read_file",
            Self::ListFiles => "list_files",
            Self::Search => "search",
            Self::WriteFile => "write_file",
            Self::EditFile => "edit_file",
            Self::RunCommand => "run_command",
            Self::HandBack => "hand_back",
        }
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A tool as offered to the model: recorded at the start, so that a newer nisse offers the same on resume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OfferedTool {
    /// Which tool.
    pub name: ToolName,
    /// What it is for, to the model.
    pub description: String,
    /// JSON schema of its arguments: one closed object.
    pub parameters: Value,
}

impl OfferedTool {
    /// Whether these arguments could be intended: one JSON object with every required member, of the right type. The call's
    /// answer checks the rest of the schema.
    #[must_use]
    pub fn is_whole(&self, arguments: &str) -> bool {
        let Ok(Value::Object(given)) = serde_json::from_str(arguments) else { return false };
        let required = self.parameters["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        required.into_iter().all(|name| {
            let wanted = self.parameters["properties"][name]["type"].as_str();
            given.get(name).is_some_and(|value| wanted.is_none_or(|wanted| is_of_type(value, wanted)))
        })
    }
}

/// Whether a value has this type of JSON schema; an unknown type accepts any value.
fn is_of_type(value: &Value, wanted: &str) -> bool {
    match wanted {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" | "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

/// The role of a task: recorded at the start, so that a newer nisse resumes with the same.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Role {
    /// Which role.
    pub name: RoleName,
    /// The system prompt, whole.
    pub prompt: String,
    /// The tools offered, in order.
    pub tools: Vec<OfferedTool>,
    /// The tool whose accepted call ends the task.
    pub ending: ToolName,
    /// Limits for a model that is stuck.
    pub limits: Limits,
    /// What happens to the branch when the work is done.
    pub on_success: OnSuccess,
    /// What happens to the branch when the work failed.
    pub on_failure: OnFailure,
    /// Whether another model than the requested one may answer.
    pub fallbacks: bool,
}

/// The limits after which the work counts as stuck.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Bad replies in a row.
    pub bad_replies: u32,
    /// Equal calls with equal results in a row; the model is warned one earlier.
    pub repeats: u32,
    /// Failing checks that the model may fix; one more fails the task.
    pub failed_checks: u32,
    /// What happens at a limit.
    pub when_met: WhenMet,
}

/// What happens to a stuck task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenMet {
    /// It fails.
    Fail,
}

/// What happens to the branch of a successful task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnSuccess {
    /// Its commits are squashed into one.
    Squash,
    /// It keeps one commit per call.
    Keep,
}

/// What happens to the branch of a failed task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// It is removed; its commits are kept under `refs/nisse/discarded`.
    Discard,
}

impl Role {
    /// The tool of that name, if it is offered.
    #[must_use]
    pub fn offers(&self, name: ToolName) -> Option<&OfferedTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}
