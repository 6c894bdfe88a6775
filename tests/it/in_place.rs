//! A task that works in the checkout itself: decided about, given up, brought home, and seen by the doctor.

use std::{
    collections::BTreeSet,
    fs,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    gates::cut_in_a_command_with,
    support::{Checkout, Fingerprint, Script, Step, TestEnvironment, Wire, wait_until},
};

fn write(path: &str, content: &str) -> Step {
    Step::call("write_file", json!({"path": path, "content": content}))
}

/// Work of the person's: staged, changed again, untracked, taken away.
fn unfinished(checkout: &Checkout) {
    checkout.write("gone.txt", "gone\n").write("notes.txt", "notes\n").commit("more");
    checkout.write("a.txt", "staged\n").git(&["add", "a.txt"]);
    checkout.write("a.txt", "and changed again\n").write("untracked.txt", "untracked\n");
    fs::remove_file(checkout.path().join("gone.txt")).unwrap();
}

/// A pending task that has written `b.txt`, in a checkout with unfinished work; it is handed back when it is resumed.
fn pending() -> (TestEnvironment, Value) {
    let went = AtomicBool::new(false);
    let away = Step::error(503, &[("retry-after", "86400")], "overloaded", "later");
    let env = TestEnvironment::new(
        Wire::Chat,
        Script::by_content(move |asked| match asked.replies() {
            0 => write("b.txt", "b\n"),
            1 if !went.swap(true, Ordering::SeqCst) => away.clone(),
            _ => Step::hand_back(),
        }),
    );
    unfinished(&env.checkout);
    // HEAD goes away and comes back, which its reflog tells
    env.person_will_change(".git/logs/HEAD");
    let rests = env.delegate(&["--isolation", "in-place"], "Make b.txt.").ends(5, "interrupted");
    (env, rests)
}

fn text<'a>(result: &'a Value, name: &str) -> &'a str {
    result[name].as_str().unwrap_or_else(|| panic!("no {name} in {result}"))
}

/// What the doctor says of the marker that a task works here: its state; none if it does not speak of it.
fn marker(env: &TestEnvironment, options: &[&str]) -> Option<String> {
    let report = env.run(&[&["doctor", "--json"], options].concat()).json().pop().unwrap();
    let found: Vec<_> = report["leftovers"].as_array().unwrap().iter().filter(|&one| is_marker(one)).collect();
    assert!(found.len() < 2, "{found:?}");
    found.first().map(|one| text(one, "state").to_owned())
}

fn is_marker(one: &Value) -> bool {
    text(one, "name").starts_with("refs/nisse/in-place/")
}

#[test]
fn a_command_that_was_cut_off_is_decided_about() {
    for answer in ["--rollback", "--keep", "--drop", "drop"] {
        let (env, gated, _scratch) = cut_in_a_command_with(Wire::Chat, "in-place");
        let (task, branch) = (text(&gated, "task"), text(&gated, "branch"));
        let before = Fingerprint::of(env.checkout.path());
        let again = env.run(&["resume", "--json", task]).ends(6, "gated");
        assert_eq!(again["answers"], json!(["rollback", "keep", "drop"]));
        assert_eq!(
            before.changes(&Fingerprint::of(env.checkout.path()), &[]),
            Vec::<String>::new(),
            "nothing is touched"
        );
        assert_eq!(env.checkout.git(&["symbolic-ref", "--short", "HEAD"]), branch);

        let run = match answer {
            "drop" => env.run(&["drop", "--json", task]),
            _ => env.run(&["resume", "--json", task, answer]),
        };
        env.assert_checkout_unchanged();
        assert_eq!(env.checkout.git(&["status", "--porcelain"]), "", "{answer}");
        assert_eq!(env.checkout.git(&["symbolic-ref", "--short", "HEAD"]), "main", "{answer}");
        let found = env.checkout.git(&["for-each-ref", "--format=%(refname)", &format!("refs/nisse/found/{task}")]);
        if answer.ends_with("drop") {
            let result = run.ends(0, "dropped");
            env.assert_discarded(&result);
            assert_eq!(env.checkout.file_at(&format!("refs/nisse/discarded/{task}"), "b.txt").unwrap(), b"b\n");
        } else {
            let result = run.ends(0, "handback");
            assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"b\n");
            let kept = answer == "--keep";
            assert_eq!(env.on_branch(&result, "half.txt").is_some(), kept, "{answer}");
            assert_eq!(env.on_branch(&result, "a.txt").unwrap(), if kept { &b"a\nhalf\n"[..] } else { b"a\n" });
            if kept {
                assert_eq!(found, "", "nothing was taken away");
                continue;
            }
        }
        assert_eq!(env.checkout.file_at(&found, "half.txt").unwrap(), b"half\n", "{answer}");
    }
}

#[test]
fn given_up_from_another_branch_it_waits_for_its_own() {
    let (env, rests) = pending();
    let (task, branch) = (text(&rests, "task"), text(&rests, "branch"));
    env.checkout.git(&["branch", "other", "main"]);
    env.checkout.git(&["switch", "--quiet", "other"]);
    let before = Fingerprint::of(env.checkout.path());
    let refused = env.run(&["drop", "--json", task]);
    let said = refused.exits(1).json().pop().unwrap()["error"]["message"].to_string();
    assert!(said.contains(&format!("git switch {branch}")), "{}", refused.report());
    assert_eq!(before.changes(&Fingerprint::of(env.checkout.path()), &[]), Vec::<String>::new());
    assert!(env.checkout.has_ref(&format!("refs/heads/{branch}")));

    env.checkout.git(&["switch", "--quiet", branch]);
    env.checkout.git(&["branch", "--quiet", "-D", "other"]);
    let dropped = env.run(&["drop", "--json", task]).ends(0, "dropped");
    env.assert_discarded(&dropped);
    let changed = env.changed_paths();
    assert!(changed.iter().all(|path| path.starts_with(".git/logs")), "{changed:?}");
}

/// Whoever goes back to their branch by hand gets their unfinished work back when the task ends.
#[test]
fn unfinished_work_comes_back_to_a_branch_that_was_gone_back_to() {
    let (env, rests) = pending();
    env.checkout.git(&["switch", "--quiet", "main"]);
    let dropped = env.run(&["drop", "--json", text(&rests, "task")]).ends(0, "dropped");
    env.assert_discarded(&dropped);
    env.assert_checkout_unchanged();
}

/// What the person has there by then is theirs, and the unfinished work is kept and named.
#[test]
fn unfinished_work_is_kept_aside_where_it_would_be_in_the_way() {
    for committed in [false, true] {
        let (env, rests) = pending();
        let task = text(&rests, "task");
        env.checkout.git(&["switch", "--quiet", "main"]);
        env.person(|checkout| {
            checkout.write("a.txt", "something else\n");
            if committed {
                checkout.commit("meanwhile");
            }
        });
        let run = env.run(&["drop", "--json", task]);
        env.assert_discarded(&run.ends(0, "dropped"));
        let kept = format!("refs/nisse/found/{task}/unfinished");
        assert!(run.stderr.contains(&kept), "{}", run.report());
        assert_eq!(env.checkout.file_at(&kept, "a.txt").unwrap(), b"and changed again\n");
        assert_eq!(env.checkout.file_at(&kept, "untracked.txt").unwrap(), b"untracked\n");
        let changed = env.changed_paths();
        assert!(changed.iter().all(|path| path.starts_with(".git/") && path.contains("/nisse")), "{changed:?}");
        assert_eq!(marker(&env, &[]), None, "another task may work here");
    }
}

#[test]
fn cut_before_it_stood_it_leaves_nothing() {
    for given_up in [false, true] {
        let scratch = tempfile::tempdir().unwrap();
        let began = scratch.path().join("began");
        let env = TestEnvironment::new(Wire::Chat, vec![write("b.txt", "b\n"), Step::hand_back()]);
        unfinished(&env.checkout);
        env.person_will_change(".git/logs/HEAD");
        env.set("NISSE_WORKTREE_SETUP", &format!("test -e {0} || {{ : > {0}; sleep 600; }}", began.display()));
        let running = env.start(&["delegate", "--json", "--isolation", "in-place", "Make b.txt."]);
        assert!(wait_until(Duration::from_mins(2), || began.exists()), "the setup did not begin");
        running.signal(Signal::KILL);
        let died = env.finish(running);
        let task = text(&died.json()[0], "task").to_owned();
        let on = env.checkout.git(&["symbolic-ref", "--short", "HEAD"]);
        assert!(on.starts_with("nisse/"), "{on}");
        if given_up {
            env.run(&["drop", "--json", &task]).ends(0, "dropped");
            assert_eq!(env.checkout.git(&["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
        } else {
            env.run(&["resume", "--json", &task]).ends(0, "handback");
        }
        env.assert_checkout_unchanged();
        assert_eq!(marker(&env, &[]), None);
    }
}

#[test]
fn its_work_is_brought_home_beside_the_unfinished() {
    let env = TestEnvironment::new(
        Wire::Chat,
        vec![
            Step::call("edit_file", json!({"path": "a.txt", "old": "changed again", "new": "finished"})),
            write("b.txt", "b\n").and_call("run_command", json!({"command": "rm notes.txt"})),
            Step::hand_back(),
        ],
    );
    unfinished(&env.checkout);
    env.person_will_change(".git/logs/HEAD");
    let result = env.delegate(&["--isolation", "in-place"], "Finish it.").ends(0, "handback");
    env.assert_checkout_unchanged();
    env.changed_paths();
    let task = text(&result, "task");
    env.run(&["apply", "--json", task]).exits(0);
    let brought = ["a.txt", "b.txt", "notes.txt"].map(str::to_owned);
    assert_eq!(BTreeSet::from_iter(env.changed_paths()), BTreeSet::from(brought.clone()), "neither HEAD nor the index");
    let at = |file: &str| fs::read_to_string(env.checkout.path().join(file)).ok();
    assert_eq!((at("a.txt"), at("b.txt")), (Some("and finished\n".into()), Some("b\n".into())));
    assert_eq!((at("notes.txt"), at("untracked.txt")), (None, Some("untracked\n".into())));
    env.run(&["apply", "--json", task, "--abort"]).exits(0);
    assert_eq!(BTreeSet::from_iter(env.changed_paths()), BTreeSet::from(brought));
    assert_eq!(at("a.txt").unwrap(), "and changed again\n");
    assert_eq!(env.checkout.git(&["status", "--porcelain"]), "MM a.txt\n D gone.txt\n?? untracked.txt");
}

#[test]
fn the_doctor_knows_whose_marker_it_is() {
    let (env, rests) = pending();
    let task = text(&rests, "task");
    let all = env.checkout.git(&["for-each-ref", "--format=%(refname) %(objectname)", "refs/nisse/in-place"]);
    let (name, kept) = all.split_once(' ').unwrap();
    assert_eq!(marker(&env, &["--fix"]), None, "a living task's");
    // another state directory's doctor; it has a log of its own
    env.set("NISSE_STATE_DIR", env.root().join("other").to_str().unwrap());
    // b.txt is there already
    env.delegate(&[], "Make b.txt.").ends(3, "failed");
    assert_eq!(marker(&env, &[]).as_deref(), Some("foreign"));
    assert_eq!(marker(&env, &["--fix"]).as_deref(), Some("foreign"));
    assert!(env.checkout.has_ref(name));
    env.set("NISSE_STATE_DIR", env.state().to_str().unwrap());

    env.run(&["resume", "--json", task]).ends(0, "handback");
    env.assert_checkout_unchanged();
    assert!(!env.checkout.has_ref(name));
    // as an ended task would leave it whose checkout was copied while it worked
    env.checkout.git(&["update-ref", name, kept]);
    assert!(env.delegate(&["--isolation", "in-place"], "More.").exits(1).stderr.contains(task));
    assert_eq!(marker(&env, &[]).as_deref(), Some("dead"));
    assert!(env.checkout.has_ref(name), "looking changes nothing");
    assert_eq!(marker(&env, &["--fix"]).as_deref(), Some("removed"));
    assert!(!env.checkout.has_ref(name));
    env.assert_checkout_unchanged();
}

/// Whether it succeeds, fails or is stopped: nobody can tell its changes from the person's, so all of them are kept.
#[test]
fn what_the_person_changes_while_the_setup_runs_is_kept() {
    for (how, code) in [("true", 0), ("false", 1), ("sleep 600", 7)] {
        let env = TestEnvironment::new(Wire::Chat, vec![write("b.txt", "b\n"), Step::hand_back()]);
        unfinished(&env.checkout);
        env.person_will_change(".git/logs/HEAD");
        let scratch = tempfile::tempdir().unwrap();
        let (began, go_on) = (scratch.path().join("began"), scratch.path().join("go-on"));
        let line = format!(
            "echo setup > lock.json; : > {}; until test -e {}; do sleep 0.02; done; {how}",
            began.display(),
            go_on.display()
        );
        env.set("NISSE_WORKTREE_SETUP", &line);
        let running = env.start(&["delegate", "--json", "--isolation", "in-place", "Make b.txt."]);
        assert!(wait_until(Duration::from_mins(2), || began.exists()), "the setup did not begin");
        env.checkout.write("notes.txt", "mine, meanwhile\n").write("new.txt", "mine too\n");
        fs::write(&go_on, "").unwrap();
        if code == 7 {
            running.signal(Signal::INT);
        }
        let run = env.finish(running);
        run.exits(code);
        let kept = env.checkout.git(&["for-each-ref", "--format=%(refname)", "refs/nisse/found"]);
        assert_eq!(env.checkout.file_at(&kept, "notes.txt").unwrap(), b"mine, meanwhile\n");
        assert_eq!(env.checkout.file_at(&kept, "new.txt").unwrap(), b"mine too\n");
        assert!(run.stderr.contains(&kept) && run.stderr.contains("notes.txt"), "{}", run.report());
        env.assert_checkout_unchanged();
        if code == 0 {
            assert_eq!(env.on_branch(&run.result(), "new.txt"), None);
            assert!(run.result()["notices"].to_string().contains(&kept), "{}", run.report());
        }
    }
}
