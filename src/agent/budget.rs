//! Fits the next request into the model's window. Pure: it only decides; the caller records and sends.
//!
//! - A request whose calibrated estimate is over the input budget is never sent.
//! - Evictions are large and rare, down to half the budget, so that prompt caches hit in between.
//! - The last [`KEEP_RECENT_TURNS`] stay in full, or fewer if the task could not continue otherwise. The last turn always
//!   does: the model has not seen its results yet.
//! - After a request that the proxy rejected as too large, only a smaller one is sent.

use super::context::{self, View};
use crate::{
    domain::{
        task::Task,
        window::{KEEP_RECENT_TURNS, STRONGER_EVICTIONS},
    },
    ports::llm::{Request, estimated_tokens},
};

/// What to do before the request is sent.
#[derive(Debug)]
pub enum Fit {
    /// Nothing: it fits.
    Send(Box<Request>),
    /// Stubs for the results of all turns up to this one.
    Evict {
        /// The last of them.
        through_turn: u32,
    },
    /// Nothing more can be left out; says why the request does not fit.
    Full(String),
}

/// Fits the next request of a task.
#[must_use]
pub fn fit(task: &Task, view: &mut View) -> Fit {
    let request = context::request(task, view);
    let budget = task.started.models.own.input_budget();
    let whole = Size { task, bytes: request.input_bytes() };
    let refused = task.overflow.as_ref();
    let smaller = |estimated: u64| refused.is_none_or(|refused| estimated < refused.estimated_input);
    if whole.calibrated() <= budget && smaller(whole.estimated()) {
        return Fit::Send(Box::new(request));
    }
    let last = task.last_turn().map_or(0, |turn| turn.number);
    let keeping = |keep: u32| last.saturating_sub(keep);
    let evicting = |through: u32| (through, whole.after(through));
    let fits = |(_, size): &(u32, Size<'_>)| size.calibrated() <= budget && smaller(size.estimated());
    let roomy = |(_, size): &(u32, Size<'_>)| size.calibrated() <= budget / 2 && smaller(size.estimated());

    let evictable = task.evicted_through + 1;
    let chosen = match refused {
        None => (evictable..=keeping(KEEP_RECENT_TURNS))
            .map(evicting)
            .find(roomy)
            .or_else(|| (1..=KEEP_RECENT_TURNS).rev().map(|keep| evicting(keeping(keep))).find(fits)),
        // our count was too low, so it does not show how much is enough
        Some(refused) => {
            let keep = if refused.count < STRONGER_EVICTIONS { KEEP_RECENT_TURNS / 2 } else { 1 };
            (1..=keep).rev().map(|keep| evicting(keeping(keep))).find(fits)
        }
    };
    match chosen.filter(|(through_turn, _)| *through_turn >= evictable) {
        Some((through_turn, _)) => Fit::Evict { through_turn },
        None => Fit::Full(full(task, whole.calibrated(), budget)),
    }
}

/// A request's size after more results are left out.
struct Size<'a> {
    task: &'a Task,
    bytes: u64,
}

impl<'a> Size<'a> {
    fn after(&self, through_turn: u32) -> Size<'a> {
        let evicted = self.task.turns.iter().filter(|turn| turn.number <= through_turn);
        let saved: u64 = evicted
            .filter(|turn| turn.number > self.task.evicted_through)
            .map(|turn| context::saved_by_stubs(turn, &self.task.started.wording))
            .sum();
        Size { task: self.task, bytes: self.bytes.saturating_sub(saved) }
    }

    fn estimated(&self) -> u64 {
        estimated_tokens(self.bytes)
    }

    fn calibrated(&self) -> u64 {
        self.task.calibrated(self.estimated())
    }
}

fn full(task: &Task, tokens: u64, budget: u64) -> String {
    let model = &task.started.models.own;
    let (alias, window, helps) = (&model.alias, model.window, task.room_for_window());
    match &task.overflow {
        Some(refused) => format!(
            "the proxy says that the request is too large for the context window of {alias}, and nothing more can be left out: {}; {helps}",
            refused.message
        ),
        None => format!(
            "the window of {alias} is full: the next request has about {tokens} tokens, {budget} of {window} are for input, \
             and nothing more can be left out; {helps}"
        ),
    }
}
