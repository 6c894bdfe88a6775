//! `nisse init`: settings files to begin with, and nothing that was there is touched.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::json;

use crate::support::{Step, TestEnvironment, Wire};

fn world() -> TestEnvironment {
    let write = Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}));
    let env = TestEnvironment::new(Wire::Chat, vec![write, Step::hand_back()]);
    env.may_add("nisse.toml");
    env
}

fn own(env: &TestEnvironment) -> std::path::PathBuf {
    env.root().join("home/config/nisse/config.toml")
}

#[test]
fn what_it_writes_is_enough_to_begin_and_is_written_once() {
    let env = world();
    let said = env.run(&["init", "--json"]).exits(0).json().remove(0);
    assert_eq!((&said["type"], &said["model"], &said["notes"]), (&json!("init"), &json!("case-model"), &json!([])));
    assert!(said["files"].as_array().unwrap().iter().all(|file| file["written"] == true), "{said}");
    assert_eq!(fs::metadata(own(&env)).unwrap().permissions().mode() & 0o777, 0o600);
    let project = env.checkout.path().join("nisse.toml");
    let texts = || [fs::read_to_string(own(&env)).unwrap(), fs::read_to_string(&project).unwrap()];
    let before = texts();
    // the token is the person's to keep
    assert!(!before[0].contains(crate::support::TOKEN), "{}", before[0]);
    assert!(before[0].contains("\n#   \"case-native\", "), "{}", before[0]);

    env.unset("NISSE_LLM_BASE_URL").unset("NISSE_ROLE_DELEGATE");
    env.delegate(&[], "Make b.txt.").ends(0, "handback");
    let again = env.run(&["init"]);
    assert_eq!(again.exits(0).stdout.matches("kept").count(), 2, "{}", again.report());
    assert_eq!(texts(), before);
}

#[test]
fn of_several_models_none_is_taken_unasked() {
    let env = world();
    env.unset("NISSE_ROLE_DELEGATE").set("TERM", "xterm-256color");
    let said = env.run(&["init"]);
    assert!(said.exits(0).stdout.contains("several models"), "{}", said.report());
    let text = fs::read_to_string(own(&env)).unwrap();
    for line in ["# delegate = ", "# max_cost = ", "#   \"case-model\", ", "# token_command = "] {
        assert!(text.lines().any(|written| written.starts_with(line)), "{line:?} is missing in\n{text}");
    }
    let error = env.run(&["delegate", "--json", "x"]).exits(2).json().pop().unwrap();
    assert_eq!(error["error"]["kind"], "bad_role");

    fs::remove_file(own(&env)).unwrap();
    let asked = env.run_with_keys(&["init"], &[("Model for tasks", "j\r")]);
    assert!(asked.exits(0).stdout.contains("case-native for the role delegate"), "{}", asked.report());
    assert!(fs::read_to_string(own(&env)).unwrap().contains("\ndelegate = \"case-native\""));
}

#[test]
fn a_proxy_that_cannot_be_asked_keeps_nothing_from_being_written() {
    let env = world();
    env.server.switch().down();
    env.unset("NISSE_ROLE_DELEGATE");
    let elsewhere = env.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let named = env.root().join("named.toml");
    let arguments = ["init", "--json", "-C", elsewhere.to_str().unwrap(), "--config", named.to_str().unwrap()];
    let said = env.run(&arguments).exits(0).json().remove(0);
    assert_eq!(said["files"], json!([{"path": named.to_str().unwrap(), "written": true}]), "{said}");
    let notes = said["notes"].to_string();
    assert!(notes.contains("did not write nisse.toml") && notes.contains("did not fill in a model"), "{notes}");
    assert!(fs::read_to_string(&named).unwrap().contains(&format!("base_url = \"{}\"", env.server.url())));
    // what is next is said for the file that was named
    let again = env.run(&["init", "--config", named.to_str().unwrap()]);
    let next = format!("next   nisse doctor --config {}", named.display());
    assert!(again.exits(0).stdout.contains(&next), "{}", again.report());
    env.server.switch().up();
    env.run(&["--config", named.to_str().unwrap(), "models"]).exits(0);
}

#[test]
fn what_is_there_is_left_and_what_cannot_be_written_is_said() {
    let env = world();
    let directory = own(&env).parent().unwrap().to_owned();
    fs::create_dir_all(&directory).unwrap();
    // a link that leads nowhere yet is somebody's too
    std::os::unix::fs::symlink("/nonexistent/elsewhere", own(&env)).unwrap();
    let said = env.run(&["init", "--json"]).exits(0).json().remove(0);
    assert_eq!(said["files"][0]["written"], false, "{said}");
    // not even root makes a directory in /proc
    let error = env.run(&["init", "--json", "--config", "/proc/nisse/config.toml"]).exits(1).json().remove(0);
    assert!(error["error"]["message"].as_str().unwrap().contains("/proc/nisse/config.toml"), "{error}");
    let error = env.run(&["init", "--json", "--config", env.root().to_str().unwrap()]).exits(1).json().remove(0);
    assert!(error["error"]["hint"].as_str().unwrap().contains("not a directory"), "{error}");
    // of a directory that is not there nothing is written at all
    fs::remove_file(own(&env)).unwrap();
    let error = env.run(&["init", "--json", "-C", "no-such-place"]).exits(1).json().remove(0);
    assert_eq!(error["error"]["kind"], "no_repository");
    assert!(!own(&env).exists());
    env.set("NISSE_MAX_OUTPUT_TOKENS", "many");
    env.run(&["init"]).exits(2);
    assert!(!own(&env).exists());
}
