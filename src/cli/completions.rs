//! Completion: scripts that make the shell ask nisse itself, and nisse's answers. `completions/` holds the scripts.

use std::{ffi::OsString, path::Path};

use clap::{CommandFactory as _, ValueEnum as _};
use clap_complete::{
    Generator as _, Shell,
    env::{CompleteEnv, Shells},
};

use super::args::Args;

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
