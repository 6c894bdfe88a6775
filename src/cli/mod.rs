//! The front door on the command line: arguments in, words and an exit code out.

pub mod args;
pub mod completions;
pub mod error;
pub mod man;
mod manual;
pub mod render;
