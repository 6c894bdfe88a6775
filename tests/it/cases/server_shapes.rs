//! What servers behind a proxy really send, and other agents misread: names in pieces, calls in a second choice, whole
//! calls under the wrong stop word, money in other words, names that the proxy resolves for a key.

use serde_json::{Value, json};

use crate::support::{Piece, Step, TestEnvironment, Wire};

/// A stream of the normalized route with these chunks' choices.
fn chat(choices: &[Value]) -> Step {
    let chunk = |choices: &Value| {
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "model": "case-model", "choices": choices});
        format!("data: {chunk}\n\n")
    };
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 40, "total_tokens": 1040}});
    let body: String = choices.iter().map(chunk).chain([format!("data: {usage}\n\ndata: [DONE]\n\n")]).collect();
    Step::stream(vec![Piece::Bytes(body.into_bytes())])
}

/// The choices of one chunk: fragments of calls in the first one.
fn fragment(name: Option<&str>, arguments: &str, first: bool) -> Value {
    let mut call = json!({"index": 0, "type": "function", "function": {"arguments": arguments}});
    if let Some(name) = name {
        call["function"]["name"] = json!(name);
    }
    if first {
        call["id"] = json!("call_1");
    }
    json!([{"index": 0, "delta": {"tool_calls": [call]}}])
}

fn finish(word: &str) -> Value {
    json!([{"index": 0, "delta": {}, "finish_reason": word}])
}

fn written(path: &str) -> String {
    json!({"path": path, "content": "made\n"}).to_string()
}

#[test]
fn a_name_may_come_in_pieces_or_again_and_again() {
    let (b, c) = (written("b.txt"), written("c.txt"));
    let pieces = chat(&[
        fragment(Some("write"), "", true),
        fragment(Some("_file"), "", false),
        fragment(None, &b[..9], false),
        fragment(None, &b[9..], false),
        finish("tool_calls"),
    ]);
    let repeated = chat(&[
        fragment(Some("write_file"), "", true),
        fragment(Some("write_file"), &c[..9], false),
        fragment(Some("write_file"), &c[9..], false),
        fragment(Some("write_file"), "", false),
        finish("tool_calls"),
    ]);
    let command = json!({"command": "echo made > d.txt"}).to_string();
    let late = chat(&[
        fragment(Some("run"), "", true),
        fragment(Some("_"), "", false),
        fragment(Some("command"), &command, false),
        finish("tool_calls"),
    ]);
    let env = TestEnvironment::new(Wire::Chat, vec![pieces, repeated, late, Step::hand_back()]);
    let result = env.delegate(&[], "Make three files.").ends(0, "handback");
    for file in ["b.txt", "c.txt", "d.txt"] {
        assert_eq!(env.on_branch(&result, file).as_deref(), Some(&b"made\n"[..]), "{file}");
    }
    let last = env.server.requests().pop().unwrap();
    assert_eq!(last.replayed_calls(), ["write_file", "write_file", "run_command"]);
}

#[test]
fn all_choices_are_one_reply() {
    let call = |path: &str| {
        json!({"tool_calls": [{"index": 0, "id": format!("call_{path}"), "type": "function",
            "function": {"name": "write_file", "arguments": written(path)}}]})
    };
    let both = chat(&[
        json!([{"index": 0, "delta": {"content": "I write it."}}, {"index": 1, "delta": call("b.txt")}]),
        finish("tool_calls"),
    ]);
    let each = chat(&[
        json!([{"index": 0, "delta": {"content": "I write it."}, "finish_reason": "tool_calls"}]),
        json!([{"index": 1, "delta": call("c.txt"), "finish_reason": "tool_calls"}]),
    ]);
    let whole = json!({"id": "c", "object": "chat.completion", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "I write it."}, "finish_reason": "tool_calls"},
        {"index": 1, "message": call("d.txt"), "finish_reason": "tool_calls"},
    ], "usage": {"prompt_tokens": 1000, "completion_tokens": 40}});
    let whole = Step::plain(200, &[], "application/json", &whole.to_string());
    let env = TestEnvironment::new(Wire::Chat, vec![both, each, whole, Step::hand_back()]);
    let run = env.delegate(&[], "Make three files.");
    let result = run.ends(0, "handback");
    for file in ["b.txt", "c.txt", "d.txt"] {
        assert!(env.on_branch(&result, file).is_some(), "{file}");
    }
    assert_eq!(env.server.requests().len(), 4);
    assert!(!run.json().iter().any(|line| line["event"] == "nudged"), "{}", run.report());
}

/// A call of the native route whose arguments come in one piece, under that stop reason.
fn native(name: &str, arguments: &str, stop: &str) -> Step {
    let start = json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant",
        "content": [], "usage": {"input_tokens": 1000, "output_tokens": 1}}});
    let begin = json!({"type": "content_block_start", "index": 0,
        "content_block": {"type": "tool_use", "id": format!("toolu_{}", arguments.len()), "name": name, "input": {}}});
    let piece = json!({"type": "content_block_delta", "index": 0,
        "delta": {"type": "input_json_delta", "partial_json": arguments}});
    let events = [
        start,
        begin,
        piece,
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 20}}),
        json!({"type": "message_stop"}),
    ];
    let line = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    Step::stream(vec![Piece::Bytes(events.iter().map(line).collect::<String>().into_bytes())])
}

#[test]
fn a_whole_call_runs_under_any_stop_word_and_a_half_one_under_none() {
    for wire in Wire::BOTH {
        let call = |path: &str, word: &str, length: usize| {
            let arguments = &written(path)[..length.min(written(path).len())];
            match wire {
                Wire::Chat => chat(&[fragment(Some("write_file"), arguments, true), finish(word)]),
                Wire::Messages => native("write_file", arguments, word),
            }
        };
        let words = if wire == Wire::Chat { ["stop", "eos"] } else { ["end_turn", "stop_sequence"] };
        // a member that the tool needs is missing, though what came is an object
        let lacking = match wire {
            Wire::Chat => chat(&[fragment(Some("write_file"), r#"{"path": "half.txt"}"#, true), finish(words[0])]),
            Wire::Messages => native("write_file", r#"{"path": "half.txt"}"#, words[0]),
        };
        let steps = vec![
            call("b.txt", words[0], 200),
            call("half.txt", words[0], 20),
            lacking,
            call("c.txt", words[1], 200),
            Step::hand_back(),
        ];
        let env = TestEnvironment::new(wire, steps);
        let run = env.delegate(&[], "Make two files.");
        let result = run.ends(0, "handback");
        assert_eq!(result["artifacts"], json!(["b.txt", "c.txt"]), "{}", run.report());
        assert_eq!(result["turns"], 3);
    }
}

#[test]
fn a_name_that_the_proxy_resolves_for_this_key_is_no_fallback() {
    let group = |attempts: &str| {
        Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}))
            .header("x-litellm-model-group", "eu-coders")
            .header("x-litellm-model-name", "hosted_vllm/qwen-eu")
            .header("x-litellm-attempted-fallbacks", attempts)
    };
    let env = TestEnvironment::new(Wire::Chat, vec![group("0"), Step::hand_back()]);
    let run = env.delegate(&[], "Make b.txt.");
    run.ends(0, "handback");
    assert!(!run.stderr.contains("instead") && run.stdout.contains("hosted_vllm/qwen-eu"), "{}", run.report());
    drop(env);
    let env = TestEnvironment::new(Wire::Chat, vec![group("1")]);
    let run = env.delegate(&[], "Make b.txt.");
    run.ends(5, "interrupted");
    assert!(run.stderr.contains("eu-coders"), "{}", run.report());
}

#[test]
fn money_in_whatever_words_keeps_the_work() {
    for (status, kind, text) in [
        (402, "", "Payment Required"),
        (400, "billing_hard_limit_reached", "Billing hard limit has been reached"),
        (400, "invalid_request_error", "OpenAIException - Insufficient Balance"),
        (403, "permission_denied", "your team's monthly budget is exhausted for model case-model"),
        (400, "", "please add a payment method to your account"),
    ] {
        let write = Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}));
        let env = TestEnvironment::new(Wire::Chat, vec![write, Step::error(status, &[], kind, text)]);
        let result = env.delegate(&[], "Make b.txt.").ends(5, "interrupted");
        assert_eq!(env.server.requests().len(), 2, "{text}");
        assert!(env.on_branch(&result, "b.txt").is_some(), "{text}: the work is gone");
    }
}

#[test]
fn a_vendor_that_refuses_the_proxys_key_is_not_asked_again() {
    let text = "litellm.AuthenticationError: AnthropicException - invalid x-api-key";
    let env = TestEnvironment::new(Wire::Chat, vec![Step::error(401, &[], "authentication_error", text)]);
    let run = env.delegate(&[], "Make b.txt.");
    let cause = run.ends(5, "interrupted")["cause"].to_string();
    assert_eq!(env.server.requests().len(), 1);
    assert!(cause.contains("the proxy's own key") && cause.contains("operator"), "{cause}");
}

#[test]
fn a_server_without_tool_calls_is_a_matter_of_its_settings() {
    let text = "litellm.InternalServerError: tools param requires --jinja flag";
    let env = TestEnvironment::new(Wire::Chat, vec![Step::error(500, &[], "", text)]);
    let run = env.delegate(&[], "Make b.txt.");
    let error = run.exits(2).json().pop().unwrap();
    assert_eq!(error["error"]["kind"], "server_set_up", "{}", run.report());
    assert_eq!(env.server.requests().len(), 1);
    assert!(run.stderr.contains("nothing is lost"), "{}", run.report());
}

#[test]
fn a_wait_that_is_told_again_and_again_grows() {
    let steps = (0..6).map(|_| Step::error(429, &[("retry-after", "0")], "throttling_error", "slow down")).collect();
    let env = TestEnvironment::new(Wire::Chat, Vec::<Step>::clone(&steps));
    let run = env.delegate(&[], "Make b.txt.");
    run.ends(5, "interrupted");
    let waits: Vec<u64> = run
        .json()
        .iter()
        .filter(|line| line["event"] == "request_ended")
        .filter_map(|line| line["data"]["retry_in_ms"].as_u64())
        .collect();
    assert_eq!(waits, [100, 2000, 4000, 8000, 16000]);
}
