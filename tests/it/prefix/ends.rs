//! Tasks that do not hand back what was asked for.

use super::*;

#[test]
fn of_a_task_that_is_capped() {
    every_prefix(&Scenario {
        replies: vec![
            calls(&[("write_file", json!({"path": "n.txt", "content": "n\n"}))]),
            calls(&[("search", json!({"pattern": "t[wh]"}))]),
            calls(&[("list_files", json!({}))]),
        ],
        turns: 3,
        outcome: "capped",
        model: LARGE,
        evicts: false,
    });
}

#[test]
fn of_a_task_that_fails() {
    every_prefix(&Scenario {
        replies: vec![
            calls(&[hand_back(true)]),
            calls(&[("write_file", json!({"path": "n.txt", "content": "n\n"}))]),
            calls(&[hand_back(false)]),
        ],
        turns: 30,
        outcome: "failed",
        model: LARGE,
        evicts: false,
    });
}
