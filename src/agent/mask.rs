//! Secrets are masked before anything is stored, sent or shown: the values that we know, and the shapes of tokens.

use std::borrow::Cow;

use secrecy::{ExposeSecret, SecretString};

/// What stands in a secret's place.
pub const MASKED: &str = "[masked by nisse]";

/// Values shorter than this, in bytes, are too common in ordinary text to be masked.
const SHORTEST_VALUE: usize = 8;

/// Characters by which it is judged whether a token begins, so that no text takes long.
const PROBED: usize = 2048;

/// A token that is told by how it begins.
struct Shape {
    prefix: &'static str,
    /// Characters that must follow at least; `_`, `-` and alphanumeric ones count.
    least: usize,
    /// A digit must be among them, since words may look like the prefix (`sk-` in class names).
    digit: bool,
}

/// As their makers document them: `OpenAI` and Anthropic (`sk-`), GitHub, GitLab, AWS, Slack.
const SHAPES: &[Shape] = &[
    Shape { prefix: "sk-", least: 16, digit: true },
    Shape { prefix: "ghp_", least: 20, digit: false },
    Shape { prefix: "gho_", least: 20, digit: false },
    Shape { prefix: "ghu_", least: 20, digit: false },
    Shape { prefix: "ghs_", least: 20, digit: false },
    Shape { prefix: "ghr_", least: 20, digit: false },
    Shape { prefix: "github_pat_", least: 20, digit: false },
    Shape { prefix: "glpat-", least: 16, digit: false },
    Shape { prefix: "AKIA", least: 16, digit: false },
    Shape { prefix: "ASIA", least: 16, digit: false },
    Shape { prefix: "xoxb-", least: 16, digit: true },
    Shape { prefix: "xoxp-", least: 16, digit: true },
    Shape { prefix: "xoxa-", least: 16, digit: true },
    Shape { prefix: "xapp-", least: 16, digit: true },
];

/// Masks secrets in texts.
#[derive(Clone, Debug)]
pub struct Mask {
    /// Longest first, so that a value that holds another is masked whole.
    values: Vec<SecretString>,
}

impl Mask {
    /// A mask for these values, surrounding white space aside, and for common shapes of tokens.
    #[must_use]
    pub fn new(values: &[SecretString]) -> Self {
        let mut values: Vec<SecretString> = values
            .iter()
            .map(|value| SecretString::from(value.expose_secret().trim()))
            .filter(|value| value.expose_secret().len() >= SHORTEST_VALUE)
            .collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.expose_secret().len()));
        Self { values }
    }

    /// The text with every secret masked.
    #[must_use]
    pub fn apply<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut masked = Cow::Borrowed(text);
        for value in &self.values {
            if masked.contains(value.expose_secret()) {
                masked = Cow::Owned(masked.replace(value.expose_secret(), MASKED));
            }
        }
        let mut parts = String::new();
        let mut copied = 0;
        let mut at = 0;
        while at < masked.len() {
            match secret_at(&masked, at) {
                Some(end) => {
                    parts.push_str(&masked[copied..at]);
                    parts.push_str(MASKED);
                    (copied, at) = (end, end);
                }
                None => at += masked[at..].chars().next().map_or(1, char::len_utf8),
            }
        }
        if copied == 0 {
            return masked;
        }
        parts.push_str(&masked[copied..]);
        Cow::Owned(parts)
    }
}

/// Where the token that begins at `at` ends, if one does.
fn secret_at(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    // a first look that passes over nearly everything
    if !matches!(rest.as_bytes().first()?, b'-' | b'A' | b'e' | b'g' | b's' | b'x') {
        return None;
    }
    if let Some(length) = private_key(rest) {
        return Some(at + length);
    }
    if text[..at].chars().next_back().is_some_and(char::is_alphanumeric) {
        return None;
    }
    let shaped = SHAPES.iter().find_map(|shape| {
        let body = rest.strip_prefix(shape.prefix)?;
        let begun = word(body, PROBED);
        let long = begun.len() >= shape.least && (!shape.digit || begun.bytes().any(|byte| byte.is_ascii_digit()));
        long.then(|| shape.prefix.len() + word(body, usize::MAX).len())
    });
    shaped.or_else(|| web_token(rest)).map(|length| at + length)
}

/// A PEM block of a private key (RFC 7468), or the beginning of one that was cut.
fn private_key(rest: &str) -> Option<usize> {
    const TAIL: &str = "PRIVATE KEY-----";
    let label = rest.strip_prefix("-----BEGIN ")?;
    let line = label.find('\n').unwrap_or(label.len());
    let begun = label[..line].find(TAIL)? + TAIL.len();
    let body = &label[begun..];
    let end = body.find("-----END ").and_then(|end| Some(end + body[end..].find(TAIL)? + TAIL.len()));
    Some(rest.len() - body.len() + end.unwrap_or(body.len()))
}

/// A JSON web token (RFC 7519): three parts of base64url, the first of which is a JSON object.
fn web_token(rest: &str) -> Option<usize> {
    if !rest.starts_with("eyJ") {
        return None;
    }
    let header = word(rest, PROBED);
    let payload = word(rest[header.len()..].strip_prefix('.')?, usize::MAX);
    let signature = word(rest[header.len() + 1 + payload.len()..].strip_prefix('.')?, usize::MAX);
    let long = header.len() >= 10 && payload.len() >= 10 && signature.len() >= 10;
    long.then(|| header.len() + payload.len() + signature.len() + 2)
}

/// The characters of a token at the beginning, `most` of them at most.
fn word(text: &str, most: usize) -> &str {
    let end =
        text.bytes().take(most).take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')).count();
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask() -> Mask {
        Mask::new(&["hunter2-value\n", "hunter2-value-longer", "short"].map(SecretString::from))
    }

    #[test]
    fn known_values_are_masked_and_short_ones_are_not() {
        assert_eq!(
            mask().apply("a=hunter2-value b=hunter2-value-longer short"),
            format!("a={MASKED} b={MASKED} short")
        );
        assert!(matches!(mask().apply("nothing here: é, task-sk-"), Cow::Borrowed(_)));
    }

    #[test]
    fn shapes_of_tokens_are_masked_up_to_their_end() {
        let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4fw";
        for token in [
            "sk-ant-api03-abcdefghijklmnop",
            "ghp_CANARYCANARYCANARYCANARYCANARYCANAR",
            "gho_0123456789abcdefghij",
            "github_pat_0123456789abcdefghij_x",
            "glpat-abcdefghij0123456789",
            "AKIAIOSFODNN7EXAMPLE",
            "xoxb-123456789012-abcdefgh",
            jwt,
        ] {
            assert_eq!(mask().apply(&format!("é=\"{token}\", ende")), format!("é=\"{MASKED}\", ende"), "{token}");
        }
        let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nCANARYKEY\n-----END OPENSSH PRIVATE KEY-----";
        assert_eq!(mask().apply(&format!("1\t{key}\nrest")), format!("1\t{MASKED}\nrest"));
        assert_eq!(mask().apply("a -----BEGIN RSA PRIVATE KEY-----\nMIIE"), format!("a {MASKED}"));
        assert_eq!(mask().apply(&format!("{jwt} {jwt}")), format!("{MASKED} {MASKED}"));
    }

    #[test]
    fn what_only_looks_like_a_token_stays() {
        for text in [
            "sk-fading-circle-spinner-dot",
            "task-0123456789abcdefghij",
            "ghp_short",
            "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
            "eyJhbGciOiJIUzI1NiJ9 alone",
            "maskghp_CANARYCANARYCANARYCANAR",
            "-----BEGIN CERTIFICATE-----\nx\n-----BEGIN é",
        ] {
            assert_eq!(mask().apply(text), text);
        }
    }
}
