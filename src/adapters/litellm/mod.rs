//! The LiteLLM proxy: the only way to every model.
//!
//! Guarantees, tested on recordings of a real proxy:
//! - [`Proxy::ask`](crate::ports::llm::Llm::ask) is exactly one attempt: nothing is retried, neither here nor, as far
//!   as it obeys, in the proxy.
//! - A reply is complete or an error ([`Trouble::Cut`](crate::domain::upstream::Trouble::Cut)); what a proxy makes up after
//!   its upstream was cut does not count.
//! - Between two requests of a task the body is the previous one plus a suffix, cache marks aside, so that the
//!   vendor's cache holds.
//! - Who answered is read from headers; a fallback that the role refuses is refused before the stream is read.
//! - The token is only in request headers.
//!
//! [`chat`] is the normalized route, [`messages`] the native one; [`catalog`] says what the proxy offers.

mod address;
mod answered;
mod budget;
pub mod catalog;
pub mod chat;
mod client;
mod connect;
#[cfg(test)]
mod conversation;
mod error;
mod json;
mod lookout;
pub mod messages;
mod overrides;
mod stream;

pub use catalog::{Catalog, Deployment, Entry};
pub use client::{Proxy, Settings};
pub use error::Error;
pub use overrides::{Instead, Override, PinError, short_list};

use reqwest::header::HeaderMap;

/// A header's text, if it is there and readable.
fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim).filter(|text| !text.is_empty())
}
