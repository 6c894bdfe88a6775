//! Checks, before a task begins, whether its first request fits the model's window.

use std::sync::Arc;

use super::context;
use crate::{
    domain::{model::PinnedModel, role::Role, wording::Wording},
    ports::llm::{Message, Request},
};

/// More tokens than any description of a repository has: with this much room, it need not be made.
const DESCRIPTION: u64 = 16_000;
/// The smallest output limit that a model can work with, in tokens.
const LEAST_OUTPUT: u64 = 256;

/// A window that is too small.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TooSmall {
    /// The model.
    pub alias: String,
    /// Its window, in tokens.
    pub window: u64,
    /// The part reserved for output.
    pub max_output: u64,
    /// The tokens of the first request.
    pub tokens: u64,
    /// The part for input.
    pub budget: u64,
    /// An output limit that leaves room for the request, and as much again for work; none if none does.
    pub ceiling: Option<u64>,
}

/// Why the first request would not fit. `workspace` describes the repository; it is called only if that may matter.
#[must_use]
pub fn too_small(
    role: &Role,
    wording: &Wording,
    model: &PinnedModel,
    brief: &str,
    checks: &[String],
    workspace: impl FnOnce() -> String,
) -> Option<TooSmall> {
    let budget = model.input_budget();
    let tokens = |workspace: &str| {
        let request = Request {
            id: String::new(),
            turn: 1,
            model: model.clone(),
            system: role.prompt.clone(),
            tools: role.tools.clone(),
            messages: vec![Arc::new(Message::User(context::opening(wording, brief, checks, workspace)))],
            max_output: model.max_output,
            reasoning: model.reasoning,
            require_call: false,
            fallbacks: role.fallbacks,
            vendor_ids: Vec::new(),
        };
        request.estimated_input()
    };
    if tokens("") + DESCRIPTION <= budget {
        return None;
    }
    let tokens = tokens(&workspace());
    if tokens <= budget {
        return None;
    }
    let room = PinnedModel { max_output: 0, ..model.clone() }.input_budget().saturating_sub(tokens);
    let ceiling = (room / 2).saturating_sub(model.reasoning.tokens());
    let (alias, window, max_output) = (model.alias.clone(), model.window, model.max_output);
    Some(TooSmall { alias, window, max_output, tokens, budget, ceiling: (ceiling >= LEAST_OUTPUT).then_some(ceiling) })
}
