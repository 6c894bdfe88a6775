//! Every question has answers that end it, wherever a history was cut.

use nisse::domain::{
    event::{Event, EventKind, ResultStatus, ToolResult},
    gate::Answer,
    id::{CommitId, IntentId},
    intent::{IntentKind, Status},
    next::{Now, Recovery, Step, next},
    outcome::{End, Outcome, Pause},
    repository::RepositoryChange,
    task::Task,
};
use proptest::prelude::*;

use super::{TASK, walk};

/// More steps than anything that is given up can take.
const STEPS: usize = 60;

/// A change of the repository that a history may hold.
pub(super) fn changes(found: Option<CommitId>) -> Vec<RepositoryChange> {
    vec![RepositoryChange::BranchMoved { branch: "nisse/x".to_owned(), found, kept: None }]
}

fn push(task: &mut Task, kind: EventKind) {
    let (seq, spent_ms) = (task.seq + 1, task.spent_ms);
    let event = Event { task: TASK, seq, at_ms: 1000 + spent_ms, spent_ms, kind };
    task.apply(&event).unwrap();
}

fn answer_open_call(task: &mut Task, status: ResultStatus) {
    let call = task.unanswered().unwrap().id.clone();
    let result = ToolResult { call, status, content: "so".to_owned(), checkpoint: None, seen: None };
    push(task, EventKind::ToolResult(result));
}

/// What the loop does where nothing stands in its way, until the task is over.
fn give_up(task: &mut Task) {
    let cause = || "c".to_owned();
    for _ in 0..STEPS {
        match next(task, Now { spent_ms: task.spent_ms, stop: false }) {
            Step::Recover(Recovery::Intent(intent)) => {
                let call = task.intent(intent).unwrap().kind.call().is_some();
                let kind = if call && task.ended.is_none() {
                    EventKind::IntentAbandoned { intent, cause: cause() }
                } else {
                    EventKind::IntentSettled { intent, cause: None }
                };
                push(task, kind);
            }
            Step::Skip(..) => answer_open_call(task, ResultStatus::NotRun),
            Step::Close => {
                let turn = task.last_turn().unwrap().number;
                push(task, EventKind::TurnEnded { turn });
            }
            Step::Finish(Outcome::Ended { end, cause }) if task.ended.is_none() => {
                let begun = task.intents.iter().any(|intent| matches!(intent.kind, IntentKind::Discard { .. }));
                if task.ready.is_some() && !begun && end != End::Handback {
                    let intent = IntentId(u32::try_from(task.intents.len()).unwrap());
                    let kind = IntentKind::Discard { tip: super::commit(3), end: end.clone(), cause: cause.clone() };
                    push(task, EventKind::IntentOpened { intent, kind });
                }
                push(task, EventKind::TaskEnded { end, cause });
                push(task, EventKind::IntentSettled { intent: IntentId::TASK, cause: None });
            }
            Step::Finish(Outcome::Ended { .. }) => return,
            step => panic!("{step:?} of a task that was given up"),
        }
    }
    panic!("no end after {STEPS} steps: {task:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happened_a_task_can_be_given_up(choices in proptest::collection::vec(any::<u8>(), 1..80)) {
        let events = walk(&choices);
        let mut task = Task::begin(&events[0]).unwrap();
        for event in &events[1..] {
            if task.ended.is_none() {
                let mut cut = task.clone();
                push(&mut cut, EventKind::SpanStarted { cause: "drop".to_owned() });
                push(&mut cut, EventKind::GateAnswered { answer: Answer::Drop });
                give_up(&mut cut);
                prop_assert!(cut.ended.is_some());
                prop_assert_eq!(cut.intents[0].status, Status::Settled);
            }
            task.apply(event).unwrap();
        }
    }

    /// Where it is asked what becomes of the files, the answer has its effect once, and is asked for no more.
    #[test]
    fn an_answer_about_the_files_ends_the_question(choices in proptest::collection::vec(any::<u8>(), 1..80)) {
        let events = walk(&choices);
        let mut task = Task::begin(&events[0]).unwrap();
        for event in &events[1..] {
            task.apply(event).unwrap();
            let mut asks = task.clone();
            if asks.paused.is_some() {
                push(&mut asks, EventKind::SpanStarted { cause: "resumed".to_owned() });
            }
            let Step::Recover(found) = next(&asks, Now { spent_ms: asks.spent_ms, stop: false }) else { continue };
            if asks.ended.is_some() || asks.ready.is_none() || asks.is_given_up() || asks.request.is_some() {
                continue;
            }
            let of_files = match &found {
                Recovery::Worktree => asks.checkout_restored().is_none(),
                Recovery::Intent(id) => {
                    let kind = &asks.intent(*id).unwrap().kind;
                    let open = asks.unanswered().map(|call| &call.id);
                    matches!(kind, IntentKind::FileEdit { call, .. } | IntentKind::Command { call, .. } if open == Some(call))
                }
            };
            if !of_files {
                continue;
            }
            push(&mut asks, EventKind::TaskPaused { pause: Pause::Gated, cause: "c".to_owned() });
            prop_assert!(asks.asks_about_files() || !asks.uninspected, "nobody could answer: {:?}", asks);
            for answer in [Answer::Rollback, Answer::Keep] {
                let mut answered = asks.clone();
                push(&mut answered, EventKind::SpanStarted { cause: "resumed".to_owned() });
                push(&mut answered, EventKind::GateAnswered { answer });
                prop_assert_eq!(answered.answer(), Some(answer));
                match next(&answered, Now { spent_ms: answered.spent_ms, stop: false }) {
                    Step::Recover(Recovery::Worktree) => {
                        push(&mut answered, EventKind::Recovered { cause: "c".to_owned(), checkpoint: None });
                    }
                    Step::Recover(Recovery::Intent(intent)) => {
                        answer_open_call(&mut answered, ResultStatus::Failed);
                        push(&mut answered, EventKind::IntentSettled { intent, cause: None });
                    }
                    step => panic!("{step:?} where an answer waits for its effect"),
                }
                prop_assert_eq!(answered.answer(), None);
                let again = next(&answered, Now { spent_ms: answered.spent_ms, stop: false });
                let same = match &again {
                    Step::Recover(again) => *again == found,
                    Step::Prepare | Step::Act(_) | Step::Skip(..) | Step::Check(_) | Step::Close | Step::Ask
                    | Step::Finish(_) => false,
                };
                prop_assert!(!same, "asked again: {:?}", again);
            }
        }
    }
}
