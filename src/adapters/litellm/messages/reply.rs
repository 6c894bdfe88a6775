//! A reply of the native route.
//!
//! It is whole with `message_stop` after a stop reason. For aliases of other vendors the proxy translates, and there
//! an `end_turn` beside calls is what it fabricates when its upstream was cut, and what it makes of a `stop` that some
//! servers really say: calls under it are taken where all of them are whole.

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

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
        role::OfferedTool,
        upstream::Trouble,
    },
    ports::llm::{Delta, Deltas, Error, Request},
};

/// A content block, as far as it has come.
#[derive(Debug)]
enum Block {
    Text(String),
    /// `thinking`, whose text and signature come in pieces.
    Thinking(Map<String, Value>),
    Call {
        id: String,
        name: String,
        /// What stood in the block's beginning; `{}` in a stream.
        input: String,
        /// What came in pieces.
        pieces: String,
        vendor: Option<String>,
    },
    /// Anything else (`redacted_thinking`): kept as it came.
    Opaque(String),
}

#[derive(Deserialize)]
struct ToolUse {
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    input: Option<Box<RawValue>>,
}

/// The members of an event, or of a whole body, that are kept byte for byte.
#[derive(Deserialize)]
struct Raw {
    content_block: Option<Box<RawValue>>,
    content: Option<Vec<Box<RawValue>>>,
}

/// Tokens by the names they have here: input without what a cache gave or took.
#[derive(Default, Debug)]
struct Counts {
    input: u64,
    cache_read: u64,
    cache_write: u64,
    output: Option<u64>,
}

/// A reply on this route, as far as it has come.
#[derive(Debug)]
pub(in crate::adapters::litellm) struct Reading {
    turn: u32,
    tools: Vec<OfferedTool>,
    taken: Vec<String>,
    answered_by: Option<AnsweredBy>,
    blocks: Vec<(Option<u64>, Block)>,
    lookout: Lookout,
    stop: Option<String>,
    counts: Counts,
    /// Bytes of content, to charge a cut reply's output at least by what came.
    bytes: u64,
    /// A message began at all.
    begun: bool,
    /// `message_stop`, or a whole body.
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
            blocks: Vec::new(),
            lookout: Lookout::new(),
            stop: None,
            counts: Counts::default(),
            bytes: 0,
            begun: false,
            done: false,
            streamed: true,
        }
    }

    fn begin(&mut self, index: Option<u64>, raw: &str, deltas: &Deltas) -> Result<(), Error> {
        let members: Map<String, Value> = json::parse(raw).map_err(|_| unreadable(raw))?;
        let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let block = match members.get("type").and_then(Value::as_str).unwrap_or_default() {
            "text" => {
                self.show(text("text"), Delta::Text, deltas);
                Block::Text(text("text"))
            }
            "thinking" => {
                self.show(text("thinking"), Delta::Reasoning, deltas);
                // a whole block stays as it is
                if self.streamed { Block::Thinking(members) } else { Block::Opaque(mend_surrogates(raw).into_owned()) }
            }
            "tool_use" => {
                let tool: ToolUse = json::parse(raw).map_err(|_| unreadable(raw))?;
                let vendor: Map<String, Value> = members
                    .into_iter()
                    .filter(|(name, value)| {
                        !["type", "id", "name", "input"].contains(&name.as_str()) && !json::is_blank(value)
                    })
                    .collect();
                Block::Call {
                    id: tool.id,
                    name: tool.name,
                    input: tool.input.map_or_else(|| "{}".to_owned(), |input| input.get().to_owned()),
                    pieces: String::new(),
                    vendor: (!vendor.is_empty()).then(|| Value::Object(vendor).to_string()),
                }
            }
            _ => Block::Opaque(mend_surrogates(raw).into_owned()),
        };
        self.bytes += raw.len() as u64;
        self.blocks.push((index, block));
        Ok(())
    }

    fn show(&mut self, text: String, kind: fn(String) -> Delta, deltas: &Deltas) {
        self.bytes += text.len() as u64;
        if !text.is_empty() {
            let _ = deltas.send(kind(text)); // nobody may be watching
        }
    }

    fn piece(&mut self, index: Option<u64>, delta: &Value, deltas: &Deltas) {
        let text = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let Some(at) = self.blocks.iter().rposition(|(at, _)| *at == index) else { return };
        match &mut self.blocks[at].1 {
            Block::Text(so_far) => {
                let piece = self.lookout.words(&text("text")).to_owned();
                so_far.push_str(&piece);
                self.show(piece, Delta::Text, deltas);
            }
            Block::Thinking(members) => {
                let thought = self.lookout.words(&text("thinking")).to_owned();
                for (name, piece) in [("thinking", &thought), ("signature", &text("signature"))] {
                    if !piece.is_empty() {
                        let so_far = members.get(name).and_then(Value::as_str).unwrap_or_default();
                        members.insert(name.to_owned(), Value::from(format!("{so_far}{piece}")));
                    }
                }
                self.show(thought, Delta::Reasoning, deltas);
            }
            Block::Call { name, pieces, .. } => {
                let piece = text("partial_json");
                let piece = self.lookout.arguments(&piece);
                let more = piece.len() as u64;
                self.bytes += more;
                pieces.push_str(piece);
                let _ = deltas.send(Delta::Call { name: name.clone(), bytes: pieces.len() as u64, more });
            }
            Block::Opaque(_) => {}
        }
    }

    /// Input comes with the beginning, from some translations only at the end; the last output counts.
    fn count(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage else { return };
        let number = |name: &str| usage.get(name).and_then(json::whole_number);
        let counts = &mut self.counts;
        for (name, into) in [
            ("input_tokens", &mut counts.input),
            ("cache_read_input_tokens", &mut counts.cache_read),
            ("cache_creation_input_tokens", &mut counts.cache_write),
        ] {
            if let Some(n) = number(name).filter(|n| *n > 0) {
                *into = n;
            }
        }
        counts.output = number("output_tokens").or(counts.output);
    }

    /// Zeros are what the proxy writes where it was told nothing.
    fn usage(&self) -> Option<Usage> {
        let Counts { input, cache_read, cache_write, output } = self.counts;
        let input = input.saturating_add(cache_read).saturating_add(cache_write);
        (input > 0).then_some(Usage { input, output: output?, cache_read, cache_write })
    }

    /// Whether all calls of a stream have come, as far as can be seen.
    fn has_whole_calls(&self) -> bool {
        self.blocks.iter().all(|(_, block)| match block {
            Block::Call { name, pieces, .. } => match self.tools.iter().find(|tool| tool.name.as_str() == name) {
                Some(tool) => tool.is_whole(pieces),
                // its answer will say that there is no such tool
                None => serde_json::from_str::<Map<String, Value>>(pieces).is_ok_and(|given| !given.is_empty()),
            },
            Block::Text(_) | Block::Thinking(_) | Block::Opaque(_) => true,
        })
    }

    fn into_reply(self) -> Reply {
        let (usage, mut taken) = (self.usage(), self.taken);
        let (mut parts, mut calls) = (Vec::new(), 0);
        for (_, block) in self.blocks {
            parts.push(match block {
                Block::Text(text) if text.is_empty() => continue,
                Block::Text(text) => Part::Text(text),
                Block::Thinking(members) => Part::Reasoning(Value::Object(members).to_string()),
                Block::Opaque(raw) => Part::Reasoning(raw),
                Block::Call { id, name, input, pieces, vendor } => {
                    let arguments = if pieces.trim().is_empty() { input } else { pieces };
                    let mut call = Call::minted(self.turn, calls, &id, &name, &arguments, &taken);
                    taken.extend(call.vendor_id.clone());
                    call.vendor = vendor;
                    calls += 1;
                    Part::Call(call)
                }
            });
        }
        Reply { parts, stop: Stop::End, usage, cost: None, answered_by: self.answered_by }
    }
}

/// Whether it is thinking whose signature has not come.
fn is_unsigned(block: &Block) -> bool {
    match block {
        Block::Thinking(members) => members.get("signature").and_then(Value::as_str).is_none_or(str::is_empty),
        Block::Text(_) | Block::Call { .. } | Block::Opaque(_) => false,
    }
}

impl Assembly for Reading {
    fn event(&mut self, data: &str, deltas: &Deltas) -> Result<Progress, Error> {
        let event: Value = json::parse(data).map_err(|_| unreadable(data))?;
        if let Some(error) = from_event(&event) {
            return Err(error);
        }
        let index = event.get("index").and_then(json::whole_number);
        Ok(match event.get("type").and_then(Value::as_str).unwrap_or_default() {
            "message_start" => {
                self.begun = true;
                self.count(event.pointer("/message/usage"));
                // the proxy fabricates it for other vendors before their first word
                Progress::Quiet
            }
            "content_block_start" => {
                let raw: Raw = json::parse(data).map_err(|_| unreadable(data))?;
                self.begun = true;
                self.begin(index, raw.content_block.as_ref().map_or("{}", |raw| raw.get()), deltas)?;
                Progress::Content
            }
            "content_block_delta" => {
                self.piece(index, event.get("delta").unwrap_or(&Value::Null), deltas);
                if self.lookout.found() { Progress::Endless } else { Progress::Content }
            }
            "content_block_stop" => Progress::Content,
            "message_delta" => {
                self.count(event.get("usage"));
                if let Some(stop) = event.pointer("/delta/stop_reason").and_then(Value::as_str) {
                    self.stop = Some(stop.to_owned());
                }
                Progress::Content
            }
            "message_stop" => {
                self.done = true;
                Progress::Whole
            }
            _ => Progress::Quiet, // ping, and what is to come
        })
    }

    fn whole(&mut self, text: &str, deltas: &Deltas) -> Result<(), Error> {
        let body: Value = json::parse(text).map_err(|_| unreadable(text))?;
        if let Some(error) = from_event(&body) {
            return Err(error);
        }
        let Ok(Raw { content: Some(blocks), .. }) = json::parse::<Raw>(text) else { return Err(unreadable(text)) };
        (self.streamed, self.begun, self.done) = (false, true, true);
        self.lookout.end();
        for block in blocks {
            self.begin(None, block.get(), deltas)?;
        }
        self.count(body.get("usage"));
        self.stop = body.get("stop_reason").and_then(Value::as_str).map(str::to_owned);
        Ok(())
    }

    fn usage_so_far(&self) -> Option<Usage> {
        // the count in the beginning is a placeholder: three and a half bytes a token are nearer, and upwards
        let came = (self.bytes * 2).div_ceil(7);
        self.usage().map(|usage| Usage { output: usage.output.max(came), ..usage })
    }

    fn finish(mut self) -> Result<Reply, Error> {
        if !self.begun {
            return Err(failure(Trouble::Overloaded, "the proxy answered 200 without a message"));
        }
        let so_far = self.usage_so_far();
        if self.lookout.found() {
            // a thought that was stopped has no signature, and no vendor takes it back beside calls
            if self.blocks.iter().any(|(_, block)| matches!(block, Block::Call { .. })) {
                self.blocks.retain(|(_, block)| !is_unsigned(block));
            }
            return Ok(Reply { stop: Stop::Truncated, usage: so_far, ..self.into_reply() });
        }
        let cut = |why: &str| Err(Error { usage: so_far, ..failure(Trouble::Cut, why) });
        let Some(stop) = self.stop.take().filter(|_| self.done) else {
            return cut("the stream ended without a stop reason");
        };
        let whole = !self.streamed || self.has_whole_calls();
        let mut reply = self.into_reply();
        let calls = reply.calls().count();
        reply.stop = match stop.as_str() {
            "max_tokens" | "model_context_window_exceeded" => Stop::Truncated,
            "refusal" => Stop::Declined(refusal_text(String::new(), &reply, &stop)),
            "tool_use" if calls > 0 => Stop::Calls,
            _ if calls > 0 && !whole => return cut("the reply stops in the middle of its calls"),
            _ if calls > 0 => Stop::Calls,
            _ => Stop::End,
        };
        Ok(reply)
    }
}
