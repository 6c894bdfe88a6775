//! Commands that wait for somebody, and output that is no text.

use std::{process::Stdio, time::Duration};

use serde_json::json;

use crate::support::{Script, Step, TestEnvironment, Wire};

fn command(line: &str) -> Step {
    Step::call("run_command", json!({"command": line}))
}

fn work() -> Step {
    Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}))
}

#[test]
fn nobody_waits_for_stdin() {
    for wire in Wire::BOTH {
        let script = || {
            vec![
                command("cat; echo after-cat"),
                command(r#"read x; echo "got:$x""#),
                command("if (: </dev/tty) 2>/dev/null; then echo a-terminal; else echo no-terminal; fi"),
                work(),
                Step::hand_back(),
            ]
        };
        for stdin in ["an open pipe without a writer", "nothing"] {
            let env = TestEnvironment::new(wire, script());
            let given = if stdin == "nothing" { Stdio::null() } else { Stdio::piped() };
            let running = env.start_with(&["delegate", "--json", "Run the three."], given);
            env.finish(running).ends(0, "handback");
            let answers = env.server.requests()[3].answers();
            assert!(answers[0].text.contains("after-cat"), "{stdin}: {answers:?}");
            assert!(answers[1].text.contains("got:"), "{stdin}: {answers:?}");
            assert!(answers[2].text.contains("no-terminal"), "{stdin}: {answers:?}");
        }
    }
}

#[test]
fn no_pager_starts_even_on_a_terminal() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(
            wire,
            vec![
                command("git log"),
                command("echo pager:$PAGER git:$GIT_PAGER; test -t 1 || echo no-terminal"),
                work(),
                Step::hand_back(),
            ],
        );
        for n in 1..=40 {
            env.checkout.commit(&format!("commit number {n}"));
        }
        env.checkout.git(&["config", "core.pager", "less -+F -+X"]);
        env.set("PAGER", "less").set("TERM", "xterm");
        env.finish(env.start_on_terminal(&["delegate", "Show the log."])).exits(0);
        let answers = env.server.requests()[2].answers();
        assert!(answers[0].text.contains("commit number 40"), "{answers:?}");
        assert!(
            answers[1].text.contains("pager:cat git:cat") && answers[1].text.contains("no-terminal"),
            "{answers:?}"
        );
    }
}

#[test]
fn bytes_that_are_no_text_lose_neither_output_nor_status() {
    for wire in Wire::BOTH {
        let noise = r"printf 'caf\351 ok-canary\n'; head -c 3000 /dev/urandom; exit 5";
        let split = r"printf '\303'; sleep 1; printf '\244 split-canary\n'";
        let env = TestEnvironment::new(wire, vec![command(noise), command(split), work(), Step::hand_back()]);
        env.delegate(&[], "Run it.").ends(0, "handback");
        let answers = env.server.requests()[2].answers();
        assert!(answers[0].text.contains("ok-canary") && answers[0].text.contains('5'), "{answers:?}");
        assert!(answers[1].text.contains("ä split-canary"), "{answers:?}");
    }
}

#[test]
fn a_child_left_in_the_background_holds_nothing_open() {
    for wire in Wire::BOTH {
        let script = Script::ByHistory(vec![command("sleep 600 & echo started"), work(), Step::hand_back()]);
        let env = TestEnvironment::new(wire, script);
        let start = std::time::Instant::now();
        env.delegate(&[], "Start it.").ends(0, "handback");
        assert!(start.elapsed() < Duration::from_mins(2), "the call waited for the child");
        assert!(env.server.requests()[1].last_answers()[0].text.contains("started"));
    }
}
