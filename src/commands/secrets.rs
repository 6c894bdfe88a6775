//! The one place that knows every secret of a process: what is masked before anything is stored, sent or shown.
//!
//! - The proxy's token.
//! - Environment variables with secret-looking names. No command is given them, but it could read them from its parent
//!   process. Also credentials in any variable with a URL.
//! - What the repository's configuration holds.
//!
//! A new source of secrets is one more line in [`mask`].

use std::path::Path;

use secrecy::SecretString;

use super::settings::{Environment, token::TOKEN_VARIABLE};
use crate::{
    domain::{
        mask::{Mask, SHORTEST},
        secret_names,
    },
    repo::{self, Checkout},
};

/// The mask for work in a checkout; `passed` are the variables that the user passes to commands.
#[must_use]
pub fn mask(
    environment: &Environment,
    checkout: Option<&Checkout>,
    token: Option<&SecretString>,
    passed: &[String],
) -> Mask {
    let mut values = of_environment(environment, checkout.map(Checkout::root), passed);
    values.extend(token.cloned());
    values.extend(checkout.into_iter().flat_map(Checkout::credentials).cloned());
    Mask::new(&values)
}

/// Whether the token is long enough to be masked: a shorter one would match in any text.
#[must_use]
pub fn can_be_masked(token: &str) -> bool {
    token.len() >= SHORTEST
}

fn of_environment(environment: &Environment, root: Option<&Path>, passed: &[String]) -> Vec<SecretString> {
    let mut values = Vec::new();
    for (name, value) in environment.variables() {
        let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
        let value = value.trim();
        values.extend(repo::credentials_of_addresses(value));
        let telling = if name == TOKEN_VARIABLE {
            true
        } else if passed.iter().any(|passed| passed == name) {
            // commands see it, so it may turn up anywhere, even if it is an ordinary word
            value.len() >= secret_names::SHORTEST
        } else {
            secret_names::is_telling(value)
        };
        if secret_names::is_secret(name) && telling && !is_path(value, root) {
            values.push(SecretString::from(value));
        }
    }
    values
}

/// Whether a value is the path of an existing file: its content is secret, not its path.
fn is_path(value: &str, root: Option<&Path>) -> bool {
    let there = |path: &Path| path.symlink_metadata().is_ok();
    there(Path::new(value)) || root.is_some_and(|root| there(&root.join(value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::mask::MASKED;

    #[test]
    fn what_is_named_like_a_secret_is_masked_unless_it_is_a_word_or_a_path() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().to_str().unwrap();
        let variables = [
            ("DB_PASSWD", "CANARY-1"),
            ("PGPASSWORD", "CANARY-2 and 3"),
            ("GOOGLE_APPLICATION_CREDENTIALS", path),
            ("SECRET_MODE", "development"),
            ("SHORT_KEY", "abc-123"),
            ("PASSED_TOKEN", "wordyword"),
            ("DATABASE_URL", "postgres://me:CANARY%214@db/x"),
            ("NISSE_LLM_TOKEN", "sk-123"),
            ("PLAIN", "CANARY-5"),
        ];
        let environment = Environment::new(
            variables.map(|(name, value)| (name.into(), value.into())),
            super::super::settings::Directories::default(),
        );
        let mask = mask(&environment, None, None, &["PASSED_TOKEN".to_owned()]);
        for secret in ["CANARY-1", "CANARY-2 and 3", "wordyword", "CANARY!4", "CANARY%214", "sk-123"] {
            assert_eq!(mask.apply(secret), MASKED, "{secret}");
        }
        for plain in [path, "development", "abc-123", "CANARY-5", "postgres://"] {
            assert_eq!(mask.apply(plain), plain);
        }
        assert!(can_be_masked("sk-123") && !can_be_masked("sk-12"));
    }
}
