//! Bringing the work home: into a clean checkout, beside a person's own changes, as commits, and back.

mod commits;
pub(crate) mod cut;
mod files;
mod kinds;
mod message;
mod refused;
mod undone;

use serde_json::{Value, json};

use crate::support::{Run, Step, TestEnvironment, Wire};

/// A world in which a task ran `line` in its worktree and handed it back; with the task's id.
pub(crate) fn handed_back(prepare: impl FnOnce(&TestEnvironment), line: &str) -> (TestEnvironment, String) {
    handed_back_with(prepare, &[line])
}

/// The same with several commands, a checkpoint each.
pub(crate) fn handed_back_with(prepare: impl FnOnce(&TestEnvironment), lines: &[&str]) -> (TestEnvironment, String) {
    let mut steps: Vec<Step> =
        lines.iter().map(|line| Step::call("run_command", json!({"command": format!("set -e; {line}")}))).collect();
    steps.push(Step::hand_back());
    let env = TestEnvironment::new(Wire::Chat, steps);
    prepare(&env);
    let result = env.delegate(&[], "Do it.").ends(0, "handback");
    env.assert_checkout_unchanged();
    let task = result["task"].as_str().unwrap().to_owned();
    (env, task)
}

/// The one document of `nisse apply --json`.
#[track_caller]
fn applied(run: &Run, how: &str) -> Value {
    run.exits(0);
    let document = run.json().pop().unwrap();
    assert_eq!((document["type"].as_str(), document["how"].as_str()), (Some("apply"), Some(how)), "{}", run.report());
    assert_eq!(document["exit"], 0);
    document
}

/// Asserts that it was refused with exit 6, that the words name what they should, and that nothing was touched.
#[track_caller]
fn refused(env: &TestEnvironment, run: &Run, kind: &str, named: &[&str]) {
    run.exits(6);
    let error = run.json().pop().unwrap();
    assert_eq!(error["error"]["kind"], kind, "{}", run.report());
    for name in named {
        assert!(error["error"]["message"].as_str().unwrap().contains(name), "{name} is not named\n{}", run.report());
    }
    env.assert_checkout_unchanged();
}

/// The tree that the working files make, ignoring no change of theirs.
fn tree_of_files(env: &TestEnvironment) -> String {
    let index = env.root().join("probe-index");
    let _ = std::fs::remove_file(&index);
    let probe = format!("GIT_INDEX_FILE={} git add -A && GIT_INDEX_FILE={0} git write-tree", index.display());
    let output = std::process::Command::new("sh")
        .args(["-c", &probe])
        .current_dir(env.checkout.path())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
