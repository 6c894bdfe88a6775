//! Tasks of a checkout that was moved, renamed or copied.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{
    gates::killed_in,
    support::{Run, Step, TestEnvironment, Wire},
};

fn write(path: &str) -> Step {
    Step::call("write_file", json!({"path": path, "content": "x\n"}))
}

fn limited() -> Step {
    Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded.")
}

/// A world with a task that rests after it wrote `b.txt`, and goes on to write `c.txt`; its id.
fn resting(options: &[&str]) -> (TestEnvironment, String) {
    let steps = vec![write("b.txt"), limited(), write("c.txt"), Step::hand_back(), write("d.txt"), Step::hand_back()];
    let env = TestEnvironment::new(Wire::Chat, steps);
    let task =
        env.delegate(options, "Make b.txt and c.txt.").ends(5, "interrupted")["task"].as_str().unwrap().to_owned();
    (env, task)
}

/// Runs nisse in another directory.
fn at(env: &TestEnvironment, place: &Path, arguments: &[&str]) -> Run {
    env.run(&[&["-C", place.to_str().unwrap()], arguments].concat())
}

fn tasks(run: &Run) -> Vec<Value> {
    run.exits(0).json().pop().unwrap()["tasks"].as_array().unwrap().clone()
}

#[test]
fn a_link_at_the_old_place_of_a_moved_checkout_is_the_checkout() {
    for isolation in ["worktree", "in-place"] {
        let (env, task) = resting(&["--isolation", isolation]);
        let (home, away) = (env.checkout.path().to_owned(), env.root().join("elsewhere"));
        fs::rename(&home, &away).unwrap();
        std::os::unix::fs::symlink(&away, &home).unwrap();
        for place in [&home, &away] {
            let listed = tasks(&at(&env, place, &["log", "--json"]));
            assert!(listed.len() == 1 && listed[0]["task"] == *task, "{isolation}: {listed:?}");
        }
        at(&env, &away, &["resume", "--json", "--no-input"]).ends(0, "handback");
        // in place HEAD goes away and comes back, which its reflog tells
        env.person(|_| {});
    }
}

#[test]
fn a_task_is_found_and_goes_on_where_its_checkout_was_moved_to() {
    // an older nisse left no mark: then its branch tells
    for (mark, isolation, named) in
        [(true, "worktree", false), (false, "worktree", false), (false, "worktree", true), (true, "in-place", false)]
    {
        let (env, task) = resting(&["--isolation", isolation]);
        let (home, away) = (env.checkout.path().to_owned(), env.root().join("elsewhere"));
        let id = home.join(".git/nisse-id");
        assert!(fs::read_to_string(&id).unwrap().ends_with(&format!(".\t{}\n", home.display())));
        if !mark {
            fs::remove_file(&id).unwrap();
        }
        fs::create_dir(&away).unwrap();
        let away = away.join("renamed");
        fs::rename(&home, &away).unwrap();
        // where nisse is started
        fs::create_dir(&home).unwrap();
        let listed = tasks(&at(&env, &away, &["log", "--json"]));
        assert!(listed.len() == 1 && listed[0]["task"] == *task, "{mark} {isolation}: {listed:?}");
        let doctor = at(&env, &away, &["doctor"]);
        assert!(!doctor.stdout.contains("its task is not in this log"), "{}", doctor.report());
        let which: &[&str] = if named { &[&task] } else { &[] };
        let result = at(&env, &away, &[&["resume", "--json", "--no-input"], which].concat()).ends(0, "handback");
        assert_eq!(result["task"], *task);
        fs::remove_dir(&home).unwrap();
        fs::rename(&away, &home).unwrap();
        for file in ["b.txt", "c.txt"] {
            assert_eq!(env.on_branch(&result, file).unwrap(), b"x\n", "{mark} {isolation}");
        }
        // where it is by now, and was before, it is found too
        assert_eq!(tasks(&env.run(&["log", "--json"])).len(), 1);
        at(&env, &home, &["apply", "--json", &task]).exits(0);
        if mark {
            // of one that is over nothing need be left: the mark alone tells
            env.checkout.git(&["branch", "-D", result["branch"].as_str().unwrap()]);
            fs::rename(&home, &away).unwrap();
            fs::create_dir(&home).unwrap();
            assert_eq!(tasks(&at(&env, &away, &["log", "--json"])).len(), 1, "{isolation}");
            fs::remove_dir(&home).unwrap();
            fs::rename(&away, &home).unwrap();
        }
        env.changed_paths();
    }
}

/// Files are named from the repository on, so that a move is no change of theirs.
#[test]
fn of_a_checkout_that_was_moved_while_a_task_was_cut_off_nothing_is_said_to_have_changed() {
    let (env, _scratch) = killed_in(Wire::Chat, "worktree", "echo c > c.txt", |_| ());
    let (home, away) = (env.checkout.path().to_owned(), env.root().join("elsewhere"));
    fs::rename(&home, &away).unwrap();
    fs::create_dir(&home).unwrap();
    at(&env, &away, &["resume", "--json"]).ends(6, "gated");
    let result = at(&env, &away, &["resume", "--json", "--keep"]).ends(0, "handback");
    assert!(!result["notices"].to_string().contains("while a command ran"), "{result}");
    fs::remove_dir(&home).unwrap();
    fs::rename(&away, &home).unwrap();
    assert_eq!(env.on_branch(&result, "c.txt").unwrap(), b"c\n");
    env.person(|_| {});
}

#[test]
fn a_copy_has_none_of_the_tasks_and_says_so() {
    let (env, task) = resting(&[]);
    env.copy("checkout", "copy");
    let copy = env.root().join("copy");
    let told = format!("copy of {}", env.checkout.path().display());
    let log = at(&env, &copy, &["log", "--json"]);
    assert!(tasks(&log).is_empty() && log.stderr.contains(&told), "{}", log.report());
    let resume = at(&env, &copy, &["resume", "--no-input"]);
    assert!(resume.exits(0).stderr.contains(&told), "{}", resume.report());
    env.run(&["resume", "--json"]).ends(0, "handback");
    // with its first task it is a repository of its own
    let own = at(&env, &copy, &["delegate", "--json", "Make d.txt."]).ends(0, "handback");
    let log = at(&env, &copy, &["log", "--json"]);
    let listed = tasks(&log);
    assert!(listed.len() == 1 && listed[0]["task"] == own["task"], "{listed:?}");
    assert!(!log.stderr.contains("copy of"), "{}", log.report());
    let mine = tasks(&env.run(&["log", "--json"]));
    assert!(mine.len() == 1 && mine[0]["task"] == *task, "{mine:?}");
    let first =
        |place: &Path| fs::read_to_string(place.join(".git/nisse-id")).unwrap().lines().next().unwrap().to_owned();
    assert_ne!(first(&copy), first(env.checkout.path()));
}

#[test]
fn a_log_that_was_emptied_is_told_and_not_taken_for_none() {
    let (env, task) = resting(&[]);
    let database = env.state().join("nisse.db");
    for name in ["nisse.db-wal", "nisse.db-shm"] {
        let _ = fs::remove_file(env.state().join(name));
    }
    fs::write(&database, "").unwrap();
    for (command, kind) in [
        // what stands of the task is named first
        (&["resume", "--json"][..], "log_incomplete"),
        (&["delegate", "--json", "x"], "log_emptied"),
        (&["drop", "--json", &task], "log_emptied"),
    ] {
        let error = env.run(command).exits(1).json().pop().unwrap()["error"].clone();
        assert_eq!(error["kind"], kind, "{command:?}: {error}");
    }
    let doctor = env.run(&["doctor"]);
    assert!(doctor.exits(1).stdout.contains("is empty although tasks exist"), "{}", doctor.report());
    assert_eq!(database.metadata().unwrap().len(), 0);
}
