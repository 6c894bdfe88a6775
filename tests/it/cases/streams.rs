//! Streams that misled users of other agents: cut, silent, wrongly counted, answered by another model.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Asked, Piece, Run, Script, Step, TestEnvironment, Wire};

fn write() -> Step {
    Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}))
}

/// The data of each attempt that brought no reply.
fn lost(run: &Run) -> Vec<Value> {
    run.json().into_iter().filter(|line| line["event"] == "request_ended").map(|line| line["data"].clone()).collect()
}

fn limited(headers: &[(&str, &str)]) -> Step {
    Step::error(429, headers, "throttling_error", "litellm.RateLimitError: try again")
}

/// The reply's stream without its end, closed as if it were whole.
fn unfinished(wire: Wire) -> Step {
    let body = match wire {
        Wire::Chat => {
            "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"I am\"}}]}\n\n"
        }
        Wire::Messages => concat!(
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",",
            "\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\n\n",
            "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,",
            "\"content_block\":{\"type\":\"text\",\"text\":\"I am\"}}\n\n",
        ),
    };
    Step::stream(vec![Piece::Bytes(body.as_bytes().to_vec())])
}

#[test]
fn a_stream_without_its_end_is_no_answer() {
    for wire in Wire::BOTH {
        let whole_call = || Step::call("run_command", json!({"command": "touch from-cut"})).cut();
        let steps = vec![Step::text("I am").cut(), whole_call(), write(), unfinished(wire), Step::hand_back()];
        let env = TestEnvironment::new(wire, steps);
        let run = env.delegate(&[], "Add b.txt.");
        let result = run.ends(0, "handback");
        assert_eq!(env.server.requests().len(), 5, "{}", run.report());
        assert!(lost(&run).iter().all(|ended| ended["trouble"] == "cut"), "{}", run.report());
        assert_eq!((env.on_branch(&result, "from-cut"), result["turns"].as_u64()), (None, Some(2)));
        assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"b\n");

        let env = TestEnvironment::new(wire, (0..20).map(|_| whole_call()).collect::<Vec<_>>());
        let run = env.delegate(&[], "Add b.txt.");
        run.ends(5, "interrupted");
        assert_eq!(env.server.requests().len(), 3, "{}", run.report());
    }
}

#[test]
fn usage_is_input_from_the_start_and_the_last_word_on_output_with_the_cache_apart() {
    let event = |kind: &str, mut data: Value| {
        data["type"] = json!(kind);
        format!("event: {kind}\ndata: {data}\n\n")
    };
    let usage = json!({
        "input_tokens": 25, "cache_read_input_tokens": 6752, "cache_creation_input_tokens": 100, "output_tokens": 1,
    });
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "write_file", "input": {}});
    let arguments = json!({"path": "b.txt", "content": "b\n"}).to_string();
    let body = [
        event("message_start", json!({"message": {"id": "m", "role": "assistant", "content": [], "usage": usage}})),
        event("content_block_start", json!({"index": 0, "content_block": call})),
        event(
            "content_block_delta",
            json!({"index": 0, "delta": {"type": "input_json_delta", "partial_json": arguments}}),
        ),
        event("content_block_stop", json!({"index": 0})),
        // some servers repeat the input as 0 here
        event(
            "message_delta",
            json!({"delta": {"stop_reason": "tool_use"}, "usage": {"input_tokens": 0, "output_tokens": 15}}),
        ),
        event("message_stop", json!({})),
    ]
    .concat();
    let env = TestEnvironment::new(
        Wire::Messages,
        vec![Step::stream(vec![Piece::Bytes(body.into_bytes())]), Step::hand_back().usage(10, 1)],
    );
    let result = env.delegate(&[], "Add b.txt.").ends(0, "handback");
    let wanted = json!({"input": 25 + 6752 + 100 + 10, "output": 15 + 1, "cache_read": 6752, "cache_write": 100});
    assert_eq!(result["tokens"], wanted);
}

#[test]
fn a_model_that_says_nothing_of_tokens_reaches_the_cap_and_the_numbers_are_called_estimates() {
    for wire in Wire::BOTH {
        let script = Script::by_content(|asked: &Asked| {
            Step::call("run_command", json!({"command": format!("echo {}", asked.replies())})).no_usage()
        });
        let env = TestEnvironment::new(wire, script);
        let result = env.delegate(&["--max-tokens", "20000"], "Say hello.").ends(4, "capped");
        assert!(result["tokens"]["input"].as_u64().unwrap() > 5000, "{result}");
        assert!(result["notices"].to_string().contains("estimate"), "{result}");
    }
    let env = TestEnvironment::new(Wire::Chat, vec![write(), Step::hand_back()]);
    let result = env.delegate(&[], "Add b.txt.").ends(0, "handback");
    assert!(!result["notices"].to_string().contains("estimate"), "known numbers are called estimates: {result}");
}

#[test]
fn the_cost_is_the_proxys_and_not_the_price_lists() {
    let chunk = |choice: Value, usage: Option<Value>| {
        let mut chunk = json!({"id": "c", "choices": [choice]});
        if let Some(usage) = usage {
            chunk["usage"] = usage;
        }
        format!("data: {chunk}\n\n")
    };
    let function = json!({"name": "write_file", "arguments": json!({"path": "b.txt", "content": "b\n"}).to_string()});
    let call = json!({"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "call_1", "function": function}]}});
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120, "cost": 0.5});
    let body = [
        chunk(call, None),
        chunk(json!({"index": 0, "delta": {}, "finish_reason": "tool_calls"}), None),
        chunk(json!({"index": 0, "delta": {}}), Some(usage)),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat();
    let env = TestEnvironment::new(
        Wire::Chat,
        vec![Step::stream(vec![Piece::Bytes(body.into_bytes())]), Step::hand_back().usage(1000, 0)],
    );
    let result = env.delegate(&[], "Add b.txt.").ends(0, "handback");
    assert!((result["cost_usd"].as_f64().unwrap() - 0.501).abs() < 1e-9, "{result}");
    // the native route names a cost in a header where it does not stream
    let env = TestEnvironment::new(
        Wire::Messages,
        vec![write().header("x-litellm-response-cost", "0.25"), Step::hand_back().usage(1000, 0)],
    );
    let result = env.delegate(&[], "Add b.txt.").ends(0, "handback");
    assert!((result["cost_usd"].as_f64().unwrap() - 0.251).abs() < 1e-9, "{result}");
}

#[test]
fn silence_is_ended_by_its_limit_and_comments_are_no_content() {
    for wire in Wire::BOTH {
        let [start, end] = match wire {
            Wire::Chat => [
                "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"wait\"}}]}\r\n\r\n",
                ": comment\r\n\r\n",
            ],
            Wire::Messages => [
                concat!(
                    "event: content_block_start\r\ndata: {\"type\":\"content_block_start\",\"index\":0,",
                    "\"content_block\":{\"type\":\"text\",\"text\":\"wait\"}}\r\n\r\n",
                ),
                "event: ping\r\ndata: {\"type\": \"ping\"}\r\n\r\n",
            ],
        };
        let mut pieces = vec![Piece::Bytes(start.as_bytes().to_vec())];
        for _ in 0..600 {
            pieces.extend([Piece::Pause(Duration::from_millis(500)), Piece::Bytes(end.as_bytes().to_vec())]);
        }
        let env = TestEnvironment::new(wire, vec![Step::stream(pieces), write(), Step::hand_back()]);
        let config = env.root().join("config.toml");
        std::fs::write(&config, "[proxy]\nidle = \"4s\"\n").unwrap();
        env.set("NISSE_CONFIG", config.to_str().unwrap());
        let run = env.delegate(&[], "Add b.txt.");
        run.ends(0, "handback");
        assert_eq!(lost(&run)[0]["trouble"], "timeout", "{}", run.report());
        assert!(run.stderr.contains("no content for 4 s"), "{}", run.report());
    }
}

#[test]
fn reasoning_goes_back_byte_for_byte_also_when_it_is_empty_and_after_a_resume() {
    let think = "plan: café → step\n\n  two  ";
    let env = TestEnvironment::new(
        Wire::Messages,
        vec![
            Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}))
                .thinking(think, "EqoBCkgIARABGAIiQL+case/sig=="),
            Step::call("run_command", json!({"command": "echo again"})).thinking("", "EmptyButSigned=="),
            limited(&[("retry-after", "86400")]),
            Step::hand_back(),
        ],
    );
    env.delegate(&[], "Say hi twice.").ends(5, "interrupted");
    env.run(&["resume", "--json"]).ends(0, "handback");
    let requests = env.server.requests();
    let blocks: Vec<&Value> = requests[3]
        .messages()
        .into_iter()
        .filter(|message| message["role"] == "assistant")
        .map(|message| &message["content"][0])
        .collect();
    let wanted = [
        json!({"type": "thinking", "thinking": think, "signature": "EqoBCkgIARABGAIiQL+case/sig=="}),
        json!({"type": "thinking", "thinking": "", "signature": "EmptyButSigned=="}),
    ];
    assert_eq!(blocks, wanted.iter().collect::<Vec<_>>());
    assert_eq!(requests[2].body["messages"], requests[3].body["messages"], "the resume asks something else");
}

#[test]
fn an_answer_of_another_model_is_refused_before_anything_of_it_runs() {
    for wire in Wire::BOTH {
        let other = |step: Step| {
            step.header("x-litellm-attempted-fallbacks", "1")
                .header("x-litellm-model-group", "cheap")
                .header("x-litellm-model-name", "openai/cheap-1")
        };
        let env = TestEnvironment::new(wire, vec![other(write()), write(), Step::hand_back()]);
        let run = env.delegate(&[], "Add b.txt.");
        let rests = run.ends(5, "interrupted");
        assert!(rests["cause"].as_str().unwrap().contains("cheap (openai/cheap-1) answered instead of"), "{rests}");
        assert_eq!((env.server.requests().len(), rests["turns"].as_u64()), (1, Some(0)));
        assert!(rests["tokens"]["input"].as_u64().unwrap() > 0, "the other model was paid for: {rests}");
        env.run(&["resume", "--json"]).ends(0, "handback");
    }
}
