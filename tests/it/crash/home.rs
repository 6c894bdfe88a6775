//! The work on its way home, and back.

use super::Case;
use crate::{
    apply::{
        cut::{LINE, arranged},
        handed_back, handed_back_with,
    },
    support::TestEnvironment,
};

pub(super) const POINTS: &[&[&str]] = &[FILES, FORWARD, LANDING, BACK, BACK_FORWARD, UNLANDED];
const FILES: &[&str] =
    &["apply.opened", "apply.held", "file.written", "file.exchanged", "file.aside", "file.moved", "apply.done"];
/// The files of a merge are git's.
const MERGE: &[&str] = &["apply.opened", "apply.done"];
const FORWARD: &[&str] = &["advance.index", "advance.branch"];
const LANDING: &[&str] = &["land.begun", "land.made", "land.index"];
const BACK: &[&str] =
    &["put_back.opened", "file.written", "file.exchanged", "file.aside", "file.moved", "put_back.done"];
const BACK_FORWARD: &[&str] = &["put_back.index"];
const UNLANDED: &[&str] = &["put_back.unlanded"];

/// A task that was handed back, beside something of the person's that is staged and something that is not.
pub(super) fn beside_own_work() -> (TestEnvironment, String) {
    let (env, task) = handed_back(arranged, LINE);
    env.person(|checkout| drop(checkout.write("notes.txt", "mine\n").write("staged", "s\n").git(&["add", "staged"])));
    (env, task)
}

fn two_commits() -> (TestEnvironment, String) {
    let (env, task) = handed_back_with(
        |env| {
            arranged(env);
            env.set("NISSE_BRANCH_HISTORY", "turns");
        },
        &["echo task >> a.txt; rm gone.txt", "echo b > b.txt; chmod +x run.sh"],
    );
    env.person(|checkout| drop(checkout.write("staged", "s\n").git(&["add", "staged"])));
    (env, task)
}

/// A base that has moved on, so that a merge is a merge.
pub(super) fn base_moved() -> (TestEnvironment, String) {
    let (env, task) = handed_back(arranged, LINE);
    env.person(|checkout| {
        checkout.write("mine.txt", "m\n").commit("meanwhile");
    });
    (env, task)
}

#[test]
fn as_files() {
    let (env, task) = beside_own_work();
    Case::new(&env, &["apply", "--json", &task]).at(FILES);
}

#[test]
fn as_files_and_taken_back() {
    let (env, task) = beside_own_work();
    Case::new(&env, &["apply", "--json", &task]).then(&["apply", "--json", &task, "--abort"]).takes_back().at(FILES);
}

#[test]
fn by_a_fast_forward() {
    let (env, task) = handed_back(arranged, LINE);
    Case::new(&env, &["apply", "--json", &task]).at(&[FILES, FORWARD].concat());
}

#[test]
fn by_a_fast_forward_and_taken_back() {
    let (env, task) = handed_back(arranged, LINE);
    Case::new(&env, &["apply", "--json", &task])
        .then(&["apply", "--json", &task, "--abort"])
        .takes_back()
        .at(&[FILES, FORWARD].concat());
}

#[test]
fn as_commits() {
    for (world, how) in [(beside_own_work(), "--squash"), (two_commits(), "--commit"), (base_moved(), "--merge")] {
        let (env, task) = world;
        let common = if how == "--merge" { MERGE } else { FILES };
        Case::new(&env, &["apply", "--json", &task, how]).at(&[common, LANDING].concat());
    }
}

#[test]
fn as_commits_and_taken_back() {
    for (world, how) in [(beside_own_work(), "--squash"), (base_moved(), "--merge")] {
        let (env, task) = world;
        let common = if how == "--merge" { MERGE } else { FILES };
        let again = ["apply", "--json", &task, "--abort"];
        Case::new(&env, &["apply", "--json", &task, how]).then(&again).takes_back().at(&[common, LANDING].concat());
    }
}

#[test]
fn on_the_way_back() {
    let (env, task) = beside_own_work();
    env.run(&["apply", "--json", &task]).exits(0);
    Case::new(&env, &["apply", "--json", &task, "--abort"]).at(BACK);
}

/// Killed on the way there, and on the way back from it.
#[test]
fn on_the_way_back_from_half() {
    for (world, how, point, named) in [
        (handed_back(arranged, LINE), None, "advance.index", BACK_FORWARD),
        (beside_own_work(), Some("--squash"), "land.begun", UNLANDED),
    ] {
        let (env, task) = world;
        let forth = [&["apply", "--json", &task][..], how.as_slice()].concat();
        let died = env.set("CRASHPOINT", point).run(&forth);
        assert!(died.stderr.contains("crashed at"), "{}", died.report());
        env.set("CRASHPOINT", "");
        Case::new(&env, &["apply", "--json", &task, "--abort"]).at(&[BACK, named].concat());
    }
}

#[test]
fn by_resume() {
    let (env, task) = beside_own_work();
    Case::new(&env, &["apply", "--json", &task]).then(&["resume", "--json", &task]).takes_back().at(FILES);
}

/// What the person stages after a death is theirs, and stays.
#[test]
fn what_is_staged_meanwhile_stays_staged() {
    for (point, again) in [("file.moved#2", None), ("advance.index", None), ("advance.index", Some("--abort"))] {
        let (env, task) = handed_back(arranged, LINE);
        env.set("CRASHPOINT", point).run(&["apply", "--json", &task]);
        env.set("CRASHPOINT", "").person(|checkout| drop(checkout.write("mine", "m\n").git(&["add", "mine"])));
        let command = [&["apply", "--json", &task][..], again.as_slice()].concat();
        env.run(&command).exits(0);
        assert_eq!(env.checkout.git(&["status", "--porcelain"]), "A  mine", "{point} {again:?}");
        let head = env.checkout.git(&["log", "--format=%s", "-1"]);
        assert_eq!(head == "files", again.is_some(), "{point} {again:?}: {head}");
        env.changed_paths();
    }
}

/// The person commits something else after a death: the task's commit is made on top of it, or found below it.
#[test]
fn what_is_committed_meanwhile_is_no_hindrance() {
    for point in ["land.begun", "land.index"] {
        for again in ["--squash", "--abort"] {
            let (env, task) = beside_own_work();
            env.set("CRASHPOINT", point).run(&["apply", "--json", &task, "--squash"]);
            env.set("CRASHPOINT", "");
            env.checkout.git(&["commit", "--quiet", "--message", "mine", "--", "staged"]);
            let run = env.run(&["apply", "--json", &task, again]);
            let landed = point == "land.index" || again == "--squash";
            run.exits(if landed && again == "--abort" { 2 } else { 0 });
            let at = format!("{point} {again}\n{}", run.report());
            let commits = env.checkout.git(&["rev-list", "--count", "HEAD"]);
            assert_eq!(commits, if landed { "4" } else { "3" }, "{at}");
            assert_eq!(env.checkout.git(&["status", "--porcelain"]), "?? notes.txt", "{at}");
            assert_eq!(env.checkout.file_at("HEAD", "b.txt").is_some(), landed, "{at}");
            env.changed_paths();
        }
    }
}

/// A fast-forward whose branch has moved on meanwhile is none any more: it says so, goes back, and comes as files.
#[test]
fn a_fast_forward_whose_branch_moved_on_goes_back_and_comes_as_files() {
    for point in ["file.moved#2", "advance.index"] {
        let (env, task) = handed_back(arranged, LINE);
        env.set("CRASHPOINT", point).run(&["apply", "--json", &task]);
        env.set("CRASHPOINT", "");
        env.checkout.write("mine.txt", "m\n").git(&["add", "mine.txt"]);
        env.checkout.git(&["commit", "--quiet", "--message", "mine", "--", "mine.txt"]);
        let refused = env.run(&["apply", "--json", &task]);
        let error = refused.exits(6).json().pop().unwrap()["error"].clone();
        assert!(error["hint"].as_str().unwrap().contains("--abort"), "{}", refused.report());
        env.run(&["apply", "--json", &task, "--abort"]).exits(0);
        assert_eq!(env.checkout.git(&["status", "--porcelain"]), "", "{point}");
        let brought = env.run(&["apply", "--json", &task]).exits(0).json().pop().unwrap();
        assert_eq!(brought["how"], "files", "{point}");
        assert_eq!(env.checkout.git(&["log", "-1", "--format=%s"]), "mine");
        env.changed_paths();
    }
}

#[test]
fn a_fast_forward_into_whose_files_something_was_staged_says_so() {
    let (env, task) = handed_back(arranged, LINE);
    env.set("CRASHPOINT", "file.moved#4").run(&["apply", "--json", &task]);
    env.set("CRASHPOINT", "");
    env.checkout.write("b.txt", "mine\n").git(&["add", "b.txt"]);
    env.checkout.write("b.txt", "b\n");
    let refused = env.run(&["apply", "--json", &task]);
    let error = refused.exits(6).json().pop().unwrap()["error"].clone();
    assert_eq!(error["kind"], "apply_changed");
    assert!(error["message"].as_str().unwrap().contains("b.txt"), "{}", refused.report());
    env.checkout.git(&["reset", "--quiet", "--", "b.txt"]);
    env.run(&["apply", "--json", &task]).exits(0);
    assert_eq!(env.checkout.git(&["status", "--porcelain"]), "");
    env.changed_paths();
}
