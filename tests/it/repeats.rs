//! A reply that repeats itself without end is stopped while it streams; what is only long and dull is not.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Piece, Step, TestEnvironment, Wire};

/// Where a reply repeats itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum In {
    Text,
    Reasoning,
    Arguments,
}

/// A reply that begins with `begins`, goes on with `again` for `times` times, and then keeps the connection open for longer
/// than any test runs.
fn endless(wire: Wire, place: In, begins: &str, again: &str, times: usize) -> Step {
    let event = |data: Value| match wire {
        Wire::Chat => format!("data: {data}\n\n"),
        Wire::Messages => format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap()),
    };
    let piece = |text: &str| match wire {
        Wire::Chat => {
            let delta = match place {
                In::Text => json!({"content": text}),
                In::Reasoning => json!({"reasoning_content": text}),
                In::Arguments => json!({"tool_calls": [{"index": 0, "function": {"arguments": text}}]}),
            };
            event(json!({"id": "c", "choices": [{"index": 0, "delta": delta}]}))
        }
        Wire::Messages => {
            let delta = match place {
                In::Text => json!({"type": "text_delta", "text": text}),
                In::Reasoning => json!({"type": "thinking_delta", "thinking": text}),
                In::Arguments => json!({"type": "input_json_delta", "partial_json": text}),
            };
            event(json!({"type": "content_block_delta", "index": 0, "delta": delta}))
        }
    };
    let head = match wire {
        Wire::Chat if place == In::Arguments => {
            let call = json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": "write_file"}});
            event(json!({"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}))
        }
        Wire::Chat => String::new(),
        Wire::Messages => {
            let block = match place {
                In::Text => json!({"type": "text", "text": ""}),
                In::Reasoning => json!({"type": "thinking", "thinking": ""}),
                In::Arguments => json!({"type": "tool_use", "id": "toolu_1", "name": "write_file", "input": {}}),
            };
            let usage = json!({"input_tokens": 1000, "output_tokens": 1});
            let start = json!({"type": "message_start", "message": {"id": "m", "content": [], "usage": usage}});
            event(start) + &event(json!({"type": "content_block_start", "index": 0, "content_block": block}))
        }
    };
    let body = [head, piece(begins)].concat() + &piece(again).repeat(times);
    Step::stream(vec![Piece::Bytes(body.into_bytes()), Piece::Pause(Duration::from_mins(10))])
}

fn write(path: &str, content: &str) -> Step {
    Step::call("write_file", json!({"path": path, "content": content}))
}

#[test]
fn a_reply_that_repeats_itself_is_stopped_charged_and_told_in_one_line() {
    for wire in Wire::BOTH {
        let call = "{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.txt\"}}\n";
        let steps = vec![
            endless(wire, In::Text, "I read it once more.\n", call, 400),
            write("b.txt", "b\n"),
            endless(wire, In::Text, "", "\n", 9000),
            write("c.txt", "c\n"),
            endless(wire, In::Reasoning, "What do I do?", " Wait, I look again.", 900),
            write("d.txt", "d\n"),
            endless(wire, In::Arguments, "{\"path\": \"e.txt\", \"content\": \"", "0,0,0,0,0,0,0,0\\n", 4000),
            write("e.txt", "e\n"),
            Step::hand_back(),
        ];
        let env = TestEnvironment::new(wire, steps);
        let run = env.delegate(&[], "Make four files.");
        let result = run.ends(0, "handback");
        assert_eq!(result["artifacts"], json!(["b.txt", "c.txt", "d.txt", "e.txt"]), "{}", run.report());
        let requests = env.server.requests();
        assert_eq!((requests.len(), result["turns"].as_u64()), (9, Some(9)), "one was asked again\n{}", run.report());
        for nth in [1, 3, 5] {
            let told = requests[nth].last_told();
            assert!(told.contains("called no tool") || told.contains("before it called a tool"), "{nth}: {told}");
        }
        assert!(requests[1].raw.contains("characters of text without a tool call, left out"), "{}", requests[1].raw);
        for pair in requests.windows(2) {
            let grows = pair[1].raw.len() - pair[0].raw.len();
            assert!(grows < 1500, "what repeats itself goes back to the model: {}", pair[1].raw);
        }
        let answer = requests[7].last_answers().remove(0).text;
        assert!(answer.contains("repeated the same over and over"), "{answer}");
        let remarks = run.stderr.matches("repeated itself endlessly and was stopped").count();
        assert_eq!(remarks, 4, "{}", run.report());
        // four replies of 1,000 and 50 tokens, and what came of the five others
        let output = result["tokens"]["output"].as_u64().unwrap();
        assert!(output > 5 * 50 + 4 * 500, "what was stopped is not charged: {result}");
    }
}

#[test]
fn three_replies_that_repeat_themselves_fail_the_task_and_it_says_so() {
    let again = || endless(Wire::Chat, In::Text, "", "the same again ", 900);
    let env = TestEnvironment::new(Wire::Chat, vec![again(), again(), again()]);
    let result = env.delegate(&[], "Make b.txt.").ends(3, "failed");
    let cause = result["cause"].as_str().unwrap();
    assert!(cause.contains("3 of them repeated the same over and over"), "{cause}");
}

#[test]
fn what_is_long_and_dull_is_taken_whole() {
    for wire in Wire::BOTH {
        let table: Vec<_> = (0..300).map(|n| format!("| {n:>4} | - | - | {:>6} |\n", n * n)).collect();
        let rows = "0, 0, 0, 0, 0, 0, 0, 0,\n".repeat(900);
        let base64 = "QUFB".repeat(6000);
        let steps = vec![
            Step::text(&table.concat()).and_call("write_file", json!({"path": "rows.txt", "content": rows})),
            write("base64.txt", &base64).thinking(&format!("It is {}.", "0x00, ".repeat(500)), "sig=="),
            Step::hand_back(),
        ];
        let env = TestEnvironment::new(wire, steps);
        let run = env.delegate(&[], "Make two files.");
        let result = run.ends(0, "handback");
        assert_eq!(env.on_branch(&result, "rows.txt").unwrap(), rows.as_bytes());
        assert_eq!(env.on_branch(&result, "base64.txt").unwrap(), base64.as_bytes());
        assert!(!run.stderr.contains("was stopped"), "{}", run.report());
    }
}
