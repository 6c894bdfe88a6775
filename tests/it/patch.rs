//! `nisse log --diff`: what a task changed, for a reader and as a patch that rebuilds it.

use std::{fs, io::Write as _, path::Path, process::Command};

use serde_json::json;

use crate::support::{Step, TestEnvironment, Wire};

const LINE: &str = r#"set -e; printf 'one\nTWO\n' > a.txt; printf '\000\001\377' > blob.bin; : > empty; rm gone.txt
    mv old.txt 'new name.txt'; chmod +x run.sh; ln -sf a.txt link; printf 'caf\351\n' > latin.txt
    printf 'n\n' > "$(printf 'odd\377name')"; printf 'no newline' > last; rm -r dir; printf 'f\n' > dir"#;

fn a_task() -> (TestEnvironment, String) {
    let env =
        TestEnvironment::new(Wire::Chat, vec![Step::call("run_command", json!({"command": LINE})), Step::hand_back()]);
    env.checkout.write("a.txt", "one\ntwo\n").write("gone.txt", "g\n").write("run.sh", "true\n").write("dir/a", "a\n");
    env.checkout.write("old.txt", "1\n2\n3\n4\n5\n6\n7\n8\n").link("run.sh", "link").commit("kinds");
    env.checkout.write("mine.txt", "unfinished\n");
    let result = env.delegate(&[], "Change everything.").ends(0, "handback");
    let task = result["task"].as_str().unwrap().to_owned();
    (env, task)
}

/// What `nisse log TASK --diff` writes, byte for byte.
fn patch(env: &TestEnvironment, task: &str) -> Vec<u8> {
    patch_in(env, env.checkout.path(), task)
}

/// The same in another checkout.
pub(crate) fn patch_in(env: &TestEnvironment, checkout: &Path, task: &str) -> Vec<u8> {
    let state = format!("--state-dir={}", env.state().display());
    let output = Command::new(env!("CARGO_BIN_EXE_nisse"))
        .args(["log", task, "--diff", &state])
        .current_dir(checkout)
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn the_patch_rebuilds_exactly_the_same_files() {
    let (env, task) = a_task();
    let document = env.run(&["log", "--json", &task]).json().pop().unwrap();
    let snapshot =
        document["events"].as_array().unwrap().iter().find(|event| event["event"] == "worktree_ready").unwrap();
    let snapshot = snapshot["data"]["snapshot"].as_str().unwrap();
    env.person(|checkout| {
        for (key, value) in [
            ("diff.noprefix", "true"),
            ("diff.external", "false"),
            ("diff.renames", "false"),
            ("color.ui", "always"),
            ("diff.mnemonicPrefix", "true"),
            ("core.quotePath", "false"),
            ("diff.context", "0"),
        ] {
            checkout.git(&["config", key, value]);
        }
        fs::write(checkout.path().join(".git/info/attributes"), "* diff=none\n*.txt -diff\n").unwrap();
        checkout.git(&["config", "diff.none.textconv", "false"]);
    });
    let bytes = patch(&env, &task);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    assert!(text.contains("rename from old.txt") && text.contains("GIT binary patch"), "{text}");
    assert!(!text.contains("mine.txt"), "the person's unfinished work is not the task's");

    let clean = env.root().join("clean");
    let git = |args: &[&str]| {
        let output =
            Command::new("git").args(args).current_dir(&clean).env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    fs::create_dir(&clean).unwrap();
    git(&["clone", "-q", "--no-local", env.checkout.path().to_str().unwrap(), "."]);
    git(&["fetch", "-q", "origin", "+refs/heads/*:refs/remotes/origin/*"]);
    git(&["checkout", "-q", snapshot]);
    fs::File::create(env.root().join("task.patch")).unwrap().write_all(&bytes).unwrap();
    git(&["apply", "--index", env.root().join("task.patch").to_str().unwrap()]);
    let branch = env.checkout.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/nisse"]);
    assert_eq!(git(&["write-tree"]), env.checkout.git(&["rev-parse", &format!("{branch}^{{tree}}")]));
    env.assert_checkout_unchanged();
}

#[test]
fn a_terminal_gets_colours_and_a_program_a_document() {
    let (env, task) = a_task();
    env.set("TERM", "xterm");
    let coloured = env.finish(env.start_on_terminal(&["log", &task, "--diff"]));
    assert!(
        coloured.stdout.contains("\u{1b}[32m+TWO") && coloured.stdout.contains("a binary file"),
        "{}",
        coloured.report()
    );
    let always = env.run(&["log", &task, "--diff", "--color", "always"]);
    assert!(always.exits(0).stdout.contains("\u{1b}[32m+TWO"), "{}", always.report());
    let document = env.run(&["log", &task, "--diff", "--json"]).exits(0).json().pop().unwrap();
    assert_eq!(document["type"], "diff");
    assert!(document["files"].as_array().unwrap().contains(&json!("a.txt")), "{document}");
    assert!(document["patch"].is_null(), "a patch that is no UTF-8 is no string");
}

#[test]
fn a_discarded_task_has_its_diff_too_and_one_that_never_stood_has_none() {
    let env = TestEnvironment::new(
        Wire::Chat,
        vec![Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})), Step::give_up()],
    );
    let result = env.delegate(&[], "Do it.").ends(3, "failed");
    let task = result["task"].as_str().unwrap().to_owned();
    assert!(String::from_utf8(patch(&env, &task)).unwrap().contains("+b\n"));
    env.run(&["log", "--diff"]).exits(2);
    // the commits are gone: a clear error
    env.person(|checkout| {
        checkout.git(&["update-ref", "-d", &format!("refs/nisse/discarded/{task}")]);
        checkout.git(&["gc", "-q", "--prune=now"]);
    });
    let run = env.run(&["log", "--json", &task, "--diff"]);
    run.exits(2);
    assert!(run.stdout.contains("no_such_commit"), "{}", run.report());
}
