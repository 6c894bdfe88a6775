//! What things are: events, the state folded from them, and the decision about what comes next.
//!
//! No I/O, no async, no clock. Everything above relies on two functions:
//! [`task::Task::apply`] (the only fold) and [`next::next`] (the only decision).

pub mod amount;
pub mod apply;
pub mod caps;
pub mod checkout;
pub mod command_line;
pub mod event;
pub mod filters;
pub mod fold;
pub mod gate;
pub mod git_names;
pub mod globs;
pub mod id;
pub mod intent;
pub mod legal;
pub mod line;
pub mod mask;
pub mod message;
pub mod model;
pub mod money;
pub mod next;
pub mod note;
pub mod outcome;
pub mod reasoning;
pub mod repetition;
pub mod repository;
pub mod role;
pub mod secret_names;
pub mod started;
pub mod task;
pub mod upstream;
pub mod window;
pub mod wording;
pub mod written_call;
