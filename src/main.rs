//! The `nisse` program: calls the library and turns its answer into an exit code.

use std::process::ExitCode;

/// Exit status of a bug in nisse.
const BUG: u8 = 70;

fn main() -> ExitCode {
    // the default hook has told where; this tells whose it is
    match std::panic::catch_unwind(|| nisse::cli::run(std::env::args_os())) {
        Ok(code) => ExitCode::from(code),
        Err(_) => {
            nisse::cli::render::bug();
            ExitCode::from(BUG)
        }
    }
}
