//! Completion: scripts that make the shell ask nisse itself, and nisse's answers. `completions/` holds the scripts.
//!
//! An answer comes from the command line's definition, the settings and the log. It never asks the proxy and never runs
//! the token's command: a key press must not.

use std::{collections::BTreeSet, ffi::OsString, path::Path};

use clap::{CommandFactory as _, ValueEnum as _};
use clap_complete::{
    CompletionCandidate, Generator as _, Shell,
    env::{CompleteEnv, Shells},
};

use super::{args::Args, render::first_line};
use crate::commands::{
    log::{self, Listed},
    open::Opened,
    settings::{Environment, Flags},
};

/// The variable by which a script asks; not of `NISSE_*`, which are settings.
const VARIABLE: &str = "_NISSE_COMPLETE";

/// Answers a script that asks; none if this call is an ordinary one.
pub(super) fn answer(arguments: &[OsString]) -> Option<u8> {
    let here = Path::new(".");
    match CompleteEnv::with_factory(Args::command).var(VARIABLE).try_complete(arguments, Some(here)) {
        Ok(false) => None,
        Ok(true) => Some(0),
        Err(error) => {
            let _ = error.print();
            Some(2)
        }
    }
}

/// The completion script for a shell.
#[must_use]
pub fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    if let Some(writer) = Shells::builtins().completer(&shell.to_string()) {
        // it is written to memory
        let _ = writer.write_registration(VARIABLE, "nisse", "nisse", "nisse", &mut script);
    }
    script
}

/// All scripts with the names of their files under `completions/`.
#[must_use]
pub fn all() -> Vec<(String, Vec<u8>)> {
    Shell::value_variants().iter().map(|shell| (shell.file_name("nisse"), script(*shell))).collect()
}

/// The tasks of this checkout, newest first.
pub(super) fn tasks() -> Vec<CompletionCandidate> {
    listed().iter().map(candidate).collect()
}

/// Those that can go on.
pub(super) fn pending() -> Vec<CompletionCandidate> {
    let rests =
        |task: &&Listed| !task.running && matches!(task.outcome, "pending" | "interrupted" | "gated" | "stopped");
    listed().iter().filter(rests).map(candidate).collect()
}

/// Aliases that settings or tasks name.
pub(super) fn aliases() -> Vec<CompletionCandidate> {
    let mut aliases: BTreeSet<String> = listed().into_iter().map(|task| task.model).collect();
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
fn listed() -> Vec<Listed> {
    let mut tasks = opened().and_then(|opened| log::list(&opened, None).ok()).unwrap_or_default().tasks;
    tasks.reverse();
    tasks
}

fn candidate(task: &Listed) -> CompletionCandidate {
    let help = format!("{}: {}", task.outcome, first_line(&task.brief, 60));
    CompletionCandidate::new(task.task.short()).help(Some(help.into()))
}
