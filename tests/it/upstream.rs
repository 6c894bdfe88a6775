//! Trouble upstream is not the work's fault: it is ridden out, or the task rests and can go on.

use std::time::Duration;

use serde_json::json;

use crate::support::{Asked, Script, Step, TestEnvironment, Wire, wait_until};

fn write() -> Step {
    Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}))
}

#[test]
fn a_proxy_that_goes_down_interrupts_the_task_and_a_resume_finishes_it() {
    for wire in Wire::BOTH {
        // the switch exists only when the server does, so the script is told of it afterwards
        let switch = std::sync::Arc::new(std::sync::OnceLock::<crate::support::Switch>::new());
        let known = std::sync::Arc::clone(&switch);
        let went = std::sync::atomic::AtomicBool::new(false);
        let script = Script::by_content(move |asked: &Asked| {
            if asked.replies() == 0 {
                return write();
            }
            if went.swap(true, std::sync::atomic::Ordering::SeqCst) {
                return Step::hand_back();
            }
            let known = std::sync::Arc::clone(&known);
            // longer than the server takes to close its connections
            Step::hand_back().before(move || known.get().expect("a switch").down()).delay(Duration::from_mins(10))
        });
        let env = TestEnvironment::new(wire, script);
        assert!(switch.set(env.server.switch()).is_ok());
        let run = env.delegate(&[], "Make b.txt.");
        let interrupted = run.ends(5, "interrupted");
        assert!(run.stderr.contains("nisse resume"), "the way on is not named\n{}", run.report());
        assert!(
            env.checkout.has_ref(&format!("refs/heads/{}", interrupted["branch"].as_str().unwrap())),
            "the branch is gone"
        );
        env.assert_checkout_unchanged();
        let down = || std::net::TcpStream::connect(env.server.address()).is_err();
        assert!(wait_until(Duration::from_secs(30), down));
        env.server.switch().up();
        let result = env.run(&["resume", "--json"]).ends(0, "handback");
        assert_eq!(result["task"], interrupted["task"]);
        assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"b\n");
    }
}

#[test]
fn a_short_trouble_is_ridden_out() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(
            wire,
            vec![
                Step::error(503, &[], "internal_server_error", "litellm.ServiceUnavailableError: overloaded"),
                write(),
                Step::plain(502, &[], "text/html", "<html><h1>502 Bad Gateway</h1></html>"),
                Step::hand_back().cut(),
                Step::hand_back(),
            ],
        );
        let result = env.delegate(&[], "Make b.txt.").ends(0, "handback");
        assert_eq!(result["turns"], 2, "a lost request is no turn");
    }
}

#[test]
fn a_cut_reply_runs_nothing() {
    for wire in Wire::BOTH {
        let half = Step::call("run_command", json!({"command": "echo ran > ran.txt"})).cut();
        let env = TestEnvironment::new(wire, vec![half, write(), Step::hand_back()]);
        let result = env.delegate(&[], "Make b.txt.").ends(0, "handback");
        assert_eq!(env.on_branch(&result, "ran.txt"), None);
    }
}

#[test]
fn a_budget_that_is_gone_interrupts_at_once() {
    for wire in Wire::BOTH {
        let message = "Budget has been exceeded! Key=test Current cost: 0.004207, Max budget: 0.0001";
        let env = TestEnvironment::new(
            wire,
            vec![write(), Step::error(422, &[], "budget_exceeded", message), Step::hand_back()],
        );
        let run = env.delegate(&[], "Make b.txt.");
        run.ends(5, "interrupted");
        assert_eq!(env.server.requests().len(), 2, "a spent budget is not asked again");
        assert!(run.stderr.contains("0.004207") && run.stderr.contains("0.0001"), "both figures\n{}", run.report());
        env.run(&["resume", "--json"]).ends(0, "handback");
    }
}

#[test]
fn a_wait_longer_than_the_time_that_is_left_interrupts_at_once() {
    for wire in Wire::BOTH {
        let limited =
            Step::error(429, &[("llm_provider-retry-after", "86400")], "throttling_error", "Rate limit exceeded.");
        let env = TestEnvironment::new(wire, vec![write(), limited, Step::hand_back()]);
        env.delegate(&[], "Make b.txt.").ends(5, "interrupted");
        env.run(&["resume", "--json"]).ends(0, "handback");
    }
}

#[test]
fn a_request_that_was_wrong_fails_the_task_and_policy_too() {
    for wire in Wire::BOTH {
        let wrong = Step::error(400, &[], "invalid_request_error", "litellm.BadRequestError: Invalid value: 'foo'.");
        let env = TestEnvironment::new(wire, vec![write(), wrong]);
        let result = env.delegate(&[], "Make b.txt.").ends(3, "failed");
        env.assert_discarded(&result);
        let declined = Step::text("I cannot help with that.").finish(crate::support::Finish::Declined);
        let env = TestEnvironment::new(wire, vec![declined]);
        let run = env.delegate(&[], "Do harm.");
        run.ends(3, "failed");
    }
}
