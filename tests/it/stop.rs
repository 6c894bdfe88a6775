//! The person stops a task: it ends soon, leaves no process, and goes on where it was.

use std::{fs, time::Duration};

use nisse::log::{Access, Log};
use rustix::process::Signal;
use serde_json::json;

use crate::support::{Script, Step, TestEnvironment, Wire, is_alive, wait_until};

/// Long enough for a busy machine; a stop is promised within 5 s.
const SOON: Duration = Duration::from_mins(1);

#[test]
fn a_stop_in_a_command_ends_it_and_the_call_is_answered() {
    for wire in Wire::BOTH {
        let scratch = tempfile::tempdir().unwrap();
        let pid_file = scratch.path().join("pid");
        let command = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600", pid_file.display());
        let env = TestEnvironment::new(
            wire,
            Script::ByHistory(vec![
                Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})),
                Step::call("run_command", json!({"command": command}))
                    .and_call("run_command", json!({"command": "touch late.txt"})),
                Step::hand_back(),
            ]),
        );
        let running = env.start(&["delegate", "--json", "Make b.txt."]);
        assert!(wait_until(SOON, || pid_file.exists()), "the command did not begin");
        let pid: i32 = fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
        running.signal(Signal::TERM);
        let run = env.finish(running);
        let stopped = run.ends(7, "stopped");
        let sent = run.json().iter().filter(|line| line["event"] == "request_sent").count();
        assert_eq!(sent, 2, "a request was begun after the stop\n{}", run.report());
        assert!(wait_until(SOON, || !is_alive(pid)), "the command lives on");
        env.assert_checkout_unchanged();

        let result = env.run(&["resume", "--json"]).ends(0, "handback");
        assert_eq!(result["task"], stopped["task"]);
        let answers = env.server.requests()[2].last_answers();
        assert_eq!(answers.len(), 2, "{answers:?}");
        assert!(answers[0].text.contains("stop"), "{answers:?}");
        assert_eq!(env.on_branch(&result, "late.txt"), None, "a call behind the stopped one ran");
    }
}

#[test]
fn a_stop_in_a_request_drops_it_and_the_resume_asks_again() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        for wire in Wire::BOTH {
            let scratch = tempfile::tempdir().unwrap();
            let asked = scratch.path().join("asked");
            let seen = asked.clone();
            let script = Script::by_content(move |request| {
                if request.replies() == 0 {
                    return Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}));
                }
                if seen.exists() {
                    return Step::hand_back();
                }
                let seen = seen.clone();
                Step::hand_back().before(move || fs::write(&seen, "").unwrap()).delay(Duration::from_mins(10))
            });
            let env = TestEnvironment::new(wire, script);
            let running = env.start(&["delegate", "--json", "Make b.txt."]);
            assert!(wait_until(SOON, || asked.exists()), "the request was not sent");
            running.signal(signal);
            let run = env.finish(running);
            let stopped = run.ends(7, "stopped");
            let hint = format!("nisse resume {}", &stopped["task"].as_str().unwrap()[24..]);
            assert!(run.stderr.contains(&hint), "the way on is not named\n{}", run.report());

            let result = env.run(&["resume", "--json", stopped["task"].as_str().unwrap()]).ends(0, "handback");
            let requests = env.server.requests();
            assert_eq!(requests.len(), 3);
            assert_eq!(requests[1].body["messages"], requests[2].body["messages"], "the same is asked again");
            let charged = result["tokens"]["input"].as_u64().unwrap();
            assert!(charged > 2000, "the dropped request is not charged: {charged}");
        }
    }
}

#[test]
fn a_stop_in_a_check_ends_it_and_the_work_is_judged_after_a_resume() {
    let scratch = tempfile::tempdir().unwrap();
    let [began, go] = ["began", "go"].map(|name| scratch.path().join(name));
    let check = format!("test -e {} || {{ : > {}; exec sleep 600; }}", go.display(), began.display());
    let work = Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}));
    let env = TestEnvironment::new(Wire::Chat, vec![work, Step::hand_back(), Step::hand_back()]);
    let running = env.start(&["delegate", "--json", "--check", &check, "Make b.txt."]);
    assert!(wait_until(SOON, || began.exists()), "the check did not begin");
    running.signal(Signal::TERM);
    let run = env.finish(running);
    run.ends(7, "stopped");
    assert!(run.stdout.contains("Not judged: the person asked to stop"), "{}", run.report());
    fs::write(go, "").unwrap();
    let result = env.run(&["resume", "--json"]).ends(0, "handback");
    assert_eq!(result["cause"], "the check passed", "{result}");
}

#[test]
fn a_stop_ends_the_wait_for_another_try() {
    let busy = Step::error(503, &[("retry-after", "250")], "internal_server_error", "overloaded");
    let env = TestEnvironment::new(Wire::Chat, vec![busy, Step::hand_back()]).with_running_clock();
    let running = env.start(&["delegate", "--json", "Make b.txt."]);
    // the log is read when it is there
    let waits = || {
        let log = Log::open(&env.state(), Access::Read).ok().flatten()?;
        let task = log.tasks().ok()?.pop()?;
        log.task(task).ok()?.trouble
    };
    assert!(wait_until(SOON, || waits().is_some()), "no trouble was recorded");
    running.signal(Signal::TERM);
    env.finish(running).ends(7, "stopped");
}

/// A shell ends a loop only where the program in it died of Ctrl-C.
#[test]
fn ctrl_c_at_a_terminal_ends_the_loop_around_nisse_when_everything_is_in_order() {
    let env = TestEnvironment::new(
        Wire::Chat,
        vec![Step::call("run_command", json!({"command": "sleep 600"})), Step::hand_back()],
    );
    env.set("TERM", "xterm-256color").set("SHELL", "/bin/bash");
    let twice = |line: &str| format!("for round in 1 2; do {line}; echo \"after $round\"; done");
    let run = env.run_within_with_keys(twice, &["delegate", "Make b.txt."], &[("running sleep 600", "\u{3}")]);
    run.exits(130);
    assert!(run.stdout.contains("stopped on request") && !run.stdout.contains("after"), "{}", run.report());
    let log = env.run(&["log", "--json"]).exits(0).json().pop().unwrap();
    assert_eq!(log["tasks"][0]["outcome"], "stopped", "{log}");
}
