//! A task that outgrows its model's window goes on without its oldest results, and rests where that is not enough.

use serde_json::json;

use crate::support::{Asked, Script, Step, TestEnvironment, Wire};

/// Both aliases with this window.
fn windows(tokens: u32) -> String {
    Wire::BOTH.map(|wire| format!("[models.\"{}\"]\nmax_input_tokens = {tokens}\n", wire.alias())).concat()
}

/// Reads a part of a large file in each of `turns` turns, writes one, and hands back.
fn reader(turns: usize) -> impl Fn(&Asked) -> Step + Send + Sync + 'static {
    move |asked| match asked.replies() {
        n if n < turns => Step::call("read_file", json!({"path": format!("f{n}.txt")})),
        n if n == turns => Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})),
        _ => Step::hand_back(),
    }
}

fn environment(wire: Wire, script: Script, files: usize) -> TestEnvironment {
    let env = TestEnvironment::new(wire, script);
    for n in 0..files {
        let text = format!("a line of file {n}, of which nothing matters much\n").repeat(100);
        env.checkout.write(&format!("f{n}.txt"), &text);
    }
    env.checkout.commit("files to read");
    env
}

fn stubs(asked: &Asked) -> usize {
    asked.answers().iter().filter(|answer| answer.text.contains("left out to save room")).count()
}

#[test]
fn older_results_are_left_out_in_large_steps_and_the_task_is_handed_back() {
    for wire in Wire::BOTH {
        let env = environment(wire, Script::by_content(reader(24)), 24);
        env.configure(&windows(32_000));
        env.delegate(&["-v"], "Read all, then make b.txt.").ends(0, "handback");
        let asked = env.server.requests();
        let steps = asked.windows(2).filter(|pair| stubs(&pair[0]) != stubs(&pair[1])).count();
        assert!((1..=4).contains(&steps), "{steps} evictions");
        for request in &asked {
            // the budget without the output ceiling, at three and a half bytes a token
            assert!(request.raw.len() < (32_000 - 3_200 - 4_096) * 7 / 2 + 20_000, "{} bytes", request.raw.len());
            let answers = request.answers();
            let whole = answers.iter().rev().take_while(|answer| !answer.text.contains("left out")).count();
            assert!(whole >= 6.min(answers.len()), "{whole} of {} are whole", answers.len());
        }
    }
}

#[test]
fn what_a_resume_asks_has_the_same_results_left_out() {
    for wire in Wire::BOTH {
        let refused = std::sync::atomic::AtomicBool::new(false);
        let reads = reader(24);
        let script = Script::by_content(move |asked| {
            if asked.replies() == 22 && !refused.swap(true, std::sync::atomic::Ordering::SeqCst) {
                return Step::error(422, &[], "budget_exceeded", "Budget has been exceeded! Key=test");
            }
            reads(asked)
        });
        let env = environment(wire, script, 24);
        env.configure(&windows(32_000));
        env.delegate(&[], "Read all, then make b.txt.").ends(5, "interrupted");
        // what is configured today does not count
        env.configure(&windows(90_000));
        env.run(&["resume", "--json"]).ends(0, "handback");
        let asked = env.server.requests();
        let both: Vec<&Asked> = asked.iter().filter(|asked| asked.replies() == 22).collect();
        assert_eq!(both.len(), 2);
        assert!(stubs(both[0]) > 0);
        assert_eq!(both[0].raw, both[1].raw);
    }
}

#[test]
fn a_request_that_the_proxy_finds_too_large_is_made_smaller() {
    for wire in Wire::BOTH {
        let reads = reader(10);
        let script = Script::by_content(move |asked| {
            if asked.raw.len() > 40_000 {
                let message = "litellm.ContextWindowExceededError: litellm.BadRequestError: maximum context length";
                return Step::error(400, &[], "invalid_request_error", message);
            }
            reads(asked)
        });
        let env = environment(wire, script, 10);
        env.delegate(&[], "Read all, then make b.txt.").ends(0, "handback");
        let asked = env.server.requests();
        let too_large: Vec<usize> =
            asked.iter().enumerate().filter(|(_, asked)| asked.raw.len() > 40_000).map(|(at, _)| at).collect();
        assert!(!too_large.is_empty());
        for at in too_large {
            assert!(asked[at + 1].raw.len() < asked[at].raw.len());
        }
    }
}

#[test]
fn an_overflow_that_no_eviction_ends_waits_for_a_person_and_can_go_on() {
    for wire in Wire::BOTH {
        let mended = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (known, reads) = (std::sync::Arc::clone(&mended), reader(8));
        let script = Script::by_content(move |asked| {
            if asked.replies() == 8 && !known.load(std::sync::atomic::Ordering::SeqCst) {
                return Step::error(400, &[], "invalid_request_error", "prompt is too long: 300 tokens > 200 maximum");
            }
            reads(asked)
        });
        let env = environment(wire, script, 8);
        let run = env.delegate(&[], "Read all, then make b.txt.");
        let cause = run.ends(6, "gated")["cause"].to_string();
        assert!(cause.contains("prompt is too long") && cause.contains("3 times, each smaller"), "{cause}");
        let sizes: Vec<usize> =
            env.server.requests().iter().filter(|asked| asked.replies() == 8).map(|asked| asked.raw.len()).collect();
        assert!(sizes.len() == 3 && sizes.is_sorted_by(|a, b| a > b), "{sizes:?}");
        mended.store(true, std::sync::atomic::Ordering::SeqCst);
        env.run(&["resume", "--json"]).ends(0, "handback");
    }
}

#[test]
fn nothing_is_sent_that_the_window_cannot_hold() {
    for wire in Wire::BOTH {
        let env = environment(wire, Script::by_content(reader(1)), 1);
        env.configure(&windows(3_000));
        let run = env.delegate(&[], "Read it.");
        let cause = run.ends(6, "gated")["cause"].to_string();
        assert!(cause.contains("window") && cause.contains("3000"), "{cause}");
        assert!(env.server.requests().is_empty());
    }
}
