//! What nisse does, as its user sees it: one binary, one file a behaviour.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod doctor;
mod generated;
mod settings;
