//! A role without a usable model.

use std::fmt;

use super::settings::Sourced;
use crate::{adapters::litellm::PinError, domain::role::RoleName};

/// A role without a usable model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BadRole {
    /// No model is set for it.
    Unset(RoleName),
    /// The model that is set cannot be used.
    Unusable {
        /// The role.
        role: RoleName,
        /// The alias, and where it is set.
        alias: Sourced<String>,
        /// Why it cannot be used.
        trouble: PinError,
    },
}

impl fmt::Display for BadRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset(role) => write!(f, "no model is set for the role {role}"),
            Self::Unusable { role, alias, trouble } => {
                write!(f, "role {role} (from {}): ", alias.source)?;
                match trouble {
                    PinError::Unknown { alias, instead } => {
                        write!(f, "the proxy offers no model {alias:?} to this key; {instead}")
                    }
                    PinError::NoWindow { alias } => write!(f, "the context window of {alias:?} is unknown"),
                    PinError::NoProvider { alias } => write!(f, "the provider of {alias:?} is unknown"),
                }
            }
        }
    }
}
