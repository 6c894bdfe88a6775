//! What can go wrong in a use case: the errors of everything below, and those of putting it together.
//!
//! `cli::error` maps each variant to a kind, a hint and an exit code; a new one does not compile until it has them.

use super::{brief, proxy::BadRole, settings};
use crate::{adapters::litellm, ports::llm, repo};

/// Why a use case could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The settings are wrong, or lack something.
    #[error(transparent)]
    Settings(#[from] settings::Error),
    /// There is no brief.
    #[error(transparent)]
    Brief(#[from] brief::Error),
    /// The proxy cannot be spoken to as the settings say.
    #[error(transparent)]
    Proxy(#[from] litellm::Error),
    /// The proxy does not say what it offers.
    #[error("cannot read the model catalog of {address}")]
    Catalog {
        /// The proxy.
        address: String,
        /// What it said.
        source: llm::Error,
    },
    /// Something in the repository.
    #[error(transparent)]
    Repo(#[from] repo::Error),
    /// Roles without a usable model: all that are needed.
    #[error("{}", match .0.as_slice() {
        [one] => one.to_string(),
        many => format!("{} roles have no usable model", many.len()),
    })]
    Roles(Vec<BadRole>),
    /// A cost cap that nothing could be counted against.
    #[error("a cost cap is set, but the prices of {alias:?} are unknown")]
    Unpriced {
        /// The model.
        alias: String,
    },
}
