//! Lock files of git's that are left: a task's own are removed by its next owner, others are named with their age.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{Script, Step, TestEnvironment, Wire, wait_until};

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

/// The lock files below the checkout's git directory.
fn locks_in(env: &TestEnvironment) -> Vec<String> {
    let listed = env.run_program("find", &[".git", "-name", "*.lock"]);
    let mut all: Vec<String> = listed.stdout.lines().map(str::to_owned).collect();
    all.sort();
    all
}

fn command(line: &str) -> Step {
    Step::call("run_command", json!({"command": line}))
}

const LEAVES: &str = "for name in index HEAD packed-refs config refs/heads/main refs/tags/x/y; do \
                      lock=$(git rev-parse --git-path $name.lock); mkdir -p $(dirname $lock); : > $lock; done; \
                      echo b > b.txt";
/// A git that has taken the index's lock is killed without a chance to give it back.
const KILLED: &str = "echo c >> a.txt; GIT_EDITOR='sh -c \"kill -9 $PPID\"' git commit -qa; echo c > c.txt";

/// Nobody is left who could hold them.
#[test]
fn what_the_git_of_a_command_left_locked_is_removed_and_told() {
    for isolation in ["worktree", "in-place"] {
        let env = TestEnvironment::new(
            Wire::Chat,
            vec![command(LEAVES), command(KILLED), command("true"), Step::hand_back()],
        );
        env.may_add(".git/refs/tags").may_add(".git/COMMIT_EDITMSG").person_will_change(".git/logs/HEAD");
        let run = env.delegate(&["--isolation", isolation], "Do it.");
        let result = run.ends(0, "handback");
        assert_eq!(env.on_branch(&result, "c.txt").unwrap(), b"c\n");
        assert_eq!(locks_in(&env), Vec::<String>::new(), "{isolation}");
        assert_eq!(run.stdout.matches("\"locks_removed\"").count(), 2, "{isolation}: {}", run.report());
    }
}

/// In the checkout itself, beside a task in a worktree; or held by somebody who lives.
#[test]
fn what_somebody_else_may_have_locked_meanwhile_stays() {
    let scratch = tempfile::tempdir().unwrap();
    let (held, go) = (scratch.path().join("held"), scratch.path().join("go"));
    let waits = format!(": > {}; until test -e {}; do sleep 0.02; done", held.display(), go.display());
    let env = TestEnvironment::new(Wire::Chat, vec![command(&format!("{waits}; echo b > b.txt")), Step::hand_back()]);
    let running = env.start(&["delegate", "--json", "Make b.txt."]);
    assert!(wait_until(Duration::from_mins(2), || held.exists()), "it did not begin");
    let git = env.checkout.path().join(".git");
    let open = fs::File::create(git.join("packed-refs.lock")).unwrap();
    fs::write(git.join("index.lock"), "").unwrap();
    fs::write(&go, "").unwrap();
    env.finish(running).ends(0, "handback");
    assert_eq!(locks_in(&env), [".git/index.lock", ".git/packed-refs.lock"]);
    drop(open);
    for name in ["index.lock", "packed-refs.lock"] {
        fs::remove_file(git.join(name)).unwrap();
    }
}

#[test]
fn in_place_they_go_too_where_nisse_was_killed_with_the_command() {
    let went = AtomicBool::new(false);
    let env = TestEnvironment::new(
        Wire::Chat,
        Script::by_content(move |asked| match asked.replies() {
            0 if !went.swap(true, Ordering::SeqCst) => command(&format!("{LEAVES}; kill -9 $PPID")),
            _ => Step::hand_back(),
        }),
    );
    env.may_add(".git/refs/tags").person_will_change(".git/logs/HEAD");
    let died = env.delegate(&["--isolation", "in-place"], "Make b.txt.");
    assert_eq!(died.code(), None, "{}", died.report());
    assert_eq!(locks_in(&env).len(), 6);
    let task = died.json()[0]["task"].as_str().unwrap().to_owned();
    env.run(&["resume", "--json", &task]).ends(6, "gated");
    assert_eq!(locks_in(&env), Vec::<String>::new());
    let result = env.run(&["resume", "--json", &task, "--keep"]).ends(0, "handback");
    assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"b\n");
}
