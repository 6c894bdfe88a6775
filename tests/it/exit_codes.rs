//! Every exit status that the manual names, one by one; with `--json` the last object holds the same number.

use std::{fs, time::Duration};

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Run, Script, Step, TestEnvironment, Wire, wait_until};

const SOON: Duration = Duration::from_mins(2);

fn write() -> Step {
    Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}))
}

/// Asserts the status, and that the JSON says the same.
#[track_caller]
fn status(run: &Run, code: i32) {
    let last = run.exits(code).json().pop().unwrap_or_else(|| panic!("no JSON\n{}", run.report()));
    assert_eq!(last["exit"], code, "{}", run.report());
}

/// Asserts the status of an error, its kind, and that it says what to do.
#[track_caller]
fn error(run: &Run, code: i32, kind: &str) {
    status(run, code);
    let last = run.json().pop().unwrap();
    assert_eq!((&last["type"], &last["error"]["kind"]), (&json!("error"), &json!(kind)), "{}", run.report());
    assert!(last["error"]["hint"].is_string(), "{}", run.report());
}

#[test]
fn of_zero_done() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(wire, vec![write(), Step::hand_back()]);
        status(&env.delegate(&[], "Make b.txt."), 0);
    }
}

#[test]
fn of_one_the_environment_failed() {
    let env = TestEnvironment::new(Wire::Chat, Vec::new());
    error(&env.run(&["-C", "/", "delegate", "--json", "Make b.txt."]), 1, "no_repository");
    env.set("PATH", "/nowhere");
    error(&env.delegate(&[], "Make b.txt."), 1, "no_git");
    let env = TestEnvironment::new(Wire::Chat, Vec::new());
    env.server.switch().down();
    error(&env.delegate(&[], "Make b.txt."), 1, "proxy_unreachable");
    assert!(!env.root().join("state").exists(), "a task was begun without a proxy");
}

#[test]
fn of_two_wrong_usage_or_configuration() {
    let env = TestEnvironment::new(Wire::Chat, Vec::new());
    error(&env.run(&["delegate", "--json"]), 2, "brief");
    error(&env.run(&["delegate", "--json", "words", "more"]), 2, "usage");
    error(&env.run(&["trust", "--json"]), 2, "no_project_file");
    error(&env.run(&["delegat", "--json"]), 2, "usage");
    error(&env.delegate(&["--max-turns", "0"], "Make b.txt."), 2, "usage");
    error(&env.delegate(&[], " \n"), 2, "brief");
    error(&env.delegate(&["--model", "unheard-of"], "Make b.txt."), 2, "bad_role");
    error(&env.delegate(&["--branch", "main"], "Make b.txt."), 2, "branch_taken");
    error(&env.delegate(&["--base", "unheard-of"], "Make b.txt."), 2, "no_such_commit");
    env.set("NISSE_LLM_TOKEN", "sk-another");
    error(&env.delegate(&[], "Make b.txt."), 2, "key_refused");
    env.set("NISSE_LLM_BASE_URL", "not an address");
    error(&env.delegate(&[], "Make b.txt."), 2, "proxy_configuration");
}

#[test]
fn of_three_failed() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(wire, vec![write(), Step::give_up()]);
        status(&env.delegate(&[], "Make b.txt."), 3);
    }
}

#[test]
fn of_four_capped() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(wire, vec![write()]);
        status(&env.delegate(&["--max-turns", "1"], "Make b.txt."), 4);
    }
}

#[test]
fn of_five_interrupted() {
    for wire in Wire::BOTH {
        let limited = Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded.");
        let env = TestEnvironment::new(wire, vec![limited]);
        status(&env.delegate(&[], "Make b.txt."), 5);
    }
}

#[test]
fn of_six_gated_each_time_until_somebody_decides() {
    for wire in Wire::BOTH {
        let scratch = tempfile::tempdir().unwrap();
        let began = scratch.path().join("began");
        let line = format!("echo half >> b.txt\ntouch {}\nexec sleep 600", began.display());
        let env = TestEnvironment::new(wire, vec![Step::call("run_command", json!({"command": line}))]);
        let running = env.start(&["delegate", "--json", "Make b.txt."]);
        assert!(wait_until(SOON, || began.exists()), "the command did not begin");
        running.signal(Signal::KILL);
        env.finish(running);
        for _ in 0..2 {
            let run = env.run(&["resume", "--json"]);
            status(&run, 6);
            let gated = run.ends(6, "gated");
            let cause = gated["cause"].as_str().unwrap();
            assert!(cause.contains("echo half") && !cause.contains('\n'), "a cause is one line: {gated}");
            let left = format!("{}/b.txt", gated["worktree"].as_str().unwrap());
            assert_eq!(fs::read_to_string(left).unwrap(), "half\n", "something was touched, or run again");
        }
        assert_eq!(env.server.requests().len(), 1);
    }
}

#[test]
fn of_seven_stopped() {
    for wire in Wire::BOTH {
        let scratch = tempfile::tempdir().unwrap();
        let asked = scratch.path().join("asked");
        let seen = asked.clone();
        let slow = Step::hand_back().before(move || fs::write(&seen, "").unwrap()).delay(Duration::from_mins(10));
        let env = TestEnvironment::new(wire, Script::InOrder(vec![slow]));
        let running = env.start(&["delegate", "--json", "Make b.txt."]);
        assert!(wait_until(SOON, || asked.exists()), "the request was not sent");
        running.signal(Signal::INT);
        status(&env.finish(running), 7);
    }
}
