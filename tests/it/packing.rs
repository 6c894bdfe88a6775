//! What turns leave in the person's object store: packed at the end of a task, bounded by a setting, named by the doctor.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use serde_json::json;

use crate::support::{Script, Step, TestEnvironment, Wire};

/// Bytes of the file that each turn changes.
const SIZE: usize = 3_000_000;
/// How many turns do.
const TURNS: usize = 8;

/// Bytes that do not compress, the same each time.
fn noise() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(next).take(SIZE / 8).flatten().collect()
}

/// A task whose turns change a large file a little, each.
pub(crate) fn large_turns() -> TestEnvironment {
    let change = |number: usize| {
        let line =
            format!("printf 'turn {number}' | dd of=big.bin bs=1 seek={} conv=notrunc status=none", number * 99_999);
        Step::call("run_command", json!({ "command": line }))
    };
    let steps = (1..=TURNS).map(change).chain([Step::hand_back()]).collect::<Vec<_>>();
    let env = TestEnvironment::new(Wire::Chat, steps);
    env.checkout.write("big.bin", noise()).commit("a large file");
    env.checkout.git(&["repack", "-q", "-d"]);
    env
}

fn below(directory: &Path, counts: &dyn Fn(&Path) -> bool) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path());
    let size = |path: std::path::PathBuf| match path.is_dir() {
        true => below(&path, counts),
        false if counts(&path) => path.metadata().unwrap().size(),
        false => 0,
    };
    entries.map(size).sum()
}

/// Bytes of objects that are files of their own.
pub(crate) fn loose_bytes(env: &TestEnvironment) -> u64 {
    let loose = |path: &Path| path.parent().is_some_and(|above| above.file_name().is_some_and(|name| name.len() == 2));
    below(&env.checkout.path().join(".git/objects"), &loose)
}

fn all_bytes(env: &TestEnvironment) -> u64 {
    below(&env.checkout.path().join(".git/objects"), &|_| true)
}

/// What the doctor says is kept.
fn kept(env: &TestEnvironment) -> Vec<String> {
    let report = env.run(&["doctor", "--json"]).json().pop().unwrap();
    let checks = report["checks"].as_array().unwrap().iter().filter(|check| check["subject"] == "kept");
    checks.map(|check| check["found"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn turns_that_change_a_large_file_take_little_when_the_task_has_ended() {
    let env = large_turns();
    let before = all_bytes(&env);
    let run = env.delegate(&[], "Change it.");
    let result = run.ends(0, "handback");
    let grown = all_bytes(&env) - before;
    // the file once more, and what differs
    assert!(grown < 2 * SIZE as u64, "{TURNS} turns on {SIZE} bytes left {grown}\n{}", run.report());
    assert!(run.stderr.contains("packed: 24 MB became 3 MB"), "{}", run.report());
    assert!(loose_bytes(&env) < 1_000_000);
    env.checkout.git(&["fsck", "--strict", "--no-dangling"]);
    let task = result["task"].as_str().unwrap();
    let turns = format!("refs/nisse/turns/{task}");
    assert_eq!(env.checkout.git(&["rev-list", "--count", &turns]), (TURNS + 2).to_string());
    assert_eq!(env.checkout.file_at(&turns, "big.bin"), env.on_branch(&result, "big.bin"));
    let told = kept(&env);
    let named = "refs/nisse/turns: the turns of finished tasks, one commit each (branch.keep_turns: 30d): 1 ref, ";
    assert!(told.len() == 1 && told[0].starts_with(named), "{told:?}");
}

#[test]
fn a_small_task_packs_nothing_and_says_nothing() {
    let write = Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}));
    let env = TestEnvironment::new(Wire::Chat, vec![write, Step::hand_back()]);
    let run = env.delegate(&[], "Make b.txt.");
    run.ends(0, "handback");
    assert!(!run.stderr.contains("pack"), "{}", run.report());
    assert_eq!(env.checkout.git(&["count-objects", "-v"]).lines().nth(3).unwrap(), "packs: 0");
}

#[test]
fn a_packing_that_fails_changes_nothing_of_the_task() {
    let env = large_turns();
    env.before_git(r#"case "$*" in *pack-objects*) echo no room >&2; exit 128;; esac"#);
    let run = env.delegate(&[], "Change it.");
    let result = run.ends(0, "handback");
    assert!(run.stderr.contains("could not pack the objects") && run.stderr.contains("no room"), "{}", run.report());
    env.checkout.git(&["fsck", "--strict", "--no-dangling"]);
    env.plain_git();
    let again = env.run(&["resume", "--json", result["task"].as_str().unwrap()]);
    again.ends(0, "handback");
    assert!(loose_bytes(&env) < 1_000_000, "{}", again.report());
}

#[test]
fn the_oldest_turns_go_first_where_a_size_bounds_them() {
    let write = |name: &str| Step::call("write_file", json!({"path": name, "content": format!("{name}\n")}));
    let steps = vec![write("b.txt"), write("c.txt"), Step::hand_back()];
    let env = TestEnvironment::new(Wire::Chat, Script::ByHistory(steps));
    let begin = |brief: &str| env.delegate(&[], brief).ends(0, "handback")["task"].as_str().unwrap().to_owned();
    let there = |task: &str| env.checkout.has_ref(&format!("refs/nisse/turns/{task}"));
    let first = begin("Make them.");
    let second = begin("Make them again.");
    let sizes = kept(&env);
    assert!(sizes[0].contains("2 refs"), "{sizes:?}");
    // enough for all
    env.set("NISSE_BRANCH_KEEP_TURNS", "50MB");
    let third = begin("And again.");
    assert!(there(&first) && there(&second) && there(&third));
    // each holds at least a commit that nothing else does
    env.set("NISSE_BRANCH_KEEP_TURNS", "1B");
    let fourth = begin("Once more.");
    assert!(!there(&first) && !there(&second) && !there(&third) && there(&fourth));
}

#[test]
fn turns_are_kept_for_as_long_as_the_setting_says() {
    let write = || Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}));
    for (keep, stays) in [("7d", false), ("60d", true)] {
        let env = TestEnvironment::new(Wire::Chat, vec![write(), Step::hand_back(), Step::give_up(), Step::give_up()]);
        env.configure(&format!("[branch]\nkeep_turns = \"{keep}\"\n"));
        let task = env.delegate(&[], "Make b.txt.").ends(0, "handback")["task"].as_str().unwrap().to_owned();
        env.set("NISSE_TEST_CLOCK", crate::leftovers::LATER);
        env.delegate(&[], "Do nothing.").ends(3, "failed");
        assert_eq!(env.checkout.has_ref(&format!("refs/nisse/turns/{task}")), stays, "{keep}");
    }
}
