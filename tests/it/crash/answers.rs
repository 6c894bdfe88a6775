//! What a person decides: back, on with it, or given up.

use std::fs;

use super::{Case, resting};
use crate::{
    gates::cut_in_a_command_with,
    support::{TestEnvironment, Wire},
};

pub(super) const POINTS: &[&[&str]] = &[ROLLED_BACK, DROPPED, NEVER_STOOD, UNDONE];
const KEPT: &[&str] =
    &["answer.recorded", "checkpoint.begun", "checkpoint.staged", "checkpoint.commit", "checkpoint.branch"];
const ROLLED_BACK: &[&str] = &["answer.recorded", "roll_back.kept", "roll_back.branch", "roll_back.restored"];
const DROPPED: &[&str] = &["answer.recorded", "drop.kept", "discard.opened", "discard.kept", "discard.branch"];
const DROPPED_IN_PLACE: &[&str] = &[
    "answer.recorded",
    "back.opened",
    "back.files",
    "back.index",
    "back.head",
    "back.marked",
    "discard.opened",
    "discard.kept",
    "discard.branch",
];
const NEVER_STOOD: &[&str] = &["answer.recorded", "drop.cleared"];
const UNDONE: &[&str] = &["undo.marked", "undo.branch"];

/// In a checkout, what the command did is not left to its person.
#[test]
fn given_up_after_a_command_that_was_cut_off() {
    let (env, gated, _scratch) = cut_in_a_command_with(Wire::Chat, "in-place");
    let task = gated["task"].as_str().unwrap();
    Case::new(&env, &["drop", "--json", task]).at(&["answer.recorded", "drop.kept", "back.opened", "back.files"]);
    assert_eq!(env.checkout.git(&["status", "--porcelain"]), "");
}

/// A task that rests, with something in its tree that no checkpoint has.
pub(super) fn with_loose_file(isolation: &str) -> (TestEnvironment, String) {
    let (env, rests) = resting(isolation, |env| {
        env.checkout.write("mine.txt", "unfinished\n");
    });
    fs::write(format!("{}/loose.txt", rests["worktree"].as_str().unwrap()), "loose\n").unwrap();
    (env, rests["task"].as_str().unwrap().to_owned())
}

#[test]
fn back_to_the_last_checkpoint_or_on_with_what_is_there() {
    for isolation in ["worktree", "in-place"] {
        for (answer, named) in [("--rollback", ROLLED_BACK), ("--keep", KEPT)] {
            let (env, task) = with_loose_file(isolation);
            env.run(&["resume", "--json", &task]).ends(6, "gated");
            let command = ["resume", "--json", &task, answer];
            Case::new(&env, &command).then(&["resume", "--json"]).at(named);
        }
    }
}

#[test]
fn after_a_command_that_was_cut_off() {
    for isolation in ["worktree", "in-place"] {
        for (answer, named) in [("--rollback", ROLLED_BACK), ("--keep", KEPT)] {
            let (env, gated, _scratch) = cut_in_a_command_with(Wire::Chat, isolation);
            let task = gated["task"].as_str().unwrap();
            let command = ["resume", "--json", task, answer];
            Case::new(&env, &command).then(&["resume", "--json"]).at(named);
        }
    }
}

#[test]
fn given_up() {
    for isolation in ["worktree", "in-place"] {
        let (env, task) = with_loose_file(isolation);
        let named = if isolation == "worktree" { DROPPED } else { DROPPED_IN_PLACE };
        Case::new(&env, &["drop", "--json", &task]).at(named);
    }
    let (env, task) = with_loose_file("worktree");
    Case::new(&env, &["drop", "--json", &task]).then(&["resume", "--json", &task]).takes_back().at(DROPPED);
}

#[test]
fn given_up_before_it_stood() {
    for (isolation, point, named) in [
        ("worktree", "prepare.worktree", NEVER_STOOD.to_vec()),
        ("in-place", "switch.branch", [NEVER_STOOD, UNDONE].concat()),
        ("in-place", "switch.head", [NEVER_STOOD, UNDONE].concat()),
    ] {
        let env = TestEnvironment::new(Wire::Chat, Vec::new());
        env.checkout.write("mine.txt", "unfinished\n").write("staged.txt", "s\n").git(&["add", "staged.txt"]);
        env.person_will_change(".git/logs/HEAD");
        let died = env.set("CRASHPOINT", point).delegate(&["--isolation", isolation], "Make b.txt.");
        env.set("CRASHPOINT", "");
        let task = died.json()[0]["task"].as_str().unwrap().to_owned();
        Case::new(&env, &["drop", "--json", &task]).at(&named);
        assert_eq!(env.checkout.git(&["status", "--porcelain"]), "A  staged.txt\n?? mine.txt", "{point}");
    }
}
