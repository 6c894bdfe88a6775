//! A command acts on the checkout that it stands in, or says which other one it would be.

use std::{fs, path::PathBuf};

use serde_json::json;

use crate::support::{Checkout, Run, Step, TestEnvironment, Wire};

fn limited() -> Step {
    Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded.")
}

fn write() -> Step {
    Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}))
}

/// A world with a task that was handed back and one that rests, both of its checkout; their ids.
fn two_tasks() -> (TestEnvironment, String, String) {
    let env = TestEnvironment::new(Wire::Chat, vec![write(), Step::hand_back(), write(), limited(), Step::hand_back()]);
    let done = env.delegate(&[], "Make b.txt.").ends(0, "handback")["task"].as_str().unwrap().to_owned();
    let rests = env.delegate(&[], "Make b.txt once more.").ends(5, "interrupted")["task"].as_str().unwrap().to_owned();
    (env, done, rests)
}

/// Asserts that nothing was done, and that both places and the command for the other one are named.
#[track_caller]
fn names_the_other(env: &TestEnvironment, run: &Run, command: &str, task: &str) {
    let error = run.exits(2).json().pop().unwrap()["error"].clone();
    assert_eq!(error["kind"], "other_checkout", "{}", run.report());
    let checkout = env.checkout.path().display();
    assert!(error["message"].as_str().unwrap().contains(&checkout.to_string()), "{error}");
    assert_eq!(error["hint"], format!("if you mean that task: nisse -C {checkout} {command} {}", &task[24..]));
    env.assert_checkout_unchanged();
}

#[test]
fn a_task_of_another_repository_is_named_and_left_alone() {
    let (env, done, rests) = two_tasks();
    let asked = env.server.requests().len();
    let other = Checkout::new(&env.root().join("other"));
    other.write("a.txt", "a\n").commit("base");
    for place in ["other", "home"] {
        let place = env.root().join(place);
        let from = |arguments: &[&str]| env.run(&[&["-C", place.to_str().unwrap()], arguments].concat());
        for (command, task) in [("apply", &done), ("drop", &rests), ("resume", &rests)] {
            names_the_other(&env, &from(&[command, "--json", task]), command, task);
        }
        names_the_other(&env, &from(&["apply", "--json", &done, "--abort"]), "apply", &done);
        names_the_other(&env, &from(&["resume", "--json", &rests, "--drop"]), "resume", &rests);
        // reading does no harm, and says where it reads
        for options in [&[][..], &["--diff"], &["--follow"]] {
            let log = from(&[&["log", &done], options].concat());
            log.exits(0);
            assert!(log.stderr.contains(&format!("belongs to {}", env.checkout.path().display())), "{}", log.report());
        }
    }
    assert_eq!(env.server.requests().len(), asked, "a model was asked");
    assert_eq!(other.git(&["status", "--porcelain"]), "");
    assert!(!other.path().join("b.txt").exists());
    // by its path it is meant
    let at = env.checkout.path().to_str().unwrap();
    env.run(&["-C", at, "apply", &done]).exits(0);
    env.changed_paths();
    env.run(&["-C", at, "drop", "--json", &rests]).ends(0, "dropped");
    assert!(env.changed_paths().iter().all(|path| path.starts_with(".git/")));
}

#[test]
fn the_beginning_of_an_id_means_a_task_of_this_repository_first() {
    let (env, done, _) = two_tasks();
    let other = Checkout::new(&env.root().join("other"));
    other.write("a.txt", "a\n").commit("base");
    let other = other.path().to_str().unwrap().to_owned();
    // ids of tests are counted, so that those of one world begin alike
    let prefix = &done[..20];
    let run = env.run(&["-C", &other, "apply", "--json", prefix]);
    assert_eq!(run.exits(2).json().pop().unwrap()["error"]["kind"], "ambiguous_task", "{}", run.report());
    let script = vec![write(), Step::hand_back()];
    let second = TestEnvironment::new(Wire::Chat, script);
    env.set("NISSE_LLM_BASE_URL", &second.server.url());
    let mine = env.run(&["-C", &other, "delegate", "--json", "Make b.txt."]).ends(0, "handback");
    assert!(mine["task"].as_str().unwrap().starts_with(prefix), "{mine}");
    let run = env.run(&["-C", &other, "apply", "--json", prefix]);
    assert_eq!(run.exits(0).json().pop().unwrap()["task"], mine["task"], "{}", run.report());
    assert!(PathBuf::from(&other).join("b.txt").exists());
    let listed = env.run(&["-C", &other, "log", "--json", prefix]).exits(0).json().pop().unwrap();
    assert_eq!(listed["task"], mine["task"]);
    env.assert_checkout_unchanged();
}

#[test]
fn a_linked_worktree_is_the_same_repository_and_another_checkout() {
    let (env, done, rests) = two_tasks();
    env.may_add(".git/worktrees");
    let linked = env.root().join("linked");
    env.person(|checkout| drop(checkout.git(&["worktree", "add", "-q", "--detach", linked.to_str().unwrap()])));
    let from = |arguments: &[&str]| env.run(&[&["-C", linked.to_str().unwrap()], arguments].concat());
    // files belong to one checkout
    names_the_other(&env, &from(&["apply", "--json", &done]), "apply", &done);
    assert!(!linked.join("b.txt").exists());
    // branch and worktree of the task belong to the repository
    let resumed = from(&["resume", "--json", &rests]);
    resumed.ends(0, "handback");
    assert!(resumed.stderr.contains("belongs to"), "{}", resumed.report());
    assert!(env.changed_paths().iter().all(|path| path.starts_with(".git/")));
    assert_eq!(fs::read_dir(&linked).unwrap().count(), 2, "`.git` and `a.txt`");
}
