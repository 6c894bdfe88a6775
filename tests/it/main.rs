//! What nisse does, as its user sees it: the real program, a scripted proxy, one file a behaviour.
#![expect(clippy::disallowed_methods, reason = "tests arrange the world themselves: files, processes, environment")]
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is how a test fails")]
#![expect(clippy::print_stderr, reason = "a failed test says how to run it by hand")]

mod apply;
mod bad_replies;
mod calls;
mod caps;
mod cases;
mod checks;
mod delegate;
mod doctor;
mod domain_walk;
mod drop;
mod gates;
mod generated;
mod house;
mod patch;
mod prefix;
mod proxy;
mod recordings;
mod repo;
mod settings;
mod stop;
mod support;
mod tools;
mod upstream;
