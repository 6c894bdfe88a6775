//! Reading a reply's body: server-sent events, or one JSON text where a stream was asked for.
//!
//! Three guarantees hold for both routes. Time limits apply to *content*: a ping or a comment is not progress. A reply is
//! complete or an error. And no body, however long or broken, does more harm than an error.

use std::{error::Error as StdError, io::Cursor, time::Duration};

use futures_util::{Stream, StreamExt as _, TryStreamExt as _, pin_mut, stream};
use sse_stream::SseByteStream;
use tokio::time::{Instant, timeout, timeout_at};

use super::{
    connect::innermost,
    error::{failure, readable},
};
use crate::{
    domain::{message::Reply, model::Usage, upstream::Trouble},
    ports::llm::{Deltas, Error},
};

/// More than any model writes.
const MAX_BODY: usize = 64 << 20;
/// How long to wait for the end of a finished stream, so that the connection can be reused.
const LINGER: Duration = Duration::from_millis(200);

/// How long a reply may be silent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// From sending the request to the first content.
    pub(super) first_byte: Duration,
    /// From one content to the next.
    pub(super) idle: Duration,
}

/// The meaning of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    /// A ping, a frame without content.
    Quiet,
    /// Content.
    Content,
    /// The reply is complete.
    Whole,
    /// The reply repeats itself endlessly and is cut here.
    Endless,
}

/// A reply assembled from a route's events.
pub(super) trait Assembly {
    /// Takes the data of one event.
    fn event(&mut self, data: &str, deltas: &Deltas) -> Result<Progress, Error>;
    /// Takes a complete JSON text that came instead of a stream.
    fn whole(&mut self, text: &str, deltas: &Deltas) -> Result<(), Error>;
    /// Tokens known so far, for a reply that will not become whole; output counted at least by what came.
    fn usage_so_far(&self) -> Option<Usage>;
    /// The reply, if it is whole, or was stopped.
    fn finish(self) -> Result<Reply, Error>;
}

/// Reads `body` to the end of the reply. `started` is when the request was sent.
pub(super) async fn read<A, S, B, E>(
    body: S,
    limits: Limits,
    started: Instant,
    mut assembly: A,
    deltas: &Deltas,
) -> Result<Reply, Error>
where
    A: Assembly,
    S: Stream<Item = Result<B, E>>,
    B: AsRef<[u8]>,
    E: StdError + 'static,
{
    match fill(body, limits, started, &mut assembly, deltas).await {
        Ok(()) => assembly.finish(),
        Err(error) => Err(Error { usage: error.usage.or_else(|| assembly.usage_so_far()), ..error }),
    }
}

async fn fill<A, S, B, E>(
    body: S,
    limits: Limits,
    started: Instant,
    assembly: &mut A,
    deltas: &Deltas,
) -> Result<(), Error>
where
    A: Assembly,
    S: Stream<Item = Result<B, E>>,
    B: AsRef<[u8]>,
    E: StdError + 'static,
{
    let mut size = 0usize;
    let body = body.map(move |chunk| match chunk {
        Ok(bytes) => {
            size = size.saturating_add(bytes.as_ref().len());
            if size > MAX_BODY {
                return Err(std::io::Error::other("the reply is longer than 64 MiB"));
            }
            Ok(Cursor::new(bytes.as_ref().to_vec()))
        }
        Err(error) => Err(std::io::Error::other(innermost(&error).to_string())),
    });
    pin_mut!(body);

    // The first byte tells what this is; the content type often does not.
    let first_deadline = started + limits.first_byte;
    let mut head = Vec::new();
    let first = loop {
        if let Some(first) = first_visible(&head) {
            break first;
        }
        match timeout_at(first_deadline, body.next()).await {
            Err(_) => return Err(silent(limits.first_byte)),
            Ok(Some(Ok(chunk))) => head.extend_from_slice(chunk.get_ref()),
            Ok(Some(Err(error))) => return Err(failure(Trouble::Overloaded, error.to_string())),
            Ok(None) => return Err(failure(Trouble::Overloaded, "the proxy answered 200 with an empty body")),
        }
    };
    if matches!(first, b'{' | b'[' | b'<') {
        loop {
            match timeout(limits.idle, body.next()).await {
                Err(_) => return Err(silent(limits.idle)),
                Ok(Some(Ok(chunk))) => head.extend_from_slice(chunk.get_ref()),
                Ok(Some(Err(error))) => return Err(failure(Trouble::Cut, error.to_string())),
                Ok(None) => break,
            }
        }
        let text = String::from_utf8_lossy(&head);
        let text = text.trim_start_matches('\u{feff}').trim();
        return if first == b'{' { assembly.whole(text, deltas) } else { Err(unreadable(text)) };
    }

    // A last event without its empty line is complete if its JSON is.
    let end = stream::once(async { Ok(Cursor::new(b"\n\n".to_vec())) });
    let excerpt = String::from_utf8_lossy(head.get(..head.len().min(2000)).unwrap_or_default()).into_owned();
    let events =
        SseByteStream::new(stream::once(async { Ok(Cursor::new(head)) }).chain(body).chain(end)).map_err(|e| {
            // the transport's own words, without the parser's
            StdError::source(&e).map_or_else(|| e.to_string(), ToString::to_string)
        });
    pin_mut!(events);
    let (mut deadline, mut limit) = (first_deadline, limits.first_byte);
    let (mut any, mut content) = (false, false);
    loop {
        let event = match timeout_at(deadline, events.next()).await {
            Err(_) => return Err(silent(limit)),
            Ok(None) if any => return Err(failure(Trouble::Cut, "the stream ended before the reply was whole")),
            Ok(None) => return Err(unreadable(&excerpt)),
            Ok(Some(Err(error))) => {
                let trouble = if any { Trouble::Cut } else { Trouble::Overloaded };
                return Err(failure(trouble, format!("the stream broke: {error}")));
            }
            Ok(Some(Ok(event))) => event,
        };
        let Some(data) = event.data.filter(|data| !data.trim().is_empty()) else { continue };
        any = true;
        match assembly.event(&data, deltas) {
            Ok(Progress::Quiet) => {}
            Ok(Progress::Content) => {
                content = true;
                limit = limits.idle;
                deadline = Instant::now() + limit;
            }
            Ok(Progress::Whole) => break,
            // dropping the body ends the request
            Ok(Progress::Endless) => return Ok(()),
            Err(error) => return Err(after(content, error)),
        }
    }
    // More may follow the mark of the end, but nothing that counts.
    let _ = timeout(LINGER, async { while events.next().await.is_some() {} }).await;
    Ok(())
}

/// An error in the middle of a reply: one that could be retried counts as a cut, and is charged as that.
fn after(content: bool, error: Error) -> Error {
    match error.trouble {
        Trouble::Unreachable | Trouble::Timeout | Trouble::Overloaded | Trouble::RateLimited if content => {
            Error { trouble: Trouble::Cut, ..error }
        }
        Trouble::Unreachable
        | Trouble::Timeout
        | Trouble::Overloaded
        | Trouble::RateLimited
        | Trouble::Cut
        | Trouble::BudgetGone
        | Trouble::KeyRefused
        | Trouble::VendorKeyRefused
        | Trouble::ServerSetUp
        | Trouble::ModelDenied
        | Trouble::ModelUnknown
        | Trouble::ContextOverflow
        | Trouble::ToolChoiceUnsupported
        | Trouble::ToolsUnsupported
        | Trouble::FallbackRefused
        | Trouble::Policy
        | Trouble::BadRequest
        | Trouble::BadAddress
        | Trouble::BadCertificate
        | Trouble::Stopped => error,
    }
}

fn first_visible(head: &[u8]) -> Option<u8> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    text.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

fn silent(limit: Duration) -> Error {
    failure(Trouble::Timeout, format!("no content for {} s", limit.as_secs_f64()))
}

/// A 200 without a reply.
pub(super) fn unreadable(text: &str) -> Error {
    failure(Trouble::Overloaded, format!("the proxy answered 200 with something unreadable: {}", readable(text)))
}

/// The text of a refusal.
pub(super) fn refusal_text(refusal: String, reply: &Reply, reason: &str) -> String {
    [refusal, reply.text()].into_iter().find(|text| !text.trim().is_empty()).unwrap_or_else(|| reason.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;
    use crate::{
        adapters::litellm::{chat, conversation::empty, messages},
        domain::{
            message::Stop,
            model::{AnsweredBy, Route},
        },
        ports::llm::Request,
    };

    const LIMITS: Limits = Limits { first_byte: Duration::from_mins(1), idle: Duration::from_mins(1) };

    fn request() -> Request {
        empty(Route::Normalized)
    }

    fn answered_by() -> AnsweredBy {
        AnsweredBy { alias: "alias".to_owned(), backing: "backing".to_owned(), fallback: false, prices: None }
    }

    async fn in_chunks<A: Assembly>(body: &[u8], size: usize, assembly: A) -> Result<Reply, Error> {
        let chunks = body.chunks(size).map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec()));
        let (deltas, _shown) = unbounded_channel();
        read(stream::iter(chunks), LIMITS, Instant::now(), assembly, &deltas).await
    }

    async fn normalized(body: &str) -> Result<Reply, Error> {
        in_chunks(body.as_bytes(), 7, chat::Reading::new(&request(), Some(answered_by()))).await
    }

    async fn native(body: &str) -> Result<Reply, Error> {
        in_chunks(body.as_bytes(), 7, messages::Reading::new(&request(), Some(answered_by()))).await
    }

    /// A normalized stream of these `choices[0]` objects.
    fn choices(choices: &[&str]) -> String {
        let events = choices.iter().map(|choice| format!("data: {{\"choices\":[{choice}]}}\n\n"));
        events.chain(["data: [DONE]\n\n".to_owned()]).collect()
    }

    /// A normalized stream with these `tool_calls` fragments, one an event.
    fn fragments(fragments: &[&str], finish: &str) -> String {
        let mut all: Vec<String> =
            fragments.iter().map(|fragment| format!(r#"{{"delta":{{"tool_calls":[{fragment}]}}}}"#)).collect();
        all.push(format!(r#"{{"delta":{{}},"finish_reason":"{finish}"}}"#));
        choices(&all.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn calls(reply: &Reply) -> Vec<(String, Option<String>, String)> {
        reply.calls().map(|call| (call.name.clone(), call.vendor_id.clone(), call.arguments.clone())).collect()
    }

    #[tokio::test]
    async fn line_endings_marks_and_chunks_make_no_difference() {
        let plain = choices(&[r#"{"delta":{"content":"häns 🔥"}}"#, r#"{"delta":{},"finish_reason":"stop"}"#]);
        let variants = [
            plain.clone(),
            plain.replace('\n', "\r\n"),
            format!("\u{feff}{plain}"),
            format!("\n\n: a comment\n\n{plain}"),
            plain.trim_end().to_owned(),
        ];
        for variant in &variants {
            for size in [1, 2, 3, 5, 1 << 20] {
                let reading = chat::Reading::new(&request(), Some(answered_by()));
                let reply = in_chunks(variant.as_bytes(), size, reading).await.unwrap();
                assert_eq!((reply.text().as_str(), reply.stop), ("häns 🔥", Stop::End), "{variant:?} by {size}");
            }
        }
    }

    #[tokio::test]
    async fn a_new_id_at_the_same_index_starts_a_new_call() {
        let body = fragments(
            &[
                r#"{"index":0,"id":"a","function":{"name":"one","arguments":"{\"x\":"}}"#,
                r#"{"index":0,"function":{"arguments":"1}"}}"#,
                r#"{"index":0,"id":"b","function":{"name":"two","arguments":"{}"}}"#,
                r#"{"index":0,"id":"b","function":{"name":"two","arguments":""}}"#,
                r#"{"index":0,"id":"old","function":{"name":"three","arguments":{"y":2}}}"#,
            ],
            "tool_calls",
        );
        let wanted = [("one", Some("a"), r#"{"x":1}"#), ("two", Some("b"), "{}"), ("three", None, r#"{"y":2}"#)];
        let wanted: Vec<_> =
            wanted.map(|(name, id, text)| (name.to_owned(), id.map(str::to_owned), text.to_owned())).into();
        assert_eq!(calls(&normalized(&body).await.unwrap()), wanted);
    }

    #[tokio::test]
    async fn calls_without_any_id_are_told_apart_by_their_names() {
        let body = fragments(
            &[
                r#"{"index":0,"function":{"name":"one","arguments":"{\"x\":"}}"#,
                r#"{"index":0,"function":{"name":"one","arguments":"1}"}}"#,
                r#"{"index":0,"function":{"name":"one","arguments":"{\"x\":2}"}}"#,
            ],
            "tool_calls",
        );
        let reply = normalized(&body).await.unwrap();
        assert_eq!(reply.calls().map(|call| call.arguments.as_str()).collect::<Vec<_>>(), [r#"{"x":1}"#, r#"{"x":2}"#]);
    }

    #[tokio::test]
    async fn members_of_a_vendor_are_kept_with_their_call() {
        let body = fragments(
            &[r#"{"index":0,"id":"a","type":"function","function":{"name":"one","arguments":"{}","strict":null},
                 "provider_specific_fields":{"thought_signature":"c2ln"}}"#
                .replace('\n', "")
                .as_str()],
            "tool_calls",
        );
        let reply = normalized(&body).await.unwrap();
        let vendor = reply.calls().next().unwrap().vendor.clone();
        assert_eq!(vendor.as_deref(), Some(r#"{"provider_specific_fields":{"thought_signature":"c2ln"}}"#));
    }

    #[tokio::test]
    async fn half_a_surrogate_pair_spoils_nothing() {
        let body = choices(&[r#"{"delta":{"content":"a \ud83d b"}}"#, r#"{"delta":{},"finish_reason":"stop"}"#]);
        assert_eq!(normalized(&body).await.unwrap().text(), "a \u{fffd} b");
        let call = fragments(
            &[
                r#"{"index":0,"id":"a","function":{"name":"one","arguments":"{\"x\":\"\\ud8"}}"#,
                r#"{"index":0,"function":{"arguments":"3d\"}"}}"#,
            ],
            "tool_calls",
        );
        assert_eq!(normalized(&call).await.unwrap().calls().next().unwrap().arguments, r#"{"x":"\ufffd"}"#);
    }

    #[tokio::test]
    async fn what_is_not_whole_is_cut_and_what_is_no_reply_is_overload() {
        let text = r#"{"delta":{"content":"Hello"}}"#;
        let end = r#"{"delta":{},"finish_reason":"stop"}"#;
        let call = r#"{"index":0,"id":"a","function":{"name":"one","arguments":"{\"x\":1}"}}"#;
        let counted = |details: &str| {
            let usage = format!(r#"{{"prompt_tokens":9,"completion_tokens":5,{details}}}"#);
            format!("data: {{\"choices\":[],\"usage\":{usage}}}\n\ndata: [DONE]")
        };
        let estimated = counted(r#""completion_tokens_details":{"reasoning_tokens":0,"text_tokens":5}"#);
        let told =
            counted(r#""completion_tokens_details":{"text_tokens":5},"prompt_tokens_details":{"cached_tokens":0}"#);
        for (body, wanted) in [
            (choices(&[text, end]).replace("data: [DONE]\n\n", ""), Trouble::Cut),
            (choices(&[text]), Trouble::Cut),
            (choices(&[text, end]) + "never read", Trouble::Stopped), // whole
            // whole calls under a stop, whoever has counted the tokens
            (fragments(&[call], "stop"), Trouble::Stopped),
            (fragments(&[call], "stop").replace("data: [DONE]", &told), Trouble::Stopped),
            (fragments(&[call], "stop").replace("data: [DONE]", &estimated), Trouble::Stopped),
            (fragments(&[call], "end_turn"), Trouble::Stopped),
            (fragments(&[call], "tool_calls").replace("data: [DONE]", &estimated), Trouble::Stopped),
            (fragments(&[&call.replace(r#"{\"x\":1}"#, "")], "stop"), Trouble::Cut),
            (fragments(&[&call.replace(r#"{\"x\":1}"#, "{}")], "stop"), Trouble::Cut),
            (fragments(&[&call.replace(r#"{\"x\":1}"#, "[1]")], "stop"), Trouble::Cut),
            (fragments(&[&call.replace("1}", "1")], "eos"), Trouble::Cut),
            (choices(&[text, r#"{"delta":{},"finish_reason":"error"}"#]), Trouble::Cut),
            (format!("data: {{\"choices\":[{text}]}}\n\ndata: {{\"choi"), Trouble::Cut),
            (String::new(), Trouble::Overloaded),
            (" \n\n".to_owned(), Trouble::Overloaded),
            ("please log in".to_owned(), Trouble::Overloaded),
            ("<!DOCTYPE html><h1>Hello</h1>".to_owned(), Trouble::Overloaded),
            ("{\"choices\":[]}".to_owned(), Trouble::Overloaded),
            ("{\"choices\":[{\"mess".to_owned(), Trouble::Overloaded),
            ("[]".to_owned(), Trouble::Overloaded),
            ("data: {\"choices\":[]}\n\ndata: [DONE]\n\n".to_owned(), Trouble::Overloaded),
            ("data: nonsense\n\n".to_owned(), Trouble::Overloaded),
            ("data: {\"error\":{\"message\":\"m\",\"code\":\"429\"}}\n\n".to_owned(), Trouble::RateLimited),
            ("{\"error\":\"prompt is too long\"}".to_owned(), Trouble::ContextOverflow),
        ] {
            let trouble = normalized(&body).await.map_or_else(|error| error.trouble, |_| Trouble::Stopped);
            assert_eq!(trouble, wanted, "{body}");
        }
        let start = "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9}}}\n\n";
        let error = "data: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"m\"}}\n\n";
        let block = "data: {\"type\":\"content_block_start\",\"index\":0,\
                     \"content_block\":{\"type\":\"text\",\"text\":\"Hello\"}}\n\n";
        let stop = "data: {\"type\":\"message_stop\"}\n\n";
        for (body, wanted) in [
            (format!("{start}{block}"), Trouble::Cut),
            (format!("{start}{block}{stop}"), Trouble::Cut),
            (format!("{start}{error}"), Trouble::RateLimited),
            (format!("{start}{block}{error}"), Trouble::Cut),
            (format!("data: {{\"type\":\"ping\"}}\n\n{stop}"), Trouble::Overloaded),
            ("{\"type\":\"message\"}".to_owned(), Trouble::Overloaded),
        ] {
            assert_eq!(native(&body).await.unwrap_err().trouble, wanted, "{body}");
        }
    }

    #[tokio::test]
    async fn no_beginning_of_a_reply_passes_for_the_reply() {
        let chat = fragments(
            &[
                r#"{"index":0,"id":"a","function":{"name":"one","arguments":"{}"}}"#,
                r#"{"index":1,"id":"b","function":{"name":"two","arguments":"{\"x\":1}"}}"#,
            ],
            "tool_calls",
        );
        let tool = r#"{"type":"tool_use","id":"a","name":"one","input":{}}"#;
        let events = [
            r#"{"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}"#.to_owned(),
            format!(r#"{{"type":"content_block_start","index":0,"content_block":{tool}}}"#),
            r#"{"type":"content_block_delta","index":0,"delta":{"partial_json":"{\"x\":1}"}}"#.to_owned(),
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}"#.to_owned(),
            r#"{"type":"message_stop"}"#.to_owned(),
        ];
        let messages: Vec<String> = events.iter().map(|event| format!("event: any\ndata: {event}\n\n")).collect();
        let messages = messages.concat();
        assert!(normalized(&chat).await.is_ok() && native(&messages).await.is_ok());
        for (body, is_native) in [(&chat, false), (&messages, true)] {
            for end in 0..body.trim_end().len() {
                let cut = if is_native { native(&body[..end]).await } else { normalized(&body[..end]).await };
                let trouble = cut.expect_err(&body[..end]).trouble;
                assert!(matches!(trouble, Trouble::Cut | Trouble::Overloaded), "{trouble}: {}", &body[..end]);
            }
        }
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let names = "type|index|delta|error|code|message|usage|choices|content|content_block|tool_calls|function|id|\
                     name|arguments|input|stop_reason|finish_reason|partial_json|thinking|thinking_blocks|signature|\
                     provider_specific_fields|prompt_tokens|output_tokens|input_tokens|text";
        let words = "text|thinking|tool_use|message_start|content_block_start|content_block_delta|message_delta|stop|\
                     tool_calls|[^a]{0,3}";
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            words.prop_map(Into::into),
        ];
        leaf.prop_recursive(5, 40, 6, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Into::into),
                proptest::collection::hash_map(names, inner, 0..6)
                    .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_event_is_too_strange(events in proptest::collection::vec(any_json(), 0..6), last in ".{0,40}") {
            let mut events_sent: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
            events_sent.push(last);
            let body = events_sent.concat();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async {
                // what they are read as does not matter, and neither ends in a panic
                let _ = normalized(&body).await;
                let _ = native(&body).await;
                for event in &events {
                    let _ = normalized(&event.to_string()).await;
                    let _ = native(&event.to_string()).await;
                }
            });
        }
    }

    #[tokio::test]
    async fn pings_are_no_content() {
        let limits = Limits { first_byte: Duration::from_mins(1), idle: Duration::from_millis(50) };
        let hello = "data: {\"type\":\"content_block_start\",\"index\":0,\
                     \"content_block\":{\"type\":\"text\",\"text\":\"Hello\"}}\n\n";
        let pings = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Some((Ok::<_, std::io::Error>(b"event: ping\ndata: {\"type\": \"ping\"}\n\n".to_vec()), ()))
        });
        let body = stream::iter([Ok(hello.as_bytes().to_vec())]).chain(pings);
        let (deltas, _shown) = unbounded_channel();
        let reading = messages::Reading::new(&request(), Some(answered_by()));
        let error = read(body, limits, Instant::now(), reading, &deltas).await.unwrap_err();
        assert_eq!(error.trouble, Trouble::Timeout);
    }

    #[tokio::test]
    async fn silence_before_the_first_content_has_its_own_limit() {
        let limits = Limits { first_byte: Duration::from_millis(50), idle: Duration::from_mins(1) };
        for head in ["", "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"] {
            let body = stream::iter([Ok::<_, std::io::Error>(head.as_bytes().to_vec())]).chain(stream::pending());
            let (deltas, _shown) = unbounded_channel();
            let reading = chat::Reading::new(&request(), Some(answered_by()));
            let error = read(body, limits, Instant::now(), reading, &deltas).await.unwrap_err();
            assert_eq!(error.trouble, Trouble::Timeout, "{head}");
        }
    }

    #[tokio::test]
    async fn an_endless_reply_ends() {
        let body = stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b'x'; 1 << 20]));
        let (deltas, _shown) = unbounded_channel();
        let reading = chat::Reading::new(&request(), Some(answered_by()));
        let error = read(body, LIMITS, Instant::now(), reading, &deltas).await.unwrap_err();
        assert!(error.message.contains("64 MiB"), "{error}");
    }
}
