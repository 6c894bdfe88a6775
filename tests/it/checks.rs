//! Check commands judge success: nisse runs them itself after the ending call.

use serde_json::{Value, json};

use crate::support::{Step, TestEnvironment, Wire};

fn write(content: &str) -> Step {
    Step::call("write_file", json!({"path": "b.txt", "content": content}))
}

fn rewrite(old: &str, new: &str) -> Step {
    Step::call("edit_file", json!({"path": "b.txt", "old": old, "new": new}))
}

const CHECK: &str = "echo looking; grep -q right b.txt || { echo b.txt is wrong; exit 4; }";

#[test]
fn a_failing_check_is_told_to_the_model_and_a_passing_one_ends_the_task() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(
            wire,
            vec![write("wrong\n"), Step::hand_back(), rewrite("wrong", "right"), Step::hand_back()],
        );
        let result = env.delegate(&["--check", CHECK], "Make b.txt right.").ends(0, "handback");
        let told = &env.server.requests()[2].last_answers()[0].text;
        assert!(told.contains("b.txt is wrong") && told.contains('4'), "output and status are not told: {told}");
        assert_eq!(status_of(&result), 0);
        assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"right\n");
    }
}

#[test]
fn a_check_that_never_passes_fails_the_task_after_three_answers() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(
            wire,
            vec![write("wrong\n"), Step::hand_back(), Step::hand_back(), Step::hand_back(), Step::hand_back()],
        );
        let result = env.delegate(&["--check", CHECK], "Make b.txt right.").ends(3, "failed");
        assert_eq!(env.server.requests().len(), 5, "three failing checks are answered, the fourth fails the task");
        assert_eq!(status_of(&result), 4);
        env.assert_discarded(&result);
    }
}

#[test]
fn every_check_must_pass() {
    for wire in Wire::BOTH {
        let env =
            TestEnvironment::new(wire, vec![write("x\n"), Step::hand_back(), rewrite("x", "y"), Step::hand_back()]);
        let result = env.delegate(&["--check", "true", "--check", "grep y b.txt"], "Make b.txt.").ends(0, "handback");
        assert_eq!(status_of(&result), 0);
        assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"y\n", "the second check was not run");
    }
}

#[test]
fn a_check_of_the_repository_runs_only_when_the_person_trusts_it() {
    let env = TestEnvironment::new(Wire::Chat, vec![write("x\n"), Step::hand_back()]);
    let touched = env.root().join("touched");
    let check = format!("touch {}", touched.display());
    env.checkout.write("nisse.toml", format!("[check]\ncommands = [{check:?}]\n")).commit("checks");
    let refused = env.delegate(&[], "Make b.txt.");
    let said = format!("{}{}", refused.exits(2).stdout, refused.stderr);
    assert!(said.contains("--trust-project") && said.contains("touch"), "{}", refused.report());
    assert!(!touched.exists(), "an untrusted command ran");
    env.delegate(&["--trust-project"], "Make b.txt.").ends(0, "handback");
    assert!(touched.exists(), "the trusted check did not run");
}

/// The status of the last check that a result tells of: of one check, or of the last in a list.
fn status_of(result: &Value) -> i64 {
    let check = &result["check"];
    let last = check.as_array().and_then(|checks| checks.last()).unwrap_or(check);
    last["status"].as_i64().unwrap_or_else(|| panic!("no check in the result: {result}"))
}
