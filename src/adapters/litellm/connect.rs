//! Classifies requests without a response by the error's chain of sources, because the outermost error only says "error
//! sending request".

use std::error::Error as StdError;

use super::error::failure;
use crate::{domain::upstream::Trouble, ports::llm};

/// The class of a request that got no response.
pub(super) fn no_response(error: reqwest::Error, url: &str) -> llm::Error {
    let trouble = trouble(&error);
    let error = error.without_url();
    let cause = innermost(&error);
    let hint = if trouble == Trouble::BadCertificate { " (for a private authority, set proxy.ca_file)" } else { "" };
    failure(trouble, format!("{url}: {cause}{hint}"))
}

/// The error's first cause, whose words name it; those around repeat that something failed.
pub(super) fn innermost<'a>(error: &'a (dyn StdError + 'static)) -> &'a (dyn StdError + 'static) {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause
}

fn trouble(error: &reqwest::Error) -> Trouble {
    if error.is_builder() {
        return Trouble::BadAddress;
    }
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = next {
        match error.downcast_ref::<rustls::Error>() {
            Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented) => {
                return Trouble::BadCertificate;
            }
            // the server does not speak TLS at all
            Some(rustls::Error::InvalidMessage(_)) => return Trouble::BadAddress,
            Some(_) | None => {}
        }
        // an io::Error hands on its inner error's source, not the inner error itself
        next = match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    Trouble::Unreachable
}
