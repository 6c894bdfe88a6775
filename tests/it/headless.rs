//! Machines and pipes without a person: no terminal, no home, readers that go away, several signals, files that are no
//! text.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
    time::Duration,
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Needs, Script, Step, TestEnvironment, Wire, is_alive, lacks, wait_until};

const SOON: Duration = Duration::from_mins(1);

fn job() -> Vec<Step> {
    vec![Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})), Step::hand_back()]
}

/// A world whose model is silent in the second turn, and the file that says that it was asked.
fn silent_model() -> (TestEnvironment, tempfile::TempDir, std::path::PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let asked = scratch.path().join("asked");
    let mark = asked.clone();
    let script = Script::by_content(move |request| {
        if request.replies() == 0 {
            return job().remove(0);
        }
        let mark = mark.clone();
        Step::hand_back().before(move || fs::write(&mark, "").unwrap()).delay(Duration::from_mins(10))
    });
    (TestEnvironment::new(Wire::Chat, script), scratch, asked)
}

#[test]
fn a_reader_that_goes_away_changes_neither_work_nor_status() {
    for line in [
        "\"$@\" --json | true; exit ${PIPESTATUS[0]}",
        "\"$@\" --json >&-",
        "\"$@\" >&- 2>&- <&-",
        "\"$@\" --json 2>&1 | head -n 1 >/dev/null; exit ${PIPESTATUS[0]}",
    ] {
        let env = TestEnvironment::new(Wire::Chat, job());
        let nisse = env!("CARGO_BIN_EXE_nisse");
        env.run_program("bash", &["-c", line, "bash", nisse, "delegate", "Make b.txt."]).exits(0);
        let log = env.run(&["log", "--json"]).exits(0).json().remove(0);
        assert_eq!(log["tasks"][0]["outcome"], "handback", "{line}: {log}");
    }
}

#[test]
fn a_second_signal_ends_it_at_once_with_the_way_on_in_words_and_json() {
    // the command ignores TERM, so that the first signal needs its two seconds
    let scratch = tempfile::tempdir().unwrap();
    let pid_file = scratch.path().join("pid");
    let command =
        format!("trap '' TERM INT; echo $$ > {0}.new; mv {0}.new {0}; while :; do sleep 1; done", pid_file.display());
    let steps = vec![job().remove(0), Step::call("run_command", json!({"command": command})), Step::hand_back()];
    let env = TestEnvironment::new(Wire::Chat, Script::ByHistory(steps));
    let running = env.start(&["delegate", "--json", "Make b.txt."]);
    assert!(wait_until(SOON, || pid_file.exists()), "the command did not begin");
    running.signal(Signal::INT);
    running.signal(Signal::TERM);
    let run = env.finish(running);
    run.exits(7);
    let last = run.json().pop().unwrap();
    assert_eq!((&last["type"], &last["exit"], &last["error"]["kind"]), (&json!("error"), &json!(7), &json!("stopped")));
    let way_on = format!("nisse resume {}", &last["task"].as_str().unwrap()[24..]);
    assert!(
        run.stderr.contains(&way_on) && last["error"]["hint"].as_str().unwrap().contains(&way_on),
        "{}",
        run.report()
    );
    let pid: i32 = fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
    assert!(wait_until(SOON, || !is_alive(pid)), "the command lives on");
}

#[test]
fn the_first_and_the_last_line_name_the_task_and_resume_takes_the_name() {
    let (env, _scratch, asked) = silent_model();
    let running = env.start(&["delegate", "--json", "Make b.txt."]);
    assert!(wait_until(SOON, || asked.exists()));
    running.signal(Signal::HUP);
    let run = env.finish(running);
    let stopped = run.ends(7, "stopped");
    assert_eq!(run.json()[0]["task"], stopped["task"]);
    let followed = env.run(&["log", "--follow", stopped["task"].as_str().unwrap(), "--json"]);
    let lines = followed.exits(0).json();
    assert_eq!(lines.last().unwrap()["event"], "task_paused", "it ends where the task rests");
    assert!(lines.iter().all(|line| line["type"] == "event"));
}

#[test]
fn a_task_is_followed_from_another_process_until_it_rests() {
    let (env, _scratch, asked) = silent_model();
    let running = env.start(&["delegate", "--json", "Make b.txt."]);
    assert!(wait_until(SOON, || asked.exists()));
    let task = env.run(&["log", "--json"]).json()[0]["tasks"][0]["task"].as_str().unwrap().to_owned();
    let follower = env.start(&["log", "--follow", &task]);
    std::thread::sleep(Duration::from_millis(500)); // it has told what there is, and waits
    running.signal(Signal::TERM);
    env.finish(running).exits(7);
    let told = env.finish(follower);
    told.exits(0);
    for part in ["turn 2", "stopped: ", &format!("nisse resume {}", &task[24..])] {
        assert!(told.stdout.contains(part), "{part:?} is missing\n{}", told.report());
    }
    env.run(&["log", "--follow"]).exits(2);
    env.run(&["log", "--follow", "no-such-task"]).exits(2);
}

#[test]
fn without_a_home_it_works_where_a_state_directory_is_named_and_else_says_so() {
    let env = TestEnvironment::new(Wire::Chat, job());
    for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"] {
        env.set(name, "relative/directories/count/as/none");
    }
    // not even root makes a directory in /proc
    for home in ["/nonexistent", "/proc"] {
        env.set("HOME", home);
        for command in ["models", "doctor"] {
            env.run(&[command]).exits(0);
        }
    }
    env.delegate(&[], "Make b.txt.").ends(0, "handback");
    env.unset("NISSE_STATE_DIR");
    let run = env.delegate(&[], "Make b.txt.");
    let last = run.exits(1).json().pop().unwrap();
    assert!(run.stderr.contains("/proc/.local/state/nisse"), "the path is not named\n{}", run.report());
    assert!(last["error"]["hint"].as_str().unwrap().contains("--state-dir"), "{last}");
    env.run(&["log"]).exits(0);
}

/// As in a container: nisse's session and group began outside of its process namespace, so the kernel calls both 0.
#[cfg(target_os = "linux")]
#[test]
fn in_a_process_namespace_of_its_own_commands_run_and_leave_nothing() {
    if lacks(Needs::Namespaces) {
        return;
    }
    let namespace = ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"];
    let line = "(setsid sleep 600 &) ; echo \"$$ $(cut -d' ' -f6 /proc/1/stat)\" > b.txt";
    let steps = vec![Step::call("run_command", json!({"command": line})), Step::hand_back()];
    let env = TestEnvironment::new(Wire::Chat, steps);
    let nisse = env!("CARGO_BIN_EXE_nisse");
    let run = env.run_program("unshare", &[&namespace[..], &[nisse, "delegate", "--json", "Make b.txt."]].concat());
    let result = run.ends(0, "handback");
    let numbers = String::from_utf8(env.on_branch(&result, "b.txt").unwrap()).unwrap();
    assert_eq!(numbers.trim().rsplit(' ').next(), Some("0"), "{numbers}: this is no namespace of its own");
}

#[test]
fn help_and_version_touch_nothing() {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let pages: [&[&str]; 6] =
        [&["--version"], &["--help"], &["-h"], &["help", "delegate"], &["completions", "bash"], &["man", "log"]];
    for arguments in pages {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nisse"));
        command.args(arguments).current_dir(place.path()).env_clear().env("HOME", "/nonexistent");
        // settings that could not be read would be an error of every other command
        command.env("NISSE_CONFIG", "/nonexistent/config.toml").env("NISSE_NONSENSE", "1").stdin(Stdio::null());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{arguments:?}");
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn several_pending_tasks_without_a_terminal_are_a_question_that_is_not_asked() {
    let (env, _scratch, asked) = silent_model();
    for brief in ["Make b.txt.", "Make b.txt, please."] {
        let running = env.start(&["delegate", "--json", brief]);
        assert!(wait_until(SOON, || asked.exists()));
        fs::remove_file(&asked).unwrap();
        running.signal(Signal::TERM);
        env.finish(running).exits(7);
    }
    for options in [&["resume"][..], &["resume", "--no-input"], &["resume", "--json"]] {
        let run = env.run(options);
        assert!(run.exits(6).stderr.contains("nisse resume <TASK>"), "{}", run.report());
    }
}

#[test]
fn json_is_alone_on_stdout_and_no_escape_sequence_reaches_a_file() {
    let escapes = Step::text("\u{1b}[31mred\u{1b}[0m \u{2028}")
        .and_call("run_command", json!({"command": "printf '\\033[31mred\\033[0m\\r\\n'"}));
    for options in [&["delegate", "--json", "Make b.txt."][..], &["delegate", "-v", "Make b.txt."]] {
        let mut steps = job();
        steps.insert(0, escapes.clone());
        let env = TestEnvironment::new(Wire::Chat, steps);
        env.set("TERM", "xterm-256color").set("RUST_LOG", "debug").set("CLICOLOR_FORCE", "0");
        let run = env.run(options);
        run.exits(0);
        for (stream, text) in [("stdout", &run.stdout), ("stderr", &run.stderr)] {
            assert!(!text.contains('\u{1b}') && !text.contains('\r'), "{stream}\n{}", run.report());
        }
        if options.contains(&"--json") {
            let objects: Vec<Value> = run.json();
            assert_eq!(objects.last().unwrap()["type"], "result");
        }
    }
}

#[test]
fn instructions_that_cannot_be_told_whole_are_named_to_the_person() {
    let env = TestEnvironment::new(Wire::Chat, job());
    let root = env.checkout.path();
    fs::write(root.join("AGENTS.md"), b"Use tabs.\nQuote: \x93x\x94\n").unwrap();
    fs::create_dir(root.join("CLAUDE.md")).unwrap();
    fs::write(root.join("CLAUDE.md/keep"), "").unwrap();
    std::os::unix::fs::symlink("missing", root.join("CONTRIBUTING.md")).unwrap();
    env.checkout.commit("instructions");
    let run = env.delegate(&[], "Make b.txt.");
    let result = run.ends(0, "handback");
    assert!(env.server.requests()[0].last_told().contains("Use tabs."), "what can be read is told");
    for (name, why) in [("AGENTS.md", "not UTF-8"), ("CLAUDE.md", "no file"), ("CONTRIBUTING.md", "No such file")] {
        let told = |text: &str| text.contains(name) && text.contains(why);
        assert!(run.stderr.lines().any(told), "{name}\n{}", run.report());
        assert!(result["notices"].as_array().unwrap().iter().any(|notice| told(notice.as_str().unwrap())), "{result}");
    }
}
