//! What went wrong for users of other agents, replayed on both routes.

mod commands;
mod log_file;
mod lost_work;
mod model_output;
mod persons_work;
mod refusals;
mod resume;
mod server_shapes;
mod streams;
