//! A model in this process that answers by a script: for thousands of property-test runs.
//!
//! It answers by what a request holds and never by its position, so that a request that is sent again gets the same
//! answer.

use crate::{
    domain::message::{Call, Part, Reply, Stop},
    domain::model::{AnsweredBy, Usage},
    ports::{
        BoxFuture,
        llm::{Deltas, Error, Llm, Message, Request},
    },
};

/// The answer to a request.
type Script = Box<dyn Fn(&Request) -> Result<Reply, Error> + Send + Sync>;

/// A scripted model.
pub struct Scripted {
    script: Script,
}

impl Scripted {
    /// A model that answers as `script` says.
    pub fn new(script: impl Fn(&Request) -> Result<Reply, Error> + Send + Sync + 'static) -> Self {
        Self { script: Box::new(script) }
    }

    /// A model that takes the steps in order, one a reply, and repeats the last: each is calls of tools with their
    /// arguments. The step is found by counting the replies that the request holds.
    #[must_use]
    pub fn steps(steps: Vec<Vec<(&'static str, serde_json::Value)>>) -> Self {
        Self::new(move |request| {
            let replies = request.messages.iter().filter(|m| matches!(&***m, Message::Assistant { .. })).count();
            let step = steps.get(replies.min(steps.len().saturating_sub(1))).cloned().unwrap_or_default();
            let parts = step
                .into_iter()
                .enumerate()
                .map(|(index, (name, arguments))| {
                    Part::Call(Call::minted(request.turn, index, "", name, &arguments.to_string(), &[]))
                })
                .collect();
            Ok(reply(request, parts))
        })
    }
}

/// A reply made of `parts`, by the model that was asked, with a usage that follows from the request.
#[must_use]
pub fn reply(request: &Request, parts: Vec<Part>) -> Reply {
    let has_calls = parts.iter().any(|part| matches!(part, Part::Call(_)));
    Reply {
        parts,
        stop: if has_calls { Stop::Calls } else { Stop::End },
        usage: Some(Usage { input: request.estimated_input(), output: 50, ..Usage::default() }),
        cost: None,
        answered_by: Some(AnsweredBy {
            alias: request.model.alias.clone(),
            backing: request.model.backing.clone(),
            fallback: false,
            prices: None,
        }),
    }
}

impl Llm for Scripted {
    fn ask<'a>(&'a self, request: &'a Request, _deltas: &'a Deltas) -> BoxFuture<'a, Result<Reply, Error>> {
        Box::pin(async move { (self.script)(request) })
    }
}
