//! Every kind of repository, by the commands that a person types: delegate, log --diff, apply in each manner and back,
//! drop, doctor. What is the person's stays as it was.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use super::{
    ground::{Ground, without_ours},
    kinds::{Arrange, KINDS},
};
use crate::{
    patch::patch_in,
    support::{Run, Script, Step, TestEnvironment, Wire},
};

/// Adds, changes, moves and takes away; a file need not be there in a checkout that leaves it out.
const WORK: &str = r#"set -e
    printf 'new\r\n' > new.txt; mkdir -p deep; printf '\000\377' > deep/blob.raw; : > empty; printf 'x' > 'a "blank"'
    printf 'n\n' > "$(printf 'odd\377')"; printf 'of the task\n' > data.bin; ln -s a.txt newlink
    if [ -e src/main.c ]; then chmod +x src/main.c; printf 'no newline' >> src/main.c; fi
    if [ -h link ]; then mv link moved; fi
    if [ -e run.sh ]; then rm run.sh; ln -s a.txt run.sh; fi"#;

/// A repository of some kind, with nisse beside it.
struct Beside {
    ground: Ground,
    env: TestEnvironment,
}

impl Beside {
    fn new(arrange: Arrange) -> Self {
        let mut ground = Ground::new();
        arrange(&mut ground);
        // what the person's git would refresh in the index by itself, it has
        ground.git(&["status", "--porcelain"]);
        let away = Step::error(503, &[("retry-after", "86400")], "overloaded", "later");
        let script = Script::by_content(move |asked| match asked.replies() {
            0 => Step::call("run_command", json!({"command": WORK})),
            _ if asked.raw.contains("Rest after it.") => away.clone(),
            _ => Step::hand_back(),
        });
        let env = TestEnvironment::new(Wire::Chat, script);
        env.set("HOME", ground.home().to_str().unwrap()).set("GIT_CONFIG_NOSYSTEM", "1");
        Self { ground, env }
    }

    fn run(&self, arguments: &[&str]) -> Run {
        let root = self.ground.root.to_str().unwrap();
        self.env.run(&[&["-C", root], arguments].concat())
    }

    fn delegate(&self, isolation: &str, brief: &str) -> Run {
        self.run(&["delegate", "--json", "--isolation", isolation, brief])
    }

    fn status(&self) -> String {
        self.ground.git(&["--no-optional-locks", "status", "--porcelain", "--ignore-submodules=dirty"])
    }
}

fn word<'a>(document: &'a Value, name: &str) -> &'a str {
    document[name].as_str().unwrap_or_else(|| panic!("no {name}: {document}"))
}

/// The commit that a task started from.
fn snapshot(beside: &Beside, task: &str) -> String {
    let document = beside.run(&["log", "--json", task]).exits(0).json().pop().unwrap();
    let events = document["events"].as_array().unwrap();
    word(&events.iter().find(|event| event["event"] == "worktree_ready").unwrap()["data"], "snapshot").to_owned()
}

/// The patch of a task, on a clean checkout of what it started from, is the tree of its branch.
fn patch_rebuilds(beside: &Beside, kind: &str, task: &str, branch: &str) {
    let ground = &beside.ground;
    let clean = ground.top().join("state/clean");
    let bytes = patch_in(&beside.env, &ground.root, task);
    fs::create_dir_all(clean.parent().unwrap()).unwrap();
    fs::write(clean.with_extension("patch"), bytes).unwrap();
    let whole = ["-c", "core.sparseCheckout=false"];
    let place = clean.to_str().unwrap();
    ground.git(&[&whole[..], &["worktree", "add", "-q", "--detach", place, &snapshot(beside, task)]].concat());
    ground.git_in(&clean, &[&whole[..], &["apply", "--index", "../clean.patch"]].concat());
    let tree = ground.git(&["rev-parse", &format!("{branch}^{{tree}}")]);
    assert_eq!(ground.git_in(&clean, &["write-tree"]), tree, "{kind}: the patch");
    ground.git(&["worktree", "remove", "--force", place]);
}

/// Every file of the task's part is in the checkout as its branch has it.
fn is_brought(ground: &Ground, kind: &str, from: &str, branch: &str) {
    let changed = ground.git(&["-c", "core.quotePath=false", "diff", "--name-only", "--no-renames", from, branch]);
    let left_out = ground.git(&["-c", "core.quotePath=false", "ls-files", "-t"]);
    for path in changed.lines().filter(|path| !path.starts_with('"')) {
        let entry = ground.git(&["ls-tree", branch, "--", path]);
        let file = ground.root.join(path);
        let found = file.symlink_metadata().ok();
        let Some((mode, rest)) = entry.split_once(' ') else {
            assert!(found.is_none(), "{kind}: {path} is still there");
            continue;
        };
        if left_out.lines().any(|line| line.strip_prefix("S ") == Some(path)) {
            continue;
        }
        let found = found.unwrap_or_else(|| panic!("{kind}: {path} is not there"));
        let id = rest.split_whitespace().nth(1).unwrap();
        if mode == "120000" {
            let target = fs::read_link(&file).unwrap();
            assert_eq!(ground.git(&["cat-file", "blob", id]), target.to_str().unwrap(), "{kind}: {path}");
        } else {
            assert_eq!(ground.git(&["hash-object", "--", path]), id, "{kind}: {path}");
            assert_eq!(found.permissions().mode() & 0o100 != 0, mode == "100755", "{kind}: {path}");
        }
    }
    assert!(changed.lines().count() > 5, "{kind}: {changed}");
}

/// What was put back was written anew.
fn without_times(found: &[(String, String)]) -> Vec<(String, String)> {
    let timeless = |what: &String| match what.split(' ').collect::<Vec<_>>()[..] {
        ["file", mode, _, hash] => format!("file {mode} {hash}"),
        _ => what.clone(),
    };
    found.iter().map(|(path, what)| (path.clone(), timeless(what))).collect()
}

fn through(kind: &str, arrange: Arrange) {
    let beside = Beside::new(arrange);
    let ground = &beside.ground;
    let before = without_ours(ground);
    let compare = |step: &str, before: &[(String, String)], now: &[(String, String)]| {
        let changed: Vec<_> = now.iter().filter(|found| !before.contains(found)).collect();
        let gone: Vec<_> = before.iter().filter(|found| !now.contains(found)).collect();
        assert!(changed.is_empty() && gone.is_empty(), "{kind}, {step}: {changed:?} {gone:?}");
    };
    let unchanged = |step: &str| compare(step, &before, &without_ours(ground));
    let status = beside.status();

    let result = beside.delegate("worktree", "Rest after it.").ends(5, "interrupted");
    beside.run(&["drop", "--json", word(&result, "task")]).ends(0, "dropped");
    assert!(!ground.git(&["for-each-ref", "refs/heads"]).contains("refs/heads/nisse/"), "{kind}: a branch is left");
    unchanged("drop");

    let result = beside.delegate("worktree", "Work.").ends(0, "handback");
    let (task, branch) = (word(&result, "task"), word(&result, "branch"));
    unchanged("delegate");
    patch_rebuilds(&beside, kind, task, branch);
    unchanged("log --diff");
    for options in [&["doctor", "--json"][..], &["doctor", "--json", "--fix"]] {
        let report = beside.run(options).json().pop().unwrap();
        let checks = report["checks"].as_array().unwrap();
        let failed: Vec<_> = checks.iter().filter(|check| check["status"] == "failed").collect();
        assert!(failed.is_empty(), "{kind}: {failed:?}");
    }
    unchanged("doctor");
    assert!(ground.rev(branch).is_some(), "{kind}: work that is in no other branch is not cleared away");

    let from = snapshot(&beside, task);
    let run = beside.run(&["apply", "--json", task]);
    let how = word(&run.exits(0).json().pop().unwrap(), "how").to_owned();
    is_brought(ground, kind, &from, branch);
    if how == "files" {
        beside.run(&["apply", "--json", task, "--abort"]).exits(0);
        compare("apply --abort", &without_times(&before), &without_times(&without_ours(ground)));
        let run = beside.run(&["apply", "--json", task, "--squash"]);
        if kind == "no commit yet" {
            // all that the task changed is the person's own there, and not committed
            assert!(run.exits(6).stdout.contains("src/main.c (your own"), "{}", run.report());
        } else {
            assert_eq!(word(&run.exits(0).json().pop().unwrap(), "how"), "commits", "{kind}");
            is_brought(ground, kind, &from, branch);
        }
    } else {
        assert_eq!(how, "fast_forward", "{kind}");
    }
    assert_eq!(beside.status(), status, "{kind}: the person's own unfinished work is theirs, and nothing else is");
    ground.git(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn each_kind_goes_all_the_way() {
    for (kind, arrange) in KINDS.iter().step_by(2) {
        through(kind, *arrange);
    }
}

#[test]
fn each_other_kind_goes_all_the_way() {
    for (kind, arrange) in KINDS.iter().skip(1).step_by(2) {
        through(kind, *arrange);
    }
}
