//! The loop with random models: whatever a model sends, the loop ends, keeps its promises, and can be cut anywhere.
//!
//! A model here is a function of its seed and of the conversation, so that a request that is sent again is answered
//! alike. `PROPTEST_CASES` makes it more cases.

use std::sync::Arc;

use nisse::{
    adapters::scripted::reply,
    domain::{
        event::{Event, EventKind},
        id::{CommitId, Hash},
        intent::{IntentKind, Status},
        message::{Call, Part, Reply, Stop},
        outcome::{End, Outcome, Pause},
        task::Task,
        upstream::Trouble,
    },
    log::Journal,
    ports::llm::{self, Answer, Message, Request},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::prefix::{CLOCK, Entered, TASK, World, copy, git, stand, story, without_number};

/// Picks for one reply: the bytes of a hash of seed and conversation.
struct Dice(Vec<u8>, usize);

impl Dice {
    fn of(seed: u64, request: &Request) -> Self {
        let hash = Hash::of(format!("{seed} {:?}", request.messages).as_bytes());
        Self(hash.0.bytes().collect(), 0)
    }

    fn below(&mut self, n: usize) -> usize {
        let at = self.1 % (self.0.len() - 4);
        self.1 += 3;
        self.0[at..at + 4].iter().fold(self.1, |sum, byte| sum.wrapping_mul(31) + usize::from(*byte)) % n
    }
}

fn note(succeeded: bool) -> Value {
    json!({"changed": "some", "now_true": "it is so", "next": "nothing", "succeeded": succeeded})
}

fn call(dice: &mut Dice) -> (&'static str, String) {
    let n = dice.below(1000);
    let paths = ["a.txt", "b.txt", "new.txt", "deep/new.txt", "missing.txt", "../out.txt", ".git/config", ""];
    let path = paths[dice.below(paths.len())];
    let commands =
        ["echo more >> b.txt", "false", "cat a.txt", "rm -f new.txt", "mkdir -p x; echo y > x/y; kill -9 $$"];
    match dice.below(16) {
        0 | 1 => ("read_file", json!({"path": path}).to_string()),
        2 => ("list_files", json!({"glob": "*.txt"}).to_string()),
        3 => ("search", json!({"pattern": "t[wh]"}).to_string()),
        4 | 5 => ("write_file", json!({"path": path, "content": format!("{n}\nthree\n")}).to_string()),
        6 | 7 => ("edit_file", json!({"path": "a.txt", "old": "two", "new": "three"}).to_string()),
        8 => ("edit_file", json!({"path": path, "old": "one", "new": format!("one {n}")}).to_string()),
        9 => ("run_command", json!({"command": commands[dice.below(commands.len())]}).to_string()),
        10 => ("no_such_tool", "{}".to_owned()),
        11 => ("read_file", ["", "[", "\"x\"", "{\"path\": 7}"][dice.below(4)].to_owned()),
        12 | 13 => ("hand_back", note(true).to_string()),
        14 => ("hand_back", json!({"succeeded": "true"}).to_string()),
        _ => ("hand_back", note(dice.below(4) > 0).to_string()),
    }
}

fn answer(seed: u64, request: &Request) -> Result<Reply, llm::Error> {
    let dice = &mut Dice::of(seed, request);
    let troubles = [
        Trouble::Overloaded,
        Trouble::Cut,
        Trouble::BudgetGone,
        Trouble::ContextOverflow,
        Trouble::BadRequest,
        Trouble::Policy,
    ];
    if dice.below(40) == 0 {
        let trouble = troubles[dice.below(troubles.len())];
        return Err(llm::Error { trouble, message: "as it comes".to_owned(), retry_after: None, usage: None });
    }
    if request.require_call && dice.below(10) == 0 {
        let trouble = Trouble::ToolChoiceUnsupported;
        return Err(llm::Error { trouble, message: "no".to_owned(), retry_after: None, usage: None });
    }
    let mut parts = Vec::new();
    if dice.below(4) == 0 {
        parts.push(Part::Text(["", " ", "Let me see.", "<tool_call>{}</tool_call>"][dice.below(4)].to_owned()));
    }
    for index in 0..[0, 1, 1, 1, 1, 2, 3][dice.below(7)] {
        let (name, arguments) = call(dice);
        parts.push(Part::Call(Call::minted(request.turn, index, "", name, &arguments, &[])));
    }
    let mut reply = reply(request, parts);
    match dice.below(30) {
        0 => reply.stop = Stop::Truncated,
        1 => reply.stop = Stop::Declined("not this".to_owned()),
        2 => reply.usage = None,
        _ => {}
    }
    Ok(reply)
}

/// What holds of every run, however it ended.
fn holds(world: &World, (outcome, events, requests): &Entered) -> Result<(), TestCaseError> {
    let task = Task::fold(events).unwrap().unwrap();
    prop_assert_eq!(task.outcome(), Some(outcome.clone()));
    prop_assert!(!outcome.cause().contains('\n') && !outcome.cause().is_empty());
    prop_assert!(task.spend.turns <= task.started.caps.turns);
    prop_assert!(task.unanswered().is_none(), "a call without a result");
    for turn in &task.turns {
        prop_assert!(turn.reply.calls().map(|call| &call.id).eq(turn.results.iter().map(|result| &result.call)));
        let ran_after_ending =
            turn.results.iter().zip(turn.reply.calls()).skip_while(|(_, call)| call.name != "hand_back");
        for (result, call) in ran_after_ending.skip(1) {
            prop_assert_eq!(
                result.status,
                nisse::domain::event::ResultStatus::NotRun,
                "{} ran after the ending",
                call.name
            );
        }
    }
    let mut before: &[Arc<Message>] = &[];
    for request in requests {
        let goes_on = before.len() <= request.messages.len()
            && before.iter().zip(&request.messages).all(|(was, is)| was == is || is_left_out(was, is));
        prop_assert!(goes_on, "what was sent before is no prefix");
        before = &request.messages;
    }
    prop_assert_eq!(git(&world.repo, &["status", "--porcelain", "--branch"]), "## main\n?? unfinished.txt");
    prop_assert_eq!(git(&world.repo, &["stash", "list"]), "");
    is_settled(world, outcome, &task)
}

/// Whether these are the same results, some of them left out to save room.
fn is_left_out(was: &Message, is: &Message) -> bool {
    let (Message::Results(was), Message::Results(is)) = (was, is) else { return false };
    let pair = |(was, is): (&Answer, &Answer)| {
        let left_out = is.content.contains("left out to save room") && is.content.len() < was.content.len();
        was == is || left_out && *was == Answer { content: was.content.clone(), ..is.clone() }
    };
    was.len() == is.len() && was.iter().zip(is).all(pair)
}

fn is_settled(world: &World, outcome: &Outcome, task: &Task) -> Result<(), TestCaseError> {
    let tree = |of: &str| git(&world.repo, &["rev-parse", &format!("{of}^{{tree}}")]);
    let (head, snapshot) = (task.head.as_ref().unwrap(), &task.ready.as_ref().unwrap().snapshot);
    let branches = git(&world.repo, &["for-each-ref", "--format=%(objectname)", "refs/heads/nisse"]);
    match outcome {
        Outcome::Ended { end, .. } => {
            prop_assert!(task.intents.iter().all(|intent| intent.status != Status::Pending), "{:?}", task.intents);
            prop_assert!(!world.worktree.exists(), "the worktree is left");
            let discarded = git(&world.repo, &["for-each-ref", "--format=%(objectname)", "refs/nisse/discarded"]);
            if *end == End::Handback {
                let CommitId(id) = head;
                prop_assert_eq!((branches.as_str(), discarded.as_str()), (id.as_str(), ""));
                prop_assert_ne!(tree(&head.0), tree(&snapshot.0), "success without a change");
                prop_assert_eq!(git(&world.repo, &["rev-list", "--count", &format!("{}..{id}", snapshot.0)]), "1");
                let checks = &task.last_turn().unwrap().checks;
                prop_assert!(checks.last().is_some_and(|check| check.status == Some(0)), "success without a check");
            } else {
                prop_assert_eq!((branches.as_str(), discarded.as_str()), ("", head.0.as_str()));
            }
        }
        Outcome::Paused { .. } => {
            prop_assert_eq!(branches.as_str(), head.0.as_str(), "the branch does not sit at the last checkpoint");
            prop_assert_eq!(git(&world.worktree, &["status", "--porcelain"]), "");
            prop_assert_eq!(task.intents[0].status, Status::Pending);
        }
    }
    Ok(())
}

/// Cuts the log behind one event, enters again, and compares.
fn cut(world: &World, seed: u64, cut: usize, whole: &Entered) -> Result<(), TestCaseError> {
    let (outcome, events, requests) = whole;
    let prefix = &events[..cut];
    let task = Task::fold(prefix).unwrap().unwrap();
    if task.ended.is_some() && !task.intents.iter().any(|intent| intent.kind == IntentKind::CleanUp) {
        return Ok(()); // one transaction holds the completion and what it opens: no log ends there
    }
    let whole_tree = world.tree();
    let past = world.log_dir(&format!("past{seed}-{cut}"));
    copy(&world.repo, &past);
    world.reset(Some(&past));
    if let Some(head) = &task.head {
        stand(world, &task, head);
    }
    let log = world.log(&format!("cut{seed}-{cut}"));
    log.append(prefix).unwrap();
    let resumed = world.enter_with(Journal::resume(log, CLOCK, TASK, "resumed", Vec::new()).unwrap(), move |request| {
        answer(seed, request)
    });
    let in_command = task.pending_intents().any(|intent| matches!(intent.kind, IntentKind::Command { .. }))
        && !prefix.last().is_some_and(|last| matches!(last.kind, EventKind::ToolResult(_)));
    if in_command {
        prop_assert!(matches!(resumed.0, Outcome::Paused { pause: Pause::Gated, .. }), "{:?}", resumed.0);
        return Ok(());
    }
    prop_assert_eq!(&resumed.0, outcome);
    prop_assert_eq!(story(&resumed.1), story(events));
    prop_assert_eq!(world.tree(), whole_tree);
    for sent in &resumed.2 {
        let known = requests.iter().any(|request| without_number(request) == without_number(sent));
        prop_assert!(known, "a request for turn {} that the whole run did not send", sent.turn);
    }
    holds(world, &resumed)
}

fn seen(events: &[Event], coverage: &mut std::collections::BTreeMap<String, usize>) {
    for event in events {
        let name = match &event.kind {
            EventKind::TaskEnded { end, .. } => format!("{end:?}"),
            EventKind::TaskPaused { pause, .. } => format!("{pause:?}"),
            EventKind::ToolResult(result) => format!("{:?}", result.status),
            other => other.name().to_owned(),
        };
        *coverage.entry(name).or_default() += 1;
    }
}

#[test]
fn whatever_a_model_sends_the_loop_keeps_its_promises_and_can_be_cut_anywhere() {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let cases = std::env::var("PROPTEST_CASES").map_or(25, |_| u64::from(config.cases));
    let world = World::new();
    let mut coverage = std::collections::BTreeMap::new();
    for seed in 0..cases {
        world.reset(None);
        let mut started = world.started(8);
        started.caps.tokens = if seed % 5 == 0 { 12_000 } else { 1 << 40 };
        started.models.own.tool_choice = seed % 2 == 0;
        let journal = Journal::begin(world.log(&format!("whole{seed}")), CLOCK, TASK, started, Vec::new()).unwrap();
        let whole = world.enter_with(journal, move |request| answer(seed, request));
        seen(&whole.1, &mut coverage);
        let told = |error| panic!("seed {seed}: {error}\n{:#?}", whole.0);
        holds(&world, &whole).unwrap_or_else(told);
        // caps may come earlier after a cut, so that only a run out of their reach must end alike
        if seed % 5 != 0 {
            let at = 1 + usize::try_from(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33).unwrap() % (whole.1.len() - 1);
            cut(&world, seed, at, &whole).unwrap_or_else(|error| panic!("seed {seed}, cut behind {at}: {error}"));
        }
    }
    for must in ["Handback", "Failed", "Capped(Turns)", "Capped(Tokens)", "check_ran", "nudged", "Refused", "NotRun"] {
        assert!(coverage.contains_key(must), "no run reached {must}: {coverage:#?}");
    }
}
