//! The outside as it is: the proxy, this machine; and models that are scripts.

pub mod demo;
pub mod host;
pub mod litellm;
pub mod scripted;
