//! A task whose repository went away while it worked: what is gone is said, and the task can be ended.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Run, Step, TestEnvironment, Wire};

/// Asserts that it names the repository that is gone, and the way out; and calls nothing unharmed.
#[track_caller]
fn names_it(run: &Run, task: &str) {
    let error = run.exits(1).json().pop().unwrap()["error"].clone();
    assert_eq!(error["kind"], "repository_gone", "{}", run.report());
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.contains(&format!("nisse drop {}", &task[24..])), "{hint}");
    assert!(!run.stdout.contains("nothing is lost") && !run.stderr.contains("nothing is lost"), "{}", run.report());
}

#[test]
fn a_repository_that_a_command_removed_is_named_and_its_task_can_be_ended() {
    for (isolation, line, anew) in [
        ("in-place", "rm -rf .git", false),
        ("in-place", "rm -rf .git; git init -q .", true),
        ("worktree", "rm -rf \"$(git rev-parse --path-format=absolute --git-common-dir)\"", false),
    ] {
        let steps = vec![
            Step::call("write_file", json!({"path": "c.txt", "content": "c\n"})),
            Step::call("run_command", json!({"command": format!("{line}; echo b > b.txt")})),
            Step::hand_back(),
        ];
        let env = TestEnvironment::new(Wire::Chat, steps);
        let died = env.delegate(&["--isolation", isolation], "Make b.txt.");
        let started: Value = died.json()[0].clone();
        let task = started["task"].as_str().unwrap().to_owned();
        names_it(&died, &task);
        let worktree = Path::new(started["data"]["workplace"]["worktree"].as_str().unwrap());
        assert!(worktree.join("b.txt").exists(), "{isolation} {line}: the files are as they are");
        if !anew {
            names_it(&env.run(&["resume", "--json", &task]), &task);
        }
        for _ in 0..2 {
            let dropped = env.run(&["drop", "--json", &task]).ends(0, "dropped");
            assert_eq!((&dropped["branch"], &dropped["discarded_ref"]), (&Value::Null, &Value::Null), "{dropped}");
        }
        assert!(env.run(&["log", &task]).exits(0).stdout.contains("repository is gone"), "{isolation} {line}");
        assert_eq!(env.checkout.path().join(".git").exists(), anew, "nothing was made in its place");
        assert!(worktree.join("b.txt").exists());
        if anew {
            assert!(!env.checkout.path().join(".git/nisse-in-place").exists());
        }
        env.person(|_| {});
    }
}
