//! What `doctor --fix` takes away.

use serde_json::json;

use super::Case;
use crate::{
    apply::handed_back,
    leftovers::LATER,
    packing::{large_turns, loose_bytes},
    support::{Step, TestEnvironment, Wire},
};

pub(super) const POINTS: &[&[&str]] = &[&["fix.removed"], PACKED];
const PACKED: &[&str] = &["pack.made", "pack.placed", "pack.cleared"];

#[test]
fn by_ended_tasks() {
    let (env, task) = handed_back(|_| {}, "echo b > b.txt");
    env.run(&["apply", "--json", &task]).exits(0);
    let branch = env.checkout.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/nisse"]);
    let path = env.state().join("worktrees").join(&task);
    let reason = format!("nisse {task}");
    let add = ["worktree", "add", "--quiet", "--lock", "--reason", &reason, path.to_str().unwrap(), &branch];
    env.checkout.git(&add);
    env.set("NISSE_TEST_CLOCK", LATER).person(|_| {});
    Case::new(&env, &["doctor", "--json", "--fix"]).at(&["remove.directory", "remove.entry", "fix.removed"]);
}

/// A clean-up that an end still owes.
#[test]
fn by_an_end_that_was_cut() {
    let steps = vec![Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})), Step::hand_back()];
    let env = TestEnvironment::new(Wire::Chat, steps);
    env.set("CRASHPOINT", "end.recorded").delegate(&[], "Make b.txt.");
    Case::new(&env, &["doctor", "--json", "--fix"]).at(&["remove.directory", "remove.entry"]);
}

/// What turns left is packed when a task has ended. Cut off there, nothing is lost, and the next time does the rest.
#[test]
fn by_large_turns() {
    for point in PACKED {
        let env = large_turns();
        env.set("CRASHPOINT", point);
        let run = env.delegate(&[], "Change it.");
        assert!(run.stderr.contains(&format!("crashed at {point}\n")), "{}", run.report());
        env.set("CRASHPOINT", "");
        env.checkout.git(&["fsck", "--strict", "--no-dangling"]);
        let task = run.json().pop().unwrap()["task"].as_str().unwrap().to_owned();
        env.run(&["resume", "--json", &task]).ends(0, "handback");
        env.checkout.git(&["fsck", "--strict", "--no-dangling"]);
        assert!(loose_bytes(&env) < 1_000_000, "{point}: {}", loose_bytes(&env));
        // one that was cut off before the pack stood left nothing to pack by its own name; the next packing clears it
        let left = std::fs::read_dir(env.checkout.path().join(".git/objects")).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert!(!left.iter().any(|name| name.starts_with("tmp_")) || *point == "pack.cleared", "{point}: {left:?}");
    }
}
