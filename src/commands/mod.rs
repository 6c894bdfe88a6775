//! Use cases: what each subcommand does, without a word of how it is asked or shown.

pub mod brief;
mod error;
pub mod models;
pub mod proxy;
pub mod settings;

pub use error::Error;
