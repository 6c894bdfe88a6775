//! Where a rule turns: right below, right at it, right above; and each row of what is a table. Numbers and lists that a
//! walk comes by only by chance.

use std::time::Duration;

use nisse::{
    agent::retry,
    domain::{
        caps::{Cap, Caps, Spend},
        event::{Event, EventKind, ResultStatus, ToolResult},
        id::{CommitId, TaskId},
        mask::{MASKED, Mask},
        message::{Call, Part, Reply, Stop},
        model::{AnsweredBy, PinnedModel, Prices, Route, Usage},
        money::Money,
        next::{Now, Step, next},
        outcome::{End, Outcome, Pause},
        reasoning::Reasoning,
        task::{LastTrouble, Overflow, Repeat, Task},
        upstream::{Reaction, Trouble},
        window::STRONGER_EVICTIONS,
    },
    ports::llm,
};

use crate::domain_walk::started;

/// A task that stands, with the result of a call in each turn.
fn task(results: &[&str], answered_by: &[Option<(&str, bool)>]) -> Task {
    let begin = EventKind::TaskStarted(Box::new(started()));
    let id = TaskId(uuid::Uuid::from_u128(3));
    let mut task = Task::begin(&Event { task: id, seq: 1, at_ms: 0, spent_ms: 0, kind: begin }).unwrap();
    let ready = EventKind::WorktreeReady {
        snapshot: CommitId("1".repeat(40)),
        dirty: false,
        workspace: String::new(),
        notices: Vec::new(),
    };
    happens(&mut task, ready);
    for (turn, result) in (1..).zip(results) {
        let who = answered_by.get(turn as usize - 1).copied().flatten();
        let answered_by = who.map(|(backing, fallback)| AnsweredBy {
            alias: "a".to_owned(),
            backing: backing.to_owned(),
            fallback,
            prices: None,
        });
        let call = Call::minted(turn, 0, "", "read_file", "{}", &[]);
        let usage = Some(Usage { input: 100, output: 1, ..Usage::default() });
        let parts = vec![Part::Call(call.clone())];
        let reply = Reply { parts, stop: Stop::Calls, usage, cost: None, answered_by };
        let sent = EventKind::RequestSent {
            request: turn,
            turn,
            route: Route::Normalized,
            estimated_input: 100,
            max_output: 4096,
        };
        happens(&mut task, sent);
        happens(&mut task, EventKind::ReplyReceived { request: turn, turn, reply });
        let content = (*result).to_owned();
        let result = ToolResult { call: call.id, status: ResultStatus::Done, content, checkpoint: None, seen: None };
        happens(&mut task, EventKind::ToolResult(result));
        happens(&mut task, EventKind::TurnEnded { turn });
    }
    task
}

fn happens(task: &mut Task, kind: EventKind) {
    task.apply(&Event { task: task.id, seq: task.seq + 1, at_ms: 0, spent_ms: 0, kind }).unwrap();
}

#[test]
fn each_trouble_has_its_consequence_and_its_charge() {
    use Reaction::{Configuration, DropToolChoice, Evict, Fail, Interrupt, Retry, Stop};
    let rows = [
        (Trouble::Unreachable, Retry, false),
        (Trouble::Timeout, Retry, true),
        (Trouble::Overloaded, Retry, false),
        (Trouble::RateLimited, Retry, false),
        (Trouble::Cut, Retry, true),
        (Trouble::BudgetGone, Interrupt, false),
        (Trouble::KeyRefused, Configuration, false),
        (Trouble::VendorKeyRefused, Interrupt, false),
        (Trouble::ServerSetUp, Configuration, false),
        (Trouble::ModelDenied, Configuration, false),
        (Trouble::ModelUnknown, Configuration, false),
        (Trouble::ContextOverflow, Evict, false),
        (Trouble::ToolChoiceUnsupported, DropToolChoice, false),
        (Trouble::ToolsUnsupported, Fail, false),
        (Trouble::FallbackRefused, Interrupt, true),
        (Trouble::Policy, Fail, false),
        (Trouble::BadRequest, Fail, false),
        (Trouble::BadAddress, Configuration, false),
        (Trouble::BadCertificate, Configuration, false),
        (Trouble::Stopped, Stop, true),
    ];
    for (trouble, reaction, charged) in rows {
        assert_eq!((trouble.reaction(), trouble.is_charged()), (reaction, charged), "{trouble}");
    }
}

#[test]
fn trouble_is_ridden_out_with_patience_that_ends() {
    let second = Duration::from_secs;
    let long = second(3600);
    let wait = |trouble, retry_after: Option<u64>, attempts: u32, lasted: u64, left| {
        let mut task = task(&[], &[]);
        task.trouble = (attempts > 0).then(|| LastTrouble {
            trouble,
            message: String::new(),
            retry_in_ms: Some(1),
            attempts,
            since_ms: 1000,
        });
        let error = llm::Error { trouble, message: String::new(), retry_after: retry_after.map(second), usage: None };
        retry::wait(&task, 1000 + lasted, left, &error)
    };
    // twice as long each time, up to 30 s, and up to a quarter more; five times after the first
    for (attempts, backoff) in [(0, 1), (1, 2), (2, 4), (3, 8), (4, 16)] {
        for trouble in [Trouble::Overloaded, Trouble::Unreachable, Trouble::Timeout] {
            let waits = wait(trouble, None, attempts, 0, long).unwrap();
            assert!((second(backoff)..second(backoff) * 5 / 4).contains(&waits), "{trouble} {attempts}: {waits:?}");
        }
    }
    assert_eq!(wait(Trouble::Overloaded, None, 5, 0, long), None, "the sixth was the last");
    assert!(wait(Trouble::Cut, None, 1, 0, long).is_some());
    assert_eq!(wait(Trouble::Cut, None, 2, 0, long), None, "of replies that are cut the third");
    // trouble that has lasted for five minutes is for a person
    let five_minutes = 5 * 60 * 1000;
    assert!(wait(Trouble::Overloaded, None, 1, five_minutes - 1, long).is_some());
    assert_eq!(wait(Trouble::Overloaded, None, 1, five_minutes, long), None);
    // and so is a wait as long as that, or as what is left of the time cap
    assert_eq!(wait(Trouble::RateLimited, Some(299), 0, 0, long), Some(second(299)));
    assert_eq!(wait(Trouble::RateLimited, Some(300), 0, 0, long), None);
    assert_eq!(wait(Trouble::RateLimited, Some(7), 0, 0, second(8)), Some(second(7)));
    assert_eq!(wait(Trouble::RateLimited, Some(7), 0, 0, second(7)), None);
    // what is told is believed once; where nothing is told, a rate limit takes longer than other trouble
    assert_eq!(wait(Trouble::RateLimited, Some(0), 0, 0, long), Some(Duration::from_millis(100)));
    assert_eq!(wait(Trouble::RateLimited, Some(1), 3, 0, long), Some(second(8)));
    assert_eq!(wait(Trouble::RateLimited, None, 0, 0, long), Some(second(20)));
    for trouble in [Trouble::BudgetGone, Trouble::Policy, Trouble::KeyRefused, Trouble::Stopped] {
        assert_eq!(wait(trouble, Some(1), 0, 0, long), None, "{trouble}");
    }
}

#[test]
fn what_did_not_fit_is_made_smaller_so_often_and_a_parameter_dropped_once() {
    let wait = |task: &Task, trouble| {
        let error = llm::Error { trouble, message: String::new(), retry_after: None, usage: None };
        retry::wait(task, 0, Duration::from_mins(1), &error)
    };
    let mut task = task(&[], &[]);
    assert_eq!(wait(&task, Trouble::ContextOverflow), Some(Duration::ZERO));
    for (count, waits) in [(STRONGER_EVICTIONS - 1, Some(Duration::ZERO)), (STRONGER_EVICTIONS, None)] {
        task.overflow = Some(Overflow { count, estimated_input: 1, message: String::new() });
        assert_eq!(wait(&task, Trouble::ContextOverflow), waits, "{count}");
    }
    assert_eq!(wait(&task, Trouble::ToolChoiceUnsupported), Some(Duration::ZERO));
    task.tool_choice_dropped = true;
    assert_eq!(wait(&task, Trouble::ToolChoiceUnsupported), None);
}

#[test]
fn each_kind_of_token_has_its_price() {
    let money = |amount: u64| Some(Money(amount));
    let usage = Usage { input: 1000, output: 50, cache_read: 300, cache_write: 200 };
    let all = Prices { input: money(10), output: money(100), cache_read: money(1), cache_write: money(12) };
    // 500 plain, 300 read, 200 written, 50 out
    assert_eq!(all.cost(&usage), money(5000 + 300 + 2400 + 5000));
    let plain = Prices { cache_read: None, cache_write: None, ..all.clone() };
    assert_eq!(plain.cost(&usage), money(10_000 + 5000), "without a price of its own, as any other");
    assert_eq!(Prices { cache_write: None, ..all.clone() }.cost(&usage), money(5000 + 300 + 2000 + 5000));
    assert_eq!(Prices { input: None, ..all.clone() }.cost(&usage), None);
    assert_eq!(Prices { output: None, ..all.clone() }.cost(&usage), None);
    assert_eq!(all.of_input(7), money(84), "it may be written to the cache");
    assert_eq!(Prices { cache_write: money(9), ..all.clone() }.of_input(7), money(70));
    assert_eq!(plain.of_input(7), money(70));
    let estimate = Usage::estimate(100, 80);
    assert_eq!((estimate.input, estimate.output, estimate.total()), (100, 10, 110), "an eighth of the ceiling");
}

#[test]
fn a_cap_is_reached_by_reaching_it() {
    let caps = Caps { turns: 3, tokens: 100, cost: Some(Money(50)), time_ms: 1000 };
    let spend = |turns, tokens: u64, cost| Spend {
        turns,
        usage: Usage { input: tokens - 1, output: 1, ..Usage::default() },
        cost: Money(cost),
        cost_unknown: false,
    };
    for (turns, tokens, cost, time, cap) in [
        (2, 99, 49, 999, None),
        (3, 99, 49, 999, Some(Cap::Turns)),
        (2, 100, 49, 999, Some(Cap::Tokens)),
        (2, 99, 50, 999, Some(Cap::Cost)),
        (2, 99, 49, 1000, Some(Cap::Time)),
    ] {
        let spend = spend(turns, tokens, cost);
        assert_eq!(caps.breached(&spend, time), cap, "{turns} {tokens} {cost} {time}");
        // the ending call may stand in the last reply
        assert_eq!(caps.breached_within_turn(&spend, time), cap.filter(|cap| *cap != Cap::Turns));
    }
    let without = Caps { cost: None, ..caps.clone() };
    assert_eq!(without.breached(&spend(2, 99, u64::MAX), 0), None);
    let prices = Prices { input: Some(Money(2)), output: Some(Money(5)), ..Prices::default() };
    // 50, without 10 that are spent and 2 × 10 for the input, buys 4
    assert_eq!(caps.output_that_money_buys(&prices, 10, &spend(1, 9, 10)), Some(4));
    assert_eq!(caps.output_that_money_buys(&prices, 20, &spend(1, 9, 10)), Some(0));
    assert_eq!(without.output_that_money_buys(&prices, 10, &spend(1, 9, 10)), None);
}

#[test]
fn each_outcome_has_its_status_and_its_word() {
    let cause = String::new();
    let ended = |end| Outcome::Ended { end, cause: cause.clone() };
    let paused = |pause| Outcome::Paused { pause, cause: cause.clone() };
    for (outcome, code, word) in [
        (ended(End::Handback), 0, "handback"),
        (ended(End::Dropped), 0, "dropped"),
        (ended(End::Failed), 3, "failed"),
        (ended(End::Capped(Cap::Turns)), 4, "capped"),
        (ended(End::Capped(Cap::Time)), 4, "capped"),
        (paused(Pause::Interrupted), 5, "interrupted"),
        (paused(Pause::Gated), 6, "gated"),
        (paused(Pause::Stopped), 7, "stopped"),
    ] {
        assert_eq!((outcome.exit_code(), outcome.word()), (code, word));
    }
}

#[test]
fn a_thinking_budget_is_half_of_the_ceiling_at_most_and_1024_at_least() {
    for (reasoning, max_output, budget) in [
        (Reasoning::Off, 100_000, None),
        (Reasoning::Low, 100_000, Some(1024)),
        (Reasoning::Low, 2048, Some(1024)),
        (Reasoning::Low, 2047, None),
        (Reasoning::Medium, 100_000, Some(4096)),
        (Reasoning::Medium, 4096, Some(2048)),
        (Reasoning::Medium, 2046, None),
        (Reasoning::High, 100_000, Some(16_384)),
        (Reasoning::High, 32_767, Some(16_383)),
    ] {
        assert_eq!(reasoning.budget(max_output), budget, "{reasoning} {max_output}");
    }
}

#[test]
fn each_shape_of_a_token_is_masked_from_its_least_length_on() {
    let mask = Mask::default();
    for (prefix, least) in [
        ("sk-", 16),
        ("ghp_", 20),
        ("gho_", 20),
        ("ghu_", 20),
        ("ghs_", 20),
        ("ghr_", 20),
        ("github_pat_", 20),
        ("glpat-", 16),
        ("AKIA", 16),
        ("ASIA", 16),
        ("xoxb-", 16),
        ("xoxp-", 16),
        ("xoxa-", 16),
        ("xapp-", 16),
    ] {
        let token = format!("{prefix}{}7", "A".repeat(least - 1));
        assert_eq!(mask.apply(&format!("a {token} b")), format!("a {MASKED} b"), "{prefix}");
        let shorter = format!("a {prefix}{}7 b", "A".repeat(least - 2));
        assert_eq!(mask.apply(&shorter), shorter, "{prefix}");
    }
    let token = |header: &str, payload: &str, signature: &str| format!("eyJ{header}.{payload}.{signature}");
    let (short, ten) = ("a".repeat(9), "a".repeat(10));
    assert_eq!(mask.apply(&token(&ten[3..], &ten, &ten)), MASKED);
    for plain in [token(&short[3..], &ten, &ten), token(&ten[3..], &short, &ten), token(&ten[3..], &ten, &short)] {
        assert_eq!(mask.apply(&plain), plain);
    }
}

#[test]
fn a_values_lines_are_masked_from_sixteen_bytes_on() {
    let value = format!("{}\n{}\nshort-line", "a".repeat(16), "b".repeat(15));
    let mask = Mask::new(&[secrecy::SecretString::from(value)]);
    let shown = format!("1 {}\n2 {}\n3 short-line", "a".repeat(16), "b".repeat(15));
    assert_eq!(mask.apply(&shown), format!("1 {MASKED}\n2 {}\n3 short-line", "b".repeat(15)));
}

#[test]
fn what_is_opaque_goes_back_to_whoever_made_it() {
    let (old, new, other) = (Some(("m1", false)), Some(("m2", false)), Some(("m2", true)));
    for (answered, own) in [
        (vec![old, old], vec![true, true]),
        // the alias stands for another model by now
        (vec![old, new], vec![false, true]),
        // the proxy went elsewhere once: neither that reply goes back, nor does it make the others strange
        (vec![old, other], vec![true, false]),
        (vec![other, new], vec![false, true]),
        // where nothing tells who answered
        (vec![None, old, new], vec![true, false, true]),
        (vec![other], vec![false]),
    ] {
        let task = task(&vec!["x"; answered.len()], &answered);
        let is: Vec<bool> = task.turns.iter().map(|turn| task.is_its_own(turn)).collect();
        assert_eq!(is, own, "{answered:?}");
    }
}

#[test]
fn what_was_left_out_is_not_left_out_again() {
    let long = "x".repeat(123_456);
    let mut task = task(&[&long, &long, &long], &[]);
    happens(&mut task, EventKind::ContextEvicted { through_turn: 1 });
    let stub = task.turns[0].results[0].content.clone();
    assert!(stub.len() < 1000 && task.turns[1].results[0].content == long, "{stub}");
    happens(&mut task, EventKind::ContextEvicted { through_turn: 2 });
    assert_eq!(task.turns[0].results[0].content, stub, "a stub stands for the result, and for no stub");
    assert!(task.turns[1].results[0].content.len() < 1000 && task.turns[2].results[0].content == long);
}

#[test]
fn a_model_may_go_wrong_so_often_and_no_more() {
    let failed = |change: &dyn Fn(&mut Task)| {
        let mut task = task(&["x"], &[]);
        change(&mut task);
        match next(&task, Now { spent_ms: 0, stop: false }) {
            Step::Finish(Outcome::Ended { end: End::Failed, .. }) => true,
            Step::Ask => false,
            other => panic!("{other:?}"),
        }
    };
    let role = started().role;
    for (count, fails) in [(role.limits.bad_replies - 1, false), (role.limits.bad_replies, true)] {
        assert_eq!(failed(&|task| task.bad_replies = count), fails, "bad replies");
    }
    // as many checks may fail, and be mended
    for (count, fails) in [(role.limits.failed_checks, false), (role.limits.failed_checks + 1, true)] {
        assert_eq!(failed(&|task| task.failed_checks = count), fails, "failed checks");
    }
    for (count, fails) in [(1, false), (2, true)] {
        assert_eq!(failed(&|task| task.unchanged_claims = count), fails, "claims of success on an unchanged tree");
    }
    // the model is told first, and then it came once more
    for (count, told, fails) in [
        (role.limits.repeats, role.limits.repeats - 1, true),
        (role.limits.repeats, 1, true),
        (role.limits.repeats, role.limits.repeats, false),
        (role.limits.repeats, 0, false),
        (role.limits.repeats + 5, 0, false),
        (role.limits.repeats - 1, 1, false),
    ] {
        assert_eq!(
            failed(&|task| task.repeat = Repeat { key: None, count, told }),
            fails,
            "{count} times, told at {told}"
        );
    }
    let mut task = task(&["x"], &[]);
    let gated = |count, task: &mut Task| {
        task.overflow = Some(Overflow { count, estimated_input: 1, message: String::new() });
        matches!(
            next(task, Now { spent_ms: 0, stop: false }),
            Step::Finish(Outcome::Paused { pause: Pause::Gated, .. })
        )
    };
    assert!(!gated(STRONGER_EVICTIONS, &mut task) && gated(STRONGER_EVICTIONS + 1, &mut task));
}

#[test]
fn a_window_is_for_input_without_a_margin_and_the_ceiling() {
    let model = |window, max_output| PinnedModel { window, max_output, ..started().models.own };
    assert_eq!(model(100_000, 4096).input_budget(), 100_000 - 10_000 - 4096);
    assert_eq!(model(8192, 1024).input_budget(), 8192 - 1024 - 1024, "a tenth would be less");
    assert_eq!(model(1000, 4096).input_budget(), 0);
}

#[test]
fn estimates_are_scaled_by_what_the_asked_model_counted_last() {
    let counted = |inputs: &[(u64, bool)]| {
        let who: Vec<_> = inputs.iter().map(|(_, fallback)| Some(("m", *fallback))).collect();
        let mut task = task(&vec!["x"; inputs.len()], &who);
        for (turn, (input, _)) in task.turns.iter_mut().zip(inputs) {
            turn.reply.usage = Some(Usage { input: *input, ..Usage::default() });
        }
        task.calibrated(1000)
    };
    let window = started().models.own.window;
    assert_eq!(counted(&[]), 1000);
    assert_eq!(counted(&[(150, false)]), 1500);
    assert_eq!(counted(&[(50, false)]), 1000, "never fewer");
    assert_eq!(counted(&[(150, false), (120, false), (110, false)]), 1500, "the highest of the last three");
    assert_eq!(counted(&[(150, false), (120, false), (110, false), (100, false)]), 1200);
    assert_eq!(counted(&[(120, false), (300, true)]), 1200, "another model's");
    assert_eq!(counted(&[(120, false), (window, false)]), window * 10);
    assert_eq!(counted(&[(120, false), (window + 1, false)]), 1200, "no window holds it");
    let cut = |inputs: &[u64]| {
        let mut task = task(&vec!["x"; inputs.len()], &[]);
        for (turn, input) in task.turns.iter_mut().zip(inputs) {
            turn.reply.usage = Some(Usage { input: *input, ..Usage::default() });
        }
        task.cut_prompts().map(|cut| cut.replies)
    };
    // a third of about a hundred, twice
    assert_eq!(cut(&[33, 33]), Some(2));
    assert_eq!(cut(&[33, 34]), None);
    assert_eq!(cut(&[33]), None);
}
