//! Tokens that are recognised by their shape.

use std::ops::Range;

/// How many characters decide whether a token begins, so that no text takes long.
const PROBED: usize = 2048;

/// A token that is recognised by its prefix.
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

/// Where the tokens of a text are, in order.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < text.len() {
        match secret_at(text, at) {
            Some(end) => {
                found.push(at..end);
                at = end;
            }
            None => at += text[at..].chars().next().map_or(1, char::len_utf8),
        }
    }
    found
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
    use super::super::{MASKED, Mask};

    fn masked(text: &str) -> String {
        Mask::default().apply(text).into_owned()
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
            assert_eq!(masked(&format!("é=\"{token}\", ende")), format!("é=\"{MASKED}\", ende"), "{token}");
        }
        let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nCANARYKEY\n-----END OPENSSH PRIVATE KEY-----";
        assert_eq!(masked(&format!("1\t{key}\nrest")), format!("1\t{MASKED}\nrest"));
        assert_eq!(masked("a -----BEGIN RSA PRIVATE KEY-----\nMIIE"), format!("a {MASKED}"));
        assert_eq!(masked(&format!("{jwt} {jwt}")), format!("{MASKED} {MASKED}"));
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
            assert_eq!(masked(text), text);
        }
    }
}
