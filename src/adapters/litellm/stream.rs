//! Reading a reply's body: server-sent events, or one JSON text where a stream was asked for.
//!
//! Three things hold for both routes. The limits on silence run on *content*: a ping or a comment is no sign of life.
//! A reply is whole or it is an error. And no body, however long or broken, does more than end in an error.

use std::{fmt::Display, io::Cursor, time::Duration};

use futures_util::{Stream, StreamExt as _, TryStreamExt as _, pin_mut, stream};
use sse_stream::SseByteStream;
use tokio::time::{Instant, timeout, timeout_at};

use super::error::{failure, readable};
use crate::{
    domain::{message::Reply, model::Usage, upstream::Trouble},
    ports::llm::{Deltas, Error},
};

/// More than any model writes; what is longer is no reply.
const MAX_BODY: usize = 64 << 20;
/// How long the end of a finished stream is waited for, so that the connection can be used again.
const LINGER: Duration = Duration::from_millis(200);

/// How long a reply may be silent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// From sending the request to the first content.
    pub(super) first_byte: Duration,
    /// From one content to the next.
    pub(super) idle: Duration,
}

/// What an event brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    /// A ping, a frame without content.
    Quiet,
    /// Content.
    Content,
    /// The mark that the reply is whole.
    Whole,
}

/// A reply being put together from a route's events.
pub(super) trait Assembly {
    /// Takes the data of one event.
    fn event(&mut self, data: &str, deltas: &Deltas) -> Result<Progress, Error>;
    /// Takes a whole JSON text that came instead of a stream.
    fn whole(&mut self, text: &str, deltas: &Deltas) -> Result<(), Error>;
    /// Tokens known so far, for a reply that will not become whole; output counted at least by what came.
    fn usage_so_far(&self) -> Option<Usage>;
    /// The reply, if it is whole.
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
    E: Display,
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
    E: Display,
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
        Err(error) => Err(std::io::Error::other(error.to_string())),
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
            std::error::Error::source(&e).map_or_else(|| e.to_string(), ToString::to_string)
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
            Err(error) => return Err(after(content, error)),
        }
    }
    // More may follow the mark of the end, but nothing that counts.
    let _ = timeout(LINGER, async { while events.next().await.is_some() {} }).await;
    Ok(())
}

/// An error in the middle of a reply: what could be tried again has been cut, and is charged as that.
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

/// A 200 that is no reply.
pub(super) fn unreadable(text: &str) -> Error {
    failure(Trouble::Overloaded, format!("the proxy answered 200 with something unreadable: {}", readable(text)))
}

/// What was told with a refusal.
pub(super) fn told(refusal: String, reply: &Reply, reason: &str) -> String {
    [refusal, reply.text()].into_iter().find(|text| !text.trim().is_empty()).unwrap_or_else(|| reason.to_owned())
}
