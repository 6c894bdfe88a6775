//! What was lost, or made a task unusable, when it was taken up again.

use std::{fs, time::Duration};

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Script, Step, TestEnvironment, Wire, wait_until};

fn command(line: &str) -> Step {
    Step::call("run_command", json!({"command": line}))
}

fn limited() -> Step {
    Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded.")
}

#[test]
fn a_killed_task_goes_on_with_every_result_and_runs_nothing_twice() {
    for wire in Wire::BOTH {
        let scratch = tempfile::tempdir().unwrap();
        let (asked, ran) = (scratch.path().join("asked"), scratch.path().join("ran"));
        let (seen, line) = (asked.clone(), ran.display().to_string());
        let script = Script::by_content(move |request| match request.replies() {
            n @ 0..5 => command(&format!("echo {n} >> {line}; printf 'result-{n}\\n'")),
            5 if !seen.exists() => {
                let seen = seen.clone();
                Step::text("never").before(move || fs::write(&seen, "").unwrap()).delay(Duration::from_mins(10))
            }
            5 => Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})),
            _ => Step::hand_back(),
        });
        let env = TestEnvironment::new(wire, script);
        let running = env.start(&["delegate", "--json", "Run five commands."]);
        assert!(wait_until(Duration::from_mins(2), || asked.exists()), "the sixth request was not sent");
        running.signal(Signal::KILL);
        env.finish(running);
        env.assert_checkout_unchanged();

        env.run(&["resume", "--json"]).ends(0, "handback");
        let requests = env.server.requests();
        let answers: Vec<String> = requests[6].answers().into_iter().map(|answer| answer.text).collect();
        assert_eq!(answers.len(), 5);
        for (nth, answer) in answers.iter().enumerate() {
            assert!(answer.contains(&format!("result-{nth}")), "{answers:?}");
        }
        assert_eq!(requests[5].body["messages"], requests[6].body["messages"]);
        assert_eq!(fs::read_to_string(ran).unwrap(), "0\n1\n2\n3\n4\n", "a command ran twice");
    }
}

#[test]
fn long_emoji_output_and_half_surrogates_do_not_break_the_history() {
    for wire in Wire::BOTH {
        let fire = |offset: usize| {
            let x = "x".repeat(offset);
            command(&format!("printf '{x}'; yes 🔥 | head -n 200000 | tr -d '\\n'"))
        };
        let halves = r#"{"path": "e.txt", "content": "half \ud83d end \udc00"}"#;
        let mut steps: Vec<Step> = (0..4).map(fire).collect();
        steps.extend([Step::raw_call("write_file", halves), limited(), half_a_surrogate(wire), Step::hand_back()]);
        let env = TestEnvironment::new(wire, steps);
        // the server takes only strict UTF-8 JSON without lone surrogates
        env.delegate(&[], "Print the test patterns and write e.txt.").ends(5, "interrupted");
        let result = env.run(&["resume", "--json"]).ends(0, "handback");
        assert_eq!(env.on_branch(&result, "e.txt").unwrap(), "half \u{fffd} end \u{fffd}".as_bytes());
        for answer in &env.server.requests()[4].answers() {
            assert!(answer.text.contains('🔥') && !answer.text.contains('\u{fffd}'), "cut within a character");
            assert!(answer.text.len() < 200_000, "not cut at all");
        }
    }
}

/// Prose with half a surrogate pair in it, streamed as it came.
fn half_a_surrogate(wire: Wire) -> Step {
    let (head, tail) = match wire {
        Wire::Chat => (
            r#"data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"lone \ud83d here"}}]}"#,
            r#"data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":3,"total_tokens":13}}

data: [DONE]"#,
        ),
        Wire::Messages => (
            r#"event: message_start
data: {"type":"message_start","message":{"id":"x","type":"message","role":"assistant","model":"case-native","content":[],"usage":{"input_tokens":10,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lone \ud83d here"}}"#,
            r#"event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}

event: message_stop
data: {"type":"message_stop"}"#,
        ),
    };
    Step::stream(vec![crate::support::Piece::Bytes(format!("{head}\n\n{tail}\n\n").into_bytes())])
}

#[test]
fn nul_bytes_neither_cut_the_history_nor_reach_a_command_line() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(
            wire,
            vec![
                command(r"printf 'before\000after\n'; printf 'err\000err\n' >&2"),
                Step::call("read_file", json!({"path": "nul.txt"})),
                Step::raw_call("write_file", r#"{"path": "n.txt", "content": "a\u0000b"}"#),
                Step::raw_call("run_command", r#"{"command": "echo a\u0000b"}"#),
                limited(),
                Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})),
                Step::hand_back(),
            ],
        );
        env.checkout.write("nul.txt", "x\0y\n").commit("nul");
        env.delegate(&[], "Print and read the NUL samples.").ends(5, "interrupted");
        let task = env.run(&["resume", "--json"]).ends(0, "handback")["task"].as_str().unwrap().to_owned();
        let requests = env.server.requests();
        assert!(requests[1].last_answers()[0].text.contains("after"), "{:?}", requests[1].last_answers());
        let refused = &requests[4].last_answers()[0].text;
        assert!(refused.to_lowercase().contains("nul"), "a command with NUL is refused with a reason: {refused}");
        assert!(requests.last().unwrap().answers()[0].text.contains("after"), "lost at the resume");
        let log = env.run(&["log", "--json", &task]);
        assert!(log.exits(0).stdout.contains("after"), "{}", log.report());
    }
}
