//! The turn loop and what it needs.

pub mod mask;
pub mod tools;
