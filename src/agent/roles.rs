//! The roles, as values.

use crate::domain::role::{Role, RoleName, ToolName};

/// The delegate: one bounded sub-task, ended by a handback note.
#[must_use]
pub fn delegate() -> Role {
    Role {
        name: RoleName::Delegate,
        prompt: include_str!("prompts/delegate.md").to_owned(),
        tools: vec![
            ToolName::ReadFile,
            ToolName::ListFiles,
            ToolName::Search,
            ToolName::WriteFile,
            ToolName::EditFile,
            ToolName::RunCommand,
            ToolName::HandBack,
        ],
        ending: ToolName::HandBack,
        bad_replies: 3,
        repeats: 4,
        failed_checks: 3,
        fallbacks: false,
    }
}
