//! The tools offered to a model: what they are called, what they take, what they answer.
//!
//! - Arguments are validated here, never trusted; what is wrong with them is a [`Refusal`], which the model can read.
//! - Tools that only look ([`look`]) are carried out whole. A tool that writes is planned ([`plan_edit`]) and changes
//!   nothing: its effect is the loop's, after the intent is durable. The same holds for commands.
//! - Answers depend on the call and on what is there, never on time, so that a transcript can be made again.

mod arguments;
mod command;
mod edit;
mod file_rules;
mod flat;
mod hand_back;
mod list;
mod nearest;
mod planned;
mod read;
mod search;
mod write;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub use self::{
    command::{KEEP, RunCommand, answer as command_answer},
    edit::EditFile,
    file_rules::FileRules,
    hand_back::HandBack,
    list::ListFiles,
    planned::{Known, PlannedEdit, edited_path, plan_edit},
    read::ReadFile,
    search::Search,
    write::WriteFile,
};
use crate::{
    domain::{
        event::{ResultStatus, Seen},
        mask::Mask,
        message::Call,
        role::{OfferedTool, ToolName},
    },
    ports::host::{Error, Host},
};

/// A call whose arguments are right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tool {
    /// It only looks; see [`look`].
    Look(Look),
    /// It writes a file; see [`plan_edit`].
    Edit(Edit),
    /// It runs a shell command.
    RunCommand(RunCommand),
    /// It ends a delegation.
    HandBack(HandBack),
}

/// A call that changes nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Look {
    /// Reads a file.
    ReadFile(ReadFile),
    /// Lists files.
    ListFiles(ListFiles),
    /// Searches files.
    Search(Search),
}

/// A call that writes a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Edit {
    /// Writes it whole.
    WriteFile(WriteFile),
    /// Replaces a text in it.
    EditFile(EditFile),
}

/// Why a call does not run. Each holds the text for the model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// No such tool is offered.
    Unoffered(String),
    /// The arguments are not one JSON object.
    Unreadable(String),
    /// They are an object that does not fit the schema.
    Invalid(String),
}

impl Refusal {
    /// The text for the model.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Unoffered(text) | Self::Unreadable(text) | Self::Invalid(text) => text,
        }
    }

    /// The status of the call's result.
    #[must_use]
    pub fn status(&self) -> ResultStatus {
        match self {
            Self::Unoffered(_) | Self::Unreadable(_) => ResultStatus::Unreadable,
            Self::Invalid(_) => ResultStatus::Refused,
        }
    }
}

/// The answer to a call that only looks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Looked {
    /// Done, or refused.
    pub status: ResultStatus,
    /// The text for the model.
    pub content: String,
    /// The file that it has seen.
    pub seen: Option<Seen>,
}

impl Looked {
    fn done(content: String) -> Self {
        Self { status: ResultStatus::Done, content, seen: None }
    }
}

/// These tools as a task that begins now is offered them.
#[must_use]
pub fn offer(tools: &[ToolName]) -> Vec<OfferedTool> {
    let offered = |&name| OfferedTool { name, description: description(name).to_owned(), parameters: parameters(name) };
    tools.iter().map(offered).collect()
}

/// Reads a call. The name must be one of `offered`, exactly; an argument of another type is taken where it can only
/// mean one thing, else every fault is told at once. What is right is what was offered, whatever today's schema says.
pub fn parse(call: &Call, offered: &[OfferedTool]) -> Result<Tool, Refusal> {
    let written = call.written_name.as_ref().unwrap_or(&call.name);
    let Some(OfferedTool { name: tool, parameters: schema, .. }) =
        offered.iter().find(|tool| tool.name.as_str() == written)
    else {
        let names: Vec<&str> = offered.iter().map(|tool| tool.name.as_str()).collect();
        let written: String = written.chars().take(64).collect();
        return Err(Refusal::Unoffered(format!(
            "There is no tool named `{written}`. Call one of these by its exact name: {}.",
            names.join(", ")
        )));
    };
    let tool = *tool;
    let usage = || format!("{tool} takes one JSON object: {}", arguments::usage(schema));
    let still_open = || match tool {
        ToolName::HandBack => " The delegation is still open: call hand_back again, with all of its arguments.",
        ToolName::ReadFile
        | ToolName::ListFiles
        | ToolName::Search
        | ToolName::WriteFile
        | ToolName::EditFile
        | ToolName::RunCommand => "",
    };
    let given = arguments::object(&call.arguments)
        .map_err(|reason| Refusal::Unreadable(format!("{reason}. {}.{}", usage(), still_open())))?;
    let invalid = |reasons: &[String]| {
        Refusal::Invalid(format!("Wrong arguments: {}. {}.{}", reasons.join("; "), usage(), still_open()))
    };
    let coerced = arguments::coerced(tool, schema, given).map_err(|reasons| invalid(&reasons))?;
    let unfit = |error: serde_json::Error| invalid(&[error.to_string()]);
    Ok(match tool {
        ToolName::ReadFile => Tool::Look(Look::ReadFile(typed(coerced).map_err(unfit)?)),
        ToolName::ListFiles => Tool::Look(Look::ListFiles(typed(coerced).map_err(unfit)?)),
        ToolName::Search => Tool::Look(Look::Search(typed(coerced).map_err(unfit)?)),
        ToolName::WriteFile => Tool::Edit(Edit::WriteFile(typed(coerced).map_err(unfit)?)),
        ToolName::EditFile => Tool::Edit(Edit::EditFile(typed(coerced).map_err(unfit)?)),
        ToolName::RunCommand => Tool::RunCommand(typed(coerced).map_err(unfit)?),
        ToolName::HandBack => Tool::HandBack(typed(coerced).map_err(unfit)?),
    })
}

/// Carries out a call that only looks. What is impossible or forbidden is a refused answer; only what the machine
/// could not do is an error.
pub async fn inspect(look: &Look, host: &dyn Host, rules: &FileRules, mask: &Mask) -> Result<Looked, Error> {
    let looked = match look {
        Look::ReadFile(read) => read::read_file(read, host, rules, mask).await,
        Look::ListFiles(list) => list::list_files(list, host, rules).await,
        Look::Search(search) => search::search(search, host, rules).await,
    };
    match looked {
        Err(error @ (Error::Refused(_) | Error::Changed { .. })) => {
            Ok(Looked { status: ResultStatus::Refused, content: error.to_string(), seen: None })
        }
        Err(error @ Error::Io { .. }) => Err(error),
        Ok(looked) => Ok(looked),
    }
}

fn typed<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, serde_json::Error> {
    serde_json::from_value(Value::Object(arguments))
}

/// What a tool is for, to the model.
fn description(tool: ToolName) -> &'static str {
    match tool {
        ToolName::ReadFile => read::DESCRIPTION,
        ToolName::ListFiles => list::DESCRIPTION,
        ToolName::Search => search::DESCRIPTION,
        ToolName::WriteFile => write::DESCRIPTION,
        ToolName::EditFile => edit::DESCRIPTION,
        ToolName::RunCommand => command::DESCRIPTION,
        ToolName::HandBack => hand_back::DESCRIPTION,
    }
}

/// The schema of a tool's arguments.
fn parameters(tool: ToolName) -> Value {
    fn of<T: JsonSchema>() -> Value {
        let settings = schemars::generate::SchemaSettings::draft2020_12().with(|to| to.inline_subschemas = true);
        arguments::plain(settings.into_generator().into_root_schema_for::<T>().to_value())
    }
    match tool {
        ToolName::ReadFile => of::<ReadFile>(),
        ToolName::ListFiles => of::<ListFiles>(),
        ToolName::Search => of::<Search>(),
        ToolName::WriteFile => of::<WriteFile>(),
        ToolName::EditFile => of::<EditFile>(),
        ToolName::RunCommand => of::<RunCommand>(),
        ToolName::HandBack => of::<HandBack>(),
    }
}
