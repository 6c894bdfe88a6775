//! Whole conversations, word for word: what the model is told, what a program reads, what a person is told.
//!
//! One snapshot a behaviour and route. A change of words shows up here, to be looked at: `cargo insta review`.

use std::time::Duration;

use serde_json::json;

use crate::support::{Finish, Run, Step, TestEnvironment, Wire, opening, transcript};

/// Holds the last run's transcript against the snapshot of that name for the route.
fn kept(env: &TestEnvironment, run: &Run, name: &str) {
    let text = transcript(&env.server.requests(), &run.stdout, &run.stderr, env.root().to_str().unwrap());
    assert_kept(env, name, &text);
}

fn assert_kept(env: &TestEnvironment, name: &str, text: &str) {
    let route = match env.server.requests().first().map(|asked| asked.wire) {
        Some(Wire::Messages) => "native",
        Some(Wire::Chat) | None => "normalized",
    };
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(format!("{name}_{route}"), text);
    });
}

/// A delegation with these answers, kept under that name on both routes.
fn delegation(name: &str, exit: i32, options: &[&str], steps: impl Fn() -> Vec<Step>) {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(wire, steps());
        let run = env.delegate(options, "Make b.txt hold one line, b.");
        run.exits(exit);
        kept(&env, &run, name);
    }
}

fn write() -> Step {
    write_with("b\n")
}

fn write_with(content: &str) -> Step {
    Step::call("write_file", json!({"path": "b.txt", "content": content}))
}

#[test]
fn what_every_task_begins_with() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(wire, vec![write(), Step::hand_back()]);
        let run = env.delegate(&[], "Make b.txt hold one line, b.");
        run.exits(0);
        let text = opening(&env.server.requests(), &run.stdout, env.root().to_str().unwrap());
        assert_kept(&env, "opening", &text);
    }
}

#[test]
fn success() {
    delegation("success", 0, &[], || {
        vec![
            Step::call("read_file", json!({"path": "a.txt"})).thinking("Look first.", "sig=="),
            write(),
            Step::hand_back(),
        ]
    });
}

#[test]
fn is_given_up() {
    delegation("given_up", 3, &[], || vec![write(), Step::give_up()]);
}

#[test]
fn capped_turns() {
    delegation("capped_turns", 4, &["--max-turns", "1"], || vec![write()]);
}

#[test]
fn capped_tokens() {
    delegation("capped_tokens", 4, &["--max-tokens", "30000"], || vec![write().usage(30_000, 10)]);
}

#[test]
fn capped_cost() {
    delegation("capped_cost", 4, &["--max-cost", "0.003"], || vec![write().usage(3000, 50)]);
}

#[test]
fn capped_time() {
    for wire in Wire::BOTH {
        let slow = Step::hand_back().delay(Duration::from_mins(10));
        let env = TestEnvironment::new(wire, vec![slow]).with_running_clock();
        let run = env.delegate(&["--max-time", "6s"], "Make b.txt hold one line, b.");
        run.exits(4);
        kept(&env, &run, "capped_time");
    }
}

#[test]
fn handback_refused() {
    delegation("handback_refused", 0, &[], || {
        vec![
            Step::hand_back(),
            Step::call("hand_back", json!({"changed": "", "succeeded": true})),
            write(),
            Step::hand_back(),
        ]
    });
}

#[test]
fn check_fails_then_passes() {
    let check = ["--check", "grep -qx b b.txt || { echo b.txt is wrong; exit 4; }"];
    delegation("check_fails_then_passes", 0, &check, || {
        vec![
            write_with("c\n"),
            Step::hand_back(),
            Step::call("edit_file", json!({"path": "b.txt", "old": "c", "new": "b"})),
            Step::hand_back(),
        ]
    });
}

#[test]
fn bad_arguments() {
    delegation("bad_arguments", 0, &[], || {
        vec![
            Step::raw_call("write_file", r#"{"path": "b.txt", "con"#),
            Step::call("write_file", json!({"file": "b.txt"})),
            write(),
            Step::hand_back(),
        ]
    });
}

#[test]
fn tool_not_offered() {
    delegation("tool_not_offered", 0, &[], || {
        vec![Step::call("execute_python", json!({"code": "1"})), write(), Step::hand_back()]
    });
}

#[test]
fn prose_then_nothing() {
    delegation("prose_then_nothing", 0, &[], || {
        vec![Step::text("I will write the file."), Step::empty(), write(), Step::hand_back()]
    });
}

#[test]
fn three_bad_replies() {
    delegation("three_bad_replies", 3, &[], || vec![Step::text("One."), Step::text("Two."), Step::text("Three.")]);
}

#[test]
fn several_calls() {
    delegation("several_calls", 0, &[], || {
        vec![
            write()
                .and_call("run_command", json!({"command": "cat b.txt; exit 3"}))
                .and_hand_back()
                .and_call("read_file", json!({"path": "a.txt"})),
        ]
    });
}

#[test]
fn truncated() {
    delegation("truncated", 0, &[], || vec![write().finish(Finish::Length), write(), Step::hand_back()]);
}

#[test]
fn budget_gone() {
    let text = "Budget has been exceeded! Key=test Current cost: 0.004207, Max budget: 0.0001";
    delegation("budget_gone", 5, &[], || vec![write(), Step::error(422, &[], "budget_exceeded", text)]);
}

#[test]
fn trouble_ridden_out() {
    delegation("trouble_ridden_out", 0, &[], || {
        vec![
            Step::error(429, &[("retry-after", "3")], "throttling_error", "litellm.RateLimitError: try again"),
            write(),
            Step::error(503, &[], "internal_server_error", "litellm.ServiceUnavailableError: overloaded"),
            Step::hand_back(),
        ]
    });
}

#[test]
fn stopped() {
    for wire in Wire::BOTH {
        let scratch = tempfile::tempdir().unwrap();
        let asked = scratch.path().join("asked");
        let seen = asked.clone();
        let late = Step::hand_back().before(move || std::fs::write(&seen, "").unwrap()).delay(Duration::from_mins(10));
        let env = TestEnvironment::new(wire, vec![write(), late]);
        let running = env.start(&["delegate", "--json", "Make b.txt hold one line, b."]);
        assert!(crate::support::wait_until(Duration::from_mins(1), || asked.exists()), "no second request");
        running.signal(rustix::process::Signal::TERM);
        let mut run = env.finish(running);
        run.exits(7);
        // a thread of its own says that it heard the signal: before or after what came of it
        let heard = "stopping; another Ctrl-C stops at once\n";
        let (before, after) = run.stderr.split_once(heard).unwrap_or_else(|| panic!("{}", run.report()));
        run.stderr = format!("{heard}{before}{after}");
        kept(&env, &run, "stopped");
    }
}
