//! Completion scripts, made from the definition of the command line; `completions/` holds the same.

use clap::{CommandFactory as _, ValueEnum as _};
use clap_complete::{Generator as _, Shell};

use super::args::Args;

/// The completion script for a shell.
#[must_use]
pub fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "nisse", &mut script);
    script
}

/// All scripts with the names of their files under `completions/`.
#[must_use]
pub fn all() -> Vec<(String, Vec<u8>)> {
    Shell::value_variants().iter().map(|shell| (shell.file_name("nisse"), script(*shell))).collect()
}
