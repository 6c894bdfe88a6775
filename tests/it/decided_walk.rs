//! Thousands of tasks, decided by `next` and answered by random models in process. No repository stands behind them:
//! what the loop would record is made up, and many are cut off anywhere and taken up again.

use nisse::domain::{
    checkout::Isolation,
    event::{Event, EventKind, ResultStatus, ToolResult},
    id::{CallId, Hash, IntentId, TaskId},
    intent::{IntentKind, Status},
    model::Route,
    next::{Now, Recovery, Step, next},
    note::Note,
    outcome::{End, Handback, Outcome},
    task::Task,
    upstream::Trouble,
};
use proptest::prelude::*;

use crate::domain_walk::{Dice, commit, reply, started};

const TASK: TaskId = TaskId(uuid::Uuid::from_u128(8));
/// More steps than any of these tasks can take: five turns, a few calls each, a few attempts and cuts.
const STEPS: usize = 2000;

struct Walk<'a> {
    task: Task,
    dice: Dice<'a>,
    cuts: u32,
    completions: u32,
}

impl Walk<'_> {
    fn push(&mut self, kind: EventKind) {
        let spent_ms = self.task.spent_ms + u64::from(self.dice.below(40) == 0) * 700;
        self.completions += u32::from(matches!(kind, EventKind::TaskEnded { .. }));
        let event = Event { task: TASK, seq: self.task.seq + 1, at_ms: spent_ms, spent_ms, kind };
        self.task.apply(&event).unwrap();
    }

    /// The process dies here, and another takes over. True if it did.
    fn cut(&mut self) -> bool {
        if self.cuts >= 4 || self.dice.below(8) > 0 {
            return false;
        }
        self.cuts += 1;
        self.push(EventKind::SpanStarted { cause: "resumed".to_owned() });
        true
    }

    fn answer(&mut self, call: &CallId, status: ResultStatus) {
        let checkpoint = (self.dice.below(3) == 0 && status == ResultStatus::Done).then(|| commit(4));
        let content = self.dice.pick(&["", "ok", "another"]).to_owned();
        self.push(EventKind::ToolResult(ToolResult { call: call.clone(), status, content, checkpoint, seen: None }));
    }

    fn open(&mut self, kind: IntentKind) -> IntentId {
        let intent = IntentId(u32::try_from(self.task.intents.len()).unwrap());
        self.push(EventKind::IntentOpened { intent, kind });
        intent
    }

    fn act(&mut self, call: &CallId) {
        let name = self.task.unanswered().unwrap().name.clone();
        match name.as_str() {
            "hand_back" => {
                let succeeded = self.dice.below(3) > 0;
                let word = || "w".to_owned();
                let handback = Handback { changed: word(), now_true: word(), next: word(), succeeded };
                self.push(EventKind::EndingAccepted { call: call.clone(), note: Note::HandBack(handback) });
            }
            "read_file" => self.answer(call, ResultStatus::Done),
            "write_file" | "run_command" => {
                let kind = if name == "write_file" {
                    let (path, answer) = ("a".to_owned(), "ok".to_owned());
                    IntentKind::FileEdit { call: call.clone(), path, before: None, after: Hash::of(b"a"), answer }
                } else {
                    IntentKind::Command { call: call.clone(), command: "true".to_owned() }
                };
                let intent = self.open(kind);
                if !self.cut() {
                    let status = self.dice.pick(&[ResultStatus::Done, ResultStatus::Failed]);
                    self.answer(call, status);
                    self.push(EventKind::IntentSettled { intent, cause: None });
                }
            }
            _ => self.answer(call, ResultStatus::Unreadable),
        }
    }

    fn recover(&mut self, found: &Recovery) {
        let cause = "looked".to_owned();
        let Recovery::Intent(intent) = *found else {
            return self.push(EventKind::Recovered { cause, checkpoint: None });
        };
        let kind = self.task.intent(intent).unwrap().kind.clone();
        let open = kind.call().filter(|call| self.task.unanswered().is_some_and(|next| next.id == **call)).cloned();
        match (open, kind) {
            (Some(_), IntentKind::Check { .. }) => self.push(EventKind::IntentAbandoned { intent, cause }),
            (Some(call), _) if self.dice.below(2) == 0 => {
                self.answer(&call, ResultStatus::Done);
                self.push(EventKind::IntentSettled { intent, cause: None });
            }
            (Some(_), _) => self.push(EventKind::IntentAbandoned { intent, cause }),
            (None, _) => self.push(EventKind::IntentSettled { intent, cause: None }),
        }
    }

    fn check(&mut self, call: &CallId) {
        let claims = self.task.last_turn().unwrap().ending.as_ref().unwrap().1.claims_success();
        if !claims {
            return self.answer(call, ResultStatus::Done);
        }
        if self.dice.below(4) == 0 {
            return self.answer(call, ResultStatus::Refused);
        }
        let intent = self.open(IntentKind::Check { call: call.clone() });
        if self.cut() {
            return;
        }
        let passed = self.dice.below(2) == 0;
        self.push(EventKind::CheckRan {
            call: call.clone(),
            command: "true".to_owned(),
            status: Some(i32::from(!passed)),
            output_tail: String::new(),
            duration_ms: 1,
        });
        self.answer(call, if passed { ResultStatus::Done } else { ResultStatus::Failed });
        self.push(EventKind::IntentSettled { intent, cause: None });
    }

    fn ask(&mut self) {
        let caps = &self.task.started.caps;
        assert_eq!(caps.breached(&self.task.spend, self.task.spent_ms), None, "asks although a cap is reached");
        let (request, turn) = (self.task.requests + 1, self.task.last_turn().map_or(0, |turn| turn.number) + 1);
        self.push(EventKind::RequestSent {
            request,
            turn,
            route: Route::Native,
            estimated_input: 100,
            max_output: 4096,
        });
        if self.cut() {
            return;
        }
        if self.dice.below(5) > 0 {
            let reply = reply(&mut self.dice, turn);
            return self.push(EventKind::ReplyReceived { request, turn, reply });
        }
        let troubles = [Trouble::Overloaded, Trouble::Cut, Trouble::BudgetGone, Trouble::BadRequest];
        let trouble = self.dice.pick(&troubles);
        let again = matches!(trouble, Trouble::Overloaded | Trouble::Cut) && self.dice.below(3) > 0;
        let (message, retry_in_ms) = ("m".to_owned(), again.then_some(1));
        self.push(EventKind::RequestEnded { request, trouble, message, usage: None, retry_in_ms });
    }

    fn finish(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Paused { pause, cause } => self.push(EventKind::TaskPaused { pause, cause }),
            Outcome::Ended { end, cause } => {
                let begun = self.task.intents.iter().any(|intent| {
                    matches!(intent.kind, IntentKind::Squash { .. } | IntentKind::Discard { .. })
                        && intent.status != Status::Abandoned
                });
                if !begun {
                    let kind = if end == End::Handback {
                        IntentKind::Squash { from: commit(1), to: commit(2) }
                    } else {
                        IntentKind::Discard { tip: commit(3), end: end.clone(), cause: cause.clone() }
                    };
                    let intent = self.open(kind);
                    if self.cut() {
                        return;
                    }
                    self.push(EventKind::IntentSettled { intent, cause: None });
                    if self.cut() {
                        return;
                    }
                }
                self.push(EventKind::TaskEnded { end, cause });
                if !self.cut() {
                    self.push(EventKind::IntentSettled { intent: IntentId::TASK, cause: None });
                }
            }
        }
    }

    /// To its end, or to a rest that nobody takes up.
    fn run(&mut self) {
        for _ in 0..STEPS {
            self.cut();
            let stop = self.dice.below(60) == 0;
            match next(&self.task, Now { spent_ms: self.task.spent_ms, stop }) {
                Step::Prepare => self.push(EventKind::WorktreeReady {
                    snapshot: commit(9),
                    dirty: false,
                    workspace: String::new(),
                    notices: Vec::new(),
                }),
                Step::Recover(found) => self.recover(&found),
                Step::Act(call) => self.act(&call),
                Step::Skip(call, _) => self.answer(&call, ResultStatus::NotRun),
                Step::Check(call) => self.check(&call),
                Step::Close => {
                    let turn = self.task.last_turn().unwrap().number;
                    if self.dice.below(3) == 0 {
                        self.push(EventKind::Nudged { text: "n".to_owned() });
                    }
                    self.push(EventKind::TurnEnded { turn });
                }
                Step::Ask => self.ask(),
                Step::Finish(outcome) if self.task.outcome().is_none() => self.finish(outcome),
                Step::Finish(Outcome::Ended { .. }) => return,
                Step::Finish(Outcome::Paused { .. }) => {
                    if self.dice.below(4) == 0 {
                        return;
                    }
                    self.push(EventKind::SpanStarted { cause: "resumed".to_owned() });
                }
            }
        }
        panic!("no end after {STEPS} steps: {:?}", self.task);
    }
}

fn walked(choices: &[u8]) -> (Task, u32) {
    let isolation = Isolation::Worktree;
    let mut started = started();
    started.workplace.isolation = isolation;
    let kind = EventKind::TaskStarted(Box::new(started));
    let first = Event { task: TASK, seq: 1, at_ms: 0, spent_ms: 0, kind };
    let dice = Dice(choices.iter().cycle());
    let mut walk = Walk { task: Task::begin(&first).unwrap(), dice, cuts: 0, completions: 0 };
    walk.run();
    (walk.task, walk.completions)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_task_ends_once_whatever_its_model_does(choices in proptest::collection::vec(any::<u8>(), 50..300)) {
        let (task, completions) = walked(&choices);
        prop_assert_eq!(completions, u32::from(task.ended.is_some()));
        prop_assert!(task.spend.turns <= task.started.caps.turns);
        if let Some((end, _)) = &task.ended {
            prop_assert!(task.turns.iter().all(|turn| turn.closed && turn.results.len() == turn.reply.calls().count()));
            let accepted = task.note.as_ref().is_some_and(Note::claims_success);
            prop_assert_eq!(*end == End::Handback, accepted, "success is what was observed");
            let own = task.intent(IntentId::TASK).map(|own| own.status);
            prop_assert_eq!(own, Some(Status::Settled));
        }
    }
}

#[test]
fn the_walks_end_in_every_way() {
    let mut seen = std::collections::BTreeSet::new();
    let mut state = 7u32;
    for _ in 0..3000 {
        let choices: Vec<u8> = (0..200)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        seen.insert(walked(&choices).0.outcome().map_or("none", |outcome| outcome.word()));
    }
    let wanted = ["capped", "failed", "handback", "interrupted", "stopped"];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), wanted);
}
