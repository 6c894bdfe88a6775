//! Checkouts in which a task in place may not begin, and what it leaves of those in which it may.

use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Checkout, Fingerprint, Script, Step, TestEnvironment, Wire, wait_until};

fn write(path: &str, content: &str) -> Step {
    Step::call("write_file", json!({"path": path, "content": content}))
}

fn world(steps: Vec<Step>) -> TestEnvironment {
    let env = TestEnvironment::new(Wire::Chat, steps);
    env.checkout
        .write("sub/inner.txt", "inner\n")
        .write("gone.txt", "gone\n")
        .write(".gitignore", "*.log\n")
        .commit("more");
    env
}

type Makes = fn(&Checkout);

#[test]
fn unfinished_work_of_every_kind_is_named_and_refused_before_the_task_begins() {
    let kinds: [(&str, Makes); 9] = [
        ("a.txt", |checkout| {
            checkout.write("a.txt", "changed\n");
        }),
        ("a.txt", |checkout| {
            checkout.write("a.txt", "staged\n").git(&["add", "a.txt"]);
        }),
        ("new.txt", |checkout| {
            checkout.write("new.txt", "untracked\n");
        }),
        ("deep/new.txt", |checkout| {
            checkout.write("deep/new.txt", "untracked\n");
        }),
        ("gone.txt", |checkout| fs::remove_file(checkout.path().join("gone.txt")).unwrap()),
        ("a.txt", |checkout| {
            checkout.executable("a.txt");
        }),
        ("later.txt", |checkout| {
            checkout.write("later.txt", "intent\n").git(&["add", "-N", "later.txt"]);
        }),
        ("nested/", |checkout| {
            Checkout::new(&checkout.path().join("nested")).write("n.txt", "n\n").commit("n");
        }),
        ("a.txt", |checkout| {
            checkout.git(&["update-index", "--assume-unchanged", "a.txt"]);
            checkout.write("a.txt", "hidden\n");
        }),
    ];
    for (named, makes) in kinds {
        let env = world(Vec::new());
        makes(&env.checkout);
        let before = Fingerprint::of(env.checkout.path());
        let run = env.delegate(&["--isolation", "in-place"], "Work.");
        let error = run.exits(6).json().pop().unwrap()["error"].clone();
        assert_eq!(error["kind"], "unclean_checkout", "{error}");
        assert!(error["message"].as_str().unwrap().ends_with(&format!(": {named}")), "{error}");
        assert!(error["hint"].as_str().unwrap().contains("leave out --isolation"), "{error}");
        assert_eq!(before.changes(&Fingerprint::of(env.checkout.path()), &[]), Vec::<String>::new());
        assert_eq!(env.run(&["log"]).stdout, "", "no task was begun");
        assert!(env.server.requests().iter().all(|asked| asked.raw.is_empty()), "no model was asked");
    }
}

#[test]
fn unfinished_work_in_a_submodule_is_named_too() {
    let changes: [Makes; 3] = [
        |inner| {
            inner.write("in.txt", "changed\n");
        },
        |inner| {
            inner.write("new.txt", "new\n");
        },
        |inner| {
            inner.write("in.txt", "committed\n").commit("further");
        },
    ];
    for change in changes {
        let env = world(vec![write("b.txt", "b\n"), Step::hand_back()]);
        let origin = Checkout::new(&env.root().join("origin"));
        origin.write("in.txt", "in\n").commit("inner");
        let from = origin.path().to_str().unwrap().to_owned();
        env.checkout.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", &from, "module"]);
        env.checkout.commit("module");
        env.person_will_change(".git/logs/HEAD");
        let result = env.delegate(&["--isolation", "in-place"], "Make b.txt.").ends(0, "handback");
        assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"b\n");
        env.assert_checkout_unchanged();

        let inner = Checkout::new(&env.checkout.path().join("module"));
        change(&inner);
        env.changed_paths();
        let refused = env.delegate(&["--isolation", "in-place"], "Make c.txt.");
        assert!(refused.exits(6).stderr.contains("module"), "{}", refused.report());
        env.changed_paths();
    }
}

/// What no checkpoint takes is no unfinished work, and stays.
#[test]
fn what_no_checkpoint_takes_may_be_there() {
    let env = world(vec![
        Step::call("run_command", json!({"command": "echo b > b.txt; : > .gitignore; git add -A"})),
        Step::hand_back(),
    ]);
    env.checkout.write("x.log", "ignored\n").write(".env", "KEY=1\n").write("node_modules/m/m.js", "m\n");
    env.person_will_change(".git/logs/HEAD");
    let result = env.delegate(&["--isolation", "in-place"], "Make b.txt.").ends(0, "handback");
    for file in ["x.log", ".env", "node_modules/m/m.js"] {
        assert_eq!(env.on_branch(&result, file), None, "{file} was committed");
    }
    assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"b\n");
    env.assert_checkout_unchanged();
}

/// The state directory may lie in the checkout, ignored or not: nothing of it is in a commit, and nothing takes it away.
#[test]
fn the_state_directory_is_in_no_commit_wherever_it_lies() {
    for isolation in ["worktree", "in-place"] {
        let env = world(vec![
            Step::call("run_command", json!({"command": "echo b > b.txt; git add -A; git stash -q || true"})),
            write("b.txt", "b\n"),
            write("c.txt", "c\n"),
            Step::hand_back(),
            Step::hand_back(),
        ]);
        env.set("NISSE_STATE_DIR", env.checkout.path().join(".state/nisse").to_str().unwrap());
        for place in [".state", ".git/logs/refs", ".git/refs/stash", ".git/ORIG_HEAD"] {
            env.may_add(place);
        }
        env.person_will_change(".git/logs/HEAD");
        let check = "test -e c.txt && touch left.txt";
        let result = env.delegate(&["--isolation", isolation, "--check", check], "Make b.txt.").ends(0, "handback");
        let branch = result["branch"].as_str().unwrap();
        let files = env.checkout.git(&["ls-tree", "-r", "--name-only", branch]);
        assert!(!files.contains(".state"), "{isolation}: {files}");
        let told = env.run(&["log", "--json"]).exits(0).json();
        assert_eq!(told.len(), 1, "{isolation}: the log is not what it was");
    }
}

/// A failed check put files back by an index without marks: the commit deleted all that a sparse checkout leaves out.
#[test]
fn a_sparse_checkout_keeps_its_marks_and_the_commit_all_its_files() {
    for isolation in ["worktree", "in-place"] {
        let env = TestEnvironment::new(
            Wire::Chat,
            vec![
                write("in/b.txt", "b\n"),
                Step::hand_back(),
                write("in/c.txt", "c\n"),
                Step::call("run_command", json!({"command": "echo d > in/d.txt"})),
                Step::hand_back(),
            ],
        );
        env.checkout.write("in/a.txt", "a\n").write("out/o.txt", "o\n").write("out/deep/p.txt", "p\n").commit("files");
        env.checkout.git(&["sparse-checkout", "set", "in"]);
        let marks = env.checkout.git(&["ls-files", "-t"]);
        assert!(marks.contains("S out/o.txt"), "{marks}");
        env.person_will_change(".git/logs/HEAD");
        let check = "echo left > in/left.txt; echo spoilt > in/a.txt; test -e in/c.txt";
        let result = env.delegate(&["--isolation", isolation, "--check", check], "Work.").ends(0, "handback");
        let branch = result["branch"].as_str().unwrap();
        let files = env.checkout.git(&["ls-tree", "-r", "--name-only", branch]);
        assert_eq!(files, "a.txt\nin/a.txt\nin/b.txt\nin/c.txt\nin/d.txt\nout/deep/p.txt\nout/o.txt", "{isolation}");
        assert_eq!(env.checkout.git(&["ls-files", "-t"]), marks, "{isolation}");
        env.assert_checkout_unchanged();
    }
}

/// Modes are the files' own, also where git knows only two of them; an edit widens none.
#[test]
fn modes_are_kept_exactly_where_the_task_works() {
    let modes = [0o755, 0o700, 0o600, 0o640];
    let edit = |mode: u32| json!({"path": format!("f{mode:o}.sh"), "old": "OLD", "new": "NEW"});
    let looked = "stat -c '%a %n' f*.sh hard.sh; stat -c %h f755.sh hard.sh";
    let mut steps: Vec<Step> = modes.iter().map(|mode| Step::call("edit_file", edit(*mode))).collect();
    steps.push(Step::call("run_command", json!({"command": looked})));
    steps.push(Step::hand_back());
    let env = TestEnvironment::new(Wire::Chat, steps);
    for mode in modes {
        let file = format!("f{mode:o}.sh");
        env.checkout.write(&file, "#!/bin/sh\necho OLD\n");
        fs::set_permissions(env.checkout.path().join(&file), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::hard_link(env.checkout.path().join("f755.sh"), env.checkout.path().join("hard.sh")).unwrap();
    env.checkout.commit("scripts");
    env.person_will_change(".git/logs/HEAD");
    let result = env.delegate(&["--isolation", "in-place"], "Change OLD to NEW.").ends(0, "handback");
    let told = &env.server.requests()[5].last_answers()[0].text;
    for line in ["755 f755.sh", "700 f700.sh", "600 f600.sh", "640 f640.sh", "755 hard.sh", "2\n2"] {
        assert!(told.contains(line), "{line}: {told}");
    }
    for name in ["f755.sh", "hard.sh", "f600.sh"] {
        assert_eq!(env.on_branch(&result, name).unwrap(), b"#!/bin/sh\necho NEW\n", "{name}");
    }
    let diff = env.checkout.git(&["diff", "--summary", "main", result["branch"].as_str().unwrap()]);
    assert_eq!(diff, "", "a mode changed");
    env.assert_checkout_unchanged();
}

/// Repositories inside that git ignores are neither entered nor moved, whenever nisse is killed.
#[test]
fn repositories_inside_stay_what_they_are_when_nisse_is_killed() {
    for isolation in ["worktree", "in-place"] {
        let scratch = tempfile::tempdir().unwrap();
        let began = scratch.path().join("began");
        let env = TestEnvironment::new(
            Wire::Chat,
            Script::ByHistory(vec![
                write("made.txt", "made\n"),
                write("pkgs/a/new.txt", "in2\n"),
                Step::call("run_command", json!({"command": format!(": > {}; sleep 600", began.display())})),
                Step::hand_back(),
            ]),
        );
        env.checkout.write(".gitignore", "pkgs/\n").write("root.txt", "root\n").commit("base");
        let inner = Checkout::new(&env.checkout.path().join("pkgs/a"));
        inner.write("in.txt", "in\n").commit("inner");
        inner.git(&["worktree", "add", "-q", "-b", "side", "../b"]);
        let before = Fingerprint::of(&env.checkout.path().join("pkgs"));
        env.person_will_change(".git/logs/HEAD").may_add("pkgs/a/new.txt");
        let running = env.start(&["delegate", "--json", "--isolation", isolation, "Work."]);
        assert!(wait_until(Duration::from_mins(2), || began.exists()), "the command did not begin");
        running.signal(Signal::KILL);
        env.finish(running);
        let told = env.server.requests()[2].last_answers();
        assert!(told[0].text.contains("not part of the branch"), "{told:?}");
        let same = || {
            let mut changes = before.changes(&Fingerprint::of(&env.checkout.path().join("pkgs")), &[]);
            changes.retain(|change| !change.starts_with("a/new.txt"));
            assert_eq!(changes, Vec::<String>::new(), "{isolation}");
            assert_eq!(inner.git(&["-C", "../b", "status", "--porcelain"]), "");
        };
        same();
        let gated = env.run(&["resume", "--json"]).ends(6, "gated");
        let task = gated["task"].as_str().unwrap();
        let result = env.run(&["resume", "--json", task, "--rollback"]).ends(0, "handback");
        same();
        assert_eq!(env.on_branch(&result, "made.txt").unwrap(), b"made\n");
    }
}
