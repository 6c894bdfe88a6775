//! The outside as it is: the proxy, this machine.

pub mod host;
pub mod litellm;
pub mod scripted;
