//! A worktree that cannot be made: a task of which nothing stands ends there, and any other can be given up.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::json;

use crate::support::{Script, Step, TestEnvironment, Wire};

fn job() -> Script {
    Script::ByHistory(vec![
        Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})),
        Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded."),
    ])
}

/// What keeps a worktree from being made, and what is said of it.
type Hindrance = (&'static str, fn(&TestEnvironment), &'static str);

/// A git that says this where it is to make a worktree.
fn git_says(env: &TestEnvironment, words: &str) {
    env.before_git(&format!("case \"$*\" in *'worktree add'*) echo 'fatal: {words}' >&2; exit 128;; esac"));
}

const LASTING: [Hindrance; 3] = [
    ("a file where its directory should be", |env| fs::write(env.state().join("worktrees"), "").unwrap(), "worktrees"),
    (
        "a disk that cannot be written",
        |env| {
            env.set("NISSE_WORKTREE_DIR", "/proc/nisse");
        },
        "/proc/nisse",
    ),
    ("a git that says no", |env| git_says(env, "no such thing"), "no such thing"),
];

#[test]
fn a_task_of_which_nothing_stands_ends_and_no_resume_repeats_it() {
    for (what, hinder, words) in LASTING {
        let env = TestEnvironment::new(Wire::Chat, job());
        fs::create_dir_all(env.state()).unwrap();
        fs::set_permissions(env.state(), fs::Permissions::from_mode(0o700)).unwrap();
        hinder(&env);
        let run = env.delegate(&[], "Make b.txt.");
        let error = run.exits(1).json().pop().unwrap();
        assert_eq!((&error["error"]["kind"], &error["task"]), (&json!("no_worktree"), &json!(null)), "{what}: {error}");
        let (message, hint) = (error["error"]["message"].as_str().unwrap(), error["error"]["hint"].as_str().unwrap());
        assert!(message.contains(words) && message.contains("ended before it began"), "{what}: {message}");
        assert!(hint.contains("delegate the task again") && !hint.contains("nisse resume"), "{what}: {hint}");
        assert!(env.server.requests().is_empty(), "{what}");
        assert!(env.run(&["resume", "--json"]).exits(0).stderr.contains("nothing is pending"), "{what}");
        let listed = env.run(&["log", "--json"]).exits(0).json().remove(0)["tasks"][0].clone();
        assert_eq!(listed["outcome"], "dropped", "{what}: {listed}");
        let log = env.run(&["log", listed["task"].as_str().unwrap()]);
        assert!(log.exits(0).stdout.contains("dropped: cannot make a worktree"), "{what}: {}", log.report());
        assert_eq!(env.checkout.git(&["for-each-ref", "--format=%(refname)", "refs/heads"]), "refs/heads/main");
    }
}

#[test]
fn a_task_that_rests_and_whose_worktree_cannot_be_made_again_can_be_given_up() {
    let env = TestEnvironment::new(Wire::Chat, job());
    let result = env.delegate(&[], "Make b.txt.").ends(5, "interrupted");
    let task = result["task"].as_str().unwrap();
    let worktrees = env.state().join("worktrees");
    fs::remove_dir_all(&worktrees).unwrap();
    fs::write(&worktrees, "").unwrap();
    for _ in 0..2 {
        let error = env.run(&["resume", "--json"]).exits(1).json().pop().unwrap();
        let hint = error["error"]["hint"].as_str().unwrap();
        assert!(hint.contains(&format!("nisse drop {}", &task[24..])) && hint.contains("nisse resume"), "{error}");
    }
    let dropped = env.run(&["drop", "--json", task]).ends(0, "dropped");
    env.assert_discarded(&dropped);
    assert_eq!(env.checkout.git(&["show", &format!("refs/nisse/discarded/{task}:b.txt")]), "b");
    assert!(env.run(&["resume", "--json"]).exits(0).stderr.contains("nothing is pending"));
}

#[test]
fn a_setup_that_always_fails_can_be_given_up_too() {
    let env = TestEnvironment::new(Wire::Chat, job());
    env.set("NISSE_WORKTREE_SETUP", "false");
    let error = env.delegate(&[], "Make b.txt.").exits(1).json().pop().unwrap();
    let task = error["task"].as_str().unwrap();
    assert!(error["error"]["hint"].as_str().unwrap().contains(&format!("nisse drop {}", &task[24..])), "{error}");
    env.run(&["drop", "--json", task]).ends(0, "dropped");
    assert!(env.run(&["resume", "--json"]).exits(0).stderr.contains("nothing is pending"));
}

#[test]
fn a_hindrance_that_passes_leaves_the_task_pending() {
    let env = TestEnvironment::new(Wire::Chat, job());
    git_says(&env, "cannot write: No space left on device");
    let error = env.delegate(&[], "Make b.txt.").exits(1).json().pop().unwrap();
    assert!(error["error"]["hint"].as_str().unwrap().contains("nisse resume"), "{error}");
    env.plain_git();
    env.run(&["resume", "--json"]).ends(5, "interrupted");
}
