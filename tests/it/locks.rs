//! Lock files of git's that are left: a task's own are removed by its next owner, others are named with their age.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Step, TestEnvironment, Wire};

/// A task that rests, in a world; its id and its branch.
fn resting() -> (TestEnvironment, String, String) {
    let env = TestEnvironment::new(
        Wire::Chat,
        vec![
            Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})),
            Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded."),
            Step::hand_back(),
        ],
    );
    let rests = env.delegate(&[], "Make b.txt.").ends(5, "interrupted");
    let text = |key: &str| rests[key].as_str().unwrap().to_owned();
    (env, text("task"), text("branch"))
}

fn leftovers(env: &TestEnvironment, arguments: &[&str]) -> Vec<Value> {
    let report = env.run(&[&["doctor", "--json"], arguments].concat()).json().pop().unwrap();
    let all = report["leftovers"].as_array().unwrap();
    all.iter().filter(|one| one["kind"] == "git_lock").cloned().collect()
}

#[test]
fn a_tasks_own_are_removed_and_told() {
    for by in ["resume", "doctor"] {
        let (env, task, branch) = resting();
        let locks = [
            format!(".git/refs/nisse/turns/{task}.lock"),
            format!(".git/refs/nisse/found/{task}/1.lock"),
            format!(".git/refs/heads/{branch}.lock"),
            format!(".git/worktrees/{task}/index.lock"),
            format!(".git/nisse-{task}.index.lock"),
        ];
        let here = |lock: &String| env.checkout.path().join(lock).exists();
        for lock in &locks {
            env.checkout.write(lock, "");
        }
        // a lock of the checkout's index is the task's if it is a second name of its own copy
        env.checkout.write(&format!(".git/nisse-{task}.index"), "");
        let index_lock = env.checkout.path().join(".git/index.lock");
        fs::hard_link(env.checkout.path().join(format!(".git/nisse-{task}.index")), &index_lock).unwrap();
        let named = leftovers(&env, &[]);
        assert_eq!(named.len(), locks.len() + 1, "{named:#?}");
        assert!(named.iter().all(|one| one["state"] == "dead" && one["task"] == *task), "{named:#?}");
        if by == "doctor" {
            assert!(leftovers(&env, &["--fix"]).iter().all(|one| one["state"] == "removed"));
            assert!(!locks.iter().any(here) && !index_lock.exists());
        }
        let run = env.run(&["resume", "--json", &task]);
        run.ends(0, "handback");
        assert_eq!(run.stdout.contains("locks_removed"), by == "resume", "{}", run.report());
        assert!(!locks.iter().any(here) && !index_lock.exists(), "{}", run.report());
    }
}

#[test]
fn others_are_named_with_their_age_and_stay() {
    let (env, task, branch) = resting();
    let other = env.checkout.path().join(".git/packed-refs.lock");
    // what is packed is deleted with that lock held
    env.checkout.git(&["pack-refs", "--all"]);
    fs::write(&other, "").unwrap();
    let told = env.run(&["doctor", "--json"]).stdout;
    assert!(told.contains("packed-refs.lock is there, ") && told.contains(" s old"), "{told}");
    let run = env.run(&["drop", "--json", &task]);
    assert!(run.stdout.contains("packed-refs.lock is there, "), "{}", run.report());
    assert!(other.exists() && env.checkout.has_ref(&format!("refs/heads/{branch}")), "{}", run.report());
    fs::remove_file(&other).unwrap();
    let result = env.run(&["drop", "--json", &task]).ends(0, "dropped");
    env.assert_discarded(&result);
    env.person(|_| {});
}
