//! The integration tests: one binary, one file per behaviour.

mod recordings;
