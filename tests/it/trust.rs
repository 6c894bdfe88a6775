//! `nisse trust`: what a repository names runs once the person has read it, until it changes.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Script, Step, TestEnvironment, Wire};

/// A world whose repository names a check, and the file that the check makes.
fn world() -> (TestEnvironment, std::path::PathBuf) {
    let script = Script::by_content(|asked| match asked.replies() {
        0 => Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})),
        _ => Step::hand_back(),
    });
    let env = TestEnvironment::new(Wire::Chat, script);
    let ran = env.root().join("ran");
    env.checkout.write("nisse.toml", text(&ran)).commit("checks");
    (env, ran)
}

fn text(ran: &std::path::Path) -> String {
    format!("[check]\ncommands = [{:?}]\n", format!("touch {}", ran.display()))
}

fn rewrite(env: &TestEnvironment, text: &str) {
    env.person(|checkout| {
        checkout.write("nisse.toml", text);
    });
}

fn kind(env: &TestEnvironment, arguments: &[&str]) -> Value {
    env.run(arguments).exits(2).json().pop().unwrap()["error"]["kind"].clone()
}

#[test]
fn a_file_is_trusted_until_it_changes() {
    let (env, ran) = world();
    let delegate = ["delegate", "--json", "Make b.txt."];
    assert_eq!(kind(&env, &delegate), "untrusted_project");
    assert!(env.run(&["doctor"]).stdout.contains("check.commands"));

    let said = env.run(&["trust"]);
    assert!(said.exits(0).stdout.contains("check.commands  touch "), "{}", said.report());
    assert!(!ran.exists(), "trusting ran it");
    env.run(&delegate).ends(0, "handback");
    assert!(ran.exists(), "the trusted check did not run");
    assert!(!env.run(&["doctor"]).stdout.contains("check.commands"));

    // another content, and the same elsewhere, is another file
    rewrite(&env, &(text(&ran) + "# more\n"));
    assert_eq!(kind(&env, &delegate), "untrusted_project");
    rewrite(&env, &text(&ran));
    let elsewhere = env.root().join("elsewhere");
    env.checkout.git(&["clone", "--quiet", ".", elsewhere.to_str().unwrap()]);
    assert_eq!(kind(&env, &["-C", elsewhere.to_str().unwrap(), "delegate", "--json", "x"]), "untrusted_project");

    let forgotten = env.run(&["trust", "--revoke", "--json"]).exits(0).json().remove(0);
    assert_eq!((&forgotten["type"], &forgotten["trusted"]), (&json!("trust"), &json!(false)));
    assert_eq!(kind(&env, &delegate), "untrusted_project");
}

#[test]
fn what_is_trusted_is_shown_whole_whatever_the_variables_say() {
    let (env, ran) = world();
    env.set("NISSE_CHECK_COMMANDS", "true").set("NISSE_WORKTREE_COPY", "x").set("NISSE_MAX_OUTPUT_TOKENS", "wrong");
    let said = env.run(&["trust", "--json"]).exits(0).json().remove(0);
    assert_eq!(said["effects"], json!([{"key": "check.commands", "values": [format!("touch {}", ran.display())]}]));
    env.person(|checkout| fs::remove_file(checkout.path().join("nisse.toml")).unwrap());
    assert_eq!(kind(&env, &["trust", "--json"]), "no_project_file");
    rewrite(&env, "[proxy]\nbase_url = \"http://evil\"\n");
    assert_eq!(kind(&env, &["trust", "--json"]), "bad_setting");
    let outside = env.run(&["-C", "/", "trust", "--json"]).exits(1).json().remove(0);
    assert_eq!(outside["error"]["kind"], "no_repository");
}

#[test]
fn on_a_terminal_it_is_asked_and_enter_alone_is_no() {
    let (env, ran) = world();
    env.set("TERM", "xterm-256color");
    let question = "Trust this file";
    let refused = env.run_with_keys(&["delegate", "Make b.txt."], &[(question, "\r")]);
    assert!(refused.exits(2).stdout.contains("touch ") && !ran.exists(), "{}", refused.report());
    let unasked = env.run_with_keys(&["delegate", "--no-input", "Make b.txt."], &[(question, "j\r")]);
    assert!(!unasked.exits(2).stdout.contains(question) && !ran.exists(), "{}", unasked.report());
    env.run_with_keys(&["delegate", "Make b.txt."], &[(question, "j\r")]).exits(0);
    assert!(ran.exists(), "the trusted check did not run");
    // and it is remembered
    env.delegate(&[], "Make b.txt, again.").ends(0, "handback");
    // what the command line replaces is not asked about
    env.run(&["trust", "--revoke"]).exits(0);
    let replaced = env.run_with_keys(&["delegate", "--check", "true", "Make b.txt, once more."], &[(question, "\r")]);
    assert!(!replaced.exits(0).stdout.contains(question), "{}", replaced.report());
}
