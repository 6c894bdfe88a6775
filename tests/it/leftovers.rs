//! What settled tasks leave behind: listed by `doctor`, taken away by `--fix` where nothing is lost by it, and only there.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Step, TestEnvironment, Wire};

/// 31 days after the tests' moment.
pub(crate) const LATER: &str = "1798588800000";

fn write() -> Step {
    Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}))
}

/// What the doctor lists, locks aside: kind, name, state.
fn listed(env: &TestEnvironment, options: &[&str]) -> Vec<(String, String, String)> {
    let run = env.run(&[&["doctor", "--json"], options].concat());
    let report = run.json().pop().unwrap();
    let text = |one: &Value, name: &str| one[name].as_str().unwrap().to_owned();
    let all = report["leftovers"].as_array().unwrap().iter();
    let others = all.filter(|one| one["kind"] != "lock");
    others.map(|one| (text(one, "kind"), text(one, "name"), text(one, "state"))).collect()
}

fn one(kind: &str, name: &str, state: &str) -> (String, String, String) {
    (kind.to_owned(), name.to_owned(), state.to_owned())
}

#[test]
fn a_branch_goes_when_its_work_is_in_another_one() {
    let env = TestEnvironment::new(Wire::Chat, vec![write(), Step::hand_back()]);
    let result = env.delegate(&[], "Make b.txt.").ends(0, "handback");
    let (task, branch) = (result["task"].as_str().unwrap(), result["branch"].as_str().unwrap());
    assert_eq!(listed(&env, &[]), [], "work that is not brought home is no leftover");
    assert_eq!(listed(&env, &["--fix"]), []);
    assert!(env.on_branch(&result, "b.txt").is_some());
    env.run(&["apply", task]).exits(0);
    env.changed_paths();
    assert_eq!(listed(&env, &[]), [one("branch", branch, "dead")]);
    assert!(env.checkout.has_ref(&format!("refs/heads/{branch}")), "looking changes nothing");
    assert_eq!(listed(&env, &["--fix"]), [one("branch", branch, "removed")]);
    assert!(!env.checkout.has_ref(&format!("refs/heads/{branch}")));
    assert_eq!(listed(&env, &[]), []);
    env.changed_paths();
}

#[test]
fn refs_of_settled_tasks_are_kept_for_thirty_days() {
    for by_the_next_task in [false, true] {
        let steps = vec![write(), Step::give_up(), Step::give_up()];
        let env = TestEnvironment::new(Wire::Chat, steps);
        let result = env.delegate(&[], "Make b.txt.").ends(3, "failed");
        let kept = result["discarded_ref"].as_str().unwrap();
        assert_eq!(listed(&env, &["--fix"]), []);
        assert!(env.checkout.has_ref(kept));
        // the tests' moment, and 30 days
        let thirty_days = 1_795_910_400_000_u64 + 30 * 24 * 60 * 60 * 1000;
        env.set("NISSE_TEST_CLOCK", &(thirty_days - 1).to_string());
        assert_eq!(listed(&env, &["--fix"]), []);
        assert!(env.checkout.has_ref(kept));
        env.set("NISSE_TEST_CLOCK", &thirty_days.to_string());
        if by_the_next_task {
            env.delegate(&[], "Do nothing.").ends(3, "failed");
        } else {
            assert_eq!(listed(&env, &[]), [one("ref", kept, "dead")]);
            assert_eq!(listed(&env, &["--fix"]), [one("ref", kept, "removed")]);
        }
        assert!(!env.checkout.has_ref(kept));
    }
}

#[test]
fn a_worktree_with_changes_of_its_own_stays_and_is_named() {
    let env = TestEnvironment::new(Wire::Chat, vec![write(), Step::hand_back()]);
    let result = env.delegate(&[], "Make b.txt.").ends(0, "handback");
    let (task, branch) = (result["task"].as_str().unwrap(), result["branch"].as_str().unwrap());
    let path = env.state().join("worktrees").join(task);
    let name = path.to_str().unwrap();
    let reason = format!("nisse {task}");
    env.checkout.git(&["worktree", "add", "--quiet", "--lock", "--reason", &reason, name, branch]);
    fs::write(path.join("loose.txt"), "not committed\n").unwrap();
    for () in [(), ()] {
        assert_eq!(listed(&env, &["--fix"]), [one("worktree", name, "kept")]);
        assert_eq!(fs::read(path.join("loose.txt")).unwrap(), b"not committed\n");
    }
    let told = env.run(&["doctor"]);
    assert!(told.stdout.contains("loose.txt"), "{}", told.report());
    fs::remove_file(path.join("loose.txt")).unwrap();
    assert_eq!(listed(&env, &["--fix"]), [one("worktree", name, "removed")]);
    assert!(!path.exists() && env.on_branch(&result, "b.txt").is_some(), "the branch stays");
}

#[test]
fn what_another_nisse_made_is_listed_and_left() {
    let env = TestEnvironment::new(Wire::Chat, vec![write(), Step::give_up()]);
    env.delegate(&[], "Make b.txt.").ends(3, "failed");
    let stranger = "01993c5e-7b1a-7000-8000-0123456789ab";
    let path = env.root().join("elsewhere");
    let name = path.to_str().unwrap();
    let branch = "nisse/0123456789ab-theirs";
    let reason = format!("nisse {stranger}");
    env.checkout.git(&["worktree", "add", "--quiet", "--lock", "--reason", &reason, "-b", branch, name]);
    let kept = format!("refs/nisse/discarded/{stranger}");
    env.checkout.git(&["update-ref", &kept, "main"]);
    env.set("NISSE_TEST_CLOCK", LATER);
    let found = listed(&env, &["--fix"]);
    for (kind, name) in [("worktree", name), ("branch", branch), ("ref", &*kept)] {
        assert!(found.contains(&one(kind, name, "foreign")), "{name}: {found:?}");
    }
    assert!(path.join("a.txt").exists() && env.checkout.has_ref(&kept));
    assert!(env.checkout.has_ref(&format!("refs/heads/{branch}")));
}

#[test]
fn a_task_that_can_go_on_is_left_alone() {
    let limited = Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded.");
    let env = TestEnvironment::new(Wire::Chat, vec![write(), limited, Step::hand_back()]);
    let rests = env.delegate(&[], "Make b.txt.").ends(5, "interrupted");
    env.set("NISSE_TEST_CLOCK", LATER);
    assert_eq!(listed(&env, &["--fix"]), []);
    assert!(std::path::Path::new(rests["worktree"].as_str().unwrap()).exists());
    env.run(&["resume", "--json"]).ends(0, "handback");
}

#[test]
fn a_discard_that_failed_is_carried_out_when_it_can_be() {
    let hold = std::sync::Arc::new(std::sync::Mutex::new(None::<(std::path::PathBuf, std::path::PathBuf)>));
    let known = std::sync::Arc::clone(&hold);
    // somebody has the task's branch checked out by then, so that it cannot be deleted
    let give_up = Step::give_up().before(move || {
        let known = known.lock().unwrap();
        let (checkout, at) = known.as_ref().unwrap();
        let script =
            "b=$(git for-each-ref --format='%(refname:short)' refs/heads/nisse); git worktree add -q --force $0 $b";
        let mut command = std::process::Command::new("sh");
        assert!(command.args(["-c", script]).arg(at).current_dir(checkout).status().unwrap().success());
    });
    let env = TestEnvironment::new(Wire::Chat, vec![write(), give_up]);
    let elsewhere = env.root().join("elsewhere");
    hold.lock().unwrap().replace((env.checkout.path().to_owned(), elsewhere.clone()));
    let result = env.delegate(&[], "Make b.txt.").ends(3, "failed");
    let branch = result["branch"].as_str().expect("it still stands");
    assert_eq!(listed(&env, &[]), [one("task", branch, "dead")]);
    assert_eq!(listed(&env, &["--fix"]), [one("task", branch, "kept")], "it cannot be done yet");
    let told = env.run(&["doctor", "--fix"]).stdout;
    assert!(told.contains("its cleanup failed: the discard failed") && !told.contains("removed: task"), "{told}");
    env.checkout.git(&["worktree", "remove", "--force", elsewhere.to_str().unwrap()]);
    assert_eq!(listed(&env, &["--fix"]), [one("task", branch, "removed")]);
    assert_eq!(listed(&env, &[]), []);
    assert!(!env.checkout.has_ref(&format!("refs/heads/{branch}")));
    assert!(env.checkout.has_ref(&format!("refs/nisse/discarded/{}", result["task"].as_str().unwrap())));
}

#[test]
fn lock_files_of_ended_tasks_go_and_held_ones_stay() {
    let env = TestEnvironment::new(Wire::Chat, vec![write(), Step::give_up()]);
    let result = env.delegate(&[], "Make b.txt.").ends(3, "failed");
    let lock = env.state().join("locks").join(format!("{}.lock", result["task"].as_str().unwrap()));
    let held = fs::File::open(&lock).unwrap();
    held.lock().unwrap();
    env.run(&["doctor", "--fix"]);
    assert!(lock.exists(), "somebody holds it");
    drop(held);
    env.run(&["doctor", "--fix"]);
    assert!(!lock.exists());
}
