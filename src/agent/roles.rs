//! The roles, as values.

use super::tools;
use crate::domain::{
    role::{Limits, OnFailure, OnSuccess, Role, RoleName, ToolName, WhenMet},
    wording::Wording,
};

/// The delegate: one bounded sub-task, ended by a handback note.
#[must_use]
pub fn delegate() -> Role {
    Role {
        name: RoleName::Delegate,
        prompt: include_str!("prompts/delegate.md").to_owned(),
        tools: tools::offer(&[
            ToolName::ReadFile,
            ToolName::ListFiles,
            ToolName::Search,
            ToolName::WriteFile,
            ToolName::EditFile,
            ToolName::RunCommand,
            ToolName::HandBack,
        ]),
        ending: ToolName::HandBack,
        limits: Limits { bad_replies: 3, repeats: 4, failed_checks: 3, when_met: WhenMet::Fail },
        on_success: OnSuccess::Squash,
        on_failure: OnFailure::Discard,
        fallbacks: false,
    }
}

/// The words around what a request holds, for a task that begins now.
#[must_use]
pub fn wording() -> Wording {
    Wording {
        version: Wording::NEWEST,
        task: "# Your task".to_owned(),
        checks: "# How it will be checked\n\nAfter hand_back, each of these must exit with status 0:".to_owned(),
        repository: "# The repository".to_owned(),
    }
}

/// The same for a task that was given from a directory below the root of the repository.
#[must_use]
pub fn wording_from(directory: &str) -> Wording {
    let Wording { version, task, checks, repository } = wording();
    let task = format!(
        "{task}\n\nIt was given from the directory `{directory}`: a file that it names may be meant from there. The paths \
         of your calls are relative to the root of the repository all the same."
    );
    Wording { version, task, checks, repository }
}
