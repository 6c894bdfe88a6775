//! Limits that a real proxy sets: budgets, rates, models of a key, cooldowns.

use super::{MODELS, environment, events, faulty, start};
use crate::support::{Run, TestEnvironment};

fn with_key(key: &str, role: &str) -> TestEnvironment {
    let env = environment(start::limited(), role);
    env.set("NISSE_LLM_TOKEN", key);
    env
}

/// A budget's refusal: told once, with these words, and never asked again.
fn assert_budget_gone(run: &Run, words: &[&str]) {
    let interrupted = run.ends(5, "interrupted");
    let ended = events(run, "request_ended");
    assert_eq!(ended.len(), 1, "a spent budget was asked again\n{}", run.report());
    assert_eq!((&ended[0]["trouble"], &ended[0]["retry_in_ms"]), (&"budget_gone".into(), &serde_json::Value::Null));
    for word in words {
        assert!(interrupted["cause"].as_str().unwrap().contains(word), "{word} is not in the cause\n{}", run.report());
        assert!(run.stderr.contains(word), "{word} is not told\n{}", run.report());
    }
    let way_on = format!("nisse resume {}", &interrupted["task"].as_str().unwrap()[24..]);
    assert!(run.stderr.contains(&way_on), "{}", run.report());
}

#[test]
fn a_spent_key_interrupts_and_another_key_goes_on() {
    for role in MODELS {
        let (brief, name) = faulty("ok");
        let env = with_key("sk-test-spent", role);
        assert_budget_gone(&env.delegate(&[], &brief), &["the key's budget is used up: $0.", " spent of $0.0001"]);
        // the proxy reserves what a request may cost at most, and may see only at the second one that it is too much
        assert!(start::limited().calls(&name).len() <= 1);
        env.set("NISSE_LLM_TOKEN", "sk-test-plain");
        env.run(&["resume", "--json"]).ends(0, "handback");
        assert_eq!(start::limited().calls(&name).len(), 4);
    }
}

#[test]
fn a_spent_budget_of_a_key_for_one_model_is_told_as_that() {
    let (brief, name) = faulty("ok");
    let env = with_key("sk-test-model-spent", "local-coder");
    let run = env.delegate(&[], &brief);
    assert_budget_gone(&run, &["the key's budget for local-coder"]);
    assert_eq!(start::limited().calls(&name).len(), 1, "{}", run.report());
}

#[test]
fn a_spent_deployment_is_told_as_that() {
    for role in ["local-dear", "remote-dear"] {
        let (brief, name) = faulty("ok");
        let env = with_key("sk-test-plain", role);
        let run = env.delegate(&[], &brief);
        assert_budget_gone(&run, &[&format!("the budget of the deployment {role}")]);
        assert!(start::limited().calls(&name).len() <= 1, "{}", run.report());
    }
}

#[test]
fn a_spent_provider_is_told_with_both_figures() {
    let (brief, name) = faulty("ok");
    let env = with_key("sk-test-plain", "hosted-dear");
    let run = env.delegate(&[], &brief);
    assert_budget_gone(&run, &["the budget of the provider hosted_vllm is used up: $0.00014 spent of $0.0000001"]);
    assert_eq!(start::limited().calls(&name).len(), 1, "{}", run.report());
}

#[test]
fn a_key_that_may_ask_once_a_minute_is_waited_for() {
    for (role, waits) in MODELS.into_iter().zip([40_000..=60_000, 20_000..=20_000]) {
        let (brief, _) = faulty("ok");
        let env = with_key("sk-test-slow", role);
        let run = env.delegate(&[], &brief);
        run.ends(5, "interrupted");
        let ended = events(&run, "request_ended");
        assert!(ended.len() >= 6, "{}", run.report());
        let wait = ended[0]["retry_in_ms"].as_u64().unwrap();
        assert!(ended[0]["trouble"] == "rate_limited" && waits.contains(&wait), "{}", run.report());
    }
}

#[test]
fn a_refused_key_is_told_before_anything_is_touched() {
    for key in ["sk-test-nobody", "sk-test-expired"] {
        let env = with_key(key, "local-coder");
        let run = env.delegate(&[], "Mend the median.");
        run.exits(2);
        let error = run.json().pop().unwrap();
        assert_eq!(
            (&error["type"], &error["error"]["kind"]),
            (&"error".into(), &"key_refused".into()),
            "{}",
            run.report()
        );
        assert!(run.stderr.contains("token") && !run.stderr.contains(key), "{}", run.report());
    }
}

#[test]
fn a_model_that_the_key_may_not_use_is_no_model_of_its_catalog() {
    let env = with_key("sk-test-narrow", "remote-architect");
    let run = env.delegate(&[], "Mend the median.");
    run.exits(2);
    assert!(run.stderr.contains("remote-architect") && run.stderr.contains("local-coder"), "{}", run.report());
}

#[test]
fn a_model_that_is_taken_from_the_key_leaves_the_task_and_says_what_the_key_may_use() {
    let (brief, _) = faulty("unpaid");
    let env = with_key("sk-test-plain", "remote-architect");
    env.delegate(&[], &brief).ends(5, "interrupted");
    env.set("NISSE_LLM_TOKEN", "sk-test-narrow");
    let run = env.run(&["resume", "--json"]);
    run.exits(2);
    assert_eq!(run.json().pop().unwrap()["error"]["kind"], "model_denied", "{}", run.report());
    assert!(run.stderr.contains("remote-architect") && run.stderr.contains("local-coder"), "{}", run.report());
    assert!(run.stderr.contains("nisse resume"), "{}", run.report());
    env.set("NISSE_LLM_TOKEN", "sk-test-plain");
    env.run(&["resume", "--json"]).ends(0, "handback");
}

#[test]
fn a_deployment_that_cools_down_is_waited_for() {
    for role in ["local-cooling", "remote-cooling"] {
        // one refused key at the vendor takes the only deployment away, which then looks like a rate limit
        let (brief, name) = faulty("key");
        let env = with_key("sk-test-plain", role).with_running_clock();
        env.delegate(&[], &brief).ends(5, "interrupted");
        let run = env.run(&["resume", "--json"]);
        run.ends(0, "handback");
        let ended = events(&run, "request_ended");
        let classes: Vec<_> = ended.iter().map(|ended| ended["trouble"].as_str().unwrap()).collect();
        assert_eq!(classes, ["rate_limited"], "{}", run.report());
        assert_eq!(ended[0]["retry_in_ms"], 5000, "{}", run.report());
        assert_eq!(start::limited().calls(&name).len(), 5, "{}", run.report());
    }
}
