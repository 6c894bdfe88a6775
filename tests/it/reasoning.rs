//! How much a model is asked to reason: a setting per model, in each route's own form, the same over a task.

use serde_json::{Value, json};

use crate::support::{Step, TestEnvironment, Wire};

fn steps() -> Vec<Step> {
    let write = Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}));
    vec![write.thinking("I make it.", "c2ln"), Step::hand_back()]
}

fn asked_with(wire: Wire, declared: &str) -> Vec<Value> {
    let env = TestEnvironment::new(wire, steps());
    env.configure(&format!("[models.\"{}\"]\ntool_choice = true\n{declared}\n", wire.alias()));
    env.delegate(&[], "Make b.txt.").ends(0, "handback");
    env.server.requests().into_iter().map(|asked| asked.body).collect()
}

#[test]
fn an_effort_is_sent_in_the_routes_own_form() {
    for body in asked_with(Wire::Chat, "reasoning = \"medium\"") {
        assert_eq!((&body["reasoning_effort"], &body["thinking"]), (&json!("medium"), &Value::Null));
        assert_eq!(body["tool_choice"], "required");
    }
    for body in asked_with(Wire::Messages, "reasoning = \"high\"") {
        // 16,384 tokens do not fit the model's 4,096: half of them are for the answer
        assert_eq!(body["thinking"], json!({"type": "enabled", "budget_tokens": 2048}));
        assert_eq!(body["max_tokens"], 4096);
        assert_eq!((&body["tool_choice"], &body["reasoning_effort"]), (&Value::Null, &Value::Null));
    }
}

#[test]
fn off_and_unset_send_nothing() {
    for wire in Wire::BOTH {
        for declared in ["", "reasoning = \"off\""] {
            let bodies = asked_with(wire, declared);
            for body in &bodies {
                assert_eq!((&body["reasoning_effort"], &body["thinking"]), (&Value::Null, &Value::Null));
            }
            assert_ne!(bodies[0]["tool_choice"], Value::Null);
        }
    }
}

#[test]
fn the_ceiling_is_raised_by_what_reasoning_may_take() {
    for (wire, ceiling) in [(Wire::Chat, 1024 + 500), (Wire::Messages, 1024 + 500)] {
        let env = TestEnvironment::new(wire, steps());
        env.configure(&format!("max_output_tokens = 500\n[models.\"{}\"]\nreasoning = \"low\"\n", wire.alias()));
        env.delegate(&[], "Make b.txt.").ends(0, "handback");
        assert!(env.server.requests().iter().all(|asked| asked.body["max_tokens"] == ceiling));
    }
}

#[test]
fn another_word_is_refused_with_the_words_there_are() {
    let env = TestEnvironment::new(Wire::Chat, Vec::<Step>::new());
    env.configure("[models.\"case-model\"]\nreasoning = \"much\"\n");
    let run = env.delegate(&[], "Make b.txt.");
    run.exits(2);
    assert!(run.stderr.contains("\"medium\"") && run.stderr.contains("\"much\""), "{}", run.report());
}
