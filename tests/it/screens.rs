//! The first screens that a person sees, as they are seen: on terminals of 80 and of 120 columns.
//!
//! A changed screen shows up here, to be looked at: `cargo insta review`, and as a picture where colours are concerned.

use std::{path::Path, time::Duration};

use anstream::adapter::strip_str;
use regex::Regex;
use serde_json::json;
use unicode_width::UnicodeWidthStr as _;

use crate::support::{Script, Step, TestEnvironment, Wire, wait_until};

const SOON: Duration = Duration::from_mins(1);

/// Tasks by their briefs: one that is handed back, one whose check fails, one that is interrupted.
fn script() -> Script {
    Script::by_content(|asked| match asked.replies() {
        0 => Step::text("I write the file.").and_call("write_file", json!({"path": "b.txt", "content": "b\n"})),
        1 if asked.raw.contains("Go wrong") => Step::call("run_command", json!({"command": "set -e\nls *.txt\nfalse"})),
        1 if asked.raw.contains("Wait") => {
            Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded.")
        }
        _ => {
            let changed =
                "b.txt holds one line, b. It was made anew, since there was none, and nothing else was changed.";
            let note = json!({"changed": changed, "now_true": "`cat b.txt` prints b.\n`wc -l b.txt` says 1.",
                "next": "nothing", "succeeded": true});
            Step::call("hand_back", note)
        }
    })
}

/// Where a line is folded depends on how long the names of directories are.
const PLACE: &str = "/tmp";

const GOOD: &str = "00000000-0000-7000-8000-000000000100";
const UNCHECKED: &str = "00000000-0000-7000-8000-000000000200";
const FAILED: &str = "00000000-0000-7000-8000-000000000300";

/// A world in which four tasks have been.
fn world() -> TestEnvironment {
    let env = TestEnvironment::within(Path::new(PLACE), Wire::Chat, script());
    env.set("TERM", "xterm-256color").set("TZ", "UTC");
    let brief = "Make b.txt hold one line, b, and see with wc that it is one line and no more than that";
    env.delegate(&["--check", "grep -qx b b.txt"], brief).ends(0, "handback");
    env.delegate(&[], "Make b.txt, please.\n\nIt is wanted soon.").ends(0, "handback");
    let checks = [
        "--check",
        "true",
        "--check",
        "cat b.txt\necho b.txt:1: this is not what was asked for",
        "--check",
        "make lint",
    ];
    let failing =
        [&checks[..3], &["cat b.txt\necho b.txt:1: this is not what was asked for\nexit 4"], &checks[4..]].concat();
    env.delegate(&failing, "Go wrong.").ends(3, "failed");
    env.delegate(&[], "Wait for the rate limit.").ends(5, "interrupted");
    env
}

/// What stays on the screen: on a busy machine a live line, or a word on what is waited for, stands there for a moment.
fn settled(output: &str) -> String {
    let live = Regex::new(r"\r[^\r\n]*\x1b\[J\r?").unwrap();
    live.replace_all(output, "").replace('\r', "").replace("waiting for the proxy, 10 s at most\n", "")
}

/// What a screen of so many columns shows, without what differs from run to run.
fn screen(env: &TestEnvironment, columns: usize, exit: i32, arguments: &[&str]) -> String {
    let run = env.run_on_screen(columns, arguments);
    run.exits(exit);
    let shown = settled(&run.stdout);
    for line in shown.lines() {
        let line = strip_str(line).to_string();
        assert!(line.width() <= columns, "{columns} columns, and a line has {}: {line}", line.width());
    }
    let shown = shown.replace(env.root().to_str().unwrap(), "ROOT").replace(&env.server.url(), "http://127.0.0.1:PORT");
    let redacted = [
        (r"after \d+ m?s", "after TIME"),
        (r"SQLite [\d.]+", "SQLite VERSION"),
        (r"(git\S* +)\d+\.[\w.]+( \([^)]*\))?", "${1}VERSION"),
    ];
    let redact = |text: String, (what, by): (&str, &str)| Regex::new(what).unwrap().replace_all(&text, by).into_owned();
    let shown = redacted.into_iter().fold(shown, redact);
    format!("$ nisse {}\n{shown}\n", arguments.join(" "))
}

/// The screens, one after the other; what each one's end is.
fn all(env: &TestEnvironment, columns: usize) -> String {
    let screens: [(i32, &[&str]); 9] = [
        (0, &["doctor"]),
        (0, &["models"]),
        (0, &["log"]),
        (0, &["log", "-n", "1"]),
        (0, &["log", FAILED]),
        (0, &["resume", GOOD]),
        (0, &["resume", UNCHECKED]),
        (3, &["resume", FAILED]),
        (2, &["resume", "no-such-task"]),
    ];
    screens.into_iter().map(|(exit, arguments)| screen(env, columns, exit, arguments)).collect()
}

#[test]
fn they_fit_and_say_what_is_needed_in_80_and_in_120_columns() {
    let env = world();
    env.run(&["apply", GOOD]).exits(0);
    env.person(|_| {});
    for columns in [80, 120] {
        let shown = strip_str(&all(&env, columns)).to_string();
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(format!("screens_{columns}"), shown);
        });
    }
    // what stops a run is said last, and all of the doctor is on the screen
    env.set("NISSE_ROLE_DELEGATE", "case-modle");
    let doctor = strip_str(&screen(&env, 80, 2, &["doctor"])).to_string();
    assert!(doctor.lines().count() <= 24 && doctor.trim_end().ends_with("not ready: 1 problem, 1 warning"), "{doctor}");
}

#[test]
fn what_is_written_and_what_is_trusted_fits_too() {
    let env = TestEnvironment::within(Path::new(PLACE), Wire::Chat, Vec::new());
    env.set("TERM", "xterm-256color").unset("NISSE_ROLE_DELEGATE").may_add("nisse.toml");
    let check = "cargo test --locked --all-targets --all-features -- --include-ignored --test-threads 1";
    let project = format!("[check]\ncommands = [\"make lint\", {check:?}]\n[worktree]\nsetup = \"npm ci\"\n");
    for columns in [80, 120] {
        let _ = std::fs::remove_dir_all(env.root().join("home/config"));
        env.person(|checkout| drop(std::fs::remove_file(checkout.path().join("nisse.toml"))));
        let told = |exit, arguments: &[&str]| screen(&env, columns, exit, arguments);
        let mut shown = told(0, &["init", "--no-input"]) + &told(0, &["init", "--no-input"]) + &told(0, &["trust"]);
        env.person(|checkout| std::fs::write(checkout.path().join("nisse.toml"), &project).unwrap());
        shown += &told(0, &["trust"]);
        shown += &told(0, &["trust", "--revoke"]);
        shown += &told(2, &["delegate", "--no-input", "Make b.txt."]);
        let asked = |arguments: &[&str], question: &str| {
            let sized = |line: &str| format!("stty cols {columns} rows 24; {line}");
            let run = env.run_within_with_keys(sized, arguments, &[(question, "\u{1b}")]);
            let shown = strip_str(&settled(&run.stdout)).to_string();
            for line in shown.lines() {
                assert!(line.width() <= columns, "{columns} columns, and a line has {}: {line}", line.width());
            }
            format!("$ nisse {}\n{}", arguments.join(" "), shown.replace(env.root().to_str().unwrap(), "ROOT"))
        };
        std::fs::remove_dir_all(env.root().join("home/config")).unwrap();
        shown += &asked(&["init"], "Model for tasks");
        shown += &asked(&["delegate", "Make b.txt."], "Trust this file");
        let shown = strip_str(&shown).to_string();
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(format!("screens_settings_{columns}"), shown);
        });
    }
}

#[test]
fn colours_tell_how_it_went() {
    let env = world();
    let screens = [
        screen(&env, 80, 0, &["log"]),
        screen(&env, 80, 0, &["resume", GOOD]),
        screen(&env, 80, 0, &["resume", UNCHECKED]),
        screen(&env, 80, 3, &["resume", FAILED]),
        screen(&env, 80, 2, &["resume", "no-such-task"]),
    ];
    let shown = screens.concat().replace('\u{1b}', "␛");
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("screens_colours", shown);
    });
}

#[test]
fn whoever_resumes_is_told_which_task_it_is_and_where_it_stopped() {
    let env = world();
    let run = env.run(&["resume"]);
    let shown = &run.exits(5).stderr;
    for part in
        ["resuming 000000000400", "branch   nisse/000000000400-wait", "brief    Wait for the", "found    interrupted: "]
    {
        assert!(shown.contains(part), "{part:?} is missing:\n{shown}");
    }
    let quiet = env.run(&["resume", "-q"]);
    assert!(!quiet.stderr.contains("resuming"), "{}", quiet.report());
}

#[test]
fn a_task_that_runs_is_told_from_one_that_was_cut_off_and_is_not_offered() {
    let scratch = tempfile::tempdir().unwrap();
    let asked = scratch.path().join("asked");
    let mark = asked.clone();
    let script = Script::by_content(move |_| {
        let mark = mark.clone();
        Step::hand_back().before(move || std::fs::write(&mark, "").unwrap()).delay(Duration::from_mins(10))
    });
    let env = TestEnvironment::within(Path::new(PLACE), Wire::Chat, script);
    let cut = env.start(&["delegate", "Make b.txt."]);
    assert!(wait_until(SOON, || asked.exists()));
    cut.signal(rustix::process::Signal::KILL);
    env.finish(cut);
    std::fs::remove_file(&asked).unwrap();
    let running = env.start(&["delegate", "Make it."]);
    assert!(wait_until(SOON, || asked.exists()));
    let log = env.run(&["log"]);
    let lines: Vec<&str> = log.exits(0).stdout.lines().collect();
    assert!(lines[0].contains("  cut off  ") && lines[1].contains("  running  "), "{}", log.report());
    let listed = env.run(&["log", "--json"]).json().remove(0);
    assert_eq!((&listed["tasks"][0]["running"], &listed["tasks"][1]["running"]), (&json!(false), &json!(true)));
    // the one that was cut off is the only one to resume: nothing is asked
    std::fs::remove_file(&asked).unwrap();
    let resumed = env.start(&["resume"]);
    assert!(wait_until(SOON, || asked.exists()));
    // and when that runs too, whoever works on it is named
    let held = env.run(&["resume"]);
    assert!(held.exits(1).stderr.contains("is in use by process"), "{}", held.report());
    for run in [running, resumed] {
        run.signal(rustix::process::Signal::TERM);
        let ended = env.finish(run);
        ended.exits(7);
        if ended.command.ends_with("'resume'") {
            assert!(ended.stderr.contains("found    cut off while it waited for turn 1"), "{}", ended.report());
        }
    }
}
