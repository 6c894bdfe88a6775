//! Use cases: what each subcommand does, without a word of how it is asked or shown.

mod advice;
pub mod brief;
pub mod doctor;
mod error;
pub mod models;
pub mod proxy;
pub mod settings;

pub use self::{advice::advice, error::Error};
