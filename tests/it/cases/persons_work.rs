//! Work of the person's that other agents lost: thrown away by a command, swept up by an undo, or cleared away.

use std::{
    fs,
    sync::{Arc, Mutex},
    time::Duration,
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    gates::killed_in,
    support::{Checkout, Script, Step, TestEnvironment, Wire, wait_until},
};

fn write(path: &str, content: &str) -> Step {
    Step::call("write_file", json!({"path": path, "content": content}))
}

fn command(line: &str) -> Step {
    Step::call("run_command", json!({"command": line}))
}

/// Unfinished work, staged and not; ignored files; a repository inside, with a worktree of its own.
fn unfinished(checkout: &Checkout) {
    checkout.write(".gitignore", "*.local\nbuild/\npkgs/\n").write("b.txt", "b\n").commit("more");
    checkout.write("a.txt", "a\nunstaged\n").write("b.txt", "b\nstaged\n").git(&["add", "b.txt"]);
    checkout.write("b.txt", "b\nstaged\non top\n").write("draft.md", "draft\n").write("data/u.csv", "1,2\n");
    checkout.write("settings.local", "mine\n").write("build/out.bin", [0, 1, 2]);
    let inner = Checkout::new(&checkout.path().join("pkgs/inner"));
    inner.write("in.txt", "in\n").commit("inner");
    inner.git(&["worktree", "add", "-q", "-b", "side", "../beside"]);
    inner.write("in.txt", "changed\n");
}

/// A checkout with unfinished work where a task can begin in one, and else with all of it committed.
fn environment(isolation: &str, steps: Vec<Step>) -> TestEnvironment {
    let env = TestEnvironment::new(Wire::Chat, Script::ByHistory(steps));
    unfinished(&env.checkout);
    if isolation == "in-place" {
        env.checkout.commit("nothing is unfinished");
    }
    env
}

#[test]
fn a_command_that_throws_everything_away_takes_nothing_of_the_persons() {
    for line in [
        "git checkout HEAD -- . && git reset -q --hard && git clean -fdq",
        "git restore .",
        "git switch -q -f main",
        "git checkout -q -f main && git clean -fdq",
        "git stash -q -u && git stash drop -q",
        "git -C . -c x.y=z reset -q --hard",
        "rm -rf *.txt *.md data",
        "git rm -q -r -f --cached . && git clean -ffdq -e pkgs",
        ": > .gitignore",
        "rm .gitignore; git add -A",
    ] {
        for isolation in ["worktree", "in-place"] {
            let env = thrown_away(isolation, line);
            let result = env.delegate(&["--isolation", isolation], "Work.").ends(0, "handback");
            assert_eq!(env.on_branch(&result, "made.txt").unwrap(), b"made\n", "{isolation}: {line}");
            for ignored in ["settings.local", "build/out.bin", "pkgs/inner/in.txt"] {
                assert_eq!(env.on_branch(&result, ignored), None, "{isolation}: {line}: {ignored} was committed");
            }
            env.assert_checkout_unchanged();
        }
    }
}

#[test]
fn a_kill_leaves_repositories_within_the_checkout_as_they_were() {
    for isolation in ["worktree", "in-place"] {
        for (answer, code, outcome) in [("--keep", 0, "handback"), ("--drop", 0, "dropped")] {
            let (env, _scratch) = killed_in(Wire::Chat, isolation, "echo half > half.txt", |env| {
                env.person(|checkout| {
                    unfinished(checkout);
                    if isolation == "in-place" {
                        checkout.commit("nothing is unfinished");
                    }
                });
                if isolation == "in-place" {
                    env.person_will_change(".git/logs/HEAD");
                }
            });
            for inner in ["pkgs/inner", "pkgs/beside"] {
                env.checkout.git(&["-C", inner, "status", "--porcelain"]);
            }
            env.run(&["resume", "--json"]).ends(6, "gated");
            env.run(&["resume", "--json", answer]).ends(code, outcome);
            env.assert_checkout_unchanged();
        }
    }
}

#[test]
fn what_was_ignored_stays_apart_also_where_a_task_stages_it_or_it_was_copied() {
    for (isolation, line) in [
        ("in-place", "git add -f settings.local build/out.bin"),
        ("worktree", "cat settings.local build/out.bin; : > .gitignore"),
    ] {
        let edit = Step::call("edit_file", json!({"path": "settings.local", "old": "mine", "new": "of the task"}));
        let read = Step::call("read_file", json!({"path": "settings.local"}));
        let env =
            environment(isolation, vec![command(line), read, edit, write("made.txt", "made\n"), Step::hand_back()]);
        if isolation == "in-place" {
            env.person_will_change("settings.local");
        }
        env.set("NISSE_WORKTREE_COPY", "settings.local\nbuild");
        env.person_will_change(".git/logs/HEAD");
        let result = env.delegate(&["--isolation", isolation], "Work.").ends(0, "handback");
        let told = &env.server.requests()[3].last_answers()[0].text;
        assert!(told.contains("not part of the branch"), "{told}");
        assert_eq!(env.on_branch(&result, "settings.local"), None);
        assert_eq!(env.on_branch(&result, "build/out.bin"), None);
        assert!(env.checkout.path().join("build/out.bin").exists());
        assert!(env.checkout.path().join("settings.local").exists());
    }
}

fn thrown_away(isolation: &str, line: &str) -> TestEnvironment {
    let env = environment(isolation, vec![command(line), write("made.txt", "made\n"), Step::hand_back()]);
    // what git itself notes about such commands
    for note in [".git/ORIG_HEAD", ".git/logs/refs/stash", ".git/refs/stash", ".git/logs/refs"] {
        env.may_add(note);
    }
    env.person_will_change(".git/logs/HEAD");
    env
}

#[test]
fn a_command_that_moves_the_tasks_branch_ends_nothing_and_the_checkout_is_what_it_was() {
    for isolation in ["worktree", "in-place"] {
        let env = thrown_away(isolation, "git reset -q --hard HEAD~1 && git clean -fdq");
        let result = env.delegate(&["--isolation", isolation], "Work.").ends(0, "handback");
        assert_eq!(env.on_branch(&result, "made.txt").unwrap(), b"made\n");
        assert!(result["notices"].to_string().contains("was moved to"), "{result}");
        env.assert_checkout_unchanged();
    }
}

#[test]
fn a_stop_and_giving_up_leave_everything_as_it_was() {
    for isolation in ["worktree", "in-place"] {
        let scratch = tempfile::tempdir().unwrap();
        let begun = scratch.path().join("begun");
        let steps = vec![
            write("new.txt", "of the task\n"),
            Step::call("read_file", json!({"path": "a.txt"})),
            Step::call("edit_file", json!({"path": "a.txt", "old": "unstaged", "new": "of the task"})),
            command(&format!("touch {}; sleep 1000", begun.display())),
        ];
        let env = environment(isolation, steps);
        env.person_will_change(".git/logs/HEAD");
        let running = env.start(&["delegate", "--json", "--isolation", isolation, "Work."]);
        assert!(wait_until(Duration::from_mins(2), || begun.exists()), "the command did not begin");
        running.signal(Signal::INT);
        let result = env.finish(running).ends(7, "stopped");
        let task = result["task"].as_str().unwrap();
        for () in [(), ()] {
            env.run(&["drop", "--json", task]).ends(0, "dropped");
            env.assert_checkout_unchanged();
        }
    }
}

#[test]
fn from_a_directory_inside_nothing_beside_it_is_taken_back() {
    let root = Arc::new(Mutex::new(std::path::PathBuf::new()));
    let at = Arc::clone(&root);
    let later = move || {
        let root = at.lock().unwrap();
        fs::write(root.join("backend/srv.txt"), "of the person, later\n").unwrap();
        fs::write(root.join("backend/new.txt"), "new\n").unwrap();
    };
    let edit = Step::call("edit_file", json!({"path": "frontend/app.txt", "old": "one", "new": "two"}));
    let read = Step::call("read_file", json!({"path": "frontend/app.txt"}));
    let env = TestEnvironment::new(Wire::Chat, vec![read, edit, Step::hand_back().before(later)]);
    env.checkout.write("frontend/app.txt", "one\n").write("backend/srv.txt", "srv\n").commit("both");
    env.checkout.write("backend/srv.txt", "unfinished\n");
    env.may_add("backend/new.txt");
    env.person_will_change("backend/srv.txt");
    *root.lock().unwrap() = env.checkout.path().to_owned();
    let inside = env.checkout.path().join("frontend");
    let inside = ["-C", inside.to_str().unwrap()];
    let run = |arguments: &[&str]| env.run(&[&inside[..], arguments].concat());
    let result = run(&["delegate", "--json", "Work."]).ends(0, "handback");
    let task = result["task"].as_str().unwrap();
    let is = |file: &str, text: &str| {
        assert_eq!(fs::read_to_string(env.checkout.path().join(file)).unwrap(), text, "{file}");
    };
    for (arguments, app) in [(&["apply", task][..], "two\n"), (&["apply", task, "--abort"], "one\n")] {
        run(arguments).exits(0);
        is("frontend/app.txt", app);
        is("backend/srv.txt", "of the person, later\n");
        is("backend/new.txt", "new\n");
    }
    env.changed_paths();
}

#[test]
fn worktrees_and_branches_of_the_persons_are_never_cleared_away() {
    let env = TestEnvironment::new(Wire::Chat, vec![write("b.txt", "b\n"), Step::give_up()]);
    let (old, detached) = (env.root().join("old"), env.root().join("detached"));
    env.checkout.git(&["worktree", "add", "-q", "-b", "nisse/old", old.to_str().unwrap()]);
    env.checkout.git(&["worktree", "add", "-q", "--detach", detached.to_str().unwrap()]);
    for place in [&old, &detached] {
        fs::write(place.join("own.txt"), "own\n").unwrap();
        for arguments in [&["add", "own.txt"][..], &["commit", "-q", "-m", "held by nothing else"]] {
            env.checkout.git(&[&["-C", place.to_str().unwrap()], arguments].concat());
        }
        fs::write(place.join("a.txt"), "dirty\n").unwrap();
        fs::write(place.join("untracked.txt"), "new\n").unwrap();
    }
    env.delegate(&[], "Make b.txt.").ends(3, "failed");
    // years later
    env.set("NISSE_TEST_CLOCK", "1895910400000");
    for () in [(), ()] {
        env.run(&["doctor", "--json", "--fix"]);
        for place in [&old, &detached] {
            assert_eq!(fs::read_to_string(place.join("a.txt")).unwrap(), "dirty\n");
            assert_eq!(fs::read_to_string(place.join("untracked.txt")).unwrap(), "new\n");
            assert_eq!(fs::read_to_string(place.join("own.txt")).unwrap(), "own\n");
        }
        assert!(env.checkout.has_ref("refs/heads/nisse/old"));
    }
    let report = env.run(&["doctor"]);
    assert!(report.stdout.contains("nisse/old"), "{}", report.report());
}

#[test]
fn a_commit_that_only_a_detached_head_holds_stays_and_no_branch_is_called_head() {
    for isolation in ["worktree", "in-place"] {
        let env = TestEnvironment::new(Wire::Chat, vec![write("b.txt", "b\n"), Step::hand_back()]);
        env.checkout.git(&["checkout", "-q", "--detach"]);
        env.checkout.write("own.txt", "own\n").commit("on no branch");
        // as a pull request is checked out
        env.set("GITHUB_HEAD_REF", "pr").set("GITHUB_REF", "refs/pull/7/merge").set("CI", "true");
        let head = env.checkout.git(&["rev-parse", "HEAD"]);
        env.person_will_change(".git/logs/HEAD");
        let result = env.delegate(&["--isolation", isolation], "Make b.txt.").ends(0, "handback");
        assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"b\n");
        assert_eq!(fs::read_to_string(env.checkout.path().join(".git/HEAD")).unwrap().trim(), head);
        assert!(!env.checkout.has_ref("refs/heads/HEAD"));
        let task = result["task"].as_str().unwrap();
        let document: Value = env.run(&["apply", "--json", task]).exits(0).json().pop().unwrap();
        assert_eq!((&document["how"], &document["branch"]), (&json!("files"), &Value::Null));
        env.changed_paths();
    }
}

#[test]
fn without_a_name_for_commits_the_task_has_its_own_and_configures_none() {
    for isolation in ["worktree", "in-place"] {
        let steps = vec![write("b.txt", "b\n"), command("git commit -qam mine; echo $?"), Step::hand_back()];
        let env = TestEnvironment::new(Wire::Chat, steps);
        for name in ["user.name", "user.email"] {
            env.checkout.git(&["config", "--unset", name]);
        }
        env.checkout.git(&["config", "user.useConfigOnly", "true"]);
        env.person_will_change(".git/logs/HEAD");
        let result = env.delegate(&["--isolation", isolation], "Make b.txt.").ends(0, "handback");
        let branch = result["branch"].as_str().unwrap();
        let by = env.checkout.git(&["log", "-1", "--format=%an <%ae> %cn <%ce>", branch]);
        assert_eq!(by, "nisse <nisse@localhost> nisse <nisse@localhost>");
        env.assert_checkout_unchanged();
    }
}

#[test]
fn calls_of_one_reply_run_one_after_the_other() {
    for wire in Wire::BOTH {
        let both = command("git add -A && sleep 0.5 && echo first > order")
            .and_call("run_command", json!({"command": "cat order && git add -A && echo second >> order"}));
        let env = TestEnvironment::new(wire, vec![both, Step::hand_back()]);
        for n in 0..300 {
            env.checkout.write(&format!("f{n}.txt"), format!("{n}\n"));
        }
        let result = env.delegate(&[], "Work.").ends(0, "handback");
        assert_eq!(env.on_branch(&result, "order").unwrap(), b"first\nsecond\n");
        let answers = env.server.requests()[1].last_answers();
        assert_eq!(answers.len(), 2);
        assert!(answers[0].text.starts_with("exit status 0"), "{}", answers[0].text);
        assert!(answers[1].text.contains("first") && !answers[1].text.contains("index.lock"), "{}", answers[1].text);
    }
}

#[test]
fn an_edit_whose_context_is_not_the_files_is_refused_and_spoils_no_line() {
    let text =
        "class K:\n    def f(self):\n        if x:\n            return \"old\"\n        return None   \n\tpass\n";
    let edit = |old: &str, new: &str| Step::call("edit_file", json!({"path": "k.py", "old": old, "new": new}));
    let wrong = "   def f(self):\n       if x:\n           return \"old\"";
    let steps = vec![
        edit(wrong, &wrong.replace("old", "new")),
        edit("            return \"old\"", "            return \"new\""),
        Step::hand_back(),
    ];
    let env = TestEnvironment::new(Wire::Chat, steps);
    env.checkout.write("k.py", text).commit("code");
    let result = env.delegate(&[], "Return new.").ends(0, "handback");
    assert_eq!(env.on_branch(&result, "k.py").unwrap(), text.replace("old", "new").as_bytes());
    assert!(env.server.requests()[1].last_answers()[0].text.contains("is not in k.py"));
}

#[test]
fn what_a_note_says_of_commits_is_a_claim_and_the_result_is_what_git_has() {
    let note = json!({
        "changed": "committed as 0123456789abcdef0123456789abcdef01234567 on branch finished",
        "now_true": "everything is on the branch finished",
        "next": "merge 0123456789abcdef0123456789abcdef01234567",
        "succeeded": true,
    });
    let env = TestEnvironment::new(
        Wire::Chat,
        vec![Step::call("hand_back", note.clone()), write("b.txt", "b\n"), Step::call("hand_back", note)],
    );
    let result = env.delegate(&[], "Make b.txt.").ends(0, "handback");
    assert_eq!(result["turns"], 3, "the first claim, with nothing done, is not taken");
    let (branch, head) = (result["branch"].as_str().unwrap(), result["head"].as_str().unwrap());
    assert_eq!(env.checkout.git(&["rev-parse", &format!("refs/heads/{branch}")]), head);
    assert_eq!(env.checkout.file_at(head, "b.txt").unwrap(), b"b\n");
    assert!(!env.checkout.git(&["branch", "--list"]).contains("finished"));
}
