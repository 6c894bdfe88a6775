//! The test house itself: its server must refuse what it says it refuses, its fingerprint must see every change.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{
    Asked, Checkout, Fingerprint, Finish, Piece, Script, Server, Step, TOKEN, Wire, transcript, wait_until,
};

/// Sends a request over a connection of its own; the status and the body, whole or as far as it came.
fn send(server: &Server, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer); // a cut is an error here, and what came before it is what counts
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, answer)
}

fn get(server: &Server, path: &str) -> (u16, String) {
    send(
        server,
        &format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {TOKEN}\r\n\r\n"),
    )
}

/// Posts a body with the headers that nisse must send, `id` as the request's id.
fn ask(server: &Server, wire: Wire, id: &str, body: &str) -> (u16, String) {
    let path = match wire {
        Wire::Chat => "/v1/chat/completions",
        Wire::Messages => "/v1/messages",
    };
    let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json");
    let keys = format!("authorization: Bearer {TOKEN}\r\nx-api-key: {TOKEN}\r\nanthropic-version: 2023-06-01");
    let length = body.len();
    send(server, &format!("{head}\r\n{keys}\r\nx-litellm-call-id: {id}\r\ncontent-length: {length}\r\n\r\n{body}"))
}

/// A faultless body with these messages.
fn body(wire: Wire, messages: &Value) -> Value {
    let tool = |name: &str| match wire {
        Wire::Chat => json!({"type": "function", "function": {"name": name, "parameters": {}}}),
        Wire::Messages => json!({"name": name, "input_schema": {}}),
    };
    let mut body = json!({
        "model": wire.alias(), "stream": true, "max_tokens": 4096, "num_retries": 0, "disable_fallbacks": true,
        "stream_options": {"include_usage": true}, "tools": [tool("read_file"), tool("hand_back")],
    });
    body["messages"] = messages.clone();
    body
}

fn reply(wire: Wire, id: &str, arguments: &str) -> Value {
    match wire {
        Wire::Chat => {
            let function = json!({"name": "read_file", "arguments": arguments});
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": function}]})
        }
        Wire::Messages => {
            let input: Value = serde_json::from_str(arguments).unwrap_or(json!("none"));
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "read_file", "input": input}]})
        }
    }
}

fn result(wire: Wire, id: &str) -> Value {
    match wire {
        Wire::Chat => json!({"role": "tool", "tool_call_id": id, "content": "1\ta"}),
        Wire::Messages => {
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "1\ta"}]})
        }
    }
}

fn brief() -> Value {
    json!({"role": "user", "content": "Read a.txt."})
}

#[test]
fn the_server_takes_a_faultless_conversation_and_streams_its_script() {
    for wire in Wire::BOTH {
        let server = Server::new(vec![
            Step::call("read_file", json!({"path": "a.txt"})).thinking("First look.", "sig=="),
            Step::text("done").finish(Finish::Stop),
        ]);
        let (status, answer) = ask(&server, wire, "r1", &body(wire, &json!([brief()])).to_string());
        assert_eq!(status, 200, "{answer}");
        let (name, end) = match wire {
            Wire::Chat => (r#""name":"read_file""#, "data: [DONE]"),
            Wire::Messages => (r#""name":"read_file""#, "event: message_stop"),
        };
        assert!(answer.contains(name) && answer.contains(end) && answer.contains("sig=="), "{answer}");
        assert!(answer.contains(&format!("x-litellm-model-group: {}", wire.alias())), "{answer}");
        let more = json!([brief(), reply(wire, "one", r#"{"path":"a.txt"}"#), result(wire, "one")]);
        let (status, answer) = ask(&server, wire, "r2", &body(wire, &more).to_string());
        assert_eq!(status, 200, "{answer}");
        assert_eq!(server.violations(), Vec::<String>::new());
        let last: Asked = server.requests().pop().unwrap();
        assert_eq!((last.replies(), last.offered()), (1, vec!["read_file", "hand_back"]));
        assert_eq!(last.last_answers()[0].text, "1\ta");
        assert_eq!(last.replayed_calls(), ["read_file"]);
    }
}

#[test]
fn the_server_refuses_every_kind_of_broken_request() {
    for wire in Wire::BOTH {
        let good = body(wire, &json!([brief()]));
        let with = |name: &str, value: Value| {
            let mut body = good.clone();
            body[name] = value;
            let messages = body.as_object_mut().unwrap().shift_remove("messages").unwrap();
            body["messages"] = messages;
            body.to_string()
        };
        let history = |messages: Value| body(wire, &messages).to_string();
        let object = r#"{"path":"a.txt"}"#;
        let thinking = match wire {
            Wire::Chat => {
                let block = json!([{"type": "thinking", "thinking": "t", "signature": "forged"}]);
                json!({"role": "assistant", "content": "x", "thinking_blocks": block})
            }
            Wire::Messages => {
                let block = json!({"type": "thinking", "thinking": "t", "signature": "forged"});
                json!({"role": "assistant", "content": [block, {"type": "text", "text": "x"}]})
            }
        };
        let mut not_last = good.clone();
        not_last["user"] = json!("me");
        let turn = [reply(wire, "one", object), result(wire, "one")];
        let twice = history(json!([brief(), turn[0], turn[1], turn[0], turn[1]]));
        let cases = [
            ("not strict JSON", r#"{"messages":["\ud83d"]}"#.to_owned()),
            ("not the last member", not_last.to_string()),
            ("`stream`", with("stream", json!(false))),
            ("`max_tokens`", with("max_tokens", Value::Null)),
            ("`max_tokens`", with("max_tokens", json!(4097))),
            ("`num_retries`", with("num_retries", json!(2))),
            ("`disable_fallbacks`", with("disable_fallbacks", json!(false))),
            ("tools offered", with("tools", json!([]))),
            ("token is in the body", history(json!([{"role": "user", "content": TOKEN}]))),
            ("no open call", history(json!([brief(), result(wire, "none")]))),
            ("unanswered calls", history(json!([brief(), reply(wire, "one", object)]))),
            ("without a result", history(json!([brief(), reply(wire, "one", object), brief()]))),
            ("empty id", history(json!([brief(), reply(wire, "", object), result(wire, "")]))),
            ("a second time", twice),
            ("no JSON object", history(json!([brief(), reply(wire, "one", "[1"), result(wire, "one")]))),
            ("no content", history(json!([brief(), {"role": "assistant", "content": " "}, brief()]))),
            ("`signature`", history(json!([brief(), thinking, brief()]))),
            ("was asked on", with("model", json!("another"))),
        ];
        for (nth, (wanted, broken)) in cases.into_iter().enumerate() {
            let server = Server::new(vec![Step::text("never")]);
            let (status, answer) = ask(&server, wire, &format!("r{nth}"), &broken);
            assert_eq!(status, 400, "{wire:?} {wanted}: {broken}");
            let found = server.take_violations().join("\n");
            assert!(found.contains(wanted), "{wire:?}: {wanted:?} is not in {found:?}; {answer}");
        }
    }
}

#[test]
fn the_server_refuses_a_rewritten_prefix_and_a_repeated_request_id() {
    for wire in Wire::BOTH {
        let server = Server::new(Script::by_content(|_| Step::empty().finish(Finish::Declined)));
        let object = r#"{"path":"a.txt"}"#;
        let at = |text: &str, messages: &Value| ask(&server, wire, text, &body(wire, messages).to_string()).0;
        let first = json!([brief(), reply(wire, "one", object), result(wire, "one")]);
        assert_eq!(at("r1", &first), 200);
        let mut longer = first.clone();
        longer.as_array_mut().unwrap().extend([json!({"role": "assistant", "content": "so"}), brief()]);
        assert_eq!(at("r2", &longer), 200);
        assert_eq!(at("r2", &longer), 400);
        assert!(server.take_violations().join("").contains("was sent before"));
        longer[1] = reply(wire, "one", r#"{"path": "a.txt"}"#);
        let (status, answer) = (at("r3", &longer), server.take_violations().join(""));
        match wire {
            // the arguments are a string here: the blank is another string
            Wire::Chat => assert!(status == 400 && answer.contains("a suffix"), "{answer}"),
            // and JSON here, which this test writes without blanks
            Wire::Messages => assert_eq!(status, 200, "{answer}"),
        }
        assert_eq!(at("r4", &json!([brief(), {"role": "assistant", "content": "forgot"}, brief()])), 400);
        assert!(server.take_violations().join("").contains("a suffix"));
    }
}

#[test]
fn a_cache_mark_that_moves_is_no_change() {
    let server = Server::new(Script::by_content(|_| Step::text("so")));
    let marked = |text: &str| json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
    let plain = |text: &str| json!({"type": "text", "text": text});
    let said = json!({"role": "assistant", "content": [plain("so")]});
    let first = json!([{"role": "user", "content": [marked("Do it.")]}]);
    let second =
        json!([{"role": "user", "content": [plain("Do it.")]}, said, {"role": "user", "content": [marked("Go on.")]}]);
    for (nth, messages) in [first, second].iter().enumerate() {
        let (status, answer) =
            ask(&server, Wire::Messages, &format!("r{nth}"), &body(Wire::Messages, messages).to_string());
        assert_eq!(status, 200, "{answer}");
    }
}

#[test]
fn the_catalog_has_both_aliases_and_a_wrong_key_is_refused() {
    let server = Server::new(vec![]);
    for path in ["/model/info", "/v1/model/info", "/v1/models?include_metadata=true&fallback_type=general"] {
        let (status, answer) = get(&server, path);
        assert_eq!(status, 200, "{answer}");
        assert!(
            answer.contains("case-model") && answer.contains("case-native") && answer.contains("100000"),
            "{answer}"
        );
    }
    let (status, _) =
        send(&server, "GET /model/info HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer no\r\n\r\n");
    assert_eq!(status, 401);
}

#[test]
fn a_script_that_is_over_is_a_violation() {
    let server = Server::new(vec![]);
    assert_eq!(ask(&server, Wire::Chat, "r1", &body(Wire::Chat, &json!([brief()])).to_string()).0, 400);
    assert!(server.take_violations().join("").contains("no answer"));
}

#[test]
fn streams_break_pause_and_carry_any_byte_where_the_script_says() {
    let server = Server::new(vec![
        Step::text("half of it").cut(),
        Step::stream(vec![Piece::Bytes(b"data: a\n\n".to_vec()), Piece::Pause(Duration::from_millis(1)), Piece::Cut]),
        Step::error(429, &[("retry-after", "7")], "throttling_error", "slow down"),
        Step::text("x").no_usage().usage(7, 3),
    ]);
    let asked = body(Wire::Chat, &json!([brief()])).to_string();
    let (status, answer) = ask(&server, Wire::Chat, "r1", &asked);
    assert!(status == 200 && answer.contains("of it") && !answer.contains("DONE"), "{answer}");
    let (_, answer) = ask(&server, Wire::Chat, "r2", &asked);
    assert!(answer.contains("data: a") && !answer.contains("\r\n0\r\n"), "{answer}");
    let (status, answer) = ask(&server, Wire::Chat, "r3", &asked);
    assert!(status == 429 && answer.contains("retry-after: 7") && answer.contains("slow down"), "{answer}");
    let (_, answer) = ask(&server, Wire::Chat, "r4", &asked);
    assert!(answer.contains(r#""total_tokens":10"#), "{answer}");
}

#[test]
fn a_server_goes_down_and_comes_back_at_the_same_port() {
    let server = Server::new(vec![]);
    let switch = server.switch();
    switch.down();
    let down = || TcpStream::connect(server.address()).is_err();
    assert!(wait_until(Duration::from_secs(30), down), "the port is still open");
    switch.up();
    assert_eq!(get(&server, "/v1/models").0, 200);
}

#[test]
fn the_fingerprint_sees_content_modes_links_and_git_and_allows_what_is_ours() {
    let directory = tempfile::tempdir().unwrap();
    let checkout = Checkout::new(&directory.path().join("checkout"));
    checkout.write("a.txt", "a\n").write("run.sh", "true\n").executable("run.sh").link("a.txt", "link").commit("base");
    let before = Fingerprint::of(checkout.path());
    let at = |name: &str| checkout.path().join(name);
    assert_eq!(before.changes(&Fingerprint::of(checkout.path()), &[]), Vec::<String>::new());

    checkout.git(&["update-ref", "refs/nisse/discarded/x", "HEAD"]);
    checkout.git(&["branch", "nisse/x-y"]);
    checkout.git(&["worktree", "add", "--quiet", directory.path().join("w").to_str().unwrap(), "nisse/x-y"]);
    assert_eq!(before.changes(&Fingerprint::of(checkout.path()), &[]), Vec::<String>::new());

    let expect = |wanted: &str, also: &[String]| {
        let changes = before.changes(&Fingerprint::of(checkout.path()), also);
        assert!(changes.len() == 1 && changes[0].starts_with(wanted), "{wanted}: {changes:?}");
    };
    checkout.write("a.txt", "b\n");
    expect("a.txt: was", &[]);
    checkout.write("a.txt", "a\n");
    fs::set_permissions(at("run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    expect("run.sh: was file 755", &[]);
    fs::set_permissions(at("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(at("link")).unwrap();
    expect("link: was link to a.txt, is gone", &[]);
    checkout.link("a.txt", "link").write("new.txt", "");
    expect("new.txt: new", &[]);
    checkout.write(".git/hooks/post-checkout", "evil");
    expect(".git/hooks/post-checkout: new", &["new.txt".to_owned()]);
}

#[test]
fn a_transcript_shows_each_message_once_and_nothing_of_this_machine() {
    let server = Server::new(Script::by_content(|_| Step::text("so")));
    let said = json!({"role": "assistant", "content": "so"});
    let told =
        json!({"role": "user", "content": format!("Work in /world/w on {} at {}.", server.url(), "0a".repeat(20))});
    for (nth, messages) in
        [json!([told]), json!([told, said, brief()]), json!([told, said, brief()])].iter().enumerate()
    {
        ask(&server, Wire::Chat, &format!("r{nth}"), &body(Wire::Chat, messages).to_string());
    }
    let text = transcript(&server.requests(), "{\"duration_s\": 1.25}\n", "said\n", "/world");
    assert!(text.contains("Work in [ROOT]/w on http://127.0.0.1:[PORT] at [COMMIT]."), "{text}");
    assert!(text.contains("\"duration_s\": [TIME]") && text.contains("=== stderr\nsaid\n"), "{text}");
    assert_eq!(text.matches("Work in").count(), 1, "{text}");
    // once when it is new, once when the request is sent again
    assert_eq!((text.matches("Read a.txt.").count(), text.matches("\"tools\"").count()), (2, 1), "{text}");
}
