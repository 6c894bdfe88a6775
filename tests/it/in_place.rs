//! A task that works in the checkout itself: decided about, given up, brought home, and seen by the doctor.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    gates::cut_in_a_command_with,
    support::{Fingerprint, Script, Step, TestEnvironment, Wire, wait_until},
};

fn write(path: &str, content: &str) -> Step {
    Step::call("write_file", json!({"path": path, "content": content}))
}

/// A pending task that has written `b.txt`; it is handed back when it is resumed.
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
    env.checkout.write("notes.txt", "notes\n").commit("more");
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
    text(one, "name").contains("task in place")
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

/// Whoever took the checkout off the task's branch has it already.
#[test]
fn given_up_from_another_branch_the_checkout_is_left_as_it_is() {
    for committed in [false, true] {
        let (env, rests) = pending();
        let task = text(&rests, "task");
        env.checkout.git(&["switch", "--quiet", "main"]);
        let gated = env.run(&["resume", "--json", task]).ends(6, "gated");
        assert!(
            text(&gated, "cause").contains("git switch") && text(&gated, "cause").contains("nisse drop"),
            "{gated}"
        );
        env.person(|checkout| {
            checkout.write("a.txt", "mine\n");
            if committed {
                checkout.commit("meanwhile");
            }
        });
        env.assert_discarded(&env.run(&["drop", "--json", task]).ends(0, "dropped"));
        assert_eq!(fs::read_to_string(env.checkout.path().join("a.txt")).unwrap(), "mine\n");
        let changed = env.changed_paths();
        assert!(changed.iter().all(|path| path.starts_with(".git/") && path.contains("/nisse")), "{changed:?}");
        assert_eq!(marker(&env, &[]), None, "another task may work here");
    }
}

/// As one is that an older nisse began: it is not gone on with, and can be given up.
#[test]
fn without_its_mark_it_can_only_be_given_up() {
    let (env, rests) = pending();
    let task = text(&rests, "task");
    fs::remove_dir_all(env.checkout.path().join(".git/nisse-in-place")).unwrap();
    let gated = env.run(&["resume", "--json", task]).ends(6, "gated");
    assert!(text(&gated, "cause").contains(&format!("nisse drop {}", &task[24..])), "{gated}");
    env.assert_discarded(&env.run(&["drop", "--json", task]).ends(0, "dropped"));
    assert_eq!(env.checkout.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(env.checkout.git(&["status", "--porcelain"]), "");
    env.changed_paths();
}

/// The caller's branch may have moved meanwhile, or be gone: the checkout goes where it is by now.
#[test]
fn the_branch_is_checked_out_where_it_is_by_now() {
    let (env, rests) = pending();
    let elsewhere = env.root().join("elsewhere");
    env.checkout.git(&["worktree", "add", "-q", elsewhere.to_str().unwrap(), "main"]);
    fs::write(elsewhere.join("a.txt"), "moved on\n").unwrap();
    env.checkout.git(&["-C", elsewhere.to_str().unwrap(), "commit", "-qam", "meanwhile"]);
    env.checkout.git(&["worktree", "remove", elsewhere.to_str().unwrap()]);
    env.run(&["resume", "--json", text(&rests, "task")]).ends(0, "handback");
    assert_eq!(env.checkout.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(env.checkout.git(&["status", "--porcelain"]), "");
    assert_eq!(fs::read_to_string(env.checkout.path().join("a.txt")).unwrap(), "moved on\n");
    env.changed_paths();
}

#[test]
fn cut_before_it_stood_it_leaves_nothing() {
    for given_up in [false, true] {
        let scratch = tempfile::tempdir().unwrap();
        let began = scratch.path().join("began");
        let env = TestEnvironment::new(Wire::Chat, vec![write("b.txt", "b\n"), Step::hand_back()]);
        env.checkout.write(".gitignore", "*.log\n").commit("rules").write("x.log", "ignored\n");
        env.person_will_change(".git/logs/HEAD");
        let left = "echo spoilt > a.txt; echo made > made.txt; rm .gitignore";
        env.set("NISSE_WORKTREE_SETUP", &format!("test -e {0} || {{ {left}; : > {0}; sleep 600; }}", began.display()));
        let running = env.start(&["delegate", "--json", "--isolation", "in-place", "Make b.txt."]);
        assert!(wait_until(Duration::from_mins(2), || began.exists()), "the setup did not begin");
        running.signal(Signal::KILL);
        let died = env.finish(running);
        let task = text(&died.json()[0], "task").to_owned();
        let on = env.checkout.git(&["symbolic-ref", "--short", "HEAD"]);
        assert!(on.starts_with("nisse/"), "{on}");
        if given_up {
            env.run(&["drop", "--json", &task]).ends(0, "dropped");
            assert_eq!(env.checkout.git(&["for-each-ref", "--format=%(refname)", "refs/heads"]), "refs/heads/main");
        } else {
            let result = env.run(&["resume", "--json", &task]).ends(0, "handback");
            assert_eq!(env.on_branch(&result, "made.txt"), None, "what the setup left is no work");
        }
        let kept = env.checkout.git(&["for-each-ref", "--format=%(refname)", "refs/nisse/found"]);
        assert_eq!(env.checkout.file_at(&kept, "made.txt").unwrap(), b"made\n", "whose it was nobody can tell");
        env.assert_checkout_unchanged();
        assert_eq!(marker(&env, &[]), None);
    }
}

#[test]
fn its_work_is_brought_home() {
    let env = TestEnvironment::new(
        Wire::Chat,
        vec![write("b.txt", "b\n").and_call("run_command", json!({"command": "rm a.txt"})), Step::hand_back()],
    );
    env.person_will_change(".git/logs/HEAD");
    let result = env.delegate(&["--isolation", "in-place"], "Finish it.").ends(0, "handback");
    env.assert_checkout_unchanged();
    env.run(&["apply", "--json", text(&result, "task")]).exits(0);
    assert_eq!(env.checkout.git(&["status", "--porcelain"]), "");
    assert_eq!(fs::read_to_string(env.checkout.path().join("b.txt")).unwrap(), "b\n");
    assert!(!env.checkout.path().join("a.txt").exists());
    env.changed_paths();
}

#[test]
fn the_doctor_knows_whose_marker_it_is() {
    let (env, rests) = pending();
    let task = text(&rests, "task");
    let mark = env.checkout.path().join(".git/nisse-in-place");
    assert_eq!(marker(&env, &["--fix"]), None, "a living task's");
    // another state directory's doctor; it has a log of its own
    env.set("NISSE_STATE_DIR", env.root().join("other").to_str().unwrap());
    // b.txt is there already
    env.delegate(&[], "Make b.txt.").ends(3, "failed");
    assert_eq!(marker(&env, &[]).as_deref(), Some("foreign"));
    assert_eq!(marker(&env, &["--fix"]).as_deref(), Some("foreign"));
    assert!(mark.exists());
    env.set("NISSE_STATE_DIR", env.state().to_str().unwrap());
    let kept = env.root().join("mark");
    fs::create_dir(&kept).unwrap();
    fs::copy(mark.join("task"), kept.join("task")).unwrap();

    env.run(&["resume", "--json", task]).ends(0, "handback");
    env.assert_checkout_unchanged();
    assert!(!mark.exists());
    // as an ended task would leave it whose checkout was copied while it worked
    fs::rename(&kept, &mark).unwrap();
    assert!(env.delegate(&["--isolation", "in-place"], "More.").exits(1).stderr.contains(&task[24..]));
    assert_eq!(marker(&env, &[]).as_deref(), Some("dead"));
    assert!(mark.exists(), "looking changes nothing");
    assert_eq!(marker(&env, &["--fix"]).as_deref(), Some("removed"));
    assert!(!mark.exists());
    env.assert_checkout_unchanged();
}

/// Whose commit it is nobody can tell: it is named, and the way back.
#[test]
fn what_the_person_commits_while_a_command_runs_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let (began, go_on) = (scratch.path().join("began"), scratch.path().join("go-on"));
    let line = format!(": > {}; until test -e {}; do sleep 0.02; done", began.display(), go_on.display());
    let env =
        TestEnvironment::new(Wire::Chat, vec![Step::call("run_command", json!({"command": line})), Step::hand_back()]);
    let places = [".git/refs/heads/mine", ".git/logs/refs/heads/mine", ".git/COMMIT_EDITMSG"];
    for place in places {
        env.may_add(place);
    }
    env.person_will_change(".git/logs/HEAD");
    let running = env.start(&["delegate", "--json", "--isolation", "in-place", "Make b.txt."]);
    assert!(wait_until(Duration::from_mins(2), || began.exists()), "the command did not begin");
    env.checkout.git(&["switch", "--quiet", "--create", "mine"]);
    env.checkout.write("b.txt", "mine\n").git(&["add", "b.txt"]);
    env.checkout.git(&["commit", "--quiet", "--author", "Somebody <s@example.org>", "--message", "my own work"]);
    fs::write(&go_on, "").unwrap();
    let result = env.finish(running).ends(0, "handback");
    let notices = result["notices"].to_string();
    let commit = env.checkout.git(&["rev-parse", "--short", "mine"]);
    assert!(notices.contains(&format!("{commit} by Somebody (my own work)")), "{notices}");
    assert!(notices.contains("git cherry-pick"), "{notices}");
    env.person(|checkout| drop(checkout.git(&["cherry-pick", &commit])));
    assert_eq!(env.checkout.git(&["show", "main:b.txt"]), "mine");
}

/// What a command leaves out of the checkout is there again once it is given back.
#[test]
fn a_sparse_checkout_that_a_command_made_leaves_no_file_out() {
    let line = "mkdir -p src; git sparse-checkout set src; echo b > b.txt; ls";
    let env =
        TestEnvironment::new(Wire::Chat, vec![Step::call("run_command", json!({"command": line})), Step::hand_back()]);
    env.checkout.write("docs/d.txt", "d\n").write("src/s.txt", "s\n").commit("files");
    for place in ["config", "config.worktree", "info/sparse-checkout", "logs/HEAD"] {
        env.person_will_change(&format!(".git/{place}"));
    }
    let result = env.delegate(&["--isolation", "in-place"], "Make b.txt.").ends(0, "handback");
    assert_eq!(env.on_branch(&result, "docs/d.txt").unwrap(), b"d\n");
    assert_eq!(env.checkout.git(&["status", "--porcelain"]), "");
    assert!(env.checkout.path().join("docs/d.txt").exists());
}

/// Whether it succeeds, fails or is stopped: nobody can tell its changes from the person's, so all of them are kept.
#[test]
fn what_the_person_changes_while_the_setup_runs_is_kept() {
    for (how, code) in [("true", 0), ("false", 1), ("sleep 600", 7)] {
        let env = TestEnvironment::new(Wire::Chat, vec![write("b.txt", "b\n"), Step::hand_back()]);
        env.checkout.write("notes.txt", "notes\n").commit("notes");
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

/// What is applied while the checkout is on the branch of a task that rests would end with that task.
#[test]
fn work_of_another_task_is_not_applied_to_the_branch_of_one_that_rests() {
    let env = TestEnvironment::new(
        Wire::Chat,
        vec![
            Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})),
            Step::hand_back(),
            Step::error(503, &[("retry-after", "86400")], "overloaded", "later"),
        ],
    );
    let done = env.delegate(&[], "Make b.txt.").ends(0, "handback");
    let rests = env.delegate(&["--isolation", "in-place"], "Make c.txt.").ends(5, "interrupted");
    let (done, rests) = (done["task"].as_str().unwrap(), rests["task"].as_str().unwrap());
    for manner in [&["apply", done][..], &["apply", "--commit", done], &["apply", "--merge", done]] {
        let run = env.run(manner);
        assert!(run.exits(1).stderr.contains(&format!("nisse drop {}", &rests[24..])), "{}", run.report());
    }
    env.run(&["drop", rests]).exits(0);
    env.run(&["apply", done]).exits(0);
    env.person(|_| {});
}
