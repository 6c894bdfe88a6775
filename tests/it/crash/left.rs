//! What `doctor --fix` takes away.

use serde_json::json;

use super::Case;
use crate::{
    apply::handed_back,
    leftovers::LATER,
    support::{Step, TestEnvironment, Wire},
};

pub(super) const POINTS: &[&[&str]] = &[&["fix.removed"]];

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
