//! Whether it is applied is seen by HEAD and the files: what was undone comes again, what is committed is not taken back.

use std::fs;

use serde_json::{Value, json};

use super::{applied, handed_back, handed_back_with};
use crate::support::{Checkout, Step, TestEnvironment, Wire};

const LINE: &str = "echo task >> a.txt; echo b > b.txt; rm gone.txt";

fn arranged(env: &TestEnvironment) {
    env.checkout.write("gone.txt", "g\n").commit("files");
}

/// Asserts that the task's files are there.
#[track_caller]
fn is_here(env: &TestEnvironment, at: &str) {
    let read = |file: &str| fs::read_to_string(env.checkout.path().join(file)).unwrap_or_default();
    assert_eq!((read("a.txt"), read("b.txt")), ("a\ntask\n".to_owned(), "b\n".to_owned()), "{at}");
    assert!(!env.checkout.path().join("gone.txt").exists(), "{at}");
}

/// Applies with `options`, lets a person undo it, and applies once more: it is `how` then.
#[track_caller]
fn comes_again(dirty: bool, options: &[&str], undo: &[&[&str]], how: &str) {
    let (env, task) = handed_back(arranged, LINE);
    env.person(|checkout| {
        checkout.write("mine.txt", "m\n");
        if dirty {
            checkout.git(&["add", "mine.txt"]);
        }
    });
    let command = [&["apply", "--json", &task], options].concat();
    env.run(&command).exits(0);
    for arguments in undo {
        env.checkout.git(arguments);
    }
    let at = format!("{options:?} {undo:?}");
    assert_ne!(fs::read_to_string(env.checkout.path().join("a.txt")).unwrap(), "a\ntask\n", "{at}: nothing was undone");
    let again = applied(&env.run(&command), how);
    assert_eq!(again["commits"], u32::from(how == "commits"), "{at}: one that was undone is not counted");
    is_here(&env, &at);
    // and now it is there
    let events = env.run(&["log", "--json", &task]).stdout;
    applied(&env.run(&command), "already");
    assert_eq!(env.run(&["log", "--json", &task]).stdout, events, "{at}");
    env.changed_paths();
}

#[test]
fn a_fast_forward_that_was_undone_comes_again() {
    comes_again(false, &[], &[&["reset", "--quiet", "--hard", "HEAD~1"]], "fast_forward");
    comes_again(false, &[], &[&["checkout", "--quiet", "-B", "other", "HEAD~1"]], "fast_forward");
    comes_again(false, &[], &[&["checkout", "--quiet", "--detach", "HEAD~1"]], "files");
    // HEAD still holds the commit, and the files do not
    comes_again(false, &[], &[&["revert", "--no-edit", "HEAD"]], "files");
    comes_again(false, &[], &[&["restore", "--source=HEAD~1", "--", "a.txt", "b.txt", "gone.txt"]], "files");
}

#[test]
fn files_that_were_undone_come_again() {
    let clean: &[&str] = &["clean", "--quiet", "--force", "b.txt"];
    comes_again(true, &[], &[&["checkout", "--", "."], clean], "files");
    comes_again(true, &[], &[&["checkout", "--", "."]], "files");
    comes_again(true, &[], &[&["restore", "a.txt"]], "files");
    comes_again(true, &[], &[&["stash", "--quiet", "--include-untracked"]], "fast_forward");
    comes_again(true, &[], &[&["reset", "--quiet", "--hard"], clean], "fast_forward");
    comes_again(true, &[], &[&["stash", "--quiet", "-u"], &["checkout", "--quiet", "--detach", "HEAD~1"]], "files");
}

#[test]
fn commits_that_were_undone_are_made_again() {
    for manner in ["--squash", "--commit", "--merge"] {
        comes_again(false, &[manner], &[&["reset", "--quiet", "--hard", "HEAD~1"]], "commits");
    }
    comes_again(false, &["--squash"], &[&["revert", "--no-edit", "HEAD"]], "commits");
    comes_again(true, &["--squash"], &[&["checkout", "--quiet", "-b", "other", "HEAD~1"]], "commits");
}

#[test]
fn of_several_commits_those_are_made_again_that_are_gone() {
    for (left, made) in [(0, 3), (1, 2), (2, 1)] {
        let (env, task) = handed_back_with(
            |env| {
                env.set("NISSE_BRANCH_HISTORY", "turns");
            },
            &["echo 1 > one.txt", "echo 2 >> one.txt; echo x > two.txt", "rm two.txt; echo 3 > three.txt"],
        );
        env.person(|checkout| {
            checkout.write("mine.txt", "m\n").commit("meanwhile");
        });
        applied(&env.run(&["apply", "--json", &task, "--commit"]), "commits");
        let tree = env.checkout.git(&["rev-parse", "HEAD^{tree}"]);
        env.checkout.git(&["reset", "--quiet", "--hard", &format!("HEAD~{}", 3 - left)]);
        // as they would be after a rebase
        env.checkout.git(&["commit", "--quiet", "--amend", "--no-edit", "--date=2020-01-01T00:00:00Z"]);
        applied(&env.run(&["apply", "--json", &task, "--commit"]), "commits");
        assert_eq!(env.checkout.git(&["rev-list", "--count", "HEAD"]), "5", "{left} left, {made} to be made");
        assert_eq!(env.checkout.git(&["rev-parse", "HEAD^{tree}"]), tree);
        applied(&env.run(&["apply", "--json", &task, "--commit"]), "already");
        env.changed_paths();
    }
}

#[test]
fn a_commit_that_a_hook_refused_is_not_there_when_its_files_are_gone() {
    for undo in [&["reset", "--quiet", "--hard"][..], &["checkout", "--", "a.txt"]] {
        let (env, task) = handed_back(arranged, LINE);
        let hook = env.checkout.path().join(".git/hooks/pre-commit");
        env.person(|checkout| {
            fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
            checkout.executable(".git/hooks/pre-commit");
        });
        env.run(&["apply", "--json", &task, "--squash"]).exits(6);
        env.checkout.git(undo);
        if undo[0] == "reset" {
            env.checkout.git(&["clean", "--quiet", "--force"]);
        }
        env.run(&["apply", "--json", &task, "--squash"]).exits(6);
        is_here(&env, &format!("{undo:?}"));
        env.checkout.git(undo);
        fs::remove_file(&hook).unwrap();
        if undo[0] == "reset" {
            env.checkout.git(&["clean", "--quiet", "--force"]);
        }
        applied(&env.run(&["apply", "--json", &task, "--squash"]), "commits");
        is_here(&env, &format!("{undo:?}"));
        assert_eq!(env.checkout.git(&["status", "--porcelain"]), "", "all of it is committed");
        env.changed_paths();
    }
}

#[test]
fn half_of_the_files_is_no_commit() {
    let (env, task) = handed_back(arranged, LINE);
    env.person(|checkout| drop(checkout.write("mine.txt", "m\n").git(&["add", "mine.txt"])));
    applied(&env.run(&["apply", "--json", &task]), "files");
    env.checkout.git(&["restore", "a.txt"]);
    env.changed_paths();
    // `b.txt` is there and not committed: a commit of the rest would claim to be all of it
    super::refused(&env, &env.run(&["apply", "--json", &task, "--squash"]), "apply_conflict", &["b.txt"]);
}

/// What `already` says, and by what it was seen.
#[track_caller]
fn told(env: &TestEnvironment, task: &str, seen: &str, left: &[&str]) -> Value {
    let document = applied(&env.run(&["apply", "--json", task]), "already");
    assert_eq!((document["seen"].as_str(), &document["left"]), (Some(seen), &json!(left)), "{document}");
    env.assert_checkout_unchanged();
    document
}

#[test]
fn what_is_there_is_told_as_it_was_seen() {
    let commit = |checkout: &Checkout| {
        checkout.commit("by hand");
    };
    let more = |checkout: &Checkout| {
        checkout.write("b.txt", "b\nand more\n");
    };
    let dirty = |checkout: &Checkout| drop(checkout.write("mine.txt", "m\n").git(&["add", "mine.txt"]));
    let (env, task) = handed_back(arranged, LINE);
    env.person(dirty);
    applied(&env.run(&["apply", "--json", &task]), "files");
    env.changed_paths();
    told(&env, &task, "uncommitted", &[]);
    let words = env.run(&["apply", &task, "--squash"]).exits(0).stdout.clone();
    assert!(words.contains("uncommitted") && words.contains("--abort"), "{words}");
    env.person(more);
    told(&env, &task, "uncommitted", &["b.txt"]);
    env.person(|checkout| {
        checkout.write("b.txt", "b\n");
    });
    env.person(commit);
    told(&env, &task, "committed", &[]);
    let (env, task) = handed_back(arranged, LINE);
    env.run(&["apply", "--json", &task]).exits(0);
    env.changed_paths();
    told(&env, &task, "head", &[]);
    env.person(|checkout| {
        more(checkout);
        checkout.commit("on it goes");
    });
    told(&env, &task, "head", &["b.txt"]);
    let (env, task) = handed_back(arranged, LINE);
    env.run(&["apply", "--json", &task, "--squash"]).exits(0);
    env.person(|checkout| drop(checkout.git(&["commit", "--quiet", "--amend", "-m", "mine\n", "-m", &trailer(&task)])));
    told(&env, &task, "head", &[]);
}

fn trailer(task: &str) -> String {
    format!("Nisse-Task: {task}")
}

/// What is taken back, and what stays since the person has committed it.
#[test]
fn committed_work_is_not_taken_back() {
    for together in [true, false] {
        let (env, task) = handed_back(arranged, LINE);
        env.person(|checkout| drop(checkout.write("mine.txt", "m\n").git(&["add", "mine.txt"])));
        applied(&env.run(&["apply", "--json", &task]), "files");
        env.person(|checkout| {
            if together {
                checkout.commit("by hand");
            } else {
                checkout.git(&["add", "b.txt", "gone.txt"]);
                checkout.git(&["commit", "--quiet", "-m", "by hand", "--", "b.txt", "gone.txt"]);
            }
        });
        let run = env.run(&["apply", "--json", &task, "--abort"]);
        if together {
            let error = run.exits(2).json().pop().unwrap()["error"].clone();
            assert_eq!(error["kind"], "nothing_to_put_back");
            assert!(error["message"].as_str().unwrap().contains("committed here"), "{error}");
            env.assert_checkout_unchanged();
            continue;
        }
        let document = run.exits(6).json().pop().unwrap();
        assert_eq!((&document["committed"], &document["files"]), (&json!(["b.txt", "gone.txt"]), &json!(["a.txt"])));
        assert_eq!(env.changed_paths(), ["a.txt"]);
        assert_eq!(env.checkout.git(&["status", "--porcelain"]), "A  mine.txt");
        let words = env.run(&["apply", &task, "--abort"]);
        assert!(words.exits(2).stderr.contains("not applied here"), "{}", words.report());
    }
}

#[test]
fn what_was_undone_by_hand_is_not_taken_back_once_more() {
    let (env, task) = handed_back(arranged, LINE);
    env.person(|checkout| drop(checkout.write("mine.txt", "m\n").git(&["add", "mine.txt"])));
    applied(&env.run(&["apply", "--json", &task]), "files");
    env.person(|checkout| {
        checkout.git(&["restore", "a.txt", "gone.txt"]);
        checkout.git(&["clean", "--quiet", "--force"]);
    });
    let run = env.run(&["apply", "--json", &task, "--abort"]);
    let error = run.exits(2).json().pop().unwrap()["error"].clone();
    assert!(error["message"].as_str().unwrap().contains("not applied here"), "{error}");
    env.assert_checkout_unchanged();
}

/// What the files were is kept for 30 days, and then collected: what is there is seen all the same.
/// A second application brings what is missing; taking it back is not taking all of it back, and says so.
#[test]
fn what_an_earlier_application_brought_is_named_when_a_later_one_is_taken_back() {
    let (env, task) = handed_back(arranged, LINE);
    env.person(|checkout| drop(checkout.git(&["commit", "--quiet", "--allow-empty", "--message", "meanwhile"])));
    applied(&env.run(&["apply", "--json", &task]), "files");
    env.checkout.git(&["checkout", "--", "a.txt"]);
    applied(&env.run(&["apply", "--json", &task]), "files");
    let back = env.run(&["apply", "--json", &task, "--abort"]);
    let document = back.exits(6).json().pop().unwrap();
    assert_eq!((&document["how"], &document["files"]), (&json!("put_back"), &json!(["a.txt"])));
    let notices = document["notices"].to_string();
    assert!(
        notices.contains("files of an earlier `nisse apply` are still here") && notices.contains("b.txt"),
        "{notices}"
    );
    let kept = format!("refs/nisse/found/{task}/");
    let kept = env.checkout.git(&["for-each-ref", "--format=%(refname)", &kept]);
    assert!(kept.contains("before-apply-") && notices.contains(&task), "{kept}");
    env.changed_paths();
}

#[test]
fn what_was_kept_for_the_way_back_may_be_gone() {
    let (env, task) = handed_back(arranged, LINE);
    env.person(|checkout| drop(checkout.write("mine.txt", "m\n").git(&["add", "mine.txt"])));
    applied(&env.run(&["apply", "--json", &task]), "files");
    env.person(|checkout| {
        for kind in ["plan", "before-apply"] {
            checkout.git(&["update-ref", "-d", &format!("refs/nisse/{kind}/{task}")]);
        }
        checkout.git(&["gc", "--quiet", "--prune=now"]);
    });
    told(&env, &task, "uncommitted", &[]);
    let run = env.run(&["apply", "--json", &task, "--abort"]);
    let error = run.exits(2).json().pop().unwrap()["error"].clone();
    assert!(error["message"].as_str().unwrap().contains("no longer kept"), "{error}");
    env.person(|checkout| drop(checkout.git(&["restore", "a.txt", "gone.txt"])));
    applied(&env.run(&["apply", "--json", &task]), "files");
    is_here(&env, "again");
    env.changed_paths();
}

/// Two tasks changed one file; taking back the earlier one leaves it, and taking back the later one makes it the earlier's
/// again.
#[test]
fn what_a_later_task_kept_from_being_taken_back_is_named_again() {
    let edit = |old: &str, new: &str| Step::call("edit_file", json!({"path": "a.txt", "old": old, "new": new}));
    let env = TestEnvironment::new(
        Wire::Chat,
        vec![edit("first", "1st"), Step::hand_back(), edit("last", "final"), Step::hand_back()],
    );
    env.checkout.write("own.txt", "o\n").write("a.txt", "first\n\n\n\n\n\n\n\nlast\n").commit("two lines");
    let done = ["Mend the first line.", "Mend the last one."].map(|brief| env.delegate(&[], brief).ends(0, "handback"));
    let [first, later] = done.each_ref().map(|result| result["task"].as_str().unwrap());
    env.person(|checkout| {
        checkout.write("own.txt", "mine\n");
    });
    env.run(&["apply", first]).exits(0);
    env.run(&["apply", later]).exits(0);
    env.run(&["apply", "--abort", first]).exits(6);
    env.run(&["apply", "--abort", later]).exits(0);
    let again = env.run(&["apply", "--abort", "--json", first]);
    let error = again.json().pop().unwrap()["error"].to_string();
    assert_ne!(again.code(), Some(0));
    assert!(error.contains("an earlier --abort left") && error.contains("a.txt"), "{error}");
    env.person(|_| {});
}
