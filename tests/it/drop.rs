//! `nisse drop`: a task is given up, and nothing of it is lost.

use std::fs;

use nisse::{
    domain::{event::EventKind, id::TaskId},
    log::{Access, Log},
};
use serde_json::{Value, json};

use crate::support::{Step, TestEnvironment, Wire};

fn limited() -> Step {
    Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded.")
}

/// A task that rests after its first file.
fn resting() -> (TestEnvironment, Value) {
    let script = vec![Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})), limited()];
    let env = TestEnvironment::new(Wire::Chat, script);
    let result = env.delegate(&[], "Make b.txt.").ends(5, "interrupted");
    (env, result)
}

#[test]
fn branch_and_worktree_go_and_the_commits_stay() {
    let (env, result) = resting();
    let (task, worktree) = (result["task"].as_str().unwrap(), result["worktree"].as_str().unwrap());
    fs::write(format!("{worktree}/loose.txt"), "not committed\n").unwrap();
    let asked = env.server.requests().len();
    let dropped = env.run(&["drop", "--json", task]).ends(0, "dropped");
    env.assert_discarded(&dropped);
    assert!(!std::path::Path::new(worktree).exists());
    assert_eq!(env.checkout.git(&["show", &format!("refs/nisse/discarded/{task}:b.txt")]), "b");
    let found = env.checkout.git(&["for-each-ref", "--format=%(refname)", "refs/nisse/found"]);
    assert_eq!(env.checkout.git(&["show", &format!("{found}:loose.txt")]), "not committed");
    assert_eq!(env.server.requests().len(), asked, "no model is asked");
    env.assert_checkout_unchanged();
    // told again, and nothing pending
    env.run(&["drop", "--json", task]).ends(0, "dropped");
    env.run(&["resume", "--json"]).exits(0);
    env.run(&["apply", "--json", task]).exits(2);
    let log = env.run(&["log", task]);
    assert!(log.stdout.contains("you gave up the task"), "{}", log.report());
}

#[test]
fn it_needs_no_proxy_and_works_by_resume_too() {
    let (env, result) = resting();
    let task = result["task"].as_str().unwrap();
    env.set("NISSE_LLM_BASE_URL", "http://127.0.0.1:9");
    let dropped = env.run(&["resume", "--json", task, "--drop"]).ends(0, "dropped");
    env.assert_discarded(&dropped);
}

#[test]
fn what_has_ended_cannot_be_given_up() {
    let env = TestEnvironment::new(
        Wire::Chat,
        vec![Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})), Step::hand_back()],
    );
    let result = env.delegate(&[], "Make b.txt.").ends(0, "handback");
    let run = env.run(&["drop", "--json", result["task"].as_str().unwrap()]);
    run.exits(2);
    assert!(run.stdout.contains("task_over") && run.stdout.contains("handback"), "{}", run.report());
    assert!(env.on_branch(&result, "b.txt").is_some(), "the branch stays");
    env.run(&["drop"]).exits(2);
    env.run(&["drop", "ffff"]).exits(2);
}

#[test]
fn what_a_branch_holds_that_somebody_moved_is_kept_and_named() {
    let (env, result) = resting();
    let (task, branch) = (result["task"].as_str().unwrap(), result["branch"].as_str().unwrap());
    env.person(|checkout| {
        checkout.git(&["update-ref", &format!("refs/heads/{branch}"), "main"]);
    });
    let dropped = env.run(&["drop", "--json", task]).ends(0, "dropped");
    let kept = format!("refs/nisse/found/{task}/branch");
    assert!(dropped["notices"].to_string().contains(&kept), "{dropped}");
    assert_eq!(env.checkout.git(&["rev-parse", &kept]), env.checkout.git(&["rev-parse", "main"]));
    assert!(!env.checkout.has_ref(&format!("refs/heads/{branch}")));
    env.changed_paths();
}

/// For every cut of the log of a drop: dropped again, it ends the same.
#[test]
fn a_drop_that_was_cut_is_gone_on_with() {
    let (env, result) = resting();
    let name = result["task"].as_str().unwrap().to_owned();
    let task: TaskId = name.parse().unwrap();
    env.keep("before");
    let events =
        |state: &str| Log::open(&env.root().join(state), Access::Read).unwrap().unwrap().events(task, 0).unwrap();
    let begins = events("state").len();
    env.run(&["drop", "--json", &name]).ends(0, "dropped");
    env.keep("after");
    let written = events("state-after").split_off(begins);
    for number in 0..written.len() {
        for command in ["drop", "resume"] {
            let prefix = &written[..number];
            env.copy("state-before", "state");
            // the first that is settled is the discard
            let gone = prefix.iter().any(|event| matches!(event.kind, EventKind::IntentSettled { .. }));
            env.copy(if gone { "checkout-after" } else { "checkout-before" }, "checkout");
            let decided = prefix.iter().any(|event| matches!(event.kind, EventKind::GateAnswered { .. }));
            if command == "resume" && !decided {
                continue;
            }
            Log::open(&env.state(), Access::Write).unwrap().unwrap().append(prefix).unwrap();
            let dropped = env.run(&[command, "--json", &name]).ends(0, "dropped");
            env.assert_discarded(&dropped);
        }
    }
    env.changed_paths();
}

#[test]
fn a_task_that_never_stood_leaves_nothing() {
    let (env, result) = resting();
    let task: TaskId = result["task"].as_str().unwrap().parse().unwrap();
    // its first event in a log of its own, and half a worktree under its names
    let first = Log::open(&env.state(), Access::Read).unwrap().unwrap().events(task, 0).unwrap().remove(0);
    fs::remove_dir_all(env.state().join("locks")).unwrap();
    for file in ["nisse.db", "nisse.db-wal", "nisse.db-shm"] {
        let _ = fs::remove_file(env.state().join(file));
    }
    Log::open(&env.state(), Access::Write).unwrap().unwrap().append(&[first]).unwrap();
    let branch = result["branch"].as_str().unwrap();
    env.checkout.git(&["update-ref", &format!("refs/heads/{branch}"), "main"]);
    fs::remove_file(format!("{}/a.txt", result["worktree"].as_str().unwrap())).unwrap();
    env.run(&["drop", "--json", &task.to_string()]).ends(0, "dropped");
    assert_eq!(env.checkout.git(&["for-each-ref", "--format=%(refname)", "refs/heads"]), "refs/heads/main");
    assert_eq!(env.checkout.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
}

/// A repository that was cloned anew has none of the task's commits: it can still be given up, and its files stay.
#[test]
fn a_task_whose_commits_are_gone_can_be_given_up_and_its_files_are_kept() {
    let (env, result) = resting();
    let (task, worktree) = (result["task"].as_str().unwrap(), result["worktree"].as_str().unwrap());
    fs::write(format!("{worktree}/loose.txt"), "not committed\n").unwrap();
    let (root, origin) = (env.checkout.path(), env.root().join("origin"));
    env.checkout.git(&["clone", "--quiet", "--no-local", "--bare", "--single-branch", ".", origin.to_str().unwrap()]);
    fs::remove_dir_all(root.join(".git")).unwrap();
    env.checkout.git(&["clone", "--quiet", "--no-checkout", origin.to_str().unwrap(), "anew"]);
    fs::rename(root.join("anew/.git"), root.join(".git")).unwrap();
    env.person(|checkout| drop(checkout.git(&["reset", "--quiet"])));
    let gone = env.run(&["resume", "--json", task]).exits(1).json().pop().unwrap();
    assert_eq!(gone["error"]["kind"], "repository_gone", "{gone}");
    let dropped = env.run(&["drop", "--json", task]).ends(0, "dropped");
    assert_eq!((&dropped["discarded_ref"], &dropped["branch"]), (&json!(null), &json!(null)));
    let log = Log::open(&env.state(), Access::Read).unwrap().unwrap();
    let kept = log.task(task.parse().unwrap()).unwrap().kept_aside;
    assert_eq!(fs::read_to_string(format!("{}/worktree/loose.txt", kept[0].0)).unwrap(), "not committed\n");
    assert!(dropped["notices"].to_string().contains(&kept[0].0), "{dropped}");
    // nothing else holds it
    env.run(&["doctor", "--fix"]);
    assert!(fs::exists(format!("{}/worktree/loose.txt", kept[0].0)).unwrap());
    assert!(env.run(&["resume", "--json"]).exits(0).stderr.contains("nothing is pending"));
}
