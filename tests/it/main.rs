//! What nisse does, as its user sees it: one binary, one file a behaviour.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod doctor;
mod domain_walk;
mod generated;
mod prefix;
mod recordings;
mod settings;
