//! What may stand where a task or an alias is wanted, for completion.
//!
//! It comes from the settings and the log. The proxy is never asked and the token's command never run: a key press must
//! not.

use std::{collections::BTreeSet, path::Path};

use clap_complete::CompletionCandidate;

use crate::{
    commands::{
        log::{self, Listed},
        open::Opened,
        settings::{Environment, Flags},
    },
    domain::line::first_line,
};

/// The tasks of this checkout, newest first.
pub(super) fn tasks() -> Vec<CompletionCandidate> {
    recent_tasks().iter().map(candidate).collect()
}

/// Those that can go on.
pub(super) fn pending() -> Vec<CompletionCandidate> {
    let rests =
        |task: &&Listed| !task.running && matches!(task.outcome, "pending" | "interrupted" | "gated" | "stopped");
    recent_tasks().iter().filter(rests).map(candidate).collect()
}

/// Aliases that settings or tasks name.
pub(super) fn aliases() -> Vec<CompletionCandidate> {
    let mut aliases: BTreeSet<String> = recent_tasks().into_iter().map(|task| task.model).collect();
    if let Some(opened) = opened() {
        aliases.extend(opened.settings.roles.values().map(|alias| alias.value.clone()));
        aliases.extend(opened.settings.models.keys().cloned());
    }
    aliases.into_iter().map(CompletionCandidate::new).collect()
}

fn opened() -> Option<Opened> {
    Opened::new(Environment::from_process(), &Flags::default(), Path::new(".")).ok()
}

/// Nothing where anything is wrong: a completion that complains is in the way.
fn recent_tasks() -> Vec<Listed> {
    let mut tasks = opened().and_then(|opened| log::list(&opened, None).ok()).unwrap_or_default().tasks;
    tasks.reverse();
    tasks
}

fn candidate(task: &Listed) -> CompletionCandidate {
    let help = format!("{}: {}", task.outcome, first_line(&task.brief, 60));
    CompletionCandidate::new(task.task.short()).help(Some(help.into()))
}
