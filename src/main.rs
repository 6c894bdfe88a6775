//! The `nisse` program: calls the library and turns its answer into an exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(nisse::cli::run(std::env::args_os()))
}
