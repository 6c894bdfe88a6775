//! Use cases: what each subcommand does, without a word of how it is asked or shown.

pub mod brief;
pub mod settings;
