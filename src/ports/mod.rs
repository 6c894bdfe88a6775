//! What we ask of the outside: a model ([`llm`]), a machine ([`host`]), the time ([`clock`]).

pub mod clock;
pub mod host;
pub mod llm;

use std::{future::Future, pin::Pin};

/// A boxed future, so that the traits here can be used as objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
