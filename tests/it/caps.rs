//! Caps are hard: each ends the task where it says, and a resume does not start them anew.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Asked, Finish, Run, Script, Step, TestEnvironment, Wire, wait_until};

/// Writes another file in each turn, for ever.
fn busy() -> Script {
    Script::by_content(|asked| {
        let path = format!("f{}.txt", asked.replies());
        Step::call("write_file", json!({"path": path, "content": "x\n"}))
    })
}

#[test]
fn a_cap_of_n_turns_allows_n_replies() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(wire, busy());
        let result = env.delegate(&["--max-turns", "3"], "Write for ever.").ends(4, "capped");
        assert_eq!((env.server.requests().len(), &result["turns"]), (3, &json!(3)));
        assert_eq!(result["cause"], "the cap of 3 turns was reached after 3 turns");
        env.assert_discarded(&result);
        let kept = format!("refs/nisse/discarded/{}", result["task"].as_str().unwrap());
        assert!(env.checkout.file_at(&kept, "f2.txt").is_some(), "the last turn's work is not kept");
    }
}

/// The last line of what a person is told, which holds a command, run by a shell.
fn as_told(env: &TestEnvironment, stderr: &str) -> Run {
    let told =
        stderr.lines().find_map(|line| line.split_once(": nisse ").filter(|(before, _)| before.contains("go on")));
    let (_, command) = told.unwrap_or_else(|| panic!("no command is told: {stderr}"));
    let line = format!("\"$0\" {command} --json");
    env.run_program("sh", &["-c", &line, env!("CARGO_BIN_EXE_nisse")])
}

#[test]
fn the_command_that_goes_on_with_a_capped_task_works() {
    for wire in Wire::BOTH {
        let script = Script::by_content(|asked: &Asked| match (asked.replies(), asked.raw.contains("half.txt")) {
            (0, false) => Step::call("write_file", json!({"path": "half.txt", "content": "half\n"})),
            (0, true) => Step::call("write_file", json!({"path": "whole.txt", "content": "whole\n"})),
            (1, false) => Step::call("list_files", json!({})),
            _ => Step::hand_back(),
        });
        let env = TestEnvironment::new(wire, script);
        env.checkout.write("mine.txt", "unfinished\n");
        let brief = "Don't stop; make two $FILES.";
        let run = env.delegate(&["--max-turns", "1", "--check", "test -e 'ha'lf.txt"], brief);
        run.ends(4, "capped");
        let again = as_told(&env, &run.stderr);
        let result = again.ends(0, "handback");
        assert_eq!(result["check"]["command"], "test -e 'ha'lf.txt", "{}", again.report());
        assert!(env.server.requests().last().unwrap().raw.contains(brief));
        for file in ["half.txt", "whole.txt"] {
            assert!(env.on_branch(&result, file).is_some(), "{file}");
        }
        env.assert_checkout_unchanged();
        // and what both have made comes home, the first part as it is told
        let first =
            run.stderr.lines().find_map(|line| line.split_once("for the changes of this one: nisse ")).unwrap().1;
        let line = format!("\"$0\" {first}");
        env.run_program("sh", &["-c", &line, env!("CARGO_BIN_EXE_nisse")]).exits(0);
        env.run(&["apply", "--json", result["task"].as_str().unwrap()]).exits(0);
        let made: Vec<_> = env.changed_paths().into_iter().filter(|path| !path.starts_with(".git")).collect();
        assert_eq!(made, ["half.txt", "whole.txt"]);
    }
    // where nothing was made, it begins where the first began
    let env = TestEnvironment::new(Wire::Chat, busy());
    let run = env.delegate(&["--max-tokens", "50"], "Write.");
    run.ends(4, "capped");
    let command = "with a larger cap: nisse delegate --max-tokens 100 Write.";
    assert!(run.stderr.contains(command), "{}", run.report());
}

#[test]
fn the_ending_call_may_stand_in_the_last_turn() {
    for wire in Wire::BOTH {
        let script = vec![Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})), Step::hand_back()];
        let env = TestEnvironment::new(wire, script);
        env.delegate(&["--max-turns", "2"], "Make b.txt.").ends(0, "handback");
    }
}

#[test]
fn the_reply_that_reaches_the_token_cap_is_charged_and_runs_nothing() {
    for wire in Wire::BOTH {
        let touched = Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})).usage(30_000, 20);
        let ending =
            Step::call("write_file", json!({"path": "c.txt", "content": "c\n"})).and_hand_back().usage(30_000, 20);
        let env = TestEnvironment::new(wire, vec![touched, ending]);
        let result = env.delegate(&["--max-tokens", "60000"], "Make b.txt.").ends(4, "capped");
        assert_eq!(result["cause"], "the cap of 60000 tokens was reached: 60040 spent in 2 turns");
        assert_eq!(result["tokens"]["input"], 60_000, "the reply that broke the cap was paid for: {result}");
        let kept = format!("refs/nisse/discarded/{}", result["task"].as_str().unwrap());
        assert!(env.checkout.file_at(&kept, "b.txt").is_some());
        assert_eq!(env.checkout.file_at(&kept, "c.txt"), None, "a call of the reply that broke the cap ran");
    }
}

#[test]
fn no_request_is_sent_whose_input_alone_would_reach_the_cap() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(wire, busy());
        let result = env.delegate(&["--max-tokens", "50"], "Write for ever.").ends(4, "capped");
        assert_eq!(env.server.requests().len(), 0);
        let cause = result["cause"].as_str().unwrap();
        assert!(cause.contains("cap of 50 tokens") && cause.contains("0 spent in 0 turns"), "{cause}");
        env.assert_discarded(&result);
    }
}

#[test]
fn the_money_cap_ends_the_task() {
    for wire in Wire::BOTH {
        // replies cost 1000 × 1e-6 + 50 × 2e-6 = 0.0011, and 3000 × 1e-6 + 50 × 2e-6 = 0.0031
        let write = |n: u32| Step::call("write_file", json!({"path": format!("f{n}.txt"), "content": "x\n"}));
        let env = TestEnvironment::new(wire, vec![write(0), write(1).usage(3000, 50)]);
        let result = env.delegate(&["--max-cost", "0.004"], "Write for ever.").ends(4, "capped");
        assert_eq!(env.server.requests().len(), 2);
        assert_eq!(result["cause"], "the cost cap of $0.0040 was reached: $0.0042 spent in 2 turns");
        let kept = format!("refs/nisse/discarded/{}", result["task"].as_str().unwrap());
        assert!(env.checkout.file_at(&kept, "f0.txt").is_some());
        assert_eq!(env.checkout.file_at(&kept, "f1.txt"), None, "a call of the reply that broke the cap ran");
        assert!((result["cost_usd"].as_f64().unwrap() - 0.0042).abs() < 1e-9, "{result}");
    }
}

#[test]
fn what_the_money_does_not_buy_is_not_asked_for() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(wire, busy());
        let result = env.delegate(&["--max-cost", "0.0001"], "Write for ever.").ends(4, "capped");
        assert_eq!(env.server.requests().len(), 0);
        let cause = result["cause"].as_str().unwrap();
        assert!(cause.starts_with("the cost cap of $0.0001 leaves no room for the next request"), "{cause}");
        drop(env);
        // about 1,900 tokens of input leave some 500 for the output
        let env = TestEnvironment::new(wire, vec![Step::text("cut").finish(Finish::Length).usage(1000, 500)]);
        let result = env.delegate(&["--max-cost", "0.003"], "Write for ever.").ends(4, "capped");
        let ceiling = env.server.requests()[0].body["max_tokens"].as_u64().unwrap();
        assert!((1..800).contains(&ceiling), "{ceiling}");
        assert!(result["cause"].as_str().unwrap().contains("cost cap"), "{result}");
    }
}

#[test]
fn a_setup_that_takes_all_the_time_is_capped() {
    let env = TestEnvironment::new(Wire::Chat, busy()).with_running_clock();
    env.set("NISSE_WORKTREE_SETUP", "sleep 600");
    let result = env.delegate(&["--max-time", "1s"], "Write for ever.").ends(4, "capped");
    assert!(result["cause"].as_str().unwrap().contains("time cap"), "{result}");
    assert_eq!(env.server.requests().len(), 0);
    assert!(env.run(&["resume", "--json"]).exits(0).stderr.contains("nothing is pending"));
}

#[test]
fn what_a_killed_process_used_counts() {
    let scratch = tempfile::tempdir().unwrap();
    let asked = scratch.path().join("asked");
    let seen = asked.clone();
    let late = Step::hand_back().before(move || std::fs::write(&seen, "").unwrap()).delay(Duration::from_mins(10));
    let env = TestEnvironment::new(Wire::Chat, Script::ByHistory(vec![late])).with_running_clock();
    let running = env.start(&["delegate", "--json", "--max-time", "8s", "Write for ever."]);
    assert!(wait_until(Duration::from_mins(1), || asked.exists()), "no request");
    let beat = || {
        let locks = std::fs::read_dir(env.state().join("locks")).unwrap().flatten();
        let beat = locks.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|end| end == "beat"));
        let text = std::fs::read_to_string(beat?).ok()?;
        text.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    assert!(wait_until(Duration::from_mins(1), || beat().is_some_and(|ms| ms >= 900)), "no beat");
    running.signal(Signal::KILL);
    env.finish(running);
    let used = beat().unwrap();
    let events = env.run(&["resume", "--json"]).json();
    let begun = events.iter().find(|line| line["event"] == "span_started").unwrap();
    assert!(begun["spent_ms"].as_u64().unwrap() >= used, "{used}: {begun}");
    assert_eq!(beat(), None, "it goes where nothing was killed");
}

#[test]
fn an_ending_note_that_is_refused_again_and_again_ends_the_task() {
    for wire in Wire::BOTH {
        let bad = |n: usize| Step::call("hand_back", json!({"changed": format!("try {n}"), "succeeded": true}));
        let env = TestEnvironment::new(wire, (0..30).map(bad).collect::<Vec<_>>());
        let result = env.delegate(&[], "Write for ever.").ends(3, "failed");
        assert_eq!(result["turns"], 4, "{result}");
        assert!(env.server.requests()[3].raw.contains("3 times in a row"), "it is told before");
    }
}

#[test]
fn a_money_cap_on_a_model_without_prices_is_refused_before_anything_begins() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(wire, busy());
        env.server.without_prices();
        let run = env.delegate(&["--max-cost", "1"], "Write for ever.");
        assert!(run.exits(2).stderr.contains("input_cost_per_token"), "{}", run.report());
        assert_eq!(env.server.requests().len(), 0);
        env.configure(&format!(
            "[models.\"{}\"]\ninput_cost_per_token = 0.001\noutput_cost_per_token = 0.001\n",
            wire.alias()
        ));
        env.delegate(&["--max-cost", "1"], "Write for ever.").ends(4, "capped");
    }
}

#[test]
fn the_time_cap_ends_a_request_in_its_middle() {
    for wire in Wire::BOTH {
        let slow = Step::hand_back().delay(Duration::from_mins(10));
        let env = TestEnvironment::new(wire, vec![slow]).with_running_clock();
        let result = env.delegate(&["--max-time", "3s"], "Be quick.").ends(4, "capped");
        env.assert_discarded(&result);
    }
}

#[test]
fn the_time_cap_ends_a_command_in_its_middle() {
    for wire in Wire::BOTH {
        let slow = Step::call("run_command", json!({"command": "sleep 600"}));
        let env = TestEnvironment::new(wire, vec![slow]).with_running_clock();
        let result = env.delegate(&["--max-time", "3s"], "Be quick.").ends(4, "capped");
        env.assert_discarded(&result);
    }
}

#[test]
fn a_request_whose_input_alone_reaches_the_token_cap_is_not_sent() {
    let env = TestEnvironment::new(Wire::Chat, vec![Step::give_up(), Step::give_up()]);
    let run = env.delegate(&[], "Be brief.");
    let sent = run.exits(3).json().into_iter().find(|line| line["event"] == "request_sent").unwrap();
    let estimate = sent["data"]["estimated_input"].as_u64().unwrap();
    let within = |cap: u64| env.delegate(&["--max-tokens", &cap.to_string()], "Be brief.");
    within(estimate).ends(4, "capped");
    assert_eq!(env.server.requests().len(), 1, "it was sent");
    within(estimate + 1).ends(3, "failed");
    assert_eq!(env.server.requests()[1].body["max_tokens"], 1);
}

#[test]
fn the_time_cap_ends_a_check_in_its_middle_and_that_is_no_failed_check() {
    let work = Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}));
    let env = TestEnvironment::new(Wire::Chat, vec![work, Step::hand_back()]).with_running_clock();
    let run = env.delegate(&["--max-time", "10s", "--check", "exec sleep 600"], "Be quick.");
    run.ends(4, "capped");
    assert!(run.stdout.contains("Not judged: the task's time cap was reached"), "{}", run.report());
}

#[test]
fn a_reply_cut_by_what_is_left_of_the_token_cap_is_capped_and_not_truncated() {
    for wire in Wire::BOTH {
        // after two bad replies a third would fail the task
        let prose = || Step::text("I think.").usage(20_000, 10);
        let env = TestEnvironment::new(
            wire,
            vec![
                prose(),
                prose(),
                Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})).finish(Finish::Length),
            ],
        );
        let result = env.delegate(&["--max-tokens", "44000"], "Make b.txt.").ends(4, "capped");
        let ceilings: Vec<u64> =
            env.server.requests().iter().map(|asked| asked.body["max_tokens"].as_u64().unwrap()).collect();
        assert!(ceilings[..2] == [4096, 4096] && ceilings[2] < 44_000 - 40_020, "{ceilings:?}");
        assert!(result["cause"].as_str().unwrap().contains("cap of 44000 tokens"), "{result}");
        assert_eq!(result["turns"], 3);
    }
}

#[test]
fn time_is_counted_across_resumes() {
    // either command alone is well within the cap, both are not
    let slow = || Step::call("run_command", json!({"command": "sleep 7"}));
    let script = vec![
        slow(),
        Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded."),
        slow(),
        Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})),
        Step::hand_back(),
    ];
    let env = TestEnvironment::new(Wire::Chat, script).with_running_clock();
    env.delegate(&["--max-time", "12s"], "Be quick.").ends(5, "interrupted");
    let result = env.run(&["resume", "--json"]).ends(4, "capped");
    assert!(result["cause"].as_str().unwrap().starts_with("the time cap of 12 s was reached: 1"), "{result}");
    assert_eq!(result["turns"], 2);
    assert!(result["duration_s"].as_f64().unwrap() >= 12.0, "{result}");
}

#[test]
fn money_and_tokens_are_counted_across_resumes() {
    let limits: [(&[&str], &str); 2] = [(&["--max-cost", "0.005"], "cost cap"), (&["--max-tokens", "5000"], "tokens")];
    for (limit, words) in limits {
        let mut steps: Vec<Step> =
            (0..2).map(|n| Step::call("write_file", json!({"path": format!("f{n}.txt"), "content": "x\n"}))).collect();
        steps.push(Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded."));
        steps.push(Step::call("write_file", json!({"path": "f3.txt", "content": "x\n"})).usage(2900, 50));
        let env = TestEnvironment::new(Wire::Messages, steps);
        env.delegate(limit, "Write for ever.").ends(5, "interrupted");
        let result = env.run(&["resume", "--json"]).ends(4, "capped");
        assert!(result["cause"].as_str().unwrap().contains(words), "{result}");
        assert_eq!(result["turns"], 3, "{result}");
    }
}

#[test]
fn a_resume_goes_on_counting() {
    for wire in Wire::BOTH {
        let mut steps: Vec<Step> =
            (0..2).map(|n| Step::call("write_file", json!({"path": format!("f{n}.txt"), "content": "x\n"}))).collect();
        steps.push(Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded."));
        steps.push(Step::call("write_file", json!({"path": "f3.txt", "content": "x\n"})));
        let env = TestEnvironment::new(wire, steps);
        env.delegate(&["--max-turns", "3"], "Write for ever.").ends(5, "interrupted");
        let result = env.run(&["resume", "--json"]).ends(4, "capped");
        assert_eq!(result["turns"], 3);
    }
}

#[test]
fn a_reply_without_usage_is_charged_the_estimate() {
    for wire in Wire::BOTH {
        let step = || Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})).no_usage();
        let env = TestEnvironment::new(wire, vec![step(), Step::hand_back().no_usage().finish(Finish::Calls)]);
        let result = env.delegate(&[], "Make b.txt.").ends(0, "handback");
        assert!(result["tokens"]["input"].as_u64().unwrap() > 200, "nothing was charged: {result}");
        assert!(result["tokens"]["output"].as_u64().unwrap() >= 2 * 4096 / 8, "no estimate: {result}");
    }
}
