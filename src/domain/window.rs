//! The window: how much input a request may hold, and how many tokens an estimate stands for.

use super::{
    event::ToolResult,
    model::PinnedModel,
    task::{Task, Turn},
    wording::Wording,
};

/// Turns whose results are kept in full as long as that is possible.
pub const KEEP_RECENT_TURNS: u32 = 6;
/// How often a request that the proxy found too large is made smaller and sent again.
pub const STRONGER_EVICTIONS: u32 = 2;
/// The least safety margin, in tokens.
const LEAST_MARGIN: u64 = 1024;
/// Replies whose usage tells how far estimates are off.
const CALIBRATED_BY: usize = 3;

impl PinnedModel {
    /// The most input tokens of a request: the window without a safety margin (a tenth, at least 1,024) and without the
    /// output ceiling, since nobody says of a window that output does not count to it.
    #[must_use]
    pub fn input_budget(&self) -> u64 {
        self.window.saturating_sub((self.window / 10).max(LEAST_MARGIN)).saturating_sub(self.max_output)
    }
}

impl Task {
    /// The tokens that `estimated` ones stand for: by the highest ratio of the last replies, as the proxy counted them,
    /// and no fewer than estimated, since a proxy that counts little may have left out what a cache gave.
    ///
    /// Another model's replies tell nothing of this one's tokens, nor does an input that the window cannot hold.
    #[must_use]
    pub fn calibrated(&self, estimated: u64) -> u64 {
        let counted = |turn: &Turn| {
            let input = turn.reply.usage.filter(|_| turn.reply.fallback().is_none())?.input;
            (input <= self.started.model.window && turn.estimated_input > 0).then_some((input, turn.estimated_input))
        };
        let seen = self.turns.iter().rev().filter_map(counted).take(CALIBRATED_BY);
        seen.map(|(input, estimated_then)| scaled(estimated, input, estimated_then))
            .max()
            .map_or(estimated, |seen| seen.max(estimated))
    }
}

impl Task {
    /// Puts stubs for the results of all turns up to this one: the log holds the rest, and nobody else needs it again.
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
    /// What stands for a result that is left out; none where the result is no longer than that.
    #[must_use]
    pub fn stub(&self, result: &ToolResult, wording: &Wording) -> Option<String> {
        let call = self.reply.calls().find(|call| call.id == result.call)?;
        let stub = wording.stub(call, result.content.len());
        (stub.len() < result.content.len()).then_some(stub)
    }
}

/// `number × by / per`, rounded up.
fn scaled(number: u64, by: u64, per: u64) -> u64 {
    let product = u128::from(number) * u128::from(by);
    u64::try_from(product.div_ceil(u128::from(per.max(1)))).unwrap_or(u64::MAX)
}
