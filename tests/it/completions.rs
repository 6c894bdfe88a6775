//! The shell asks nisse what may come next.

use serde_json::json;

use crate::support::{Step, TestEnvironment, Wire};

/// What nisse answers to a shell whose line ends in an unfinished last word.
fn asked(env: &TestEnvironment, words: &[&str]) -> Vec<String> {
    env.set("_CLAP_COMPLETE_INDEX", &(words.len() - 1).to_string()).set("_CLAP_IFS", "\n");
    let run = env.run(&[&["--"], words].concat());
    run.exits(0).stdout.lines().map(str::to_owned).collect()
}

#[test]
fn commands_ids_and_aliases_are_completed() {
    let write = Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}));
    let env = TestEnvironment::new(Wire::Chat, vec![write, Step::hand_back()]);
    env.delegate(&[], "Make b.txt.").exits(0);
    let asked_by_then = env.server.requests().len();
    env.set("_NISSE_COMPLETE", "bash").set("NISSE_ROLE_PLANNER", "another").set("NISSE_LLM_TOKEN_COMMAND", "touch ran");
    assert_eq!(asked(&env, &["nisse", "dele"]), ["delegate"]);
    assert!(asked(&env, &["nisse", "log", "0000000001"]).contains(&"000000000100".to_owned()));
    assert!(!asked(&env, &["nisse", "resume", ""]).contains(&"000000000100".to_owned()), "it is over");
    assert_eq!(asked(&env, &["nisse", "delegate", "--model", ""]), ["another", "case-model"]);
    assert_eq!(env.server.requests().len(), asked_by_then, "a key press asked the proxy");

    // where anything is wrong, only that part is missing
    env.set("NISSE_MAX_OUTPUT_TOKENS", "many");
    assert_eq!(asked(&env, &["nisse", "log", "0000000001"]), [""; 0]);
    assert_eq!(asked(&env, &["nisse", "doc"]), ["doctor"]);
}
