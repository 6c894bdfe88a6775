//! Trouble that a real proxy hands on: each class ends as it should, says so, can be gone on from, and no second layer
//! of retries multiplies the calls.

use super::{MODELS, environment, events, faulty, start};
use crate::support::Run;

/// Calls at the vendor of a whole job.
const JOB: usize = 4;
/// Attempts before a task is interrupted.
const TRIES: usize = 6;

/// The class and the wait of each attempt that brought no reply.
fn attempts(run: &Run) -> Vec<(String, Option<u64>)> {
    events(run, "request_ended")
        .into_iter()
        .map(|ended| (ended["trouble"].as_str().unwrap().to_owned(), ended["retry_in_ms"].as_u64()))
        .collect()
}

/// What a program and a person are told, as one text.
fn told(run: &Run) -> String {
    format!("{}\n{}", run.result()["cause"].as_str().unwrap(), run.stderr)
}

#[test]
fn a_rate_limit_is_waited_out_and_the_wait_is_told() {
    // the native route hands no wait on
    for (role, wait_ms, wait) in [(MODELS[0], 7000, "7 s"), (MODELS[1], 20_000, "20 s")] {
        let (brief, name) = faulty("limited");
        let env = environment(start::open(), role);
        let run = env.delegate(&[], &brief);
        let result = run.ends(0, "handback");
        assert_eq!(attempts(&run), [("rate_limited".to_owned(), Some(wait_ms))]);
        assert!(run.stderr.contains("rate limited: HTTP 429"), "{}", run.report());
        assert!(run.stderr.contains(&format!("asking again in {wait}")), "{}", run.report());
        assert_eq!(start::open().calls(&name).len(), 1 + JOB, "a second layer asks again\n{}", run.report());
        assert_eq!(result["turns"], 4, "a lost request is no turn");
    }
}

#[test]
fn a_wait_that_is_too_long_is_told_and_interrupts_at_once() {
    let (brief, name) = faulty("limited-long");
    let env = environment(start::open(), MODELS[0]);
    let run = env.delegate(&[], &brief);
    let interrupted = run.ends(5, "interrupted");
    assert_eq!(start::open().calls(&name).len(), 1);
    assert!(told(&run).contains("asks to wait 24h"), "nobody says when to come back\n{}", run.report());
    assert!(interrupted["cause"].as_str().unwrap().contains("24h"), "{interrupted}");
    env.run(&["resume", "--json"]).ends(0, "handback");
}

/// The vendor answers every attempt with this fault until the task is interrupted; then a resume finishes the job.
/// `calls` is how often an attempt comes to the vendor, on each route.
fn stays(fault: &str, classes: [&str; 2], words: [&str; 2], calls: [usize; 2]) {
    for (((role, class), words), calls) in MODELS.into_iter().zip(classes).zip(words).zip(calls) {
        let tries = match class {
            "cut" => 3,
            "vendor_key_refused" => 1,
            _ => TRIES,
        };
        let (brief, name) = faulty(&[fault].repeat(tries * calls).join(" "));
        let env = environment(start::open(), role);
        let run = env.delegate(&[], &brief);
        let interrupted = run.ends(5, "interrupted");
        let attempts = attempts(&run);
        assert_eq!(attempts.len(), tries, "{}", run.report());
        assert!(attempts.iter().all(|(trouble, _)| trouble == class), "{}", run.report());
        let waits: Vec<bool> = attempts.iter().map(|(_, wait)| wait.is_some()).collect();
        assert_eq!(waits, [vec![true; tries - 1], vec![false]].concat(), "{}", run.report());
        assert_eq!(start::open().calls(&name).len(), tries * calls, "a second layer asks again\n{}", run.report());
        assert!(told(&run).contains(words), "{words} is not told\n{}", run.report());
        let task = interrupted["task"].as_str().unwrap();
        assert!(run.stderr.contains(&format!("nisse resume {}", &task[24..])), "{}", run.report());
        let result = env.run(&["resume", "--json", task]).ends(0, "handback");
        assert_eq!(start::open().calls(&name).len(), tries * calls + JOB);
        assert_eq!(env.on_branch(&result, "spoilt.txt"), None, "something of a lost reply was done");
    }
}

#[test]
fn a_rate_limit_that_stays_interrupts() {
    stays("limited-untold", ["rate_limited"; 2], ["Rate limit reached", "organization's rate limit"], [1, 1]);
}

#[test]
fn a_broken_vendor_interrupts() {
    stays("broken", ["overloaded"; 2], ["The server had an error", "Internal server error"], [1, 1]);
}

#[test]
fn a_busy_vendor_interrupts() {
    stays("busy", ["overloaded"; 2], ["The engine is overloaded", "Overloaded"], [1, 1]);
}

#[test]
fn a_vendor_that_hangs_up_interrupts() {
    // for this route the proxy dials once more by itself, whatever it is told
    stays("reset", ["unreachable", "overloaded"], ["Connection error", "onnect"], [1, 2]);
}

#[test]
fn a_refused_key_of_the_proxys_own_interrupts() {
    stays("key", ["vendor_key_refused"; 2], ["the vendor refuses the proxy's own key"; 2], [1, 1]);
}

#[test]
fn replies_that_are_cut_again_and_again_interrupt() {
    stays("eof-call", ["cut"; 2], ["", ""], [1, 1]);
}

#[test]
fn a_vendor_that_does_not_answer_in_time_is_asked_again() {
    for role in ["local-hasty", "remote-hasty"] {
        let (brief, name) = faulty("hang");
        let run = environment(start::open(), role).delegate(&[], &brief);
        run.ends(0, "handback");
        let attempts = attempts(&run);
        assert_eq!(attempts.len(), 1, "{}", run.report());
        assert!(run.stderr.contains("HTTP 408"), "{}", run.report());
        assert_eq!(start::open().calls(&name).len(), 1 + JOB, "a second layer asks again\n{}", run.report());
    }
}

#[test]
fn a_vendor_where_nobody_listens_interrupts() {
    for role in ["local-nowhere", "remote-nowhere"] {
        let env = environment(start::open(), role);
        let run = env.delegate(&[], "Mend the median.");
        let interrupted = run.ends(5, "interrupted");
        assert_eq!(attempts(&run).len(), TRIES, "{}", run.report());
        assert!(env.checkout.has_ref(&format!("refs/heads/{}", interrupted["branch"].as_str().unwrap())));
        env.assert_checkout_unchanged();
    }
}

#[test]
fn nothing_of_a_cut_reply_is_done() {
    for role in MODELS {
        for fault in ["rst-text", "eof-text", "rst-call", "eof-call", "rst-end", "eof-end"] {
            if (role, fault) == (MODELS[0], "eof-text") || (role, fault) == (MODELS[0], "eof-end") {
                continue; // see the next test
            }
            let (brief, name) = faulty(fault);
            let env = environment(start::open(), role);
            let run = env.delegate(&[], &brief);
            let result = run.ends(0, "handback");
            assert_eq!(env.on_branch(&result, "spoilt.txt"), None, "{fault}\n{}", run.report());
            assert_eq!(start::open().calls(&name).len(), 1 + JOB, "{fault}\n{}", run.report());
            let class = attempts(&run).first().map(|(class, _)| class.clone()).unwrap_or_default();
            // a reset that the proxy sees before it has handed anything on is an error of its own
            let early = class == "overloaded" && fault.starts_with("rst");
            assert!(class == "cut" || early, "{fault}\n{}", run.report());
            assert_eq!(result["turns"], JOB, "{fault}\n{}", run.report());
        }
    }
}

/// On the normalized route the proxy ends a reply that was cut between two pieces with a stop and a count of its own:
/// nothing tells it from a whole one. What runs of it is whole calls, and the task goes on.
#[test]
fn a_cut_that_the_proxy_hides_does_no_harm() {
    for fault in ["eof-text", "eof-end"] {
        let (brief, name) = faulty(fault);
        let env = environment(start::open(), MODELS[0]);
        let run = env.delegate(&["--check", "python3 test_stats.py"], &brief);
        let result = run.ends(0, "handback");
        let spoilt = env.on_branch(&result, "spoilt.txt");
        assert!(spoilt.is_none() || spoilt.as_deref() == Some(b"spoilt"), "half a call was done\n{}", run.report());
        assert_eq!(start::open().calls(&name).len(), 1 + JOB, "{fault}\n{}", run.report());
    }
}

#[test]
fn nothing_of_a_truncated_reply_is_done_and_the_model_is_told() {
    for role in MODELS {
        let (brief, name) = faulty("truncated");
        let env = environment(start::open(), role);
        let run = env.delegate(&[], &brief);
        let result = run.ends(0, "handback");
        assert_eq!(env.on_branch(&result, "spoilt.txt"), None);
        assert_eq!((result["turns"].as_u64(), start::open().calls(&name).len()), (Some(5), 5));
        let not_run = &events(&run, "tool_result")[0];
        assert_eq!(not_run["status"], "not_run", "{}", run.report());
        assert!(not_run["content"].as_str().unwrap().contains("limit"), "{not_run}");
    }
}

#[test]
fn a_request_is_not_handed_to_the_models_that_stand_by() {
    for (role, backing) in [("local-standby", "scripted-standby"), ("remote-standby", "claude-standby")] {
        let (brief, name) = faulty(&["broken"].repeat(TRIES).join(" "));
        let run = environment(start::open(), role).delegate(&[], &brief);
        run.ends(5, "interrupted");
        assert_eq!(
            start::open().calls(&name),
            [backing].repeat(TRIES),
            "another model got the request\n{}",
            run.report()
        );
    }
}

#[test]
fn a_model_that_stands_by_may_answer_where_the_person_allows_it() {
    for (role, backings) in [
        ("local-standby", ["scripted-standby", "scripted-coder"]),
        ("remote-standby", ["claude-standby", "claude-scripted"]),
    ] {
        let (brief, name) = faulty("broken");
        let env = environment(start::open(), role);
        env.set("NISSE_DELEGATE_FALLBACK", "allow");
        let run = env.delegate(&[], &brief);
        run.ends(0, "handback");
        assert_eq!(start::open().calls(&name)[..2], backings, "{}", run.report());
        let replies = events(&run, "reply_received");
        let who = |reply: &serde_json::Value| reply["reply"]["answered_by"]["fallback"].as_bool().unwrap();
        let fallbacks: Vec<bool> = replies.iter().map(who).collect();
        assert_eq!(fallbacks, [true, false, false, false], "{}", run.report());
        assert!(run.stderr.contains("instead"), "the person is not told\n{}", run.report());
    }
}

#[test]
fn a_request_that_does_not_fit_waits_for_the_person() {
    for role in MODELS {
        let (brief, name) = faulty(&["overflow"].repeat(3).join(" "));
        let env = environment(start::open(), role);
        let run = env.delegate(&[], &brief);
        run.ends(6, "gated");
        assert!((1..=3).contains(&start::open().calls(&name).len()), "{}", run.report());
        assert!(told(&run).contains("context"), "{}", run.report());
    }
}

#[test]
fn a_request_that_was_wrong_fails_the_task() {
    for role in MODELS {
        let (brief, name) = faulty("wrong");
        let env = environment(start::open(), role);
        let run = env.delegate(&[], &brief);
        let failed = run.ends(3, "failed");
        assert_eq!(start::open().calls(&name).len(), 1);
        env.assert_discarded(&failed);
    }
}

#[test]
fn an_account_at_the_vendor_without_money_interrupts_at_once() {
    for role in MODELS {
        let (brief, name) = faulty("unpaid");
        let env = environment(start::open(), role);
        let run = env.delegate(&[], &brief);
        run.ends(5, "interrupted");
        assert_eq!(attempts(&run), [("budget_gone".to_owned(), None)], "{}", run.report());
        assert_eq!(start::open().calls(&name).len(), 1, "a second layer asks again\n{}", run.report());
        assert!(told(&run).contains("the proxy's own account with the vendor"), "whose is not told\n{}", run.report());
        env.run(&["resume", "--json"]).ends(0, "handback");
    }
}

#[test]
fn a_model_that_the_proxy_does_not_offer_is_told_before_anything_is_touched() {
    let env = environment(start::open(), "local-codr");
    let run = env.delegate(&[], "Mend the median.");
    run.exits(2);
    assert!(run.stderr.contains("local-codr") && run.stderr.contains("local-coder"), "{}", run.report());
    assert_eq!(env.run(&["log", "--json"]).exits(0).json()[0]["tasks"], serde_json::json!([]), "a task was begun");
}
