//! Where a person must decide what becomes of the files, and what they say.

use std::{fs, time::Duration};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Script, Step, TestEnvironment, Wire, wait_until};

/// A task whose process was killed while a command ran that had changed files; with the task's first gate.
fn cut_in_a_command(wire: Wire) -> (TestEnvironment, Value, tempfile::TempDir) {
    cut_in(wire, "worktree", "echo half >> a.txt; echo half > half.txt")
}

/// The same of a task that works there.
pub(crate) fn cut_in_a_command_with(wire: Wire, isolation: &str) -> (TestEnvironment, Value, tempfile::TempDir) {
    cut_in(wire, isolation, "echo half >> a.txt; echo half > half.txt")
}

/// The same with this command, in that isolation.
pub(crate) fn cut_in(wire: Wire, isolation: &str, line: &str) -> (TestEnvironment, Value, tempfile::TempDir) {
    let (env, scratch) = killed_in(wire, isolation, line, |_| ());
    let gated = env.run(&["resume", "--json"]).ends(6, "gated");
    assert_eq!(gated["answers"], json!(["rollback", "keep", "drop"]));
    assert!(gated["cause"].as_str().unwrap().contains("echo half"), "the command is shown: {gated}");
    (env, gated, scratch)
}

/// A task whose process was killed while this command ran, in a world that is prepared so.
pub(crate) fn killed_in(
    wire: Wire,
    isolation: &str,
    line: &str,
    prepare: impl FnOnce(&TestEnvironment),
) -> (TestEnvironment, tempfile::TempDir) {
    let scratch = tempfile::tempdir().unwrap();
    let began = scratch.path().join("began");
    let line = format!("{line}; : > {}; sleep 600", began.display());
    let script = Script::ByHistory(vec![
        Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})),
        Step::call("run_command", json!({"command": line})),
        Step::hand_back(),
    ]);
    let env = TestEnvironment::new(wire, script);
    if isolation == "in-place" {
        // HEAD goes away and comes back, which its reflog tells
        env.person_will_change(".git/logs/HEAD");
    }
    prepare(&env);
    let running = env.start(&["delegate", "--json", "--isolation", isolation, "Do it."]);
    assert!(wait_until(Duration::from_mins(2), || began.exists()), "the command did not begin");
    running.signal(Signal::KILL);
    env.finish(running);
    (env, scratch)
}

#[test]
fn a_rollback_takes_the_commands_changes_away_and_keeps_them_aside() {
    for wire in Wire::BOTH {
        let (env, gated, _scratch) = cut_in_a_command(wire);
        let task = gated["task"].as_str().unwrap();
        let result = env.run(&["resume", "--json", task, "--rollback"]).ends(0, "handback");
        assert_eq!(env.on_branch(&result, "a.txt").unwrap(), b"a\n");
        assert_eq!(env.on_branch(&result, "half.txt"), None);
        let found = env.checkout.git(&["for-each-ref", "--format=%(refname)", &format!("refs/nisse/found/{task}")]);
        assert_eq!(env.checkout.git(&["show", &format!("{found}:half.txt")]), "half");
        let answers = env.server.requests().pop().unwrap().last_answers();
        assert!(answers[0].text.contains("Interrupted"), "{answers:?}");
    }
}

#[test]
fn an_answer_is_about_what_was_asked_and_not_about_what_came_since() {
    for (isolation, answer) in
        [("worktree", "--rollback"), ("in-place", "--rollback"), ("worktree", "--keep"), ("in-place", "--keep")]
    {
        let line = "echo half >> a.txt; echo half > half.txt";
        let (env, gated, _scratch) = cut_in(Wire::Chat, isolation, line);
        let task = gated["task"].as_str().unwrap();
        assert!(gated["cause"].as_str().unwrap().contains("a.txt, half.txt"), "what differs is named: {gated}");
        let place = std::path::Path::new(gated["worktree"].as_str().unwrap());
        fs::write(place.join("mine.txt"), "of the person, since\n").unwrap();
        let refused = env.run(&["resume", "--json", task, answer]);
        let error = refused.exits(6).json().pop().unwrap();
        assert_eq!(error["error"]["kind"], "changed_since_asked");
        let told = error["error"]["message"].as_str().unwrap();
        assert!(told.ends_with(": mine.txt"), "what came since, and nothing else: {told}");
        assert_eq!(fs::read_to_string(place.join("mine.txt")).unwrap(), "of the person, since\n");
        assert_eq!(fs::read_to_string(place.join("half.txt")).unwrap(), "half\n");

        let run = env.run(&["resume", "--json", task, answer]);
        let result = run.ends(0, "handback");
        let asked = format!("refs/nisse/found/{task}/asked");
        assert!(!env.checkout.has_ref(&asked), "it is answered");
        if answer == "--keep" {
            assert_eq!(env.on_branch(&result, "mine.txt").unwrap(), b"of the person, since\n");
        } else {
            let found = env.checkout.git(&["for-each-ref", "--format=%(refname)", &format!("refs/nisse/found/{task}")]);
            assert_eq!(env.checkout.git(&["show", &format!("{found}:mine.txt")]), "of the person, since");
            assert!(run.stderr.contains(&found), "where it is kept is not told\n{}", run.report());
        }
    }
}

#[test]
fn what_is_there_can_be_kept() {
    for wire in Wire::BOTH {
        let (env, gated, _scratch) = cut_in_a_command(wire);
        let result = env.run(&["resume", "--json", gated["task"].as_str().unwrap(), "--keep"]).ends(0, "handback");
        assert_eq!(env.on_branch(&result, "a.txt").unwrap(), b"a\nhalf\n");
        assert_eq!(env.on_branch(&result, "half.txt").unwrap(), b"half\n");
        assert_eq!(result["answers"], json!([]));
    }
}

#[test]
fn without_an_answer_nothing_is_touched_and_an_answer_to_no_question_is_wrong() {
    let (env, gated, _scratch) = cut_in_a_command(Wire::Chat);
    let (task, worktree) = (gated["task"].as_str().unwrap(), gated["worktree"].as_str().unwrap());
    let asked = env.server.requests().len();
    for () in [(), ()] {
        env.run(&["resume", "--json", task]).ends(6, "gated");
        assert_eq!(fs::read(format!("{worktree}/half.txt")).unwrap(), b"half\n");
    }
    assert_eq!(env.server.requests().len(), asked);
    let said = env.run(&["resume", task]);
    assert!(said.stdout.contains("--rollback\n"), "{}", said.report());
    env.run(&["resume", task, "--rollback", "--keep"]).exits(2);
    env.run(&["resume", "--json", task, "--drop"]).ends(0, "dropped");
    let run = env.run(&["resume", "--json", task, "--keep"]);
    run.exits(2);
    assert!(run.stdout.contains("no_question"), "{}", run.report());
}

#[test]
fn a_worktree_that_somebody_changed_is_asked_about_and_either_answer_leads_on() {
    for answer in ["--rollback", "--keep"] {
        let limited = Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded.");
        let env = TestEnvironment::new(
            Wire::Chat,
            vec![Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})), limited, Step::hand_back()],
        );
        let rests = env.delegate(&[], "Make b.txt.").ends(5, "interrupted");
        let (task, worktree) = (rests["task"].as_str().unwrap(), rests["worktree"].as_str().unwrap());
        fs::write(format!("{worktree}/theirs.txt"), "theirs\n").unwrap();
        let gated = env.run(&["resume", "--json", task]).ends(6, "gated");
        assert!(gated["cause"].as_str().unwrap().contains("theirs.txt"), "{gated}");
        let result = env.run(&["resume", "--json", task, answer]).ends(0, "handback");
        let kept = env.on_branch(&result, "theirs.txt");
        assert_eq!(kept.is_some(), answer == "--keep", "{answer}");
        assert!(env.on_branch(&result, "b.txt").is_some());
    }
}

#[test]
fn a_branch_that_was_moved_or_deleted_is_put_back_where_the_log_says() {
    for moved in [true, false] {
        let limited = Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded.");
        let env = TestEnvironment::new(
            Wire::Chat,
            vec![Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})), limited, Step::hand_back()],
        );
        let rests = env.delegate(&[], "Make b.txt.").ends(5, "interrupted");
        let (task, branch) = (rests["task"].as_str().unwrap(), rests["branch"].as_str().unwrap());
        let name = format!("refs/heads/{branch}");
        if moved {
            env.checkout.git(&["update-ref", &name, "main"]);
        } else {
            env.checkout.git(&["update-ref", "-d", &name]);
        }
        env.run(&["resume", "--json", task]).ends(6, "gated");
        let result = env.run(&["resume", "--json", task, "--rollback"]).ends(0, "handback");
        assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"b\n");
    }
}

/// On a terminal, whoever resumes is shown what is there, and asked.
#[test]
fn on_a_terminal_the_person_is_asked() {
    let question = "What to do with the changes";
    // the last of four is where the question begins; one down is the first
    for (keys, code, words) in [
        ("\r", 6, "--rollback\r\n"),
        ("\u{1b}", 6, "--rollback\r\n"),
        ("\u{3}", 6, "--rollback\r\n"),
        ("j\r", 0, "handed back"),
        ("jj\r", 0, "handed back"),
        ("k\r", 0, "dropped"),
    ] {
        let (env, gated, _scratch) = cut_in_a_command(Wire::Chat);
        let (task, worktree) = (gated["task"].as_str().unwrap(), gated["worktree"].as_str().unwrap());
        env.set("TERM", "xterm-256color");
        let run = env.run_with_keys(&["resume"], &[(question, keys)]);
        run.exits(code);
        for shown in ["echo half", "half.txt", "+half", question, words] {
            assert!(run.stdout.contains(shown), "{keys:?}: {shown:?} is not shown\n{}", run.report());
        }
        let shown = env.run(&["log", "--json", task]).json().remove(0)["events"].to_string();
        let decided =
            ["rollback", "keep", "drop"].into_iter().find(|answer| shown.contains(&format!("\"answer\":\"{answer}\"")));
        match (keys, decided) {
            ("j\r", Some("rollback")) | ("jj\r", Some("keep")) | ("k\r", Some("drop")) => {}
            (_, None) if code == 6 => {
                assert_eq!(
                    fs::read(format!("{worktree}/half.txt")).unwrap(),
                    b"half\n",
                    "{keys:?}: something was touched"
                );
            }
            _ => panic!("{keys:?} decided {decided:?}\n{}", run.report()),
        }
    }
}

#[test]
fn whoever_wants_no_questions_gets_none() {
    for options in [&["--no-input"][..], &["--json"]] {
        let (env, _gated, _scratch) = cut_in_a_command(Wire::Chat);
        let run = env.finish(env.start_on_terminal(&[&["resume"], options].concat()));
        assert!(!run.exits(6).stdout.contains("What to do with"), "{}", run.report());
    }
}
