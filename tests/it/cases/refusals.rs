//! What proxies, gateways and vendors refused to users of other agents: limits, budgets, models, keys, sizes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{Asked, Run, Script, Step, TestEnvironment, Wire};

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

#[test]
fn a_rate_limit_is_waited_out_as_long_as_it_says() {
    let date = [("retry-after", "Sun, 29 Nov 2026 00:01:30 GMT"), ("date", "Sun, 29 Nov 2026 00:00:00 GMT")];
    let cases: [(&[(&str, &str)], u64); 4] =
        [(&[("retry-after", "3")], 3000), (&[("llm_provider-retry-after", "4")], 4000), (&date, 90_000), (&[], 20_000)];
    for wire in Wire::BOTH {
        for (headers, wait_ms) in cases {
            let env = TestEnvironment::new(wire, vec![limited(headers), write(), Step::hand_back()]);
            let run = env.delegate(&[], "Add b.txt.");
            run.ends(0, "handback");
            assert_eq!(lost(&run)[0]["retry_in_ms"], wait_ms, "{}", run.report());
            let wait = format!("asking again in {} s", wait_ms / 1000);
            assert!(run.stderr.contains(&wait), "the wait is not told\n{}", run.report());
        }
    }
}

#[test]
fn a_wait_beyond_the_time_that_is_left_rests_and_says_when_to_come_back() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(wire, vec![limited(&[("retry-after", "86400")]), write(), Step::hand_back()]);
        let run = env.delegate(&["--max-time", "60s"], "Add b.txt.");
        let rests = run.ends(5, "interrupted");
        assert!(rests["cause"].as_str().unwrap().contains("asks to wait 24h"), "{rests}");
        assert!(run.stderr.contains("asks to wait 24h"), "{}", run.report());
        env.run(&["resume", "--json"]).ends(0, "handback");
    }
}

#[test]
fn a_spent_budget_is_known_in_every_wording_and_its_figures_are_told() {
    let wordings = [
        (400, "budget_exceeded", "Budget has been exceeded! Current cost: 26.07, Max budget: 25.0", "26.07", "25"),
        (
            429,
            "None",
            "No deployments available - crossed budget: Exceeded budget for deployment model_name: m: 0.363 >= 0.36",
            "0.363",
            "0.36",
        ),
        (
            400,
            "null",
            "litellm.BadRequestError: OpenAIException - ExceededBudget: End User=dev over budget. Spend=0.9, Budget=0.5",
            "0.9",
            "0.5",
        ),
    ];
    for wire in Wire::BOTH {
        for (status, kind, text, spent, allowed) in wordings {
            let env =
                TestEnvironment::new(wire, vec![write(), Step::error(status, &[], kind, text), Step::hand_back()]);
            let run = env.delegate(&[], "Do the work.");
            run.ends(5, "interrupted");
            assert_eq!(env.server.requests().len(), 2, "a spent budget was asked again\n{}", run.report());
            let figures = format!("is used up: ${spent} spent of ${allowed}");
            assert!(run.stderr.contains(&figures), "{figures}\n{}", run.report());
            env.run(&["resume", "--json"]).ends(0, "handback");
            assert_eq!(env.server.requests()[2].replayed_calls(), ["write_file"], "the work before is asked for again");
        }
    }
}

#[test]
fn a_wrong_address_is_named_by_every_command() {
    let env = TestEnvironment::new(Wire::Chat, Vec::<Step>::new());
    let wrong = format!("{}/litellm", env.server.url());
    env.set("NISSE_LLM_BASE_URL", &wrong);
    for run in [env.run(&["models"]), env.delegate(&[], "Say hello."), env.run(&["doctor"])] {
        run.exits(2);
        let said = format!("{}{}", run.stdout, run.stderr);
        assert!(said.contains(&format!("{wrong}/v1/models")), "the address is not named\n{}", run.report());
    }
}

#[test]
fn an_http_proxy_that_is_down_is_named_without_its_password() {
    let env = TestEnvironment::new(Wire::Chat, vec![write(), Step::hand_back()]);
    env.set("HTTP_PROXY", "http://me:hush@127.0.0.1:1");
    let run = env.delegate(&[], "Say hello.");
    run.exits(1);
    assert!(run.stderr.contains("HTTP_PROXY=http://127.0.0.1:1"), "{}", run.report());
    assert!(!run.stderr.contains("hush"), "{}", run.report());
    env.set("NO_PROXY", "127.0.0.1,localhost");
    env.delegate(&[], "Say hello.").ends(0, "handback");
}

#[test]
fn a_model_that_takes_no_tool_choice_is_asked_without_it_from_then_on() {
    for wire in Wire::BOTH {
        let refused =
            "litellm.UnsupportedParamsError: fireworks_ai does not support parameters: ['tool_choice'], for model=x";
        let env = TestEnvironment::new(
            wire,
            vec![
                Step::error(400, &[], "None", refused),
                write(),
                Step::error(429, &[("retry-after", "86400")], "throttling_error", "later"),
                Step::hand_back(),
            ],
        );
        let config = env.root().join("config.toml");
        std::fs::write(&config, format!("[models.{:?}]\ntool_choice = true\n", wire.alias())).unwrap();
        env.set("NISSE_CONFIG", config.to_str().unwrap());
        let run = env.delegate(&[], "Add b.txt.");
        run.ends(5, "interrupted");
        env.run(&["resume", "--json"]).ends(0, "handback");
        let sent: Vec<bool> =
            env.server.requests().iter().map(|asked| asked.body.get("tool_choice").is_some()).collect();
        assert_eq!(sent, [true, false, false, false], "{}", run.report());
    }
}

#[test]
fn a_model_that_the_proxy_no_longer_knows_is_named_with_those_that_it_knows() {
    for wire in Wire::BOTH {
        let unknown =
            "/chat/completions: Invalid model name passed in model=no-such. Call `/v1/models` to view models.";
        let env = TestEnvironment::new(
            wire,
            vec![write(), Step::error(400, &[], "invalid_request_error", unknown), Step::hand_back()],
        );
        let run = env.delegate(&[], "Add b.txt.");
        run.exits(2);
        for name in ["no-such", "case-model", "case-native", "nisse resume"] {
            assert!(run.stderr.contains(name), "{name} is not told\n{}", run.report());
        }
        assert_eq!(env.server.requests().len(), 2, "it was asked again\n{}", run.report());
        env.run(&["resume", "--json"]).ends(0, "handback");
    }
}

#[test]
fn a_model_without_tools_fails_the_task_at_once() {
    for wire in Wire::BOTH {
        let refused = "litellm.UnsupportedParamsError: together_ai does not support parameters: ['tools'], for model=x";
        let env = TestEnvironment::new(wire, vec![Step::error(400, &[], "None", refused)]);
        let result = env.delegate(&[], "Add b.txt.").ends(3, "failed");
        assert!(result["cause"].as_str().unwrap().contains("tools unsupported"), "{result}");
        assert_eq!(env.server.requests().len(), 1);
    }
}

#[test]
fn pages_of_a_gateway_are_told_in_one_plain_line_and_ridden_out() {
    for wire in Wire::BOTH {
        let page = format!(
            "<html><head><title>502 Bad Gateway</title></head><body>\u{1b}[2J{}</body></html>",
            "x".repeat(5000)
        );
        let env = TestEnvironment::new(
            wire,
            vec![
                Step::plain(502, &[], "text/html", &page),
                Step::plain(504, &[], "text/html", ""),
                Step::plain(200, &[], "text/html", "<!DOCTYPE html><title>Sign in</title>"),
                write(),
                Step::hand_back(),
            ],
        );
        let run = env.delegate(&[], "Add b.txt.");
        run.ends(0, "handback");
        assert!(run.stderr.contains("502 Bad Gateway") && run.stderr.contains("Sign in"), "{}", run.report());
        assert!(run.stderr.lines().all(|line| line.chars().count() < 300), "{}", run.report());
        assert!(!run.stderr.contains(['<', '\u{1b}']), "{}", run.report());
    }
}

#[test]
fn a_key_that_is_refused_in_the_middle_leaves_the_task_and_another_key_goes_on() {
    for wire in Wire::BOTH {
        let text = "Authentication Error, Invalid proxy server token passed. Received API Key = sk-...abcd";
        let env = TestEnvironment::new(
            wire,
            vec![write(), Step::error(401, &[], "token_not_found_in_db", text), Step::hand_back()],
        );
        let run = env.delegate(&[], "Add b.txt.");
        run.exits(2);
        assert_eq!(run.json().pop().unwrap()["error"]["kind"], "key_refused", "{}", run.report());
        assert!(run.stderr.contains("token") && run.stderr.contains("nisse resume"), "{}", run.report());
        assert_eq!(env.server.requests().len(), 2);
        env.run(&["resume", "--json"]).ends(0, "handback");
    }
}

#[test]
fn a_request_that_is_too_long_never_grows_and_rests_with_the_word() {
    let wordings = [
        (400, "null", "litellm.ContextWindowExceededError: This model's maximum context length is 8192 tokens."),
        (413, "null", "Request exceeds the maximum size"),
        (400, "invalid_request_error", "prompt is too long: 214676 tokens > 200000 maximum"),
    ];
    for wire in Wire::BOTH {
        for (status, kind, text) in wordings {
            let fits = Arc::new(AtomicBool::new(false));
            let known = Arc::clone(&fits);
            let script = Script::by_content(move |asked: &Asked| match asked.replies() {
                0 => Step::call("run_command", json!({"command": "seq 1 60000; touch b.txt"})),
                _ if known.load(Ordering::SeqCst) => Step::hand_back(),
                _ => Step::error(status, &[], kind, text),
            });
            let env = TestEnvironment::new(wire, script);
            let run = env.delegate(&[], "Count, then report.");
            let rests = run.ends(6, "gated");
            assert!(rests["cause"].as_str().unwrap().contains("context"), "{rests}");
            let requests = env.server.requests();
            let refused = &requests[1..];
            assert!((1..=3).contains(&refused.len()), "{} refused requests\n{}", refused.len(), run.report());
            assert!(refused.windows(2).all(|pair| pair[1].raw.len() < pair[0].raw.len()), "a request did not shrink");
            assert!(
                requests.iter().all(|asked| !asked.raw.contains(text)),
                "the error became part of the conversation"
            );
        }
    }
}

/// What happens, the script, the arguments, and the exit status.
type Case = (&'static str, Script, &'static [&'static str], i32);

#[test]
fn a_pipeline_can_tell_every_end_by_its_status_and_reads_nothing_but_json() {
    let boom = || Step::error(500, &[], "None", "boom");
    let forever = || Script::by_content(move |_: &Asked| boom());
    let cases: [Case; 5] = [
        ("the vendor is broken", forever(), &["delegate", "--json", "Add b.txt."], 5),
        ("the task cannot be done", vec![Step::give_up()].into(), &["delegate", "--json", "Add b.txt."], 3),
        ("a cap", vec![write()].into(), &["delegate", "--json", "--max-turns", "1", "Add b.txt."], 4),
        ("a wrong option", Vec::new().into(), &["delegate", "--json", "--no-such", "Add b.txt."], 2),
        ("a wrong cap", Vec::new().into(), &["delegate", "--json", "--max-turns", "none", "Add b.txt."], 2),
    ];
    for (what, script, arguments, exit) in cases {
        let env = TestEnvironment::new(Wire::Chat, script);
        let run = env.run(arguments);
        run.exits(exit);
        let last = run.json().pop();
        assert!(last.as_ref().is_none_or(|last| last["exit"] == exit), "{what}\n{}", run.report());
        assert!(!run.stderr.trim().is_empty(), "{what}: nobody is told\n{}", run.report());
    }
    let env = TestEnvironment::new(Wire::Chat, Vec::<Step>::new());
    env.server.switch().down();
    assert!(crate::support::wait_until(Duration::from_secs(30), || {
        std::net::TcpStream::connect(env.server.address()).is_err()
    }));
    let run = env.delegate(&[], "Add b.txt.");
    assert_eq!(run.exits(1).json().pop().unwrap()["error"]["kind"], "proxy_unreachable", "{}", run.report());
}
