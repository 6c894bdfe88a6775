//! Use cases: what each subcommand does, independent of arguments and output.

mod advice;
pub mod apply;
pub mod bad_role;
mod begin_again;
pub mod brief;
pub mod delegate;
pub mod demo;
pub mod doctor;
pub mod drop;
mod error;
pub mod init;
pub mod leftovers;
pub mod log;
pub mod models;
pub mod named;
pub mod open;
mod owned;
pub mod proxy;
pub mod result;
pub mod resume;
pub mod run;
pub mod secrets;
pub mod settings;
pub mod tidy;
pub mod trust;
pub mod worker;

pub use self::{
    advice::{advice, quoted},
    error::Error,
};
