//! What a person decides: back, on with it, or given up.

use std::fs;

use super::{Case, resting};
use crate::{
    gates::{cut_in, cut_in_a_command_with, killed_in},
    support::{Checkout, TestEnvironment, Wire},
};

pub(super) const POINTS: &[&[&str]] = &[TAKEN_IN, PERSONS, KEPT_ASIDE, ROLLED_BACK, DROPPED, NEVER_STOOD, UNDONE];
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
const TAKEN_IN: &[&str] = &["take_in.ended", "take_in.kept", "take_in.branch"];
const PERSONS: &[&str] = &["persons.ref", "persons.stash"];
const KEPT_ASIDE: &[&str] = &["kept.moved"];
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
        if isolation == "worktree" {
            env.checkout.write("mine.txt", "unfinished\n");
        }
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

/// What a command took of the person's is back, and that is told, though nisse dies again over it.
#[test]
fn the_persons_refs_after_a_command_that_was_cut_off() {
    let line = "git stash clear; git branch -qD topic; echo half > half.txt";
    let (env, _scratch) = killed_in(Wire::Chat, "worktree", line, |env| {
        for name in ["older", "newer"] {
            env.checkout.write("a.txt", name).git(&["stash", "push", "--quiet", "--message", name]);
        }
        env.checkout.git(&["branch", "topic"]);
        for place in ["refs/stash", "logs/refs/stash", "refs/heads/topic", "logs/refs/heads/topic"] {
            env.person_will_change(&format!(".git/{place}"));
        }
    });
    Case::new(&env, &["resume", "--json"]).code(6).at(PERSONS);
    let notices = env.run(&["resume", "--json"]).ends(6, "gated")["notices"].to_string();
    assert!(
        notices.contains("the branch topic was gone") && notices.contains("are back: On main: newer, On main: older")
    );
    assert_eq!(env.checkout.git(&["stash", "list", "--format=%gs"]), "On main: newer\nOn main: older");
}

/// A command had committed, and run into a conflict.
#[test]
fn kept_after_a_command_that_moved_the_branch() {
    let line = "echo half > a.txt; git commit -qam 1; git switch -q --detach; echo more > a.txt; git commit -qam 2; \
                git revert -n HEAD~1 || echo half > half.txt";
    let (env, gated, _scratch) = cut_in(Wire::Chat, "worktree", line);
    let task = gated["task"].as_str().unwrap();
    let command = ["resume", "--json", task, "--keep"];
    Case::new(&env, &command).then(&["resume", "--json"]).at(TAKEN_IN);
    let commits = format!("refs/nisse/found/{task}");
    assert_eq!(env.checkout.git(&["for-each-ref", "--format=%(refname:lstrip=4)", &commits]), "branch\nhead");
}

#[test]
fn is_given_up() {
    for isolation in ["worktree", "in-place"] {
        let (env, task) = with_loose_file(isolation);
        let named = if isolation == "worktree" { DROPPED } else { DROPPED_IN_PLACE };
        Case::new(&env, &["drop", "--json", &task]).at(named);
    }
    let (env, task) = with_loose_file("worktree");
    Case::new(&env, &["drop", "--json", &task]).then(&["resume", "--json", &task]).takes_back().at(DROPPED);
}

/// A repository within the tree is in no commit.
#[test]
fn given_up_with_what_no_commit_can_hold() {
    let (env, task) = with_loose_file("worktree");
    let app = env.state().join("worktrees").join(&task).join("app");
    Checkout::new(&app).write("main.py", "code\n");
    Case::new(&env, &["drop", "--json", &task]).at(KEPT_ASIDE);
    let result = env.run(&["drop", "--json", &task]).ends(0, "dropped");
    assert!(result["notices"].to_string().contains("no commit can hold app/"), "{result}");
    let kept = fs::read_dir(env.state().join("kept").join(task)).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::read_to_string(kept.join("app/main.py")).unwrap(), "code\n");
}

#[test]
fn given_up_before_it_stood() {
    for (isolation, point, named) in [
        ("worktree", "prepare.worktree", NEVER_STOOD.to_vec()),
        ("in-place", "switch.branch", [NEVER_STOOD, UNDONE].concat()),
        ("in-place", "switch.head", [NEVER_STOOD, UNDONE].concat()),
    ] {
        let env = TestEnvironment::new(Wire::Chat, Vec::new());
        if isolation == "worktree" {
            env.checkout.write("mine.txt", "unfinished\n").write("staged.txt", "s\n").git(&["add", "staged.txt"]);
        }
        let before = env.checkout.git(&["status", "--porcelain"]);
        env.person_will_change(".git/logs/HEAD");
        let died = env.set("CRASHPOINT", point).delegate(&["--isolation", isolation], "Make b.txt.");
        env.set("CRASHPOINT", "");
        let task = died.json()[0]["task"].as_str().unwrap().to_owned();
        Case::new(&env, &["drop", "--json", &task]).at(&named);
        assert_eq!(env.checkout.git(&["status", "--porcelain"]), before, "{point}");
    }
}
