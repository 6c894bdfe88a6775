//! Machines: this one ([`Local`]).

mod beneath;
mod descendants;
mod environment;
mod files;
mod listing;
mod local;
mod output;
mod process;
mod search;

pub use self::{descendants::RunningCommands, local::Local};
