//! Which environment variables have secret-looking names: no command sees them, and their values are masked.
//!
//! A name counts by its parts between underscores. A part is one of [`WORDS`] or its plural, or ends with one of [`TAILS`],
//! for names that are written without underscores (`PGPASSWORD`, `clientSecret`, `APIKEY`). `KEY` alone ends too many
//! plain words (`MONKEY`, `HOTKEY`) to count at the end of any part.

/// Parts that mark a secret.
const WORDS: [&str; 7] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"];

/// Ends of a part that mark a secret.
const TAILS: [&str; 14] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "APIKEY",
    "ACCESSKEY",
    "AUTHKEY",
    "DEPLOYKEY",
    "ENCRYPTIONKEY",
    "PRIVATEKEY",
    "SECRETKEY",
    "SIGNINGKEY",
];

/// Whether a variable of this name counts as a secret.
#[must_use]
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.split('_').enumerate().any(|(index, part)| {
        let one = part.strip_suffix('S').filter(|one| !one.is_empty()).unwrap_or(part);
        // `PWD` and `OLDPWD` are directories, and names that begin with them may be, too
        (index > 0 && part == "PWD")
            || [part, one].iter().any(|part| WORDS.contains(part) || TAILS.iter().any(|tail| part.ends_with(tail)))
    })
}

/// Values shorter than this, in bytes, are too common in ordinary text to count as secrets by name alone.
pub const SHORTEST: usize = 8;
/// Up to this many characters, letters alone count as an ordinary word.
const WORD: usize = 16;

/// Whether the value of such a variable differs enough from ordinary text to be masked everywhere.
#[must_use]
pub fn is_telling(value: &str) -> bool {
    let word = value.chars().all(char::is_alphabetic) && value.chars().count() < WORD;
    value.len() >= SHORTEST && !word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_names_of_secrets_are_told_from_names_that_look_like_them() {
        for name in [
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GITHUB_TOKEN",
            "LC_TOKEN",
            "NPM_CONFIG__AUTHTOKEN",
            "DB_PASSWD",
            "BORG_PASSPHRASE",
            "GIT_CREDENTIAL",
            "MYSQL_PWD",
            "PGPASSWORD",
            "APIKEY",
            "OPENAI_APIKEY",
            "clientSecret",
            "api_key",
            "KEY",
            "SECRETS",
            "API_KEYS",
            "NISSE_LLM_TOKEN",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "PWD",
            "OLDPWD",
            "PATH",
            "MONKEY",
            "KEYBOARD_LAYOUT",
            "XKB_KEYMAP",
            "TOKENIZERS_PARALLELISM",
            "SECRETARY",
            "PASSWORDLESS",
            "LESSKEYIN",
            "S",
            "",
            "_",
            "SSH_AUTH_SOCK",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn a_word_is_no_secret_and_a_long_one_is() {
        assert!(is_telling("abcdefg1") && is_telling("correct horse") && is_telling("abcdefghijklmnop"));
        assert!(!is_telling("abcdef1") && !is_telling("development") && !is_telling("Schlüssel") && !is_telling(""));
    }
}
