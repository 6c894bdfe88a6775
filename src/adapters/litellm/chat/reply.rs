//! A reply of the normalized route.
//!
//! It is whole with `[DONE]` after a finish reason. A `stop` beside tool calls is what the proxy fabricates when its
//! upstream was cut, and what some servers really say: calls under it are taken where all of them are whole. One choice is
//! asked for, so that several are one reply.

use serde_json::{Map, Value};

use super::fragments::{OPAQUE, OpenCalls, drop_unsigned, merge_opaque};
use crate::{
    adapters::litellm::{
        error::{failure, from_event},
        json,
        lookout::Lookout,
        stream::{Assembly, Progress, refusal_text, unreadable},
    },
    domain::{
        message::{Call, Part, Reply, Stop, mend_surrogates},
        model::{AnsweredBy, Usage},
        money::Money,
        role::OfferedTool,
        upstream::Trouble,
    },
    ports::llm::{Delta, Deltas, Error, Request},
};

/// A reply on this route, as far as it has come.
#[derive(Debug)]
pub(in crate::adapters::litellm) struct Reading {
    turn: u32,
    tools: Vec<OfferedTool>,
    taken: Vec<String>,
    answered_by: Option<AnsweredBy>,
    text: String,
    refusal: String,
    opaque: Map<String, Value>,
    calls: OpenCalls,
    lookout: Lookout,
    finish: Option<String>,
    usage: Option<Usage>,
    cost: Option<Money>,
    /// A choice was there at all.
    chosen: bool,
    /// `[DONE]`, or a whole body.
    done: bool,
    streamed: bool,
}

impl Reading {
    pub(in crate::adapters::litellm) fn new(request: &Request, answered_by: Option<AnsweredBy>) -> Self {
        Self {
            turn: request.turn,
            tools: request.tools.clone(),
            taken: request.vendor_ids.clone(),
            answered_by,
            text: String::new(),
            refusal: String::new(),
            opaque: Map::new(),
            calls: OpenCalls::default(),
            lookout: Lookout::new(),
            finish: None,
            usage: None,
            cost: None,
            chosen: false,
            done: false,
            streamed: true,
        }
    }

    fn chunk(&mut self, chunk: &Value, delta_name: &str, deltas: &Deltas) -> Progress {
        let mut progress = Progress::Quiet;
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            self.usage = usage_of(usage);
            self.cost = usage
                .get("cost")
                .and_then(json::number)
                .filter(|cost| *cost > 0.0)
                .and_then(Money::from_usd)
                .or(self.cost);
            progress = Progress::Content;
        }
        for (place, choice) in chunk.get("choices").and_then(Value::as_array).into_iter().flatten().enumerate() {
            self.chosen = true;
            if let Some(finish) = choice.get("finish_reason").and_then(Value::as_str) {
                // what forbids that anything runs outweighs what allows it
                if self.finish.as_deref().is_none_or(|told| weight(finish) >= weight(told)) {
                    self.finish = Some(finish.to_owned());
                }
                progress = Progress::Content;
            }
            let index = choice.get("index").and_then(json::whole_number).unwrap_or(place as u64);
            if let Some(Value::Object(delta)) = choice.get(delta_name)
                && self.delta(index, delta, deltas)
            {
                progress = Progress::Content;
            }
        }
        progress
    }

    /// Takes a delta, or a whole message, which is one large delta. Tells whether it held anything.
    fn delta(&mut self, choice: u64, delta: &Map<String, Value>, deltas: &Deltas) -> bool {
        let text_of = |name: &str| delta.get(name).map(content_text).filter(|text| !text.is_empty());
        let mut held = false;
        if let Some(text) = text_of("content") {
            held = true;
            let text = self.lookout.words(&text);
            self.text.push_str(text);
            let _ = deltas.send(Delta::Text(text.to_owned())); // nobody may be watching
        }
        let mut reasoned = None;
        if let Some(text) = text_of("reasoning_content") {
            held = true;
            let text = self.lookout.words(&text);
            reasoned = Some(Value::from(text));
            let _ = deltas.send(Delta::Reasoning(text.to_owned()));
        } else {
            // a server may send the blocks alone
            for thought in thoughts(delta) {
                self.lookout.words(thought);
            }
        }
        let hidden = delta.get("provider_specific_fields").and_then(|fields| fields.get("refusal"));
        for refusal in [delta.get("refusal"), hidden].into_iter().flatten() {
            self.refusal.push_str(refusal.as_str().unwrap_or_default());
        }
        for name in OPAQUE {
            if let Some(value) = delta.get(name).filter(|value| !json::is_blank(value)) {
                held = true;
                let value = reasoned.as_ref().filter(|_| name == "reasoning_content").unwrap_or(value);
                merge_opaque(&mut self.opaque, name, value);
            }
        }
        for fragment in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            held = true;
            let _ = deltas.send(self.calls.take(choice, fragment, self.streamed, &mut self.lookout));
        }
        held || !self.refusal.is_empty()
    }

    fn into_reply(self) -> Reply {
        let mut parts = Vec::new();
        if !self.opaque.is_empty() {
            parts.push(Part::Reasoning(mend_surrogates(&Value::Object(self.opaque).to_string()).into_owned()));
        }
        if !self.text.is_empty() {
            parts.push(Part::Text(self.text));
        }
        parts.extend(self.calls.minted(self.turn, self.taken));
        Reply { parts, stop: Stop::End, usage: self.usage, cost: self.cost, answered_by: self.answered_by }
    }
}

/// What a delta's thinking blocks think.
fn thoughts(delta: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let blocks = delta.get("thinking_blocks").and_then(Value::as_array);
    blocks.into_iter().flatten().filter_map(|block| block.get("thinking").and_then(Value::as_str))
}

/// Of several choices' finish reasons the heaviest counts.
fn weight(finish: &str) -> u8 {
    match finish {
        "length" | "error" => 3,
        "content_filter" | "refusal" => 2,
        "tool_calls" | "function_call" => 1,
        _ => 0,
    }
}

/// A message's text, also where it is a list of parts.
fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect::<Vec<_>>().concat()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// Tokens; `prompt_tokens` holds the cached ones already. Zeros are what the proxy writes where it was told nothing.
fn usage_of(usage: &Value) -> Option<Usage> {
    let count = |path: &str| usage.pointer(path).and_then(json::whole_number);
    let read = count("/prompt_tokens_details/cached_tokens").or_else(|| count("/cache_read_input_tokens"));
    let write = count("/cache_creation_input_tokens")
        .or_else(|| count("/prompt_tokens_details/cache_creation_tokens"))
        .or_else(|| count("/prompt_tokens_details/cache_write_tokens"));
    let input = count("/prompt_tokens").filter(|input| *input > 0)?;
    Some(Usage {
        input,
        output: count("/completion_tokens")?,
        cache_read: read.unwrap_or(0),
        cache_write: write.unwrap_or(0),
    })
}

impl Assembly for Reading {
    fn event(&mut self, data: &str, deltas: &Deltas) -> Result<Progress, Error> {
        if data.trim() == "[DONE]" {
            self.done = true;
            return Ok(Progress::Whole);
        }
        let chunk: Value = json::parse(data).map_err(|_| unreadable(data))?;
        match from_event(&chunk) {
            Some(error) => Err(error),
            None => match self.chunk(&chunk, "delta", deltas) {
                _ if self.lookout.found() => Ok(Progress::Endless),
                progress => Ok(progress),
            },
        }
    }

    fn whole(&mut self, text: &str, deltas: &Deltas) -> Result<(), Error> {
        let body: Value = json::parse(text).map_err(|_| unreadable(text))?;
        if let Some(error) = from_event(&body) {
            return Err(error);
        }
        let choices = body.get("choices").and_then(Value::as_array);
        if !choices.is_some_and(|choices| choices.iter().any(|choice| choice.get("message").is_some())) {
            return Err(unreadable(text));
        }
        (self.streamed, self.done) = (false, true);
        self.lookout.end();
        self.chunk(&body, "message", deltas);
        Ok(())
    }

    fn usage_so_far(&self) -> Option<Usage> {
        self.usage
    }

    fn finish(mut self) -> Result<Reply, Error> {
        let cut = |why: &str, usage| Err(Error { usage, ..failure(Trouble::Cut, why) });
        if !self.chosen {
            return Err(failure(Trouble::Overloaded, "the proxy answered 200 without a choice"));
        }
        if self.lookout.found() {
            drop_unsigned(&mut self.opaque);
            return Ok(Reply { stop: Stop::Truncated, ..self.into_reply() });
        }
        let Some(finish) = self.finish.take().filter(|_| self.done) else {
            return cut("the stream ended without a finish reason", self.usage);
        };
        let streamed_whole = self.calls.are_whole(&self.tools);
        let (streamed, refusal) = (self.streamed, std::mem::take(&mut self.refusal));
        let mut reply = self.into_reply();
        let calls = reply.calls().count();
        let objects = |call: &Call| serde_json::from_str::<Map<String, Value>>(&call.arguments).is_ok();
        let whole = if streamed { streamed_whole } else { reply.calls().all(objects) };
        reply.stop = match finish.as_str() {
            "length" => Stop::Truncated,
            "content_filter" | "refusal" => Stop::Declined(refusal_text(refusal, &reply, &finish)),
            "error" => return cut("the upstream ended the reply with an error", reply.usage),
            "tool_calls" | "function_call" if calls > 0 => Stop::Calls,
            _ if calls > 0 && !whole => return cut("the reply stops in the middle of its calls", reply.usage),
            _ if calls > 0 => Stop::Calls,
            _ if !refusal.is_empty() => Stop::Declined(refusal),
            _ => Stop::End,
        };
        Ok(reply)
    }
}
