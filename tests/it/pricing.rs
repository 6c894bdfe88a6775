//! What a reply cost is what the proxy said; what it did not say is counted in the fold, once, by the right prices.

use nisse::domain::{
    event::{Event, EventKind},
    id::CommitId,
    message::{Part, Reply, Stop},
    model::{AnsweredBy, Prices, Route, Usage},
    money::Money,
    task::Task,
};

use crate::domain_walk::started;

const USAGE: Usage = Usage { input: 100, output: 10, cache_read: 0, cache_write: 0 };

/// What a task has spent after one reply; the pinned model costs 1,000,000 a token of input and twice that of output.
fn spent(cost: Option<Money>, answered_by: Option<AnsweredBy>, usage: Option<Usage>) -> (Money, bool) {
    let ready = EventKind::WorktreeReady {
        snapshot: CommitId("1".repeat(40)),
        dirty: false,
        workspace: String::new(),
        notices: Vec::new(),
    };
    let sent =
        EventKind::RequestSent { request: 1, turn: 1, route: Route::Normalized, estimated_input: 200, max_output: 80 };
    let reply = Reply { parts: vec![Part::Text("x".to_owned())], stop: Stop::End, usage, cost, answered_by };
    let reply = EventKind::ReplyReceived { request: 1, turn: 1, reply };
    let kinds = [EventKind::TaskStarted(Box::new(started())), ready, sent, reply];
    let id = nisse::domain::id::TaskId(uuid::Uuid::from_u128(7));
    let event = |(seq, kind)| Event { task: id, seq, at_ms: 0, spent_ms: 0, kind };
    let events: Vec<Event> = (1..).zip(kinds).map(event).collect();
    let task = Task::fold(&events).unwrap().unwrap();
    (task.spend.cost, task.spend.cost_unknown)
}

fn other(prices: Option<Prices>) -> AnsweredBy {
    AnsweredBy { alias: "b".to_owned(), backing: "openai/b".to_owned(), fallback: true, prices }
}

#[test]
fn the_proxys_word_counts_before_any_price() {
    assert_eq!(spent(Some(Money(5)), None, Some(USAGE)), (Money(5), false));
    assert_eq!(spent(Some(Money(5)), Some(other(None)), Some(USAGE)), (Money(5), false));
}

#[test]
fn what_the_proxy_did_not_say_is_counted_by_the_prices_of_whoever_answered() {
    assert_eq!(spent(None, None, Some(USAGE)), (Money(120_000_000), false));
    let dear = Prices { input: Some(Money(3_000_000)), output: Some(Money(0)), ..Prices::default() };
    assert_eq!(spent(None, Some(other(Some(dear.clone()))), Some(USAGE)), (Money(300_000_000), false));
    // an estimate of another model's tokens is no known cost, and still acts on the cap
    assert_eq!(spent(None, Some(other(Some(dear))), None), (Money(220_000_000), true));
    assert_eq!(spent(None, Some(other(None)), Some(USAGE)), (Money(120_000_000), true));
}
