//! Random legal histories of a task: for every one of them, and every prefix, the fold, the tables, the codec and the
//! decision hold.

use std::collections::BTreeMap;

use nisse::{
    agent::roles,
    domain::{
        caps::{Cap, Caps},
        checkout::{Base, Isolation},
        event::{Event, EventKind, ResultStatus, Seen, ToolResult},
        gate::Answer,
        id::{CallId, CommitId, Hash, IntentId, TaskId},
        intent::{Advance, IntentKind, Manner, Status, SwitchTo, UserCommit},
        legal,
        message::{Call, Part, Reply, Stop},
        model::{AnsweredBy, PinnedModel, Prices, Route, Usage},
        money::Money,
        next::{Now, Recovery, Step, next},
        note::Note,
        outcome::{End, Handback, Pause},
        reasoning::Reasoning,
        role::{Limits, OfferedTool, OnFailure, OnSuccess, Role, RoleName, ToolName, WhenMet},
        started::{Assignment, CommandRules, FileLimits, HostName, Models, Sandbox, TaskStarted, Tree, WorkplaceSpec},
        task::Task,
        upstream::Trouble,
    },
    log,
};
use proptest::prelude::*;

mod answers;
mod table;

const TASK: TaskId = TaskId(uuid::Uuid::from_u128(7));

/// A tool as it is offered, with little to copy: the walks copy it often.
fn offered(name: ToolName) -> OfferedTool {
    OfferedTool { name, description: format!("does {name}"), parameters: serde_json::json!({"type": "object"}) }
}

pub(crate) fn started() -> TaskStarted {
    TaskStarted {
        tree: Tree::root(TASK),
        role: Role {
            name: RoleName::Delegate,
            prompt: "You are the delegate.".to_owned(),
            tools: ToolName::ALL.map(offered).to_vec(),
            ending: ToolName::HandBack,
            limits: Limits { bad_replies: 3, repeats: 4, failed_checks: 3, when_met: WhenMet::Fail },
            on_success: OnSuccess::Squash,
            on_failure: OnFailure::Discard,
            fallbacks: false,
        },
        wording: roles::wording(),
        assignment: Assignment::Brief("mend it".to_owned()),
        models: Models {
            own: PinnedModel {
                alias: "a".to_owned(),
                backing: "openai/a".to_owned(),
                provider: "openai".to_owned(),
                route: Route::Normalized,
                window: 100_000,
                max_output: 4096,
                tool_choice: true,
                reasoning: Reasoning::Off,
                prices: Prices { input: Some(Money(1_000_000)), output: Some(Money(2_000_000)), ..Prices::default() },
            },
            others: BTreeMap::new(),
        },
        caps: Caps { turns: 5, tokens: 60_000, cost: Some(Money(80_000_000_000)), time_ms: 5_000 },
        workplace: WorkplaceSpec {
            host: HostName::Here,
            checkout: "/checkout".to_owned(),
            base: Base { commit: Some(CommitId("0".repeat(40))), branch: Some("main".to_owned()), explicit: false },
            branch: "nisse/x".to_owned(),
            worktree: "/worktree".to_owned(),
            isolation: Isolation::InPlace,
            filters: nisse::domain::filters::Filters::default(),
            copy: Vec::new(),
            setup: None,
        },
        checks: vec!["true".to_owned()],
        commands: CommandRules { time_ms: 1000, pass_env: Vec::new(), keep_output: 16_384, sandbox: Sandbox::None },
        files: FileLimits { deny: Vec::new(), max_untracked: 1 },
    }
}

/// Picks from a list of choices; the choices are the test's random input.
pub(crate) struct Dice<'a>(pub(crate) std::iter::Cycle<std::slice::Iter<'a, u8>>);

impl Dice<'_> {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::from(*self.0.next().unwrap()) % n
    }

    pub(crate) fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }
}

pub(crate) fn commit(n: usize) -> CommitId {
    CommitId(format!("{n:040x}"))
}

pub(crate) fn reply(dice: &mut Dice<'_>, turn: u32) -> Reply {
    let names = ["read_file", "write_file", "run_command", "hand_back", "hand_back", "unheard_of", ""];
    let arguments = ["{}", "{\"path\":\"a\"}", "", "not json", "{\"x\":\"\\ud83d\"}"];
    let mut parts = Vec::new();
    if dice.below(2) == 0 {
        parts.push(Part::Text(dice.pick(&["", "text", "ü\0\u{1F525}"]).to_owned()));
    }
    if dice.below(3) == 0 {
        parts.push(Part::Reasoning("{\"type\":\"thinking\",\"thinking\":\"…\",\"signature\":\"s\"}".to_owned()));
    }
    for index in 0..dice.below(4) {
        let (name, arguments) = (dice.pick(&names), dice.pick(&arguments));
        let long = if dice.below(4) == 0 { "x".repeat(5000) } else { arguments.to_owned() };
        parts.push(Part::Call(Call::minted(turn, index, dice.pick(&["", "v1"]), name, &long, &[])));
    }
    let stops = [Stop::Calls, Stop::Calls, Stop::Calls, Stop::End, Stop::Truncated, Stop::Declined("no".to_owned())];
    Reply {
        parts,
        stop: dice.pick(&stops),
        usage: (dice.below(4) > 0).then_some(Usage { input: 3000, output: 100, cache_read: 10, cache_write: 5 }),
        cost: (dice.below(2) == 0).then_some(Money(5_000_000_000)),
        answered_by: Some(AnsweredBy {
            alias: "a".to_owned(),
            backing: "openai/a".to_owned(),
            fallback: dice.below(5) == 0,
            prices: None,
        }),
    }
}

/// Everything that might follow, legal or not.
fn candidates(task: &Task, dice: &mut Dice<'_>) -> Vec<EventKind> {
    let turn = task.last_turn().map_or(0, |turn| turn.number);
    let next_call = task.unanswered().filter(|_| dice.below(10) > 0);
    let call = next_call.map_or_else(|| CallId::new(turn, dice.below(3)), |call| call.id.clone());
    // now and then a number that is not the next one
    let next_turn = turn + [1, 1, 1, 1, 1, 1, 1, 2][dice.below(8)];
    let next_request = task.requests + [1, 1, 1, 1, 1, 1, 1, 2][dice.below(8)];
    let intent = IntentId(u32::try_from(task.intents.len()).unwrap());
    let pending = IntentId(u32::try_from(dice.below(task.intents.len())).unwrap());
    let statuses = [
        ResultStatus::Done,
        ResultStatus::Done,
        ResultStatus::Failed,
        ResultStatus::Refused,
        ResultStatus::Unreadable,
        ResultStatus::NotRun,
    ];
    let troubles = [
        Trouble::Overloaded,
        Trouble::Cut,
        Trouble::BudgetGone,
        Trouble::ToolChoiceUnsupported,
        Trouble::BadRequest,
        Trouble::ContextOverflow,
    ];
    let back = SwitchTo::Original { end: End::Dropped, cause: "why".to_owned() };
    let kinds = [
        IntentKind::FileEdit {
            call: call.clone(),
            path: "a".to_owned(),
            before: None,
            after: Hash::of(b"a"),
            answer: "ok".to_owned(),
        },
        IntentKind::Command { call: call.clone(), command: "true".to_owned() },
        IntentKind::Check { call: call.clone() },
        IntentKind::Squash { from: commit(1), to: commit(2) },
        IntentKind::Discard { tip: commit(3), end: End::Failed, cause: "why".to_owned() },
        IntentKind::CleanUp,
        IntentKind::CheckoutSwitch { way: SwitchTo::TaskBranch, snapshot: commit(9) },
        IntentKind::CheckoutSwitch { way: back, snapshot: commit(9) },
        IntentKind::Apply {
            plan: commit(6),
            before: commit(7),
            of: commit(8),
            manner: dice.pick(&[Manner::Files, Manner::Each, Manner::Squash]),
            advance: (dice.below(3) == 0).then(|| Advance {
                branch: "main".to_owned(),
                from: commit(7),
                to: commit(8),
            }),
        },
        IntentKind::UserCommit(UserCommit {
            parent: (dice.below(3) > 0).then(|| commit(7)),
            plan: (dice.below(3) > 0).then(|| commit(6)),
            of: commit(8),
            merge: None,
            message: "m".to_owned(),
            manner: Manner::Each,
        }),
        IntentKind::PutBack { plan: commit(6) },
        IntentKind::Task,
    ];
    let handback = Handback {
        changed: "c".to_owned(),
        now_true: "n".to_owned(),
        next: "x".to_owned(),
        succeeded: dice.below(3) > 0,
    };
    vec![
        EventKind::TaskStarted(Box::new(started())),
        EventKind::SpanStarted { cause: "resumed".to_owned() },
        EventKind::WorktreeReady {
            snapshot: commit(9),
            dirty: false,
            workspace: "w".repeat(dice.below(2) * 9000),
            notices: vec![],
        },
        EventKind::SetupRan { command: "true".to_owned(), status: Some(0), output_tail: String::new(), duration_ms: 1 },
        EventKind::RequestSent {
            request: next_request,
            turn: next_turn,
            route: Route::Native,
            estimated_input: 2000,
            max_output: dice.pick(&[4096, 100]),
        },
        EventKind::RequestEnded {
            request: task.requests,
            trouble: dice.pick(&troubles),
            message: "m".to_owned(),
            usage: None,
            retry_in_ms: dice.pick(&[None, Some(1)]),
        },
        EventKind::RequestWithheld { cap: Cap::Tokens, estimated_input: 1 },
        EventKind::ContextEvicted { through_turn: u32::try_from(dice.below(4)).unwrap() },
        EventKind::ReplyReceived { request: task.requests, turn: turn + 1, reply: reply(dice, next_turn) },
        EventKind::Nudged { text: "n".to_owned() },
        EventKind::IntentOpened { intent, kind: dice.pick(&kinds) },
        EventKind::IntentSettled { intent: pending, cause: None },
        EventKind::IntentAbandoned { intent: pending, cause: "c".to_owned() },
        EventKind::ToolResult(ToolResult {
            call: call.clone(),
            status: dice.pick(&statuses),
            content: dice.pick(&["", "ok", "$blob"]).to_owned(),
            checkpoint: (dice.below(3) == 0).then(|| commit(4)),
            seen: (dice.below(3) == 0).then(|| Seen { path: "a".to_owned(), hash: Hash::of(b"a") }),
        }),
        EventKind::EndingAccepted { call: call.clone(), note: Note::HandBack(handback) },
        EventKind::CheckRan {
            call,
            command: "true".to_owned(),
            status: dice.pick(&[None, Some(0), Some(1)]),
            output_tail: String::new(),
            duration_ms: 1,
        },
        EventKind::TurnEnded { turn },
        EventKind::LeftOut { paths: vec!["x.log".to_owned()] },
        EventKind::FilesChanged { paths: vec!["a.txt".to_owned()] },
        EventKind::WorktreeRepaired { what: vec!["HEAD".to_owned()] },
        EventKind::UncommittableMade { paths: vec!["app/".to_owned()] },
        EventKind::KeptAside { paths: vec!["app/".to_owned()], place: "/kept".to_owned() },
        EventKind::RepositoryChanged { changes: answers::changes((dice.below(2) == 0).then(|| commit(3))) },
        EventKind::LocksRemoved { locks: vec!["HEAD.lock".to_owned()] },
        EventKind::Recovered { cause: "c".to_owned(), checkpoint: (dice.below(3) == 0).then(|| commit(5)) },
        EventKind::GateAnswered { answer: dice.pick(&[Answer::Rollback, Answer::Keep, Answer::Keep, Answer::Drop]) },
        EventKind::TaskPaused { pause: dice.pick(&[Pause::Gated, Pause::Stopped]), cause: "c".to_owned() },
        EventKind::TaskEnded {
            end: dice.pick(&[End::Handback, End::Handback, End::Failed, End::Capped(Cap::Turns), End::Dropped]),
            cause: "c".to_owned(),
        },
    ]
}

fn event(task: &Task, dice: &mut Dice<'_>, kind: EventKind) -> Event {
    let spent_ms = task.spent_ms + if dice.below(8) == 0 { 900 } else { 1 };
    Event { task: TASK, seq: task.seq + 1, at_ms: 1000 + spent_ms, spent_ms, kind }
}

/// A legal history, with an error if an illegal event changed the state.
fn walk(choices: &[u8]) -> Vec<Event> {
    walk_with(choices, &mut table::Tried::default())
}

/// The same; what was tried is counted.
fn walk_with(choices: &[u8], tried: &mut table::Tried) -> Vec<Event> {
    let dice = &mut Dice(choices.iter().cycle());
    let kind = EventKind::TaskStarted(Box::new(started()));
    let mut events = vec![Event { task: TASK, seq: 1, at_ms: 1000, spent_ms: 0, kind }];
    let mut task = Task::begin(&events[0]).unwrap();
    for _ in 0..choices.len() {
        let all = candidates(&task, dice);
        let (legal, illegal): (Vec<_>, Vec<_>) = all.into_iter().partition(|kind| {
            let said = legal::is_legal(&task, kind);
            assert_eq!(said.is_ok(), table::may_follow(&task, kind), "{kind:?}: {said:?} of {task:#?}");
            tried.count(&task, kind, said.is_ok());
            said.is_ok()
        });
        for kind in illegal {
            let before = task.clone();
            let refused = event(&task, dice, kind);
            assert!(task.apply(&refused).is_err(), "{refused:?} was refused by the table and taken by the fold");
            assert_eq!(task, before, "a refused event changed the state");
        }
        // spans and pauses are always possible; without this a walk would hold little else
        let rare = |kind: &EventKind| {
            matches!(
                kind,
                EventKind::SpanStarted { .. }
                    | EventKind::TaskPaused { .. }
                    | EventKind::Recovered { .. }
                    | EventKind::LeftOut { .. }
                    | EventKind::WorktreeRepaired { .. }
                    | EventKind::RepositoryChanged { .. }
                    | EventKind::UncommittableMade { .. }
                    | EventKind::KeptAside { .. }
                    | EventKind::LocksRemoved { .. }
                    | EventKind::GateAnswered { .. }
            )
        };
        let common: Vec<_> = legal.iter().filter(|kind| !rare(kind)).cloned().collect();
        let pool = if common.is_empty() || dice.below(12) == 0 { legal } else { common };
        let picked = dice.pick(&pool);
        let chosen = event(&task, dice, picked);
        task.apply(&chosen).unwrap();
        events.push(chosen);
    }
    events
}

fn is_defined_and_careful(task: &Task) -> Result<(), TestCaseError> {
    for spent_ms in [task.spent_ms, u64::MAX] {
        for stop in [false, true] {
            match next(task, Now { spent_ms, stop }) {
                Step::Ask => {
                    prop_assert!(task.unanswered().is_none(), "asks while a call is unanswered");
                    prop_assert!(task.pending_intents().next().is_none(), "asks while an intent is open");
                    prop_assert!(!stop, "asks although the person wants to stop");
                    prop_assert!(!task.uninspected, "asks before it has looked");
                }
                Step::Act(call) | Step::Skip(call, _) | Step::Check(call) => {
                    prop_assert_eq!(task.unanswered().map(|call| &call.id), Some(&call));
                }
                Step::Close => prop_assert!(task.unanswered().is_none()),
                Step::Recover(Recovery::Intent(id)) => {
                    prop_assert_eq!(task.intent(id).map(|intent| intent.status), Some(Status::Pending));
                }
                Step::Recover(Recovery::Worktree) => prop_assert!(task.uninspected),
                Step::Prepare => prop_assert!(task.ready.is_none()),
                Step::Finish(outcome) => prop_assert!(matches!(outcome.exit_code(), 0 | 3..=7)),
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_prefix_of_a_legal_history_folds_and_has_a_next_step(choices in proptest::collection::vec(any::<u8>(), 1..120)) {
        let events = walk(&choices);
        let mut task = Task::begin(&events[0]).unwrap();
        is_defined_and_careful(&task)?;
        for event in &events[1..] {
            task.apply(event).unwrap();
            is_defined_and_careful(&task)?;
        }
        prop_assert_eq!(Task::fold(&events).unwrap().unwrap(), task);
    }

    #[test]
    fn an_event_is_what_its_row_says(choices in proptest::collection::vec(any::<u8>(), 1..60)) {
        for event in walk(&choices) {
            let row = log::encode(&event.kind).unwrap();
            let find = |hash: &Hash| {
                row.blobs.iter().find(|(have, _)| have == hash).map(|(_, text)| text.clone()).ok_or_else(|| "missing".to_owned())
            };
            prop_assert_eq!(log::decode(log::EVENTS, TASK, &row.kind, &row.body, &find).unwrap(), event.kind);
        }
    }
}

#[test]
fn a_row_with_a_missing_or_an_unknown_member_is_refused() {
    let none = |_: &Hash| Err("no blob".to_owned());
    let row = r#"{"request":1,"trouble":"cut","message":"m","usage":null,"retry_in_ms":null}"#;
    assert!(log::decode(log::EVENTS, TASK, "request_ended", row, &none).is_ok());
    for bad in [
        row.replace(r#","usage":null"#, ""),
        row.replace('}', r#","more":1}"#),
        row.replace("cut", "unheard_of"),
        row.replace("\"m\"", r#"{"$blob":"00","bytes":1}"#),
        "{".to_owned(),
    ] {
        assert!(log::decode(log::EVENTS, TASK, "request_ended", &bad, &none).is_err(), "{bad}");
    }
    assert!(log::decode(log::EVENTS, TASK, "unheard_of", "{}", &none).is_err());
}

/// What the walks above must reach, or they would show little.
#[test]
fn the_walks_reach_every_phase_event_end_and_step() {
    let mut reached = std::collections::BTreeSet::new();
    let mut tried = table::Tried::default();
    let mut random = 7u64;
    for _ in 0..500 {
        let choices: Vec<u8> = (0..120)
            .map(|_| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 56).try_into().unwrap()
            })
            .collect();
        let events = walk_with(&choices, &mut tried);
        let mut task = Task::begin(&events[0]).unwrap();
        for event in &events[1..] {
            task.apply(event).unwrap();
            if let EventKind::TaskEnded { end, .. } = &event.kind {
                reached.insert(format!("{end:?}"));
            }
            for (spent_ms, stop) in [(task.spent_ms, false), (task.spent_ms, true), (u64::MAX, false)] {
                let step = match next(&task, Now { spent_ms, stop }) {
                    Step::Finish(outcome) => format!("finish {}", outcome.word()),
                    Step::Skip(_, why) => format!("skip {why:?}"),
                    Step::Recover(Recovery::Intent(id)) => {
                        let kind = format!("{:?}", task.intent(id).unwrap().kind);
                        format!("recover {}", kind.split([' ', '(']).next().unwrap())
                    }
                    step => format!("{step:?}").split(['(', ' ']).next().unwrap().to_owned(),
                };
                reached.insert(step);
            }
        }
    }
    let ends = ["Handback", "Failed", "Capped(Turns)", "Dropped"];
    let steps = ["Prepare", "Act", "Check", "Close", "Ask", "Recover"]
        .into_iter()
        .chain(["recover Task", "recover FileEdit", "recover Command", "recover Check"])
        .chain(["recover Squash", "recover Discard", "recover CleanUp"])
        .chain(["skip Truncated", "skip AfterEnding", "skip Capped", "skip Stopped"])
        .chain(["finish handback", "finish failed", "finish capped", "finish dropped"])
        .chain(["finish interrupted", "finish gated", "finish stopped"]);
    for must in ends.into_iter().chain(steps) {
        assert!(reached.contains(must), "no walk reaches {must}: {reached:?}");
    }
    tried.are_the_table();
}
