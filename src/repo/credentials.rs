//! The credentials that a configuration holds, in every form in which they stand there: a service that checks a repository
//! out for a job often leaves its token in it, and whoever can read a file can read that.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use percent_encoding::percent_decode_str;
use secrecy::SecretString;

use crate::domain::secret_names;

/// From this many bytes on, a name in front of an address without a password is taken for a token, if it holds a digit.
const LONG_USER: usize = 16;

/// The credentials of one entry of the configuration.
pub(super) fn of_entry(key: &str, value: &str) -> Vec<SecretString> {
    let mut found = in_addresses(key);
    found.extend(in_addresses(value));
    found.extend(passwords(value));
    found.extend(bearers(value));
    let name = key.rsplit_once('.').map_or(key, |(_, name)| name);
    if name == "extraheader" {
        found.extend(of_header(value));
    } else if (secret_names::is_secret(name) || name.ends_with("pass"))
        && name != "signingkey"
        && secret_names::is_telling(value)
    {
        found.push(value.to_owned());
    }
    found.into_iter().map(SecretString::from).collect()
}

/// The credentials before the host of each address in a text, as written and with `%xx` decoded.
#[must_use]
pub fn of_addresses(text: &str) -> Vec<SecretString> {
    in_addresses(text).into_iter().map(SecretString::from).collect()
}

fn in_addresses(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, mark) in text.match_indices("://") {
        let rest = &text[at + mark.len()..];
        let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '`' | '<' | '>' | '\\');
        let authority = &rest[..rest.find(ends).unwrap_or(rest.len())];
        let Some((who, _)) = authority.rsplit_once('@') else { continue };
        let decoded = percent_decode_str(who).decode_utf8_lossy().into_owned();
        for who in [who, &decoded] {
            found.extend(of_user(who));
        }
    }
    found
}

/// What is secret of `user:password`: the two together, and each alone where it is one.
fn of_user(who: &str) -> Vec<String> {
    let (user, password) = who.split_once(':').unwrap_or((who, ""));
    // what stands in the place of a password where the token is the name
    let token_is_user = matches!(password, "" | "x-oauth-basic" | "api_token");
    let mut found = Vec::new();
    if !password.is_empty() {
        found.push(who.to_owned());
    }
    if !token_is_user && secret_names::is_telling(password) {
        found.push(password.to_owned());
    }
    let long = user.len() >= LONG_USER && user.bytes().any(|byte| byte.is_ascii_digit());
    if token_is_user && long {
        found.push(user.to_owned());
    }
    found
}

/// A header's line, its value, and what stands in that in base64.
fn of_header(line: &str) -> Vec<String> {
    let value = line.split_once(':').map_or(line, |(_, value)| value).trim();
    let mut found = vec![line.to_owned(), value.to_owned()];
    for word in value.split_whitespace().filter(|word| secret_names::is_telling(word)) {
        found.push(word.to_owned());
        if let Some(decoded) = STANDARD.decode(word).ok().and_then(|bytes| String::from_utf8(bytes).ok()) {
            found.extend(of_user(&decoded));
            found.push(decoded);
        }
    }
    found
}

/// What follows the word of a scheme of authorization, wherever a header stands: in an alias, in a helper.
fn bearers(text: &str) -> Vec<String> {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '\\' | '`');
    let mut found = Vec::new();
    for scheme in ["bearer ", "basic ", "token "] {
        let lower = text.to_ascii_lowercase();
        for (at, word) in lower.match_indices(scheme) {
            let rest = &text[at + word.len()..];
            let value = &rest[..rest.find(ends).unwrap_or(rest.len())];
            if secret_names::is_telling(value) && value.bytes().any(|byte| byte.is_ascii_digit()) {
                found.extend(of_header(value));
            }
        }
    }
    found
}

/// What follows `password=`, as in a credential helper that is written into the configuration itself.
fn passwords(text: &str) -> Vec<String> {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '\\' | ')' | '}' | '|' | '&');
    text.match_indices("password=")
        .map(|(at, word)| &text[at + word.len()..])
        .map(|rest| rest.trim_start_matches(['"', '\'']))
        .map(|rest| rest[..rest.find(ends).unwrap_or(rest.len())].to_owned())
        .filter(|password| secret_names::is_telling(password))
        .collect()
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[track_caller]
    fn holds(key: &str, value: &str, wanted: &[&str]) {
        let mut found: Vec<String> =
            of_entry(key, value).iter().map(|secret| secret.expose_secret().to_owned()).collect();
        found.sort();
        found.dedup();
        let mut wanted = wanted.to_vec();
        wanted.sort_unstable();
        assert_eq!(found, wanted, "{key} = {value}");
    }

    #[test]
    fn each_form_of_a_credential_is_found_and_names_are_not() {
        let (basic, decoded) = ("eC1hY2Nlc3MtdG9rZW46Z2hzX0NBTkFSWQ==", "x-access-token:ghs_CANARY");
        let header = format!("AUTHORIZATION: basic {basic}");
        let value = format!("basic {basic}");
        holds("http.https://h.example/.extraheader", &header, &[&header, &value, basic, decoded, "ghs_CANARY"]);
        holds("http.extraheader", "PRIVATE-TOKEN: abc-123", &["PRIVATE-TOKEN: abc-123", "abc-123"]);
        let both = ["bot:pass%2fw0rd", "bot:pass/w0rd", "pass%2fw0rd", "pass/w0rd"];
        holds("remote.origin.url", "https://bot:pass%2fw0rd@h.example/a.git", &both);
        holds("url.https://bot:CANARY55@h.example/.insteadof", "https://h.example/", &["bot:CANARY55", "CANARY55"]);
        holds("http.proxy", "http://me:hunter2@gate:3128", &["me:hunter2"]);
        holds("remote.o.url", "https://0123456789abcdef01@h.example/a", &["0123456789abcdef01"]);
        holds(
            "remote.o.url",
            "https://0123456789abcdef01:x-oauth-basic@h/a",
            &["0123456789abcdef01:x-oauth-basic", "0123456789abcdef01"],
        );
        holds("credential.helper", "!f() { echo username=bot; echo \"password=CANARY-9\"; }; f", &["CANARY-9"]);
        holds("gitlab.token", "CANARY-10", &["CANARY-10"]);
        holds("sendemail.smtppass", "CANARY-11", &["CANARY-11"]);
        holds("alias.up", "!curl -H 'Authorization: Bearer CANARY-12' h.example", &["CANARY-12"]);
        for (key, value) in [
            ("remote.origin.url", "https://firstname.lastname@h.example/a.git"),
            ("remote.origin.url", "ssh://git@h.example/a.git"),
            ("remote.origin.url", "git@h.example:a.git"),
            ("user.signingkey", "0123456789ABCDEF"),
            ("core.editor", "vi"),
            ("alias.b", "!echo the bearer of news; basic rules"),
            ("branch.a.description", "see https://h.example/x@y"),
        ] {
            holds(key, value, &[]);
        }
    }
}
