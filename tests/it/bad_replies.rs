//! Replies without a call that can be run: each is told to the model, the third in a row fails the task.

use serde_json::json;

use crate::support::{Script, Step, TestEnvironment, Wire};

/// A reply that holds no runnable call.
type Bad = (&'static str, fn() -> Step);

const BAD: [Bad; 6] = [
    ("prose", || Step::text("I will look at the file first.")),
    ("nothing", Step::empty),
    ("blanks", || Step::text(" \n\t ")),
    ("reasoning only", || Step::empty().thinking("I should write the file.", "sig==")),
    ("an unoffered tool", || Step::call("execute_python", json!({"code": "1"}))),
    ("unreadable arguments", || Step::raw_call("read_file", r#"{"path": "#)),
];

#[test]
fn three_bad_replies_in_a_row_fail_the_task() {
    for wire in Wire::BOTH {
        for (what, bad) in BAD {
            let env = TestEnvironment::new(wire, vec![bad(), bad(), bad()]);
            let run = env.delegate(&[], "Make b.txt.");
            let result = run.ends(3, "failed");
            assert_eq!(env.server.requests().len(), 3, "{wire:?}, {what}");
            env.assert_discarded(&result);
        }
    }
}

#[test]
fn a_good_call_forgives_the_bad_replies_before_it() {
    for wire in Wire::BOTH {
        for (what, bad) in BAD {
            let good = Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}));
            let env = TestEnvironment::new(wire, vec![bad(), bad(), good, bad(), bad(), Step::hand_back()]);
            let run = env.delegate(&[], "Make b.txt.");
            run.ends(0, "handback");
            let requests = env.server.requests();
            let (told, answered) = (requests[1].last_told(), requests[1].last_answers());
            assert!(told.contains("hand_back") || !answered.is_empty(), "{wire:?}, {what}: the model is told nothing");
        }
    }
}

#[test]
fn bad_replies_of_different_kinds_are_counted_together() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(wire, BAD.iter().take(3).map(|(_, bad)| bad()).collect::<Vec<_>>());
        env.delegate(&[], "Make b.txt.").ends(3, "failed");
    }
}

#[test]
fn a_nudge_never_changes_what_was_sent_before() {
    // the server refuses a changed prefix; here every reply is bad in turn until the turns are over
    for wire in Wire::BOTH {
        let script = Script::by_content(|asked| {
            let turn = asked.messages().len();
            match turn % 3 {
                0 => Step::text("Prose."),
                1 => Step::call("write_file", json!({"path": format!("f{turn}.txt"), "content": "x\n"})),
                _ => Step::call("nonsense", json!({})),
            }
        });
        let env = TestEnvironment::new(wire, script);
        let run = env.delegate(&["--max-turns", "9"], "Make files.");
        let outcome = run.result()["outcome"].clone();
        assert!(outcome == "capped" || outcome == "failed", "{}", run.report());
    }
}

#[test]
fn off_a_terminal_the_line_of_a_turn_says_what_came_and_what_the_model_was_told() {
    let steps = vec![
        Step::text("First I look at\nthe file."),
        Step::call("execute_python", json!({"code": "1"})),
        Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})),
        Step::empty(),
        Step::empty().thinking("I should hand back.", "sig=="),
        Step::hand_back(),
    ];
    let env = TestEnvironment::new(Wire::Chat, steps);
    let run = env.delegate(&[], "Make b.txt.");
    run.ends(0, "handback");
    let lines: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with("turn ")).collect();
    for (line, parts) in lines.iter().zip([
        &["no call, but text: \"First I look at …\"", "told: Your last reply called no tool"][..],
        &["execute_python", "told: Call one tool now, for example read_file"],
        &["write_file b.txt"],
        &["no call, an empty reply", "told: "],
        &["no call, only reasoning", "told: "],
        &["hand_back what was asked"],
    ]) {
        assert!(parts.iter().all(|part| line.contains(part)), "{parts:?}: {line}");
    }
    assert!(!lines[2].contains("told"), "{}", lines[2]);
}
