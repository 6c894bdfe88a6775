//! Several calls in one reply, calls after the ending call, and thinking that goes back as it came.

use serde_json::json;

use crate::support::{Step, TestEnvironment, Wire};

#[test]
fn the_calls_of_a_reply_run_in_order_and_each_is_answered() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(
            wire,
            vec![
                Step::call("write_file", json!({"path": "b.txt", "content": "one\n"}))
                    .and_call("run_command", json!({"command": "cat b.txt; echo two >> b.txt"}))
                    .and_call("read_file", json!({"path": "b.txt"}))
                    .and_call("read_file", json!({"path": "missing.txt"})),
                Step::hand_back(),
            ],
        );
        let result = env.delegate(&[], "Make b.txt.").ends(0, "handback");
        let answers = env.server.requests()[1].last_answers();
        assert_eq!(answers.len(), 4);
        assert!(answers[1].text.contains("one"), "{answers:?}");
        assert!(answers[2].text.contains("two"), "{answers:?}");
        assert!(answers[3].text.contains("missing.txt"), "{answers:?}");
        assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"one\ntwo\n");
    }
}

#[test]
fn calls_after_the_ending_call_do_not_run() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(
            wire,
            vec![
                Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}))
                    .and_hand_back()
                    .and_call("write_file", json!({"path": "late.txt", "content": "late\n"}))
                    .and_hand_back(),
            ],
        );
        let result = env.delegate(&[], "Make b.txt.").ends(0, "handback");
        assert_eq!(result["turns"], 1);
        assert!(env.on_branch(&result, "b.txt").is_some());
        assert_eq!(env.on_branch(&result, "late.txt"), None);
    }
}

#[test]
fn calls_after_a_refused_ending_call_are_answered_as_not_run() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(
            wire,
            vec![
                Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})),
                Step::hand_back().and_call("write_file", json!({"path": "late.txt", "content": "late\n"})),
                Step::call("run_command", json!({"command": "echo ready > ready.txt"})),
                Step::hand_back(),
            ],
        );
        let result = env.delegate(&["--check", "test -e ready.txt"], "Make b.txt.").ends(0, "handback");
        let answers = env.server.requests()[2].last_answers();
        assert_eq!(answers.len(), 2, "{answers:?}");
        assert_eq!(env.on_branch(&result, "late.txt"), None, "a call behind the ending call ran");
    }
}

#[test]
fn thinking_goes_back_to_the_model_that_made_it_unchanged() {
    // the server refuses thinking that it did not send; here it must be there at all
    let env = TestEnvironment::new(
        Wire::Messages,
        vec![
            Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}))
                .thinking("First é the file.", "EqQB/+=="),
            Step::hand_back(),
        ],
    );
    env.delegate(&[], "Make b.txt.").ends(0, "handback");
    let second = &env.server.requests()[1];
    let block = second.messages()[1]["content"][0].clone();
    assert_eq!(block, json!({"type": "thinking", "thinking": "First é the file.", "signature": "EqQB/+=="}));
}
