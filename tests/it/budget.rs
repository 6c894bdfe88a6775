//! For random histories and windows: no request is over the budget, calls and results stay paired, and between two
//! evictions each body is the one before it and a suffix.

use nisse::{
    adapters::litellm::{chat, messages},
    agent::{
        budget::{Fit, fit},
        context::View,
    },
    domain::{
        event::{Event, EventKind, ResultStatus, ToolResult},
        id::{CommitId, TaskId},
        message::{Call, Part, Reply, Stop},
        model::{AnsweredBy, Route, Usage},
        reasoning::Reasoning,
        task::Task,
        upstream::Trouble,
        window::{KEEP_RECENT_TURNS, STRONGER_EVICTIONS},
    },
    ports::llm::{AssistantPart, Message, Request},
};
use proptest::prelude::*;

use crate::domain_walk::started;

const TASK: TaskId = TaskId(uuid::Uuid::from_u128(9));

/// The alias stands for another model.
const NEW: u8 = 99;

/// One random turn.
#[derive(Clone, Debug)]
struct Played {
    /// Bytes of the results of its calls.
    results: Vec<usize>,
    thinks: bool,
    /// Who answers: 0 another model, `NEW` another behind the same alias, else the one asked.
    who: u8,
    /// Tokens for a thousand estimated ones; none if the proxy does not say.
    counted: Option<u64>,
    /// The proxy finds the request too large so often.
    overflows: u32,
}

fn played() -> impl Strategy<Value = Played> {
    (
        proptest::collection::vec(prop_oneof![0..200usize, 0..6000usize], 0..4),
        any::<bool>(),
        0..12u8,
        proptest::option::of(500..3000u64),
        prop_oneof![8 => Just(0u32), 1 => 1..5u32],
    )
        .prop_map(|(results, thinks, who, counted, overflows)| Played { results, thinks, who, counted, overflows })
}

fn begun(route: Route, window: u64, reasoning: Reasoning) -> Task {
    let mut started = started();
    started.models.own.route = route;
    started.models.own.window = window;
    started.models.own.max_output = window / 8;
    started.models.own.reasoning = reasoning;
    started.models.own.tool_choice = false;
    let kind = EventKind::TaskStarted(Box::new(started));
    let mut task = Task::begin(&Event { task: TASK, seq: 1, at_ms: 0, spent_ms: 0, kind }).unwrap();
    let ready = EventKind::WorktreeReady {
        snapshot: CommitId("1".repeat(40)),
        dirty: false,
        workspace: "a workspace".to_owned(),
        notices: Vec::new(),
    };
    happens(&mut task, ready);
    task
}

fn happens(task: &mut Task, kind: EventKind) {
    task.apply(&Event { task: TASK, seq: task.seq + 1, at_ms: 0, spent_ms: 0, kind }).unwrap();
}

/// The body without what closes it and without cache marks; with `from`, from there on.
fn plain(request: &Request, from: &str) -> String {
    let body = match request.model.route {
        Route::Normalized => chat::body(request, &mut chat::Written::default()).unwrap(),
        Route::Native => messages::body(request).unwrap().replace(r#","cache_control":{"type":"ephemeral"}"#, ""),
    };
    body[body.find(from).unwrap()..].trim_end_matches([']', '}']).to_owned()
}

fn assert_paired(request: &Request) {
    let mut open: Vec<&str> = Vec::new();
    for message in &request.messages {
        match &**message {
            Message::User(_) => assert!(open.is_empty(), "{open:?}"),
            Message::Assistant { parts, .. } => {
                assert!(open.is_empty(), "{open:?}");
                let ids = parts.iter().filter_map(|part| match part {
                    AssistantPart::Call { wire_id, .. } => Some(wire_id.as_str()),
                    AssistantPart::Text(_) | AssistantPart::Reasoning(_) => None,
                });
                open.extend(ids);
            }
            Message::Results(answers) => {
                let answered: Vec<&str> = answers.iter().map(|answer| answer.wire_id.as_str()).collect();
                assert_eq!(answered, open);
                open.clear();
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

fn reply(task: &Task, request: &Request, played: &Played) -> Reply {
    let mut parts = Vec::new();
    if played.thinks {
        let raw = match request.model.route {
            Route::Native => r#"{"type":"thinking","thinking":"hm","signature":"c2ln"}"#,
            Route::Normalized => r#"{"reasoning_content":"hm"}"#,
        };
        parts.push(Part::Reasoning(raw.to_owned()));
    }
    parts.push(Part::Text("I look.".to_owned()));
    for index in 0..played.results.len() {
        let id = format!("v{}_{index}", request.turn);
        parts.push(Part::Call(Call::minted(request.turn, index, &id, "read_file", r#"{"path":"a"}"#, &[])));
    }
    let pinned = &task.started.models.own;
    let fallback = played.who == 0;
    let backing = match played.who {
        0 => "other/b".to_owned(),
        NEW => "openai/new".to_owned(),
        _ => pinned.backing.clone(),
    };
    Reply {
        parts,
        stop: Stop::Calls,
        usage: played.counted.map(|ratio| Usage {
            input: request.estimated_input() * ratio / 1000,
            output: 10,
            ..Usage::default()
        }),
        cost: None,
        answered_by: Some(AnsweredBy { alias: pinned.alias.clone(), backing, fallback, prices: None }),
    }
}

/// What is kept from one request to the next.
#[derive(Default)]
struct Asker {
    view: View,
    written: chat::Written,
}

impl Asker {
    /// Asks as the loop does; the request that fits, or none where nothing can be left out any more. What is kept from
    /// earlier requests changes nothing.
    fn asks(&mut self, task: &mut Task) -> Option<Request> {
        loop {
            match fit(task, &mut self.view) {
                Fit::Send(request) => {
                    let Fit::Send(anew) = fit(task, &mut View::default()) else { panic!("it fitted") };
                    assert_eq!(request, anew);
                    if request.model.route == Route::Normalized {
                        let anew = chat::body(&anew, &mut chat::Written::default()).unwrap();
                        assert_eq!(chat::body(&request, &mut self.written).unwrap(), anew);
                    }
                    return Some(*request);
                }
                Fit::Evict { through_turn } => happens(task, EventKind::ContextEvicted { through_turn }),
                Fit::Full(why) => {
                    assert!(!why.is_empty());
                    return None;
                }
            }
        }
    }
}

/// The same with nothing kept.
fn asks(task: &mut Task) -> Option<Request> {
    Asker::default().asks(task)
}

fn sent(task: &mut Task, request: &Request) {
    let kind = EventKind::RequestSent {
        request: task.requests + 1,
        turn: request.turn,
        route: request.model.route,
        estimated_input: request.estimated_input(),
        max_output: request.max_output,
    };
    happens(task, kind);
}

/// The reply comes, its calls are answered, and the turn is over.
fn answered(task: &mut Task, request: &Request, turn: &Played) {
    let (number, reply) = (request.turn, reply(task, request, turn));
    let calls: Vec<_> = reply.calls().map(|call| call.id.clone()).collect();
    let request = task.requests;
    happens(task, EventKind::ReplyReceived { request, turn: number, reply });
    for (call, bytes) in calls.into_iter().zip(&turn.results) {
        let content = "x".repeat(*bytes);
        let result = ToolResult { call, status: ResultStatus::Done, content, checkpoint: None, seen: None };
        happens(task, EventKind::ToolResult(result));
    }
    if turn.results.is_empty() {
        happens(task, EventKind::Nudged { text: "Call a tool.".to_owned() });
    }
    happens(task, EventKind::TurnEnded { turn: number });
}

/// The contents of the results, oldest turn first.
fn results(request: &Request) -> Vec<Vec<&str>> {
    let contents = request.messages.iter().filter_map(|message| match &**message {
        Message::Results(answers) => Some(answers.iter().map(|answer| answer.content.as_str()).collect()),
        Message::User(_) | Message::Assistant { .. } => None,
    });
    contents.collect()
}

fn play(route: Route, window: u64, reasoning: Reasoning, turns: &[Played]) {
    let mut task = begun(route, window, reasoning);
    let mut before: Option<(u32, String)> = None;
    // where another model answers, requests go without reasoning, which stands at the head
    let from = if turns.iter().all(|turn| turn.who > 0) { "{" } else { "\"messages\":" };
    let mut asker = Asker::default();
    for turn in turns {
        let mut overflows = 0;
        let request = loop {
            let Some(request) = asker.asks(&mut task) else { return };
            let budget = task.started.models.own.input_budget();
            assert!(task.calibrated(request.estimated_input()) <= budget, "over the budget");
            assert_paired(&request);
            let body = plain(&request, from);
            if let Some((evicted, earlier)) = &before
                && *evicted == task.evicted_through
            {
                assert!(body.starts_with(earlier), "{earlier}\nis no beginning of\n{body}");
            }
            before = Some((task.evicted_through, body));
            sent(&mut task, &request);
            if overflows == turn.overflows {
                break request;
            }
            overflows += 1;
            let number = task.requests;
            let refused = EventKind::RequestEnded {
                request: number,
                trouble: Trouble::ContextOverflow,
                message: "too long".to_owned(),
                usage: None,
                retry_in_ms: Some(0),
            };
            happens(&mut task, refused);
            if overflows > STRONGER_EVICTIONS {
                return;
            }
            if let Some(next) = asker.asks(&mut task) {
                assert!(next.estimated_input() < request.estimated_input(), "no smaller than the one refused");
            }
        };
        answered(&mut task, &request, turn);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn holds_for_random_histories(
        native in any::<bool>(),
        window in 4_000..40_000u64,
        reasons in any::<bool>(),
        turns in proptest::collection::vec(played(), 1..30),
    ) {
        let route = if native { Route::Native } else { Route::Normalized };
        play(route, window, if reasons { Reasoning::Low } else { Reasoning::Off }, &turns);
    }
}

fn plainly(results: &[usize]) -> Played {
    Played { results: results.to_vec(), thinks: false, who: 1, counted: Some(1000), overflows: 0 }
}

/// Plays `turns` and gives the turns before whose request there was an eviction, with what was evicted, and the task.
fn evictions(window: u64, turns: &[Played]) -> (Vec<(u32, u32)>, Task) {
    let mut task = begun(Route::Normalized, window, Reasoning::Off);
    let mut evictions = Vec::new();
    for (number, turn) in (1u32..).zip(turns) {
        let before = task.evicted_through;
        let request = asks(&mut task).unwrap();
        if task.evicted_through > before {
            evictions.push((number, task.evicted_through));
        }
        sent(&mut task, &request);
        answered(&mut task, &request, turn);
    }
    (evictions, task)
}

#[test]
fn evictions_are_large_and_seldom_and_leave_the_recent_turns_whole() {
    // 1,000 tokens a turn
    let turns = vec![plainly(&[3500]); 60];
    let (evictions, mut task) = evictions(40_000, &turns);
    assert!((2..=5).contains(&evictions.len()), "{evictions:?}");
    let request = asks(&mut task).unwrap();
    let shown = results(&request);
    let whole = shown.iter().rev().take_while(|contents| contents[0].len() == 3500).count();
    assert!(whole >= KEEP_RECENT_TURNS as usize, "{whole} whole");
    assert!(shown[0][0].contains("c00001n00") && shown[0][0].lines().count() == 1, "{:?}", shown[0][0]);
}

#[test]
fn the_proxys_count_moves_the_first_eviction() {
    let first = |counted| {
        let turns = vec![Played { counted, ..plainly(&[3500]) }; 40];
        evictions(30_000, &turns).0.first().map(|(turn, _)| *turn).unwrap()
    };
    let (plain, dense, unknown) = (first(Some(1000)), first(Some(2000)), first(None));
    assert_eq!(plain, unknown);
    assert!(dense < plain / 2 + 4, "{dense} is not long before {plain}");
}

#[test]
fn fewer_turns_stay_whole_only_where_the_task_could_not_go_on_otherwise() {
    // two results fill the room; the last is always whole
    let (evictions, mut task) = evictions(16_000, &vec![plainly(&[14_000]); 8]);
    assert!(!evictions.is_empty());
    let request = asks(&mut task).unwrap();
    let shown = results(&request);
    assert_eq!(shown.last().unwrap()[0].len(), 14_000);
    assert!(shown[shown.len() - 3][0].len() < 200, "{:?}", shown.iter().map(|r| r[0].len()).collect::<Vec<_>>());
}

#[test]
fn a_last_turn_that_is_too_large_is_told() {
    let mut task = begun(Route::Normalized, 16_000, Reasoning::Off);
    let request = asks(&mut task).unwrap();
    sent(&mut task, &request);
    answered(&mut task, &request, &plainly(&[60_000]));
    let Fit::Full(why) = fit(&task, &mut View::default()) else { panic!("it fits") };
    assert!(why.contains("16000") && why.contains("window"), "{why}");
}

#[test]
fn what_is_opaque_goes_to_the_model_that_answers_now() {
    let turn = |who| Played { thinks: true, who, ..plainly(&[10]) };
    let shown = |turns: &[Played]| -> Vec<(bool, bool)> {
        let (_, mut task) = evictions(60_000, turns);
        let messages = asks(&mut task).unwrap().messages;
        let replies = messages.iter().filter_map(|message| match &**message {
            Message::Assistant { parts, .. } => Some(parts),
            Message::User(_) | Message::Results(_) => None,
        });
        let reasons = |parts: &[AssistantPart]| parts.iter().any(|part| matches!(part, AssistantPart::Reasoning(_)));
        let vendors = |parts: &[AssistantPart]| {
            parts.iter().any(|part| matches!(part, AssistantPart::Call { wire_id, .. } if wire_id.starts_with('v')))
        };
        replies.map(|parts| (reasons(parts), vendors(parts))).collect()
    };
    let (own, not) = ((true, true), (false, false));
    assert_eq!(shown(&[turn(1), turn(0), turn(1)]), [own, not, own]);
    assert_eq!(shown(&[turn(1), turn(1), turn(NEW)]), [not, not, own]);
    // only what the catalog calls it is unlike: the model is the same all the time
    assert_eq!(shown(&[turn(NEW), turn(NEW)]), [own, own]);
}
