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

/// Nothing is pending, and nobody was asked.
fn nothing_begun(env: &TestEnvironment) {
    assert!(env.server.requests().is_empty());
    assert!(env.run(&["resume", "--json"]).exits(0).stderr.contains("nothing is pending"));
    assert_eq!(env.checkout.git(&["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
}

#[test]
fn a_window_too_small_for_the_first_request_is_found_before_the_task_begins() {
    for wire in Wire::BOTH {
        let env = environment(wire, Script::by_content(reader(0)), 1);
        env.configure(&windows(4_000));
        let run = env.delegate(&[], "Make b.txt.");
        let error = run.exits(2).json().pop().unwrap()["error"].clone();
        assert_eq!(error["kind"], "window_too_small", "{error}");
        assert!(error["message"].as_str().unwrap().contains("of its 4000"), "{error}");
        nothing_begun(&env);
        let doctor = env.run(&["doctor"]);
        let hint = error["hint"].as_str().unwrap().to_owned();
        assert!(doctor.exits(2).stdout.contains("does not fit the window"), "{}", doctor.report());
        // what is said to help does
        let ceiling = hint.split("NISSE_MAX_OUTPUT_TOKENS=").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        env.set("NISSE_MAX_OUTPUT_TOKENS", &ceiling);
        env.run(&["doctor"]).exits(0);
        env.delegate(&[], "Make b.txt.").ends(0, "handback");
    }
}

#[test]
fn a_window_that_no_ceiling_makes_large_enough_is_told_as_that() {
    let env = environment(Wire::Chat, Script::by_content(reader(1)), 1);
    env.configure(&windows(3_000));
    let error = env.delegate(&[], "Read it.").exits(2).json().pop().unwrap()["error"].clone();
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.contains("larger window") && !hint.contains("NISSE_MAX_OUTPUT_TOKENS"), "{hint}");
    nothing_begun(&env);
    // a long brief counts too, and so does a long description of the repository
    let env = environment(Wire::Chat, Script::by_content(reader(0)), 1);
    env.configure(&windows(9_000));
    env.delegate(&[], &"Make b.txt. ".repeat(2000)).exits(2);
    env.person(|checkout| {
        checkout.write("AGENTS.md", "Use tabs.\n".repeat(600)).write("CLAUDE.md", "No.\n".repeat(3000));
    });
    env.delegate(&[], "Make b.txt.").exits(2);
    nothing_begun(&env);
    env.configure(&windows(32_000));
    env.delegate(&[], "Make b.txt.").ends(0, "handback");
}

#[test]
fn nothing_is_sent_that_the_window_cannot_hold_and_what_helps_is_named() {
    for wire in Wire::BOTH {
        let script = Script::by_content(|asked: &Asked| match (asked.replies(), asked.raw.contains("Go on")) {
            (0, false) => Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})),
            (1, false) => Step::call("read_file", json!({"path": "f0.txt"})),
            (0, true) => Step::call("write_file", json!({"path": "c.txt", "content": "c\n"})),
            _ => Step::hand_back(),
        });
        let env = environment(wire, script, 1);
        env.configure(&windows(4_000)).set("NISSE_MAX_OUTPUT_TOKENS", "500");
        let run = env.delegate(&[], "Read it.");
        let result = run.ends(6, "gated");
        let cause = result["cause"].as_str().unwrap();
        assert!(cause.contains("window") && cause.contains("4000"), "{cause}");
        assert_eq!(env.server.requests().len(), 2);
        // as it is said
        let task = result["task"].as_str().unwrap();
        let base = format!("refs/nisse/discarded/{task}");
        assert!(
            cause.contains(&format!("nisse drop {}", &task[24..])) && cause.contains(&format!("--base {base}")),
            "{cause}"
        );
        env.run(&["drop", "--json", task]).ends(0, "dropped");
        env.configure(&windows(32_000));
        let result = env.delegate(&["--base", &base], "Go on.").ends(0, "handback");
        assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"b\n");
        assert_eq!(env.on_branch(&result, "c.txt").unwrap(), b"c\n");
    }
}

#[test]
fn a_server_that_counts_far_less_than_it_is_sent_is_told_of_once() {
    for wire in Wire::BOTH {
        let write = |n: usize| Step::call("write_file", json!({"path": format!("w{n}.txt"), "content": "x\n"}));
        let rests = Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded.");
        let steps = vec![
            write(0).usage(512, 20),
            write(1).usage(2000, 20),
            write(2).usage(512, 20),
            rests,
            write(3).usage(512, 20),
            Step::hand_back().usage(512, 20),
        ];
        let env = environment(wire, steps.into(), 0);
        let words = "it truncates prompts, or drops the tools";
        let first = env.delegate(&[], "Make files.");
        first.ends(5, "interrupted");
        let noted = |text: &str| text.lines().filter(|line| line.starts_with("note: ") && line.contains(words)).count();
        assert_eq!(noted(&first.stderr), 1, "{}", first.report());
        let second = env.run(&["resume", "--json"]);
        let result = second.ends(0, "handback");
        assert_eq!(noted(&second.stderr), 0, "{}", second.report());
        assert!(result["notices"].to_string().contains(words), "{result}");
    }
}
