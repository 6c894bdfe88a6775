//! Output that cannot be written: a reader that went away is no failure, a full disk is one.

use serde_json::json;

use crate::support::{Step, TestEnvironment, Wire};

fn steps() -> Vec<Step> {
    vec![Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})), Step::hand_back()]
}

#[test]
fn a_full_disk_is_told_and_is_no_success_though_the_work_is_kept() {
    let nisse = env!("CARGO_BIN_EXE_nisse");
    let env = TestEnvironment::new(Wire::Chat, steps());
    for arguments in [
        "delegate --json 'Make b.txt.'",
        "log --json",
        "log",
        "models --json",
        "models",
        "doctor",
        "completions bash",
        "man",
        "--help",
        "--version",
    ] {
        let run = env.run_program("sh", &["-c", &format!("exec '{nisse}' {arguments} > /dev/full")]);
        assert_eq!(run.code(), Some(1), "{arguments}\n{}", run.report());
        assert!(run.stderr.contains("cannot write the output to stdout"), "{arguments}\n{}", run.report());
    }
    let branches = env.checkout.git(&["for-each-ref", "--format=%(refname)", "refs/heads/nisse"]);
    assert_eq!(branches.lines().count(), 1, "the work is kept: {branches}");
}

#[test]
fn a_reader_that_went_away_ends_nothing() {
    let nisse = env!("CARGO_BIN_EXE_nisse");
    let env = TestEnvironment::new(Wire::Chat, steps());
    let line = format!("{{ '{nisse}' delegate --json 'Make b.txt.'; echo \"status $?\" >&2; }} | head -1");
    let run = env.run_program("sh", &["-c", &line]);
    assert!(run.stderr.contains("status 0") && !run.stderr.contains("panicked"), "{}", run.report());
    assert!(!env.checkout.git(&["for-each-ref", "refs/heads/nisse"]).is_empty());
}
