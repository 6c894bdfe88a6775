//! What a checkout may be like: a task works there, or is refused with a sentence that says why before anything changed.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path, process::Command, time::Duration};

use nisse::log::{Access, Log};
use rustix::process::Signal;
use serde_json::json;

use crate::support::{
    Checkout, Fingerprint, Needs, Run, Script, Step, TestEnvironment, Wire, lacks, other_file_system, wait_until,
};

const ISOLATIONS: [&str; 2] = ["worktree", "in-place"];

fn write() -> Step {
    Step::call("write_file", json!({"path": "made.txt", "content": "made\n"}))
}

/// A world whose model takes these steps and hands back.
fn environment(mut steps: Vec<Step>) -> TestEnvironment {
    steps.push(Step::hand_back());
    TestEnvironment::new(Wire::Chat, Script::ByHistory(steps))
}

/// Nothing was begun: no task, no request, nothing else.
#[track_caller]
fn refused(env: &TestEnvironment, run: &Run, words: &[&str]) {
    run.exits(1);
    for word in words {
        assert!(run.stderr.contains(word), "{word:?} is not said\n{}", run.report());
    }
    assert!(env.server.requests().is_empty(), "a model was asked");
    let log = Log::open(&env.state(), Access::Read).unwrap();
    assert_eq!(log.map_or(0, |log| log.tasks().unwrap().len()), 0, "a task was begun\n{}", run.report());
    env.assert_checkout_unchanged();
}

/// Makes `side` a branch with another `a.txt` and a file of its own.
fn side(checkout: &Checkout) {
    checkout.git(&["checkout", "-q", "-b", "side"]);
    checkout.write("a.txt", "side\n").write("side.txt", "s\n").commit("side");
    checkout.git(&["checkout", "-q", "main"]);
    checkout.write("a.txt", "main\n").commit("main");
}

#[test]
fn a_checkout_in_the_middle_of_something_is_refused() {
    type Arrange = fn(&Checkout);
    let states: [(&[&str], Arrange); 9] = [
        (&["a merge is in progress", "finish or abort"], |c| {
            side(c);
            c.git(&["merge", "-q", "--no-commit", "-s", "ours", "side"]);
        }),
        (&["a rebase is in progress", "finish or abort"], |c| {
            side(c);
            c.git(&["-c", "sequence.editor=sed -i s/pick/edit/", "rebase", "-q", "-i", "HEAD~1"]);
        }),
        (&["cherry-pick", "finish or abort"], |c| {
            side(c);
            let other = c.git(&["rev-parse", "side"]);
            fs::write(c.path().join(".git/CHERRY_PICK_HEAD"), other + "\n").unwrap();
        }),
        (&["revert", "finish or abort"], |c| {
            let head = c.git(&["rev-parse", "HEAD"]);
            fs::write(c.path().join(".git/REVERT_HEAD"), head + "\n").unwrap();
        }),
        (&["git am", "finish or abort"], |c| {
            fs::create_dir(c.path().join(".git/rebase-apply")).unwrap();
            fs::write(c.path().join(".git/rebase-apply/applying"), "").unwrap();
        }),
        (&["unresolved conflicts in a.txt", "resolve and stage"], |c| {
            side(c);
            c.git(&["read-tree", "-m", "main~1", "main", "side"]);
        }),
        (&["/.git/index.lock is there", " s old", "remove the file"], |c| {
            fs::write(c.path().join(".git/index.lock"), "").unwrap();
        }),
        (&["a branch is called `nisse`", "rename it"], |c| drop(c.git(&["branch", "nisse"]))),
        (&["filter `lfs`", "git-lfs-not-there is not installed"], |c| {
            c.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n").write("big.bin", "pointer\n");
            c.commit("large files elsewhere");
            c.git(&["config", "filter.lfs.required", "true"]);
            c.git(&["config", "filter.lfs.process", "git-lfs-not-there filter-process"]);
        }),
    ];
    for (words, arrange) in states {
        for isolation in ISOLATIONS {
            let env = environment(vec![write()]);
            arrange(&env.checkout);
            refused(&env, &env.delegate(&["--isolation", isolation], "Work."), words);
        }
    }
}

#[test]
fn a_place_without_files_of_a_repository_is_refused() {
    let env = environment(vec![write()]);
    let bare = env.root().join("bare.git");
    env.checkout.git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    fs::create_dir(env.root().join("plain")).unwrap();
    let linked = env.root().join("linked");
    fs::create_dir(&linked).unwrap();
    fs::write(linked.join(".git"), "gitdir: /nowhere/.git/worktrees/linked\n").unwrap();
    let places: [(&Path, &[&str]); 5] = [
        (&bare, &["bare repository", "clone it"]),
        (&env.checkout.path().join(".git"), &["it is a git directory", "name the checkout"]),
        (&env.root().join("plain"), &["is not inside a git repository", "git init"]),
        (&env.root().join("gone"), &["there is no directory", "/gone"]),
        // what `git init` there would do is the last thing that is wanted
        (&linked, &["/nowhere/.git/worktrees/linked", "git worktree repair"]),
    ];
    for (place, words) in places {
        for isolation in ISOLATIONS {
            let run = env.run(&["-C", place.to_str().unwrap(), "delegate", "--isolation", isolation, "Work."]);
            refused(&env, &run, words);
            assert!(words[0].starts_with("is not") || !run.stderr.contains("git init"), "{}", run.report());
        }
    }
}

#[test]
fn a_git_that_is_too_old_is_refused_and_the_oldest_that_will_do_is_not() {
    let env = environment(vec![write()]);
    let says = |version: &str| {
        env.before_git(&format!("case \" $* \" in *' --version '*) echo 'git version {version}'; exit;; esac"));
        env.delegate(&[], "Work.")
    };
    for version in ["2.33.8", "2.9.5", "1.99.0"] {
        let run = says(version);
        refused(&env, &run, &[&format!("git {version} is too old: 2.34 or newer is needed"), "install git 2.34"]);
    }
    says("2.34.0").ends(0, "handback");
}

fn give_away(path: &Path, user: u32) {
    let given = Command::new("chown").args(["-R", &format!("{user}:{user}")]).arg(path).status().unwrap();
    assert!(given.success());
}

#[test]
fn a_checkout_of_somebody_elses_needs_the_persons_trust() {
    if lacks(Needs::Superuser) {
        return;
    }
    for isolation in ISOLATIONS {
        let edit = Step::call("edit_file", json!({"path": "made.txt", "old": "was", "new": "is"}));
        let env = environment(vec![Step::call("read_file", json!({"path": "made.txt"})), edit]);
        env.checkout.write("sub/in.txt", "x\n").write("made.txt", "was\n").commit("more");
        switches(&env);
        let owner = 12345;
        give_away(env.checkout.path(), owner);
        let root = env.checkout.path().to_str().unwrap().to_owned();
        let home = Fingerprint::of(&env.root().join("home"));
        for place in [&root, &format!("{root}/sub")] {
            let run = env.run(&["-C", place, "delegate", "--isolation", isolation, "Work."]);
            refused(&env, &run, &[&format!("git config --global --add safe.directory {root}`")]);
        }
        let doctor = env.run(&["doctor"]);
        assert!(doctor.stdout.contains("safe.directory"), "{}", doctor.report());
        assert!(home.changes(&Fingerprint::of(&env.root().join("home")), &[]).is_empty(), "of the person's own");

        env.set("GIT_CONFIG_COUNT", "1").set("GIT_CONFIG_KEY_0", "safe.directory").set("GIT_CONFIG_VALUE_0", &root);
        let user_of = |file: &str| fs::metadata(env.checkout.path().join(file)).unwrap().uid();
        let result = env.delegate(&["--isolation", isolation], "Work.").ends(0, "handback");
        assert_eq!(user_of("made.txt"), owner, "a file is its owner's, also when it comes back");
        env.assert_checkout_unchanged();
        let task = result["task"].as_str().unwrap();
        env.checkout.write("own.txt", "unfinished\n");
        env.run(&["apply", task]).exits(0);
        assert_eq!((user_of("made.txt"), user_of("sub/in.txt")), (owner, owner));
        give_away(env.checkout.path(), 0);
        env.changed_paths();
    }
}

/// Runs nisse where the checkout's disk can only be read.
fn on_a_read_only_disk(env: &TestEnvironment, arguments: &[&str]) -> Run {
    on_a_read_only_place(env, env.checkout.path(), arguments)
}

/// The same where this directory is on such a disk.
fn on_a_read_only_place(env: &TestEnvironment, place: &Path, arguments: &[&str]) -> Run {
    let script = "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" && cd \"$PWD\" && exec \"$@\"";
    let checkout = place.to_str().unwrap();
    let nisse = [&[env!("CARGO_BIN_EXE_nisse")], arguments].concat();
    env.run_program("unshare", &[&["--mount", "sh", "-c", script, checkout], &nisse[..]].concat())
}

#[test]
fn a_disk_that_can_only_be_read_is_refused_and_looked_at() {
    if lacks(Needs::Mounts) {
        return;
    }
    for isolation in ISOLATIONS {
        let env = environment(vec![write()]);
        env.checkout.write("a.txt", "unfinished\n");
        switches(&env);
        let run = on_a_read_only_disk(&env, &["delegate", "--isolation", isolation, "Work."]);
        refused(&env, &run, &["nothing can be written to", "/.git: Read-only file system"]);
        let result = env.delegate(&[], "Work.").ends(0, "handback");
        let task = result["task"].as_str().unwrap();
        for arguments in [&["log"][..], &["log", task, "--diff"], &["doctor"]] {
            let run = on_a_read_only_disk(&env, arguments);
            run.exits(i32::from(arguments == ["doctor"]));
        }
        let run = on_a_read_only_disk(&env, &["apply", task]);
        assert!(run.exits(1).stderr.contains("Read-only file system"), "{}", run.report());
        env.assert_checkout_unchanged();
        env.run(&["apply", "--json", task]).exits(0);
        env.changed_paths();
    }
}

#[test]
fn what_a_killed_process_left_is_read_on_a_read_only_disk() {
    if lacks(Needs::Mounts) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let asked = scratch.path().join("asked");
    let seen = asked.clone();
    let late = Step::hand_back().before(move || fs::write(&seen, "").unwrap()).delay(Duration::from_mins(10));
    let env = TestEnvironment::new(Wire::Chat, vec![late]);
    let running = env.start(&["delegate", "--json", "Work."]);
    assert!(wait_until(Duration::from_mins(2), || asked.exists()), "no request was sent");
    running.signal(Signal::KILL);
    env.finish(running);
    let wal = env.state().join("nisse.db-wal");
    assert!(wal.metadata().unwrap().len() > 0, "nothing is left in the write-ahead log");
    let run = on_a_read_only_place(&env, &env.state(), &["log", "--json"]);
    let listed = run.exits(0).json().pop().unwrap();
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 1, "{}", run.report());
}

#[test]
fn a_state_directory_on_another_file_system_is_as_good() {
    if lacks(Needs::FileSystems) {
        return;
    }
    let elsewhere = tempfile::tempdir_in(other_file_system().unwrap()).unwrap();
    for isolation in ISOLATIONS {
        let env = environment(vec![write()]);
        env.checkout.write("big.bin", vec![7; 100_000]).write("mine.txt", "unfinished\n");
        if isolation == "in-place" {
            env.checkout.commit("nothing is unfinished");
        }
        switches(&env);
        env.set("NISSE_STATE_DIR", elsewhere.path().join(isolation).to_str().unwrap());
        let result = env.delegate(&["--isolation", isolation], "Work.").ends(0, "handback");
        assert_eq!(env.on_branch(&result, "made.txt").unwrap(), b"made\n");
        assert_eq!(env.on_branch(&result, "mine.txt").unwrap(), b"unfinished\n");
        env.assert_checkout_unchanged();
        let task = result["task"].as_str().unwrap();
        env.run(&["apply", task]).exits(0);
        assert!(env.changed_paths().contains(&"made.txt".to_owned()));
    }
}

/// HEAD goes away and comes back, which its reflog tells.
fn switches(env: &TestEnvironment) {
    env.person_will_change(".git/logs/HEAD");
}
