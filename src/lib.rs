//! nisse.
pub mod adapters;
pub mod agent;
pub mod cli;
pub mod commands;
pub mod domain;
pub mod log;
pub mod ports;
pub mod repo;
