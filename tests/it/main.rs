//! The integration tests: one binary, one file a behaviour.

mod domain_walk;
