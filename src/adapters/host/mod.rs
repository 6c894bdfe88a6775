//! Machines: this one ([`Local`]).

mod descendants;
mod environment;
mod files;
mod listing;
mod local;
mod output;
mod process;
mod root_directory;
mod search;

pub use self::{descendants::RunningCommands, local::Local};
