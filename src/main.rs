//! The `nisse` program.
fn main() {}
