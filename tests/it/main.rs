//! What nisse does, one file a behaviour.
#![expect(clippy::disallowed_methods, reason = "tests arrange the world themselves: files, processes, environment")]
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod repo;
