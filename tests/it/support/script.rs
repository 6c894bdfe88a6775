//! What the scripted model answers: steps, and the rule that picks one.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::history::Asked;

/// Something that a test does before the server answers, as to change files meanwhile.
type Hook = Arc<dyn Fn() + Send + Sync>;

/// One answer of the server.
#[derive(Clone)]
pub(crate) struct Step {
    pub(super) answer: Answer,
    pub(super) delay: Duration,
    /// Headers beside the proxy's usual ones, or in their place.
    pub(super) headers: Vec<(String, String)>,
    pub(super) before: Option<Hook>,
    /// The alias and the backing model that answer in place of the one asked for.
    pub(super) instead: Option<(&'static str, &'static str)>,
}

/// What is sent.
#[derive(Clone)]
pub(super) enum Answer {
    /// A model's reply, streamed in the route's form.
    Reply(Reply),
    /// An answer that is no stream.
    Plain { status: u16, headers: Vec<(String, String)>, content_type: String, body: String },
    /// An event stream, byte for byte.
    Stream(Vec<Piece>),
}

/// A part of a raw event stream.
#[derive(Clone)]
pub(crate) enum Piece {
    /// Bytes, sent at once.
    Bytes(Vec<u8>),
    /// A pause.
    Pause(Duration),
    /// The connection breaks; nothing after it is sent.
    Cut,
}

/// A model's reply.
#[derive(Clone, Default)]
pub(super) struct Reply {
    pub(super) text: Option<String>,
    pub(super) thinking: Option<(String, String)>,
    pub(super) calls: Vec<ScriptedCall>,
    pub(super) finish: Option<Finish>,
    pub(super) usage: Option<(u64, u64)>,
    /// Break the connection before the end of the stream.
    pub(super) cut: bool,
}

/// A call of a reply.
#[derive(Clone)]
pub(super) struct ScriptedCall {
    pub(super) name: String,
    /// As they stand on the wire, JSON or not.
    pub(super) arguments: String,
    /// The vendor's id; made up by the server if none is set.
    pub(super) id: Option<String>,
}

/// Why the scripted model stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    /// `stop`, `end_turn`.
    Stop,
    /// `tool_calls`, `tool_use`.
    Calls,
    /// `length`, `max_tokens`.
    Length,
    /// `content_filter`, `refusal`.
    Declined,
}

impl Step {
    fn new(answer: Answer) -> Self {
        Self { answer, delay: Duration::ZERO, headers: Vec::new(), before: None, instead: None }
    }

    fn reply(reply: Reply) -> Self {
        Self::new(Answer::Reply(Reply { usage: Some((1000, 50)), ..reply }))
    }

    /// Prose.
    pub(crate) fn text(text: &str) -> Self {
        Self::reply(Reply { text: Some(text.to_owned()), ..Reply::default() })
    }

    /// A reply without content.
    pub(crate) fn empty() -> Self {
        Self::reply(Reply::default())
    }

    /// One call.
    #[expect(clippy::needless_pass_by_value, reason = "json!(…) stands at every call")]
    pub(crate) fn call(tool: &str, arguments: Value) -> Self {
        Self::raw_call(tool, &arguments.to_string())
    }

    /// One call with these arguments on the wire, JSON or not.
    pub(crate) fn raw_call(tool: &str, arguments: &str) -> Self {
        Self::reply(Reply::default()).and_raw_call(tool, arguments)
    }

    /// One more call in the same reply.
    #[expect(clippy::needless_pass_by_value, reason = "json!(…) stands at every call")]
    pub(crate) fn and_call(self, tool: &str, arguments: Value) -> Self {
        self.and_raw_call(tool, &arguments.to_string())
    }

    /// One more call in the same reply, with these arguments on the wire.
    pub(crate) fn and_raw_call(self, tool: &str, arguments: &str) -> Self {
        let call = ScriptedCall { name: tool.to_owned(), arguments: arguments.to_owned(), id: None };
        self.edit(|reply| reply.calls.push(call))
    }

    /// The ending call of a delegation that succeeded.
    pub(crate) fn hand_back() -> Self {
        Self::call("hand_back", note(true))
    }

    /// One more call: the ending call of a delegation that succeeded.
    pub(crate) fn and_hand_back(self) -> Self {
        self.and_call("hand_back", note(true))
    }

    /// The ending call of a delegation that did not succeed.
    pub(crate) fn give_up() -> Self {
        Self::call("hand_back", note(false))
    }

    /// The vendor's ids of the calls, in order.
    pub(crate) fn ids(self, ids: &[&str]) -> Self {
        self.edit(|reply| {
            for (call, id) in reply.calls.iter_mut().zip(ids) {
                call.id = Some((*id).to_owned());
            }
        })
    }

    /// Why the model stopped, where it does not follow from the content.
    pub(crate) fn finish(self, finish: Finish) -> Self {
        self.edit(|reply| reply.finish = Some(finish))
    }

    /// Input and output tokens.
    pub(crate) fn usage(self, input: u64, output: u64) -> Self {
        self.edit(|reply| reply.usage = Some((input, output)))
    }

    /// Says nothing of tokens.
    pub(crate) fn no_usage(self) -> Self {
        self.edit(|reply| reply.usage = None)
    }

    /// Reasoning before the rest, with its signature.
    pub(crate) fn thinking(self, text: &str, signature: &str) -> Self {
        self.edit(|reply| reply.thinking = Some((text.to_owned(), signature.to_owned())))
    }

    /// The connection breaks when the content is out, before the reply is whole.
    pub(crate) fn cut(self) -> Self {
        self.edit(|reply| reply.cut = true)
    }

    /// An error, with headers, in the shape of the normalized route.
    pub(crate) fn error(status: u16, headers: &[(&str, &str)], kind: &str, message: &str) -> Self {
        let body = json!({"error": {"message": message, "type": kind, "param": null, "code": status.to_string()}});
        Self::plain(status, headers, "application/json", &body.to_string())
    }

    /// An answer that is no stream.
    pub(crate) fn plain(status: u16, headers: &[(&str, &str)], content_type: &str, body: &str) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self::new(Answer::Plain { status, headers, content_type: content_type.to_owned(), body: body.to_owned() })
    }

    /// A raw event stream.
    pub(crate) fn stream(pieces: Vec<Piece>) -> Self {
        Self::new(Answer::Stream(pieces))
    }

    /// Waits before it answers.
    pub(crate) fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// A header beside the proxy's usual ones, or in the place of one.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Does something before it answers (and before the delay).
    pub(crate) fn before(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.before = Some(Arc::new(hook));
        self
    }

    /// Another model answers, as the headers say: its alias and its backing model.
    pub(crate) fn answered_by(mut self, alias: &'static str, backing: &'static str) -> Self {
        self.instead = Some((alias, backing));
        self
    }

    fn edit(mut self, change: impl FnOnce(&mut Reply)) -> Self {
        match &mut self.answer {
            Answer::Reply(reply) => change(reply),
            Answer::Plain { .. } | Answer::Stream(_) => panic!("only a model's reply has content"),
        }
        self
    }
}

/// A complete handback note.
fn note(succeeded: bool) -> Value {
    json!({"changed": "what was asked", "now_true": "it is so", "next": "nothing", "succeeded": succeeded})
}

/// Which step answers which request.
pub(crate) enum Script {
    /// The first request gets the first step, and so on, whatever they hold.
    InOrder(Vec<Step>),
    /// As many replies as the history holds, that step comes next: a request sent again gets the same answer.
    ByHistory(Vec<Step>),
    /// Whatever the closure says.
    ByContent(Box<dyn Fn(&Asked) -> Step + Send + Sync>),
}

impl Script {
    /// A script that looks at the request.
    pub(crate) fn by_content(answer: impl Fn(&Asked) -> Step + Send + Sync + 'static) -> Self {
        Self::ByContent(Box::new(answer))
    }

    /// The step for `asked`, the `nth` request (from 0); none if the script is over.
    pub(super) fn step(&self, asked: &Asked, nth: usize) -> Option<Step> {
        match self {
            Self::InOrder(steps) => steps.get(nth).cloned(),
            Self::ByHistory(steps) => steps.get(asked.replies()).cloned(),
            Self::ByContent(answer) => Some(answer(asked)),
        }
    }
}

impl From<Vec<Step>> for Script {
    fn from(steps: Vec<Step>) -> Self {
        Self::InOrder(steps)
    }
}
