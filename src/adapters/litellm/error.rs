//! What a proxy's errors mean: a class from status, `error.type` and text, in this order, since they contradict
//! each other (a 403 comes as `NotFoundError`, a 408 as `invalid_request_error`, a vendor's 529 as 500).
//!
//! Two shapes of body are known: `{"error": {message, type, code}}` on the normalized route and for all failures of
//! authentication and budget, `{"type": "error", "error": {type, message}}` on the native one; beside them
//! `{"detail": …}` and plain text. Texts quote the request and name other model groups: patterns look only at what
//! stands before that.

use std::{path::PathBuf, sync::LazyLock, time::Duration};

use regex::Regex;
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::{budget, header, json};
use crate::{domain::upstream::Trouble, ports::llm};

/// Why a [`Proxy`](super::Proxy) could not be made: all of it is wrong configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is not one of an HTTP server.
    #[error("cannot use the proxy's address {address:?}: {reason}")]
    Address {
        /// As it was given, without a name and password.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The token is empty, or holds characters that no header can carry.
    #[error("cannot send the proxy's token: it is empty or contains control characters such as line breaks")]
    Token,
    /// The file of a further certificate authority cannot be read.
    #[error("cannot read the certificate file {}: {source}", path.display())]
    CaFile {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file of a further certificate authority holds no certificate in PEM form.
    #[error("the certificate file {} contains no usable certificate in PEM format", path.display())]
    CaContent {
        /// Which.
        path: PathBuf,
    },
    /// The HTTP client could not be set up.
    #[error("cannot set up the HTTP client: {source}")]
    Client {
        /// Why.
        source: reqwest::Error,
    },
}

/// The longest message, in characters.
const MAX_MESSAGE: usize = 2000;

/// A failure without a wait and without usage.
pub(super) fn failure(trouble: Trouble, message: impl Into<String>) -> llm::Error {
    llm::Error { trouble, message: message.into(), retry_after: None, usage: None }
}

/// The failure of a recorded opaque part that cannot be spliced into a request.
#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
pub(super) fn not_recorded_so(error: serde_json::Error) -> llm::Error {
    failure(Trouble::BadRequest, format!("an opaque part in the log is not the JSON object it was: {error}"))
}

/// `error` as it may leave the adapter: one or two lines, bounded, and without the token.
pub(super) fn cleaned(error: llm::Error, token: &str) -> llm::Error {
    let message = if token.len() < 4 { error.message } else { error.message.replace(token, "***") };
    let message = if message.chars().count() > MAX_MESSAGE {
        message.chars().take(MAX_MESSAGE - 1).chain(['…']).collect()
    } else {
        message
    };
    llm::Error { message, ..error }
}

/// An error as it stands in a body or an event.
#[derive(Default, Debug)]
struct Wire {
    kind: String,
    code: Option<u16>,
    text: String,
}

/// The failure that a response of another status than 2xx tells of. `url` is what was asked.
pub(super) fn from_response(status: u16, headers: &HeaderMap, body: &str, url: &str) -> llm::Error {
    if (300..400).contains(&status) {
        let to = header(headers, "location").unwrap_or("nowhere");
        return failure(Trouble::BadAddress, format!("{url} redirects to {}: set that address", readable(to)));
    }
    let parsed = json::parse::<Value>(body).ok();
    let wire = parsed.as_ref().map_or_else(|| Wire { text: body.to_owned(), ..Wire::default() }, wire);
    if is_no_such_path(status, parsed.as_ref()) {
        return failure(Trouble::BadAddress, format!("HTTP {status} at {url}: {}", readable(&wire.text)));
    }
    let trouble = classify(status, &wire.kind, &wire.text);
    let told = match readable(&wire.text) {
        text if text.is_empty() => format!("HTTP {status} at {url}, without a message"),
        text if is_vendors_key(status, &wire) => {
            format!(
                "HTTP {status}: the vendor refuses the proxy's own key, which the proxy's operator must renew: {text}"
            )
        }
        text if trouble == Trouble::BudgetGone => format!("HTTP {status}: {}: {text}", budget::used_up(&text)),
        text => format!("HTTP {status}: {text}"),
    };
    let retry_after = retry_after(headers).or_else(|| told_in_text(trouble, &wire.text));
    llm::Error { retry_after, ..failure(trouble, told) }
}

/// The failure that an error event under status 200 tells of, if `event` is one.
pub(super) fn from_event(event: &Value) -> Option<llm::Error> {
    event.get("error").filter(|error| !json::is_blank(error))?;
    let wire = wire(event);
    let status = wire.code.filter(|code| (400..600).contains(code)).unwrap_or(match wire.kind.as_str() {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" | "throttling_error" => 429,
        _ => 500, // overloaded_error, api_error, timeout_error and what is to come
    });
    let trouble = classify(status, &wire.kind, &wire.text);
    Some(failure(trouble, format!("error in the stream: {}", readable(&wire.text))))
}

fn wire(body: &Value) -> Wire {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let error = body.get("error").or_else(|| body.get("detail")).unwrap_or(body);
    match error {
        Value::Object(members) => Wire {
            kind: members.get("type").and_then(Value::as_str).unwrap_or_default().to_owned(),
            code: members.get("code").and_then(json::whole_number).and_then(|code| u16::try_from(code).ok()),
            text: members.get("message").or_else(|| members.get("error")).map_or_else(|| text(error), text),
        },
        other => Wire { text: text(other), ..Wire::default() },
    }
}

/// `{"detail": "Not Found"}` and "Method Not Allowed" come from the web server in front of all models, and a 404 that
/// is no JSON comes from some other server: the address is wrong.
fn is_no_such_path(status: u16, body: Option<&Value>) -> bool {
    matches!(status, 404 | 405) && body.is_none_or(|body| body.get("error").is_none())
}

fn is_vendors_key(status: u16, wire: &Wire) -> bool {
    status == 401 && (wire.kind == "authentication_error" || wire.text.contains("litellm.AuthenticationError"))
}

/// Wordings of a window that is too small: the proxy's own, `OpenAI`, vLLM, llama.cpp, Anthropic, Bedrock, Google, Mistral.
const OVERFLOW: [&str; 14] = [
    "contextwindowexceedederror",
    "context window exceeded",
    "context_length_exceeded",
    "maximum context length",
    "maximum model length",
    "exceeds the available context size",
    "exceed context limit",
    "prompt is too long",
    "input is too long",
    "request_too_large",
    "request too large",
    "exceeds the maximum number of tokens",
    "too large for model with",
    "exceeds the model's context",
];

/// Budgets: the proxy's of provider and deployment, then `OpenAI`'s and Anthropic's.
const BUDGET: [&str; 10] = [
    "crossed budget:",
    "budget has been exceeded!",
    "exceededbudget:",
    "exceeded budget for",
    "insufficient_quota",
    "exceeded your current quota",
    "credit balance is too low",
    "billing_hard_limit_reached",
    "insufficient balance",
    "insufficient credit",
];

const POLICY: [&str; 5] = [
    "contentpolicyviolationerror",
    "content management policy",
    "content filtering policy",
    "content_policy_violation",
    "code': 'content_filter",
];

const NO_TOOLS: [&str; 7] = [
    "tool choice requires --enable-auto-tool-choice",
    "does not support tools",
    "does not support tool use",
    "does not support function calling",
    "support tool use",
    "parameters: ['tools'",
    "tools are not supported",
];

const NO_TOOL_CHOICE: [&str; 9] = [
    "support",
    "not allowed",
    "may not be",
    "not permitted",
    "must be",
    "invalid",
    "unrecognized",
    "incompatible",
    "unexpected",
];

/// The class of an error by status, then type, then text.
pub(super) fn classify(status: u16, kind: &str, text: &str) -> Trouble {
    let text = own_words(text).to_lowercase();
    let says = |patterns: &[&str]| patterns.iter().any(|pattern| text.contains(pattern));
    // What no status settles: budgets came as 400, 422 and 429, by version.
    let budget = ["budget_exceeded", "insufficient_quota", "billing_hard_limit_reached"];
    if status == 402 || budget.contains(&kind) || says(&BUDGET) || is_used_up(&text) {
        return Trouble::BudgetGone;
    }
    match status {
        429 => Trouble::RateLimited,
        401 if kind.ends_with("model_access_denied") => Trouble::ModelDenied,
        // nothing that a person here can set, and nothing that waiting mends
        401 if kind == "authentication_error" || text.contains("litellm.authenticationerror") => {
            Trouble::VendorKeyRefused
        }
        // a pause can be taken back, a discard cannot: where it may be about money the task rests
        403 if sounds_of_money(&text) => Trouble::BudgetGone,
        // the key's models, or the proxy's account at the vendor: as little the task's fault as an unknown model
        403 if kind.ends_with("access_denied") || kind == "permission_error" || text.contains("model") => {
            Trouble::ModelDenied
        }
        401 | 403 | 407 => Trouble::KeyRefused,
        _ if kind == "no_db_connection" => Trouble::KeyRefused,
        // some vendors' overflow arrives as 500
        _ if status == 413 || says(&OVERFLOW) => Trouble::ContextOverflow,
        408 | 409 => Trouble::Overloaded,
        404 if says(&NO_TOOLS) => Trouble::ToolsUnsupported,
        404 => Trouble::ModelUnknown,
        400..=499 => {
            if says(&["invalid model name passed in", "no healthy deployments for this model"]) {
                Trouble::ModelUnknown
            } else if says(&POLICY) {
                Trouble::Policy
            } else if says(&NO_TOOLS) {
                Trouble::ToolsUnsupported
            } else if says(&["tool_choice", "tool choice"]) && says(&NO_TOOL_CHOICE) {
                Trouble::ToolChoiceUnsupported
            } else if sounds_of_money(&text) {
                Trouble::BudgetGone
            } else {
                Trouble::BadRequest
            }
        }
        // llama.cpp's server, started without its templates for tools
        _ if says(&["--jinja flag"]) => Trouble::ServerSetUp,
        // what the vendors' client libraries in the proxy say where they reach no one
        _ if text.trim_end().ends_with("connection error.") => Trouble::Unreachable,
        _ => Trouble::Overloaded,
    }
}

/// Words that an error of the request itself does not use; a budget of thinking is no money.
fn sounds_of_money(text: &str) -> bool {
    static PATTERN: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\b(billing|budget|payment|balance|credits?|spending limit|quota)\b").ok());
    let text = text.replace("thinking budget", "").replace("reasoning budget", "");
    PATTERN.as_ref().is_some_and(|pattern| pattern.is_match(&text))
}

/// "Your monthly budget is exhausted", in whatever words between.
fn is_used_up(text: &str) -> bool {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let (what, how) =
            ("budget|credits?|balance|spend(ing)? limit|billing limit", "exceeded|exhausted|used up|depleted");
        Regex::new(&format!(r"\b({what})\b[^.!?\n]{{0,80}}\b({how})\b|\b({how})\b[^.!?\n]{{0,40}}\b({what})\b")).ok()
    });
    PATTERN.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

/// The text before the proxy quotes the request or explains its fallbacks.
fn own_words(text: &str) -> &str {
    let ends = ["\n\nLiteLLM:", "\nReceived Messages=", "Received Model Group=", "\nmodel=", "Arguments: "];
    let end = ends.iter().filter_map(|end| text.find(end)).min().unwrap_or(text.len());
    text.get(..end).unwrap_or(text)
}

/// A text for people: the proxy's own words on one line, a vendor's JSON unwrapped, markup taken out.
pub(super) fn readable(text: &str) -> String {
    let own = own_words(text);
    let unwrapped = own.split_once('{').and_then(|(before, rest)| {
        // a streamed error holds Python's b'…' with its quotes escaped
        let rest = format!("{{{}", rest.replace("\\'", "'"));
        let vendor = serde_json::Deserializer::from_str(&rest).into_iter::<Value>().next()?.ok()?;
        let said = vendor.get("error")?.get("message")?.as_str()?.to_owned();
        Some(format!("{} {said}", before.trim_end_matches("b'").trim_end()))
    });
    let told = unwrapped.as_deref().unwrap_or(own);
    let plain = if is_markup(told) { without_tags(told) } else { told.to_owned() };
    let printable = plain.replace(char::is_control, " ");
    printable.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_MESSAGE).collect()
}

fn is_markup(text: &str) -> bool {
    ["</", "<!doctype", "<html"].iter().any(|mark| text.to_lowercase().contains(mark))
}

fn without_tags(text: &str) -> String {
    let mut in_tag = false;
    let outside = |c: char| {
        let shown = !in_tag && c != '<';
        in_tag = if in_tag { c != '>' } else { c == '<' };
        // a tag parts words
        if shown { c } else { ' ' }
    };
    text.chars().map(outside).collect()
}

/// The wait that headers ask for, the proxy's own before the vendor's: seconds, or a date, which is taken relative
/// to the response's own `date`.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let date = |text: &str| jiff::fmt::rfc2822::parse(text).ok().map(|date| date.timestamp());
    ["retry-after", "llm_provider-retry-after"].iter().filter_map(|name| header(headers, name)).find_map(|told| {
        if let Ok(seconds) = told.parse::<f64>() {
            return Duration::try_from_secs_f64(seconds).ok();
        }
        let wait = date(told)?.duration_since(date(header(headers, "date")?)?);
        Duration::try_from(wait).ok()
    })
}

/// "Try again in 5 seconds": all that the native route says of a cooldown.
fn told_in_text(trouble: Trouble, text: &str) -> Option<Duration> {
    if trouble != Trouble::RateLimited {
        return None;
    }
    let (_, after) = text.split_once("Try again in ")?;
    let (seconds, _) = after.split_once(" seconds")?;
    Duration::try_from_secs_f64(seconds.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn the_wait_is_read_in_seconds_and_as_a_date() {
        for (given, wanted) in [
            (vec![("retry-after", "7"), ("llm_provider-retry-after", "9")], Some(7)),
            (vec![("llm_provider-retry-after", "9")], Some(9)),
            (
                vec![("retry-after", "Sun, 29 Nov 2026 18:01:00 GMT"), ("date", "Sun, 29 Nov 2026 18:00:00 GMT")],
                Some(60),
            ),
            (vec![("retry-after", "Sun, 29 Nov 2026 17:00:00 GMT"), ("date", "Sun, 29 Nov 2026 18:00:00 GMT")], None),
            (vec![("retry-after", "-1")], None),
            (vec![("retry-after", "soon")], None),
            (vec![], None),
        ] {
            assert_eq!(retry_after(&headers(&given)), wanted.map(Duration::from_secs), "{given:?}");
        }
    }

    #[test]
    fn quoted_requests_and_configuration_decide_nothing() {
        let quoting = "litellm.BadRequestError: nope\nmodel=x. content_policy_fallback=None.\nReceived Messages=\
                       [{'content': 'credit balance is too low, maximum context length'}]";
        assert_eq!(classify(400, "invalid_request_error", quoting), Trouble::BadRequest);
    }

    #[test]
    fn wordings_that_no_recording_holds() {
        for (status, kind, text, wanted) in [
            (400, "", "litellm.UnsupportedParamsError: x does not support parameters: ['tool_choice'], for", {
                Trouble::ToolChoiceUnsupported
            }),
            (400, "", "litellm.UnsupportedParamsError: x does not support parameters: ['tools', 'tool_choice']", {
                Trouble::ToolsUnsupported
            }),
            (400, "", "Thinking may not be enabled when tool_choice forces tool use.", Trouble::ToolChoiceUnsupported),
            (404, "", "No endpoints found that support tool use.", Trouble::ToolsUnsupported),
            (400, "", "tools[0].function.parameters: invalid schema", Trouble::BadRequest),
            (429, "", "Your monthly budget may be reached soon", Trouble::RateLimited),
            (500, "", "the request exceeds the available context size. try increasing it", Trouble::ContextOverflow),
            (401, "", "", Trouble::KeyRefused),
            (418, "", "", Trouble::BadRequest),
            (529, "overloaded_error", "Overloaded", Trouble::Overloaded),
            (402, "", "Payment Required", Trouble::BudgetGone),
            (402, "", "", Trouble::BudgetGone),
            (400, "billing_hard_limit_reached", "no", Trouble::BudgetGone),
            (400, "", "Insufficient Balance", Trouble::BudgetGone),
            (403, "", "Your monthly budget is exhausted for this model", Trouble::BudgetGone),
            (403, "", "Your account balance does not allow this model", Trouble::BudgetGone),
            (400, "", "please update your billing details", Trouble::BudgetGone),
            (429, "", "Your team has exceeded its monthly budget", Trouble::BudgetGone),
            (429, "", "Quota for requests per minute: slow down", Trouble::RateLimited),
            (400, "", "`max_tokens` must be greater than `thinking.budget_tokens`", Trouble::BadRequest),
            (400, "", "the thinking budget must be at least 1024", Trouble::BadRequest),
            (
                429,
                "",
                "Quota exceeded for quota metric 'requests' and limit 'requests per minute'",
                Trouble::RateLimited,
            ),
            (400, "", "temperature must be between 0 and 2", Trouble::BadRequest),
            (401, "authentication_error", "litellm.AuthenticationError: invalid x-api-key", Trouble::VendorKeyRefused),
            (409, "", "Conflict", Trouble::Overloaded),
            (500, "", "litellm.APIError: tools param requires --jinja flag", Trouble::ServerSetUp),
            (500, "", "litellm.InternalServerError: OpenAIException - Connection error.", Trouble::Unreachable),
        ] {
            assert_eq!(classify(status, kind, text), wanted, "{text}");
        }
    }

    #[test]
    fn texts_become_readable() {
        for (given, wanted) in [
            ("litellm.BadGatewayError: <html><body><h1>502 Bad Gateway</h1></body></html>\n\nLiteLLM: model group", {
                "litellm.BadGatewayError: 502 Bad Gateway"
            }),
            (r#"A - b'{"error": {"message": "it\'s full"}}'"#, "A - it's full"),
            ("1 < 2 and {3 > 2", "1 < 2 and {3 > 2"),
        ] {
            assert_eq!(readable(given), wanted);
        }
    }

    #[test]
    fn no_message_holds_the_token_or_is_endless() {
        let error = cleaned(failure(Trouble::BadRequest, "key sk-secret-1 ".repeat(1000)), "sk-secret-1");
        assert!(!error.message.contains("sk-secret-1"));
        assert_eq!(error.message.chars().count(), MAX_MESSAGE);
    }
}
