//! Whether a model's window holds the first request of a task: looked at before one begins.

use std::sync::Arc;

use super::context;
use crate::{
    domain::{model::PinnedModel, role::Role, wording::Wording},
    ports::llm::{Message, Request},
};

/// More tokens than the description of a repository comes to: where so many are left, it need not be made.
const DESCRIPTION: u64 = 16_000;
/// The least output ceiling that a model can work with, in tokens.
const LEAST_OUTPUT: u64 = 256;

/// A window that is too small.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TooSmall {
    /// The model.
    pub alias: String,
    /// Its window, in tokens.
    pub window: u64,
    /// What of it is kept for the output.
    pub max_output: u64,
    /// The tokens of the first request.
    pub tokens: u64,
    /// What of the window is for input.
    pub budget: u64,
    /// The setting of the output ceiling that leaves room for it, and as much again for work; none if none does.
    pub ceiling: Option<u64>,
}

/// Why the first request would not fit. `workspace` describes the repository; it is asked only where that may matter.
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
