//! `nisse demo` on a machine where nothing is set up.

use std::{fs, path::PathBuf, process::Command};

use serde_json::Value;

/// Runs the demo with an empty home and a temporary directory of its own; output, errors, and what it left.
fn demo(options: &[&str], variables: &[(&str, &str)]) -> (String, String, PathBuf, tempfile::TempDir) {
    let temp = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_nisse"));
    command.arg("demo").args(options).current_dir(temp.path()).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", "/nonexistent").env("TMPDIR", temp.path());
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}\n{stderr}");
    let left = fs::read_dir(temp.path()).unwrap().next().expect("a directory is left").unwrap().path();
    (stdout, stderr, left, temp)
}

#[test]
fn it_mends_a_bug_and_shows_branch_note_and_diff() {
    // a configured proxy and a system proxy that do not exist: neither is asked
    let elsewhere = [
        ("NISSE_LLM_BASE_URL", "http://127.0.0.1:9"),
        ("NISSE_DELEGATE_MAX_TURNS", "1"),
        ("HTTP_PROXY", "http://127.0.0.1:9"),
        ("http_proxy", "http://127.0.0.1:9"),
    ];
    let (stdout, stderr, left, _temp) = demo(&[], &elsewhere);
    for part in ["branch     nisse/", "now true   `sh test.sh` prints ok", "+echo $((sum / $#))", "clean up   rm -rf "]
    {
        assert!(stdout.contains(part), "{part:?} is missing:\n{stdout}");
    }
    for part in [
        "failed with status 1",
        "│ mean of '': got an error, wanted 0",
        "`sh test.sh` passed",
        "turn 6/30",
        "\nOnce more, and now I look.\nturn 5/30",
    ] {
        assert!(stderr.contains(part), "{part:?} is missing:\n{stderr}");
    }
    // what it says to do works, and the branch holds what it says
    let branch = stdout.lines().find_map(|line| line.strip_prefix("branch     ")).unwrap();
    let repo = left.join("repo");
    let git = |args: &[&str]| Command::new("git").arg("-C").arg(&repo).args(args).output().unwrap().stdout;
    assert!(!git(&["log", "-p", branch]).is_empty());
    git(&["checkout", "--quiet", branch]);
    assert!(Command::new("sh").arg("test.sh").current_dir(&repo).status().unwrap().success());
    git(&["checkout", "--quiet", "main"]);
    assert!(!Command::new("sh").arg("test.sh").current_dir(&repo).status().unwrap().success());
    for what in ["story      nisse ", "apply      nisse "] {
        let line = stdout.lines().find_map(|line| line.strip_prefix(what)).unwrap();
        let told = Command::new(env!("CARGO_BIN_EXE_nisse")).args(line.split(' ')).output().unwrap();
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    }
    assert!(Command::new("sh").arg("test.sh").current_dir(&repo).status().unwrap().success());
}

#[test]
fn it_speaks_json() {
    let (stdout, _, _, _temp) = demo(&["--json"], &[]);
    let lines: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let result = lines.last().unwrap();
    assert_eq!(
        (&result["type"], &result["outcome"], &result["turns"]),
        (&"result".into(), &"handback".into(), &6.into())
    );
    assert_eq!(lines[0]["task"], result["task"]);
}
