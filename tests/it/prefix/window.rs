//! Tasks that leave results out of their requests, or could not go on although they do.

use nisse::{domain::upstream::Trouble, ports::llm};
use serde_json::json;

use super::{Model, Reply, Scenario, calls, every_prefix, hand_back};

/// What the proxy says of a request that the model cannot hold.
pub(super) fn too_large() -> llm::Error {
    llm::Error {
        trouble: Trouble::ContextOverflow,
        message: "prompt is too long".to_owned(),
        retry_after: None,
        usage: None,
    }
}

/// Reads much, writes a little, hands back.
fn reads(turns: u32) -> Vec<Reply> {
    let read = |turn| calls(&[("read_file", json!({"path": "long.txt", "start_line": turn}))]);
    let mut replies: Vec<Reply> = (1..=turns).map(read).collect();
    replies.push(calls(&[("edit_file", json!({"path": "a.txt", "old": "two", "new": "three"}))]));
    replies.push(calls(&[hand_back(true)]));
    replies
}

#[test]
fn of_a_task_that_outgrows_its_window() {
    let model = Model { window: 14_000, holds: u64::MAX };
    every_prefix(&Scenario { replies: reads(8), turns: 30, outcome: "handback", model, evicts: true });
}

#[test]
fn of_a_task_whose_window_is_smaller_than_it_was_told() {
    let model = Model { window: 100_000, holds: 7_000 };
    every_prefix(&Scenario { replies: reads(5), turns: 30, outcome: "handback", model, evicts: true });
}

#[test]
fn of_a_task_that_no_eviction_helps() {
    let model = Model { window: 100_000, holds: 3_000 };
    let large = calls(&[("read_file", json!({"path": "long.txt"})), ("read_file", json!({"path": "long.txt"}))]);
    let replies = vec![calls(&[("read_file", json!({"path": "long.txt", "end_line": 30}))]), large];
    every_prefix(&Scenario { replies, turns: 30, outcome: "gated", model, evicts: true });
}
