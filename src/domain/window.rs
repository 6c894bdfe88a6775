//! The context window: how large a request may be, and how estimates relate to tokens.

use std::fmt;

use super::{
    event::ToolResult,
    model::PinnedModel,
    task::{Task, Turn},
    wording::Wording,
};

/// Turns whose results are kept as long as possible.
pub const KEEP_RECENT_TURNS: u32 = 6;
/// How often a request that the proxy rejected as too large is made smaller and sent again.
pub const STRONGER_EVICTIONS: u32 = 2;
/// The least safety margin, in tokens.
const LEAST_MARGIN: u64 = 1024;
/// If the counted input is less than this fraction (1/n) of its estimate, it is not the input that was sent.
const FAR_BELOW: u64 = 3;
/// The number of replies whose usage calibrates estimates.
const CALIBRATED_BY: usize = 3;

impl PinnedModel {
    /// The most input tokens of a request: the window without a safety margin (a tenth, at least 1,024) and without the
    /// output limit, because output may count toward the window.
    #[must_use]
    pub fn input_budget(&self) -> u64 {
        self.window.saturating_sub((self.window / 10).max(LEAST_MARGIN)).saturating_sub(self.max_output)
    }
}

impl Task {
    /// The likely tokens of an estimate: by the highest ratio in the last replies, as counted by the proxy, and no fewer than
    /// estimated, because a proxy may leave out cached tokens.
    ///
    /// Replies of other models do not count, nor does an input larger than the window.
    #[must_use]
    pub fn calibrated(&self, estimated: u64) -> u64 {
        let counted = |turn: &Turn| {
            let input = turn.reply.usage.filter(|_| turn.reply.fallback().is_none())?.input;
            (input <= self.started.models.own.window && turn.estimated_input > 0)
                .then_some((input, turn.estimated_input))
        };
        let seen = self.turns.iter().rev().filter_map(counted).take(CALIBRATED_BY);
        seen.map(|(input, estimated_then)| scaled(estimated, input, estimated_then))
            .max()
            .map_or(estimated, |seen| seen.max(estimated))
    }
}

impl Task {
    /// Puts stubs for the results of all turns up to this one: the log holds the rest, and no one else needs it again.
    pub(super) fn evict(&mut self, through_turn: u32) {
        let since = std::mem::replace(&mut self.evicted_through, through_turn);
        for turn in self.turns.iter_mut().filter(|turn| turn.number > since && turn.number <= through_turn) {
            let stubs: Vec<_> = turn.results.iter().map(|result| turn.stub(result, &self.started.wording)).collect();
            for (result, stub) in turn.results.iter_mut().zip(stubs) {
                if let Some(stub) = stub {
                    result.content = stub;
                }
            }
        }
    }
}

impl Turn {
    /// The stub for a result that is left out; none if the result is not longer.
    #[must_use]
    pub fn stub(&self, result: &ToolResult, wording: &Wording) -> Option<String> {
        let call = self.reply.calls().find(|call| call.id == result.call)?;
        let stub = wording.stub(call, result.content.len());
        (stub.len() < result.content.len()).then_some(stub)
    }
}

/// A server that counts far fewer input tokens than it was sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CutPrompts {
    /// The alias that it answers for.
    pub alias: String,
    /// In how many replies.
    pub replies: usize,
    /// The turn of the last of them.
    pub turn: u32,
    /// What it counted in the last of them.
    pub counted: u64,
    /// What was sent then, by estimate.
    pub sent: u64,
}

impl fmt::Display for CutPrompts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { alias, replies, counted, sent, .. } = self;
        write!(
            f,
            "the server behind {alias} counted {counted} input tokens instead of about {sent}, and as few in {replies} \
             replies: it truncates prompts, or drops the tools; give it a larger context (llama.cpp: -c, Ollama: \
             num_ctx), or a template with tools"
        )
    }
}

impl Task {
    /// Evidence that the server truncates prompts or drops the tools: seen twice, because once may be a miscount.
    #[must_use]
    pub fn cut_prompts(&self) -> Option<CutPrompts> {
        let few = |turn: &&Turn| {
            let counted = turn.reply.usage.filter(|_| turn.reply.fallback().is_none());
            counted.is_some_and(|usage| usage.input.saturating_mul(FAR_BELOW) < turn.estimated_input)
        };
        let replies = self.turns.iter().filter(few).count();
        let last = self.turns.iter().rfind(few).filter(|_| replies >= 2)?;
        Some(CutPrompts {
            alias: self.started.models.own.alias.clone(),
            replies,
            turn: last.number,
            counted: last.reply.usage.map_or(0, |usage| usage.input),
            sent: last.estimated_input,
        })
    }

    /// What to do if the window is full. The task's model is pinned, so settings alone change nothing.
    #[must_use]
    pub fn room_for_window(&self) -> String {
        let id = self.id;
        format!(
            "give its server a larger context; or run `nisse drop {id:#}` and continue from its commits with `nisse delegate \
             --base refs/nisse/discarded/{id}` and a lower output limit (NISSE_MAX_OUTPUT_TOKENS) or another model"
        )
    }
}

/// `number × by / per`, rounded up.
fn scaled(number: u64, by: u64, per: u64) -> u64 {
    let product = u128::from(number) * u128::from(by);
    u64::try_from(product.div_ceil(u128::from(per.max(1)))).unwrap_or(u64::MAX)
}
