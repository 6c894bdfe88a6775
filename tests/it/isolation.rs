//! What a worktree is given, where it lies, and a task that works in the checkout itself.

use std::{fs, os::unix::fs::symlink, path::Path};

use serde_json::{Value, json};

use crate::support::{Fingerprint, Script, Step, TestEnvironment, Wire};

fn write(path: &str, content: &str) -> Step {
    Step::call("write_file", json!({"path": path, "content": content}))
}

fn command(line: &str) -> Step {
    Step::call("run_command", json!({"command": line}))
}

fn notices(result: &Value) -> Vec<&str> {
    result["notices"].as_array().unwrap().iter().map(|notice| notice.as_str().unwrap()).collect()
}

#[test]
fn what_goes_with_the_worktree_is_named() {
    let line = "echo l > x.log; mkdir -p out/deep node_modules/m; echo o > out/deep/o.log; echo m > node_modules/m/m.js; \
                echo c >> kept.log";
    for (end, code, outcome) in [(Step::hand_back(), 0, "handback"), (Step::give_up(), 3, "failed")] {
        let env = TestEnvironment::new(Wire::Chat, vec![command(line), write("b.txt", "b\n"), end]);
        env.checkout.write(".gitignore", "*.log\nnode_modules\n").commit("rules").write("kept.log", "kept\n");
        env.set("NISSE_WORKTREE_COPY", "kept.log");
        let run = env.delegate(&[], "Make b.txt.");
        let result = run.ends(code, outcome);
        let told = notices(&result);
        assert!(
            told.contains(
                &"not in the branch, because of git's ignore rules or [files] deny, and removed with the worktree: out/, x.log"
            ),
            "{told:?}"
        );
        let log = env.run(&["log", result["task"].as_str().unwrap()]);
        assert!(log.exits(0).stdout.contains("removed with the worktree: out/, x.log"), "{}", log.report());
    }
}

#[test]
fn what_goes_with_the_worktree_of_a_task_that_is_given_up_is_named_too() {
    let rests = Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded.");
    let env = TestEnvironment::new(Wire::Chat, vec![command("echo l > x.log"), rests]);
    env.checkout.write(".gitignore", "*.log\n").commit("rules");
    let task = env.delegate(&[], "Make b.txt.").ends(5, "interrupted")["task"].as_str().unwrap().to_owned();
    let result = env.run(&["drop", "--json", &task]).ends(0, "dropped");
    let told = "not in the branch, because of git's ignore rules or [files] deny, and removed with the worktree: x.log";
    assert!(notices(&result).contains(&told), "{result}");
}

/// Nothing of nisse's goes where a command let the worktree point to, and nothing there goes away.
#[test]
fn a_worktree_that_a_command_took_away_or_replaced_is_left_and_can_be_made_again() {
    let precious = tempfile::tempdir().unwrap();
    fs::write(precious.path().join("a.txt"), "precious\n").unwrap();
    fs::create_dir(precious.path().join("only-here")).unwrap();
    fs::write(precious.path().join("only-here/c.txt"), "precious\n").unwrap();
    let before = Fingerprint::of(precious.path());
    let pointing = format!("; ln -s '{}' \"$PWD\"", precious.path().display());
    for instead in ["", "; echo no directory > \"$PWD\"", &pointing] {
        for answer in ["drop", "--rollback"] {
            let line = format!("rm -rf \"$PWD\"{instead}");
            let steps = vec![write("b.txt", "b\n"), command("true"), command(&line), Step::hand_back()];
            let env = TestEnvironment::new(Wire::Chat, Script::ByHistory(steps));
            let run = env.delegate(&["--check", "grep -qx b b.txt && grep -qx a a.txt"], "Make b.txt.");
            let left = run.exits(1).json().pop().unwrap();
            assert_eq!(left["error"]["kind"], "repository_changed", "{left}");
            assert!(left["error"]["hint"].as_str().unwrap().contains("nisse resume"), "{left}");
            let task = left["task"].as_str().unwrap();
            if answer == "drop" {
                let result = env.run(&["drop", "--json", task]).ends(0, "dropped");
                env.assert_discarded(&result);
            } else {
                env.run(&["resume", "--json", task]).ends(6, "gated");
                let result = env.run(&["resume", "--json", task, answer]).ends(0, "handback");
                assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"b\n");
            }
            assert_eq!(before.changes(&Fingerprint::of(precious.path()), &[]), Vec::<String>::new(), "{line}");
        }
    }
}

#[test]
fn ignored_files_are_copied_and_never_committed() {
    let seen = "cat .env node_modules/x/i.js deep/cache/c; readlink node_modules/.bin/x; ls -a; echo more >> .env";
    let env = TestEnvironment::new(Wire::Chat, vec![command(seen), write("b.txt", "b\n"), Step::hand_back()]);
    let outside = env.root().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("private"), "private\n").unwrap();
    env.checkout
        .write(".gitignore", ".env*\nnode_modules/\n*.link\ncache\n")
        .write("kept.txt", "tracked\n")
        .commit("rules");
    env.checkout.write(".env", "VALUE=1\n").write("node_modules/x/i.js", "module\n").write("deep/cache/c", "cached\n");
    fs::create_dir(env.checkout.path().join("node_modules/.bin")).unwrap();
    symlink("../x/i.js", env.checkout.path().join("node_modules/.bin/x")).unwrap();
    symlink(&outside, env.checkout.path().join("out.link")).unwrap();
    env.checkout.write("untracked.txt", "carried anyway\n");
    env.set("NISSE_WORKTREE_COPY", ".env\nnode_modules\n*.link\n*.txt\ncache");
    let result = env.delegate(&[], "Make b.txt.").ends(0, "handback");
    let told = &env.server.requests()[1].last_answers()[0].text;
    for wanted in ["VALUE=1", "module", "cached", "../x/i.js", "out.link"] {
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
    assert_eq!(
        notices(&result),
        ["copied into the worktree, but not part of the branch: .env, deep/cache, node_modules, out.link"],
        "{result}"
    );
    for name in [".env", "node_modules/x/i.js", "out.link"] {
        assert_eq!(env.on_branch(&result, name), None, "{name} was committed");
    }
    assert_eq!(fs::read_to_string(outside.join("private")).unwrap(), "private\n");
}

#[test]
fn what_matches_nothing_is_said() {
    let env = TestEnvironment::new(Wire::Chat, vec![write("b.txt", "b\n"), Step::hand_back()]);
    env.set("NISSE_WORKTREE_COPY", "a.txt\n.env");
    let result = env.delegate(&[], "Make b.txt.").ends(0, "handback");
    assert_eq!(notices(&result), ["no ignored file matches worktree.copy (a.txt, .env)"]);
}

#[test]
fn a_setup_runs_before_the_model_is_asked_and_is_no_work() {
    for isolation in ["worktree", "in-place"] {
        let steps = vec![command("cat made.log"), write("b.txt", "b\n"), Step::hand_back()];
        let env = TestEnvironment::new(Wire::Chat, steps);
        env.checkout.write(".gitignore", "*.log\n").commit("rules");
        if isolation == "in-place" {
            switches(&env).may_add("made.log");
        }
        env.set("NISSE_WORKTREE_SETUP", "echo made > made.log; echo changed > a.txt; touch new.txt; echo said");
        let result = env.delegate(&["--isolation", isolation], "Make b.txt.").ends(0, "handback");
        assert!(env.server.requests()[1].last_answers()[0].text.contains("made"));
        assert_eq!(env.on_branch(&result, "a.txt").unwrap(), b"a\n", "{isolation}");
        assert_eq!(env.on_branch(&result, "new.txt"), None, "{isolation}");
        let log = env.run(&["log", "--json", result["task"].as_str().unwrap()]);
        let events = log.exits(0).json()[0]["events"].clone();
        let ran = events.as_array().unwrap().iter().find(|event| event["event"] == "setup_ran").unwrap();
        assert_eq!((&ran["data"]["status"], &ran["data"]["output_tail"]), (&json!(0), &json!("said\n")));
    }
}

#[test]
fn a_setup_that_fails_ends_the_run_before_the_first_request_and_a_resume_tries_again() {
    for isolation in ["worktree", "in-place"] {
        let env = TestEnvironment::new(Wire::Chat, Script::ByHistory(vec![write("b.txt", "b\n"), Step::hand_back()]));
        let there = env.root().join("there");
        switches(&env)
            .set("NISSE_WORKTREE_SETUP", &format!("echo looking; echo spoilt > a.txt; test -e {}", there.display()));
        let run = env.delegate(&["--isolation", isolation], "Make b.txt.");
        run.exits(1);
        assert!(run.stderr.contains("looking") && run.stderr.contains("nisse resume"), "{}", run.report());
        assert!(env.server.requests().is_empty());
        env.assert_checkout_unchanged();
        fs::write(&there, "").unwrap();
        let result = env.run(&["resume", "--json"]).ends(0, "handback");
        assert_eq!(env.on_branch(&result, "a.txt").unwrap(), b"a\n");
    }
}

#[test]
fn a_repository_names_neither_a_setup_nor_copies_without_trust() {
    for (setting, words) in [("setup = \"touch ran\"", "a setup command"), ("copy = [\".env\"]", "ignored files")] {
        let env = TestEnvironment::new(Wire::Chat, vec![write("b.txt", "b\n"), Step::hand_back()]);
        env.checkout.write("nisse.toml", format!("[worktree]\n{setting}\n")).commit("settings");
        let refused = env.delegate(&[], "Make b.txt.");
        let said = &refused.exits(2).stderr;
        assert!(said.contains(words) && said.contains("--trust-project"), "{}", refused.report());
        env.delegate(&["--trust-project"], "Make b.txt.").ends(0, "handback");
    }
}

#[test]
fn worktrees_lie_where_the_person_says() {
    let away = Step::error(503, &[("retry-after", "86400")], "overloaded", "later");
    let script = Script::by_content(move |asked| match asked.replies() {
        0 => write("b.txt", "b\n"),
        1 => command("ls ../beside"),
        _ => away.clone(),
    });
    let env = TestEnvironment::new(Wire::Chat, script);
    fs::create_dir(env.root().join("beside")).unwrap();
    fs::write(env.root().join("beside/neighbour"), "").unwrap();
    env.set("NISSE_WORKTREE_DIR", "../.");
    let result = env.delegate(&[], "Make b.txt.").ends(5, "interrupted");
    let worktree = Path::new(result["worktree"].as_str().unwrap());
    assert_eq!(worktree.parent().unwrap(), env.root());
    assert!(env.server.requests()[2].last_answers()[0].text.contains("neighbour"));

    for inside in ["within", ".git/x", "../checkout/x"] {
        env.set("NISSE_WORKTREE_DIR", inside);
        let refused = env.delegate(&[], "Make b.txt.");
        assert!(refused.exits(2).stderr.contains("worktree.dir"), "{}", refused.report());
    }
}

#[test]
fn a_branch_that_cannot_be_is_refused_first() {
    let env = TestEnvironment::new(Wire::Chat, Vec::new());
    env.checkout.git(&["branch", "taken/below"]);
    for (name, words) in
        [("taken", "taken/below"), ("main/x", "\"main\""), ("a b", "not a valid"), ("-x", "not a valid")]
    {
        let refused = env.delegate(&[&format!("--branch={name}")], "Make b.txt.");
        assert!(refused.exits(2).stderr.contains(words), "{}", refused.report());
    }
    assert_eq!(env.run(&["log"]).stdout, "", "no task was begun");
}

/// A checkout with nothing unfinished, and with what no checkpoint takes: ignored, denied, artefacts, empty directories.
fn settled(env: &TestEnvironment) {
    let checkout = &env.checkout;
    checkout
        .write(".gitignore", "*.log\n")
        .write("b/deep.txt", "deep\n")
        .write("run.sh", "echo\n")
        .executable("run.sh");
    checkout.write("new.txt", "new\n").commit("more");
    checkout.write("x.log", "ignored\n").write(".env", "KEY=1\n").write("node_modules/m/m.js", "m\n");
    fs::create_dir_all(checkout.path().join("empty/inside")).unwrap();
}

/// HEAD goes away and comes back, which its reflog tells.
fn switches(env: &TestEnvironment) -> &TestEnvironment {
    env.person_will_change(".git/logs/HEAD")
}

fn in_place(steps: Vec<Step>) -> TestEnvironment {
    let env = TestEnvironment::new(Wire::Chat, Script::ByHistory(steps));
    settled(&env);
    switches(&env);
    env
}

#[test]
fn in_place_everything_comes_back_however_it_ends() {
    let ends: [(&str, i32, Vec<Step>, &[&str]); 4] = [
        // refused once: a repository is in no commit
        ("handback", 0, vec![Step::hand_back(), Step::hand_back()], &[]),
        ("failed", 3, vec![Step::give_up()], &[]),
        ("capped", 4, vec![], &["--max-turns", "3"]),
        (
            "failed",
            3,
            vec![Step::hand_back(), Step::hand_back(), Step::hand_back(), Step::hand_back(), Step::hand_back()],
            &["--check", "false"],
        ),
    ];
    for (outcome, code, last, options) in ends {
        let mut steps = vec![
            Step::call("edit_file", json!({"path": "a.txt", "old": "a", "new": "of the task"}))
                .and_call("edit_file", json!({"path": "b/deep.txt", "old": "deep", "new": "task"})),
            command("pwd; echo made > made.txt; rm run.sh; mkdir -p deep/er; touch deep/er/file"),
            command("cat a.txt; rm -r b new.txt; echo b > b; git add -A"),
        ];
        steps.extend(last);
        let env = in_place(steps);
        let result = env.delegate(&[&["--isolation", "in-place"], options].concat(), "Work.").ends(code, outcome);
        let said = &env.server.requests()[2].last_answers()[0].text;
        assert!(said.contains(env.checkout.path().to_str().unwrap()), "it did not work in the checkout: {said}");
        env.assert_checkout_unchanged();
        assert_eq!(env.checkout.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
        assert_eq!(result["worktree"], Value::Null);
        assert!(notices(&result).contains(&"files that git ignores stay in the checkout as the task left them"));
        if outcome == "handback" {
            assert_eq!(env.on_branch(&result, "a.txt").unwrap(), b"of the task\n");
            assert_eq!(env.on_branch(&result, "b").unwrap(), b"b\n");
            assert_eq!(env.on_branch(&result, "run.sh"), None);
            assert_eq!(env.on_branch(&result, ".env"), None, "it was there before");
            assert_eq!(env.on_branch(&result, "deep/er/file").unwrap(), b"");
        } else {
            env.assert_discarded(&result);
        }
    }
}

#[test]
fn in_place_a_pending_task_keeps_the_checkout_and_says_so() {
    let away = Step::error(503, &[("retry-after", "86400")], "overloaded", "later");
    let went = std::sync::atomic::AtomicBool::new(false);
    let script = Script::by_content(move |asked| match asked.replies() {
        0 => write("b.txt", "b\n"),
        1 if !went.swap(true, std::sync::atomic::Ordering::SeqCst) => away.clone(),
        1 => write("c.txt", "c\n"),
        _ => Step::hand_back(),
    });
    let env = TestEnvironment::new(Wire::Chat, script);
    settled(&env);
    fs::remove_file(env.checkout.path().join(".env")).unwrap();
    switches(&env);
    let result = env.delegate(&["--isolation", "in-place"], "Make b.txt.").ends(5, "interrupted");
    let (task, branch) = (result["task"].as_str().unwrap(), result["branch"].as_str().unwrap());
    assert_eq!(env.checkout.git(&["symbolic-ref", "--short", "HEAD"]), branch);
    assert_eq!(env.checkout.git(&["status", "--porcelain"]), "?? node_modules/", "it is on the task's branch");
    assert!(notices(&result).iter().any(|notice| notice.contains(branch) && notice.contains("until the task ends")));
    assert_eq!(result["worktree"].as_str().unwrap(), env.checkout.path().to_str().unwrap());

    let second = env.delegate(&["--isolation", "in-place"], "Make d.txt.");
    assert!(second.exits(1).stderr.contains(&task[24..]), "{}", second.report());
    let again = env.set("NISSE_STATE_DIR", env.root().join("other").to_str().unwrap());
    let second = again.delegate(&["--isolation", "in-place"], "Make d.txt.");
    assert!(second.exits(1).stderr.contains(&task[24..]), "of another state directory: {}", second.report());
    env.set("NISSE_STATE_DIR", env.root().join("state").to_str().unwrap());

    env.checkout.git(&["symbolic-ref", "HEAD", "refs/heads/main"]);
    let gated = env.run(&["resume", "--json", task]).ends(6, "gated");
    assert!(gated["cause"].as_str().unwrap().contains("git switch"), "{gated}");
    env.checkout.git(&["symbolic-ref", "HEAD", &format!("refs/heads/{branch}")]);
    env.checkout.write("b.txt", "of the person\n");
    let gated = env.run(&["resume", "--json", task]).ends(6, "gated");
    assert!(gated["cause"].as_str().unwrap().contains("b.txt"), "{gated}");
    env.checkout.write("b.txt", "b\n");

    let result = env.run(&["resume", "--json", task]).ends(0, "handback");
    assert_eq!(env.on_branch(&result, "c.txt").unwrap(), b"c\n");
    env.assert_checkout_unchanged();
}

#[test]
fn in_place_a_detached_head_and_a_repository_without_commits() {
    for unborn in [false, true] {
        let env = TestEnvironment::new(Wire::Chat, vec![write("b.txt", "b\n"), Step::hand_back()]);
        if unborn {
            fs::remove_dir_all(env.checkout.path().join(".git")).unwrap();
            env.checkout.git(&["init", "-q", "-b", "main"]);
            fs::remove_file(env.checkout.path().join("a.txt")).unwrap();
        } else {
            env.checkout.git(&["checkout", "-q", "--detach"]);
        }
        switches(&env);
        let result = env.delegate(&["--isolation", "in-place"], "Make b.txt.").ends(0, "handback");
        assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"b\n", "unborn: {unborn}");
    }
}

#[test]
fn in_place_starts_from_the_checkout_as_it_is() {
    let env = TestEnvironment::new(Wire::Chat, Vec::new());
    let refused = env.delegate(&["--isolation", "in-place", "--base", "HEAD"], "Make b.txt.");
    assert!(refused.exits(2).stderr.contains("--base"), "{}", refused.report());
}

#[test]
fn a_file_with_two_names_changes_under_both_and_comes_back_under_both() {
    let edit = Step::call("edit_file", json!({"path": "run.sh", "old": "old", "new": "new"}));
    for (isolation, line) in
        [("in-place", "cat run.sh again.sh"), ("worktree", "ln run.sh again.sh; cat run.sh again.sh")]
    {
        let env = TestEnvironment::new(Wire::Chat, vec![command(line), edit.clone(), Step::hand_back()]);
        env.checkout.write("run.sh", "echo old\n").executable("run.sh");
        if isolation == "in-place" {
            fs::hard_link(env.checkout.path().join("run.sh"), env.checkout.path().join("again.sh")).unwrap();
        }
        env.checkout.commit("two names");
        switches(&env);
        let run = env.delegate(&["--isolation", isolation], "Work.");
        let result = run.ends(0, "handback");
        for name in ["run.sh", "again.sh"] {
            assert_eq!(env.on_branch(&result, name).unwrap(), b"echo new\n", "{isolation}: {name}");
        }
        assert!(!run.stderr.contains("someone else"), "{}", run.report());
        let torn = run.stderr.contains("no longer the same files as their hard links: again.sh, run.sh");
        assert_eq!(torn, isolation == "in-place", "{}", run.report());
        env.assert_checkout_unchanged();
    }
}
