//! The turn loop and what it needs.

pub mod tools;
