//! What nisse does, as its user sees it: the real program, a scripted proxy, one file a behaviour.
#![expect(clippy::disallowed_methods, reason = "tests arrange the world themselves: files, processes, environment")]
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is how a test fails")]
#![expect(clippy::print_stderr, reason = "a failed test says how to run it by hand")]

mod apply;
mod bad_replies;
mod branch_contents;
mod budget;
mod calls;
mod caps;
mod cases;
mod catalog_down;
mod checks;
mod completions;
mod connection;
#[cfg(feature = "crashpoints")]
mod crash;
mod decided_walk;
mod delegate;
mod demo;
mod doctor;
mod domain_walk;
mod drop;
mod elsewhere;
mod exit_codes;
mod fallback;
mod found;
mod gates;
mod generated;
mod headless;
mod house;
mod in_place;
mod isolation;
mod leftovers;
mod links_above;
mod locks;
mod logs;
mod loop_walk;
mod output;
mod own_git;
mod packing;
mod patch;
mod persons_refs;
mod prefix;
mod pricing;
mod proxy;
mod reasoning;
mod recordings;
mod recovery;
mod repo;
mod resume;
mod same_second;
mod schemas;
mod screens;
mod settings;
mod states;
mod stop;
mod storage;
mod support;
mod terminal;
mod tools;
mod transcripts;
mod unclean;
mod uncommittable;
mod upstream;
mod window;
