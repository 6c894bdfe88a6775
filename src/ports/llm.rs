//! A model that answers requests.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use super::BoxFuture;
use crate::domain::{
    id::CallId,
    message::{Call, Reply},
    model::{PinnedModel, Usage},
    reasoning::Reasoning,
    role::OfferedTool,
    upstream::Trouble,
};

/// A model. Real implementations: the `LiteLLM` proxy, and a scripted one in process for property tests.
pub trait Llm: Send + Sync {
    /// Sends one request, once, and returns the complete reply or why there is none. Never retries.
    ///
    /// Streamed text goes to `deltas` as it comes and is not part of the record. Dropping the future drops the request.
    fn ask<'a>(&'a self, request: &'a Request, deltas: &'a Deltas) -> BoxFuture<'a, Result<Reply, Error>>;
}

/// Where streamed text goes: shown, never recorded.
pub type Deltas = UnboundedSender<Delta>;

/// A piece of a reply that arrives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Delta {
    /// Text for a reader.
    Text(String),
    /// Reasoning that the vendor shows.
    Reasoning(String),
    /// Arguments of a call.
    Call {
        /// The call's name, as far as it has come.
        name: String,
        /// Bytes of its arguments that have come.
        bytes: u64,
        /// How many of them are new.
        more: u64,
    },
}

/// A request, rendered wholly from the log; the adapter puts it into the route's form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Unique over all tasks; sent as `x-litellm-call-id`.
    pub id: String,
    /// The turn that the reply will begin, from 1: calls are numbered by it.
    pub turn: u32,
    /// Who is asked, and how.
    pub model: PinnedModel,
    /// The system prompt.
    pub system: String,
    /// The tools offered.
    pub tools: Vec<OfferedTool>,
    /// The conversation, oldest first. What an earlier request of the task held too is the same allocation, as a rule.
    pub messages: Vec<Arc<Message>>,
    /// The output ceiling in tokens.
    pub max_output: u64,
    /// How much the model is asked to reason in this reply.
    pub reasoning: Reasoning,
    /// Ask for a call (`tool_choice`).
    pub require_call: bool,
    /// The proxy may answer with another model.
    pub fallbacks: bool,
    /// Vendor ids of calls already recorded in this task: a repeated one is not kept.
    pub vendor_ids: Vec<String>,
}

/// A message of the conversation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// From us: the brief, a nudge.
    User(String),
    /// A reply of the model's: never without text and calls.
    Assistant {
        /// The reply's text.
        text: String,
        /// Its parts in order, opaque ones left out where they must not go back.
        parts: Vec<AssistantPart>,
    },
    /// The answers to the calls of the reply before, in order.
    Results(Vec<Answer>),
}

/// A part of a reply that goes back to the model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AssistantPart {
    /// Text.
    Text(String),
    /// Opaque reasoning, raw JSON; see [`crate::domain::message::Part::Reasoning`].
    Reasoning(String),
    /// A call, with the id that stands for it on the wire.
    Call {
        /// The id on the wire: the vendor's where the same model minted it, else ours.
        wire_id: String,
        /// The call.
        call: Call,
    },
}

/// The answer to a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The call.
    pub call: CallId,
    /// Its id on the wire.
    pub wire_id: String,
    /// The text.
    pub content: String,
    /// It was refused, failed or not run.
    pub is_error: bool,
}

impl Request {
    /// Estimated input tokens: bytes / 3.5, rounded up, plus a little for each message. Bytes / 4 is 14 % too low for code.
    #[must_use]
    pub fn estimated_input(&self) -> u64 {
        estimated_tokens(self.input_bytes())
    }

    /// The bytes that [`estimated_input`](Self::estimated_input) counts.
    #[must_use]
    pub fn input_bytes(&self) -> u64 {
        let tools: usize = self
            .tools
            .iter()
            .map(|t| t.name.as_str().len() + t.description.len() + t.parameters.to_string().len() + 40)
            .sum();
        let messages: usize = self.messages.iter().map(|message| message.bytes()).sum();
        (self.system.len() + tools + messages) as u64
    }
}

/// The tokens that so many bytes of input are taken for.
#[must_use]
pub fn estimated_tokens(bytes: u64) -> u64 {
    (bytes * 2).div_ceil(7)
}

impl Message {
    fn bytes(&self) -> usize {
        let content: usize = match self {
            Self::User(text) => text.len(),
            Self::Assistant { parts, .. } => parts
                .iter()
                .map(|part| match part {
                    AssistantPart::Text(text) | AssistantPart::Reasoning(text) => text.len(),
                    AssistantPart::Call { call, .. } => call.name.len() + call.arguments.len() + 60,
                })
                .sum(),
            Self::Results(answers) => answers.iter().map(|answer| answer.content.len() + 60).sum(),
        };
        content + 20
    }
}

/// Why there is no reply.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{trouble}: {message}")]
pub struct Error {
    /// The class, which decides what follows.
    pub trouble: Trouble,
    /// The upstream's words, or ours; never holds the token.
    pub message: String,
    /// The wait that the proxy asks for.
    pub retry_after: Option<Duration>,
    /// Tokens already used by a reply that was cut.
    pub usage: Option<Usage>,
}
