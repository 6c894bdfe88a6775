//! The `nisse` program: calls the library and turns its answer into an exit code.

use std::process::ExitCode;

/// Exit status of a bug in nisse.
const BUG: u8 = 70;

fn main() -> ExitCode {
    // the default hook has told where; this tells whose it is
    let code = std::panic::catch_unwind(|| nisse::cli::run(std::env::args_os())).unwrap_or_else(|_| {
        nisse::cli::render::bug();
        BUG
    });
    ExitCode::from(code)
}
