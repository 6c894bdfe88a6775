//! A task from its start to its end.

use std::fs;

use serde_json::{Value, json};

use super::{Case, resting};
use crate::support::{Script, Step, TestEnvironment, Wire};

pub(super) const POINTS: &[&[&str]] = &[BEGINNING, WORKTREE, IN_PLACE, HANDED_BACK, CLEANED_UP, FAILED, AGAIN];
const BEGINNING: &[&str] = &[
    "prepare.begun",
    "prepare.snapshot",
    "prepare.worktree",
    "setup.ran",
    "prepare.setup",
    "prepare.ready",
    "edit.opened",
    "file.written",
    "file.exchanged",
    "edit.written",
    "checkpoint.begun",
    "checkpoint.staged",
    "checkpoint.commit",
    "checkpoint.branch",
];
const WORKTREE: &[&str] = &["prepare.submodules", "prepare.copied", "remove.directory", "remove.entry"];
const IN_PLACE: &[&str] = &[
    "switch.opened",
    "switch.marked",
    "switch.branch",
    "switch.head",
    "back.opened",
    "back.files",
    "back.index",
    "back.head",
    "back.marked",
];
const HANDED_BACK: &[&str] = &["squash.commit", "squash.opened", "squash.applied"];
const CLEANED_UP: &[&str] = &["end.recorded", "clean_up.done"];
const FAILED: &[&str] = &["discard.opened", "discard.kept", "discard.worktree", "discard.branch"];
const AGAIN: &[&str] = &["recreate.removed", "recreate.added", "recreate.ready"];

/// A checkout, with unfinished work where that may be, and a task that writes, edits, and ends so.
pub(super) fn world(isolation: &str, end: Step) -> TestEnvironment {
    let env = TestEnvironment::new(
        Wire::Chat,
        Script::ByHistory(vec![
            Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})),
            Step::call("edit_file", json!({"path": "a.txt", "old": "unfinished", "new": "finished"})),
            end,
        ]),
    );
    env.checkout.write(".gitignore", "*.log\n").commit("rules");
    env.checkout.write("a.txt", "unfinished\n").write("x.log", "ignored\n").write("staged.txt", "staged\n");
    env.checkout.git(&["add", "staged.txt"]);
    if isolation == "in-place" {
        env.checkout.commit("nothing is unfinished");
    }
    // in place, HEAD goes away and comes back, which its reflog tells
    env.person_will_change(".git/logs/HEAD");
    env.set("NISSE_WORKTREE_SETUP", "true").set("NISSE_WORKTREE_COPY", "x.log");
    env
}

pub(super) fn begin(isolation: &str) -> [&str; 5] {
    ["delegate", "--json", "--isolation", isolation, "Finish it."]
}

#[test]
fn that_is_handed_back() {
    for (isolation, named) in [("worktree", [WORKTREE, CLEANED_UP].concat()), ("in-place", IN_PLACE.to_vec())] {
        let env = world(isolation, Step::hand_back());
        let named = [BEGINNING, HANDED_BACK, &named].concat();
        Case::new(&env, &begin(isolation)).then(&["resume", "--json"]).once().at(&named);
    }
}

#[test]
fn that_fails() {
    for (isolation, named) in [("worktree", WORKTREE), ("in-place", IN_PLACE)] {
        let env = world(isolation, Step::give_up());
        let named = [BEGINNING, FAILED, named].concat();
        Case::new(&env, &begin(isolation)).code(3).then(&["resume", "--json"]).once().at(&named);
    }
}

/// A task that rests, and whose worktree is gone.
fn made_again() -> (TestEnvironment, Value) {
    let (env, rests) = resting("worktree", |env| {
        env.checkout.write(".gitignore", "*.log\n").commit("rules").write("x.log", "ignored\n");
        env.set("NISSE_WORKTREE_SETUP", "true; echo spoilt > a.txt").set("NISSE_WORKTREE_COPY", "x.log");
    });
    fs::remove_dir_all(rests["worktree"].as_str().unwrap()).unwrap();
    (env, rests)
}

#[test]
fn whose_worktree_is_made_again() {
    let (env, _) = made_again();
    let between = ["prepare.submodules", "prepare.copied", "setup.ran", "prepare.setup"];
    Case::new(&env, &["resume", "--json"]).once().at(&[AGAIN, &between].concat());
}

/// As a `git worktree add` leaves it that was killed: half of the files.
#[test]
fn whose_worktree_is_half_made_again() {
    for point in ["recreate.added", "setup.ran"] {
        let (env, rests) = made_again();
        env.set("CRASHPOINT", point).run(&["resume", "--json"]);
        fs::remove_file(format!("{}/b.txt", rests["worktree"].as_str().unwrap())).unwrap();
        let doctor = env.set("CRASHPOINT", "").run(&["doctor", "--json"]).json().pop().unwrap();
        assert_eq!(doctor["leftovers"], json!([]), "its task can go on");
        let result = env.run(&["resume", "--json"]).ends(0, "handback");
        assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"b\n");
        env.assert_checkout_unchanged();
    }
}

/// What a person changes after a death is not overwritten unseen by the attempt after it.
#[test]
fn and_what_the_person_changes_after_it() {
    let env = world("in-place", Step::hand_back());
    env.set("CRASHPOINT", "back.files").run(&begin("in-place"));
    env.set("CRASHPOINT", "");
    env.checkout.write("a.txt", "mine, later\n").write("new.txt", "mine\n");
    let run = env.run(&["resume", "--json"]);
    let result = run.ends(0, "handback");
    let task = result["task"].as_str().unwrap();
    let kept = format!("refs/nisse/found/{task}/meanwhile");
    assert!(run.stderr.contains(&kept), "{}", run.report());
    assert_eq!(env.checkout.file_at(&kept, "a.txt").unwrap(), b"mine, later\n");
    assert!(!run.stderr.contains("b.txt"), "that was the task's: {}", run.report());
    assert_eq!(env.changed_paths(), [".git/logs/HEAD", "new.txt"]);
}
