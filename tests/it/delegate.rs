//! A delegation from its brief to its end: the ways in which it succeeds, fails and is refused.

use serde_json::json;

use crate::support::{Script, Step, TestEnvironment, Wire, wait_until};

/// Writes a file and hands back.
fn a_good_job() -> Vec<Step> {
    vec![
        Step::call("read_file", json!({"path": "a.txt"})),
        Step::call("edit_file", json!({"path": "a.txt", "old": "a", "new": "b"})),
        Step::hand_back(),
    ]
}

#[test]
fn a_success_is_one_commit_on_its_own_branch_and_nothing_in_the_checkout() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(wire, a_good_job());
        let base = env.checkout.git(&["rev-parse", "HEAD"]);
        let result = env.delegate(&[], "Make a.txt say b.").ends(0, "handback");
        assert_eq!(env.on_branch(&result, "a.txt").unwrap(), b"b\n");
        assert_eq!(
            env.checkout.git(&["rev-list", "--count", &format!("{base}..{}", result["branch"].as_str().unwrap())]),
            "1"
        );
        assert_eq!(result["base"], base.as_str());
        assert_eq!(result["head"], env.checkout.git(&["rev-parse", result["branch"].as_str().unwrap()]).as_str());
        assert!(result["branch"].as_str().unwrap().starts_with("nisse/"), "{result}");
        assert_eq!(result["handback"]["succeeded"], true);
        assert_eq!(result["handback"]["now_true"], "it is so");
        assert_eq!(result["artifacts"], json!(["a.txt"]));
        assert_eq!(result["turns"], 3);
        assert_eq!((&result["tokens"]["input"], &result["tokens"]["output"]), (&json!(3000), &json!(150)));
        assert!((result["cost_usd"].as_f64().unwrap() - 0.0033).abs() < 1e-9, "{result}");
        assert_eq!(result["model"]["alias"], wire.alias());
        assert_eq!(result["task"], "00000000-0000-7000-8000-000000000100");
        let [first, second, _] = &env.server.requests()[..] else { panic!("three turns are three requests") };
        assert!(first.last_told().contains("Make a.txt say b."), "the brief is not in the first request");
        assert!(second.last_answers()[0].text.contains('a'), "the file is not in the answer");
        env.assert_checkout_unchanged();
    }
}

#[test]
fn what_the_person_has_not_committed_is_there_and_stays_as_it_is() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(
            wire,
            vec![
                Step::call("read_file", json!({"path": "a.txt"})).and_call("read_file", json!({"path": "new.txt"})),
                Step::call("write_file", json!({"path": "made.txt", "content": "made\n"})),
                Step::hand_back(),
            ],
        );
        env.checkout.write("a.txt", "unfinished\n").write("new.txt", "untracked\n");
        let result = env.delegate(&[], "Make made.txt.").ends(0, "handback");
        let answers = env.server.requests()[1].last_answers();
        assert!(answers[0].text.contains("unfinished") && answers[1].text.contains("untracked"), "{answers:?}");
        assert_eq!(result["artifacts"], json!(["made.txt"]));
        assert_eq!(env.on_branch(&result, "a.txt").unwrap(), b"unfinished\n");
        assert_eq!(env.checkout.git(&["status", "--porcelain"]), " M a.txt\n?? new.txt");
    }
}

#[test]
fn the_person_works_on_meanwhile_and_neither_sees_the_other() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(wire, Script::by_content(person_writes_meanwhile));
        env.person_will_change("mine.txt");
        let result =
            env.delegate(&[], &format!("Make a.txt say b. [{}]", env.checkout.path().display())).ends(0, "handback");
        assert_eq!(std::fs::read(env.checkout.path().join("mine.txt")).unwrap(), b"mine\n");
        assert_eq!(env.on_branch(&result, "mine.txt"), None);
    }
}

/// The brief names the checkout in brackets; the second answer comes after the person wrote there.
fn person_writes_meanwhile(asked: &crate::support::Asked) -> Step {
    let step = a_good_job().remove(asked.replies());
    let told = asked.raw.clone();
    let checkout =
        told.split(['[', ']']).find(|part| part.starts_with('/') && part.ends_with("checkout")).map(str::to_owned);
    step.before(move || {
        let checkout = checkout.clone().expect("the brief names the checkout");
        std::fs::write(std::path::Path::new(&checkout).join("mine.txt"), "mine\n").unwrap();
    })
}

#[test]
fn a_task_given_up_fails_and_leaves_nothing_but_its_kept_commits() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(
            wire,
            vec![Step::call("write_file", json!({"path": "half.txt", "content": "half\n"})), Step::give_up()],
        );
        let result = env.delegate(&[], "Do what cannot be done.").ends(3, "failed");
        assert_eq!(result["handback"]["succeeded"], false);
        assert_eq!(result["artifacts"], json!(["half.txt"]));
        env.assert_discarded(&result);
        let kept = format!("refs/nisse/discarded/{}", result["task"].as_str().unwrap());
        assert_eq!(env.checkout.file_at(&kept, "half.txt").unwrap(), b"half\n");
    }
}

#[test]
fn a_note_with_missing_fields_is_refused_with_their_names_and_the_task_goes_on() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(
            wire,
            vec![
                Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})),
                Step::call("hand_back", json!({"changed": "b.txt", "next": "  ", "succeeded": true})),
                Step::call(
                    "hand_back",
                    json!({"changed": "b.txt", "now_true": "is", "next": "no", "succeeded": "true"}),
                ),
                Step::hand_back(),
            ],
        );
        env.delegate(&[], "Make b.txt.").ends(0, "handback");
        let requests = env.server.requests();
        let refused = &requests[2].last_answers()[0].text;
        assert!(refused.contains("now_true") && refused.contains("next"), "{refused}");
        let coerced = &requests[3].last_answers()[0].text;
        assert!(coerced.contains("succeeded"), "`succeeded` is never coerced: {coerced}");
    }
}

#[test]
fn a_claim_of_success_on_an_unchanged_tree_is_refused_once_and_then_fails() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(
            wire,
            vec![Step::call("run_command", json!({"command": "true"})), Step::hand_back(), Step::hand_back()],
        );
        let result = env.delegate(&[], "Change something.").ends(3, "failed");
        env.assert_discarded(&result);
        let refused = &env.server.requests()[2].last_answers()[0].text;
        assert!(refused.contains("chang"), "the answer does not say that nothing was changed: {refused}");
    }
}

#[test]
fn a_file_that_git_ignores_is_no_work_and_the_model_is_told_twice() {
    for wire in Wire::BOTH {
        let write = |path: &str| Step::call("write_file", json!({"path": path, "content": "x\n"}));
        let env =
            TestEnvironment::new(wire, vec![write("out.log"), Step::hand_back(), write("b.txt"), Step::hand_back()]);
        env.checkout.write(".gitignore", "*.log\n").commit("ignore");
        let result = env.delegate(&[], "Make b.txt.").ends(0, "handback");
        assert_eq!(result["artifacts"], json!(["b.txt"]));
        let requests = env.server.requests();
        let written = &requests[1].last_answers()[0].text;
        assert!(written.contains("out.log is left out by git's ignore rules"), "{written}");
        let refused = &requests[2].last_answers()[0].text;
        assert!(refused.contains("ignored by git (out.log)"), "{refused}");
    }
}

#[test]
fn the_branch_can_be_named_and_the_base_chosen() {
    let env = TestEnvironment::new(
        Wire::Chat,
        vec![Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})), Step::hand_back()],
    );
    let first = env.checkout.git(&["rev-parse", "HEAD"]);
    env.checkout.write("a.txt", "later\n").commit("later").write("a.txt", "unfinished\n");
    env.may_add(".git/refs/heads/mine").may_add(".git/logs/refs/heads/mine");
    let result = env.delegate(&["--branch", "mine", "--base", "HEAD~1"], "Make b.txt.").ends(0, "handback");
    assert_eq!((&result["branch"], &result["base"]), (&json!("mine"), &json!(first)));
    assert_eq!(env.on_branch(&result, "a.txt").unwrap(), b"a\n", "an explicit base comes without unfinished work");
}

#[test]
fn data_goes_to_stdout_and_the_log_tells_the_same_task() {
    let env = TestEnvironment::new(Wire::Chat, a_good_job());
    let run = env.delegate(&[], "Make a.txt say b.");
    let result = run.ends(0, "handback");
    let events = run.json();
    assert!(events.len() > 3, "the events are told as they happen:\n{}", run.report());
    assert_eq!(events.iter().filter(|event| event["type"] == "result").count(), 1);
    let log = env.run(&["log", "--json"]);
    assert!(log.exits(0).stdout.contains(result["task"].as_str().unwrap()), "{}", log.report());
    let one = env.run(&["log", "--json", result["task"].as_str().unwrap()]);
    assert!(one.exits(0).stdout.contains("Make a.txt say b."), "{}", one.report());
}

#[test]
fn a_wrong_model_key_or_address_is_told_before_anything_is_touched() {
    let env = TestEnvironment::new(Wire::Chat, vec![]);
    let run = env.delegate(&["--model", "case-modle"], "Do it.");
    assert!(run.exits(2).stderr.contains("case-model") || run.stdout.contains("case-model"), "{}", run.report());
    env.set("NISSE_LLM_TOKEN", "sk-wrong");
    env.delegate(&[], "Do it.").exits(2);
    env.set("NISSE_LLM_BASE_URL", "no address");
    env.delegate(&[], "Do it.").exits(2);
    let switch = env.server.switch();
    env.set("NISSE_LLM_BASE_URL", &env.server.url());
    switch.down();
    let closed = || std::net::TcpStream::connect(env.server.address()).is_err();
    assert!(wait_until(std::time::Duration::from_secs(30), closed));
    let run = env.delegate(&[], "Do it.");
    assert!(run.exits(1).stdout.contains("proxy_unreachable"), "{}", run.report());
    assert!(
        !env.checkout.has_ref("refs/nisse/") && !env.checkout.has_ref("refs/heads/nisse/"),
        "something was touched"
    );
}

#[test]
fn what_keeps_a_task_from_beginning_leaves_nothing_pending() {
    let env = TestEnvironment::new(Wire::Chat, Vec::new());
    let refused = |options: &[&str], code: i32, words: &str| {
        let run = env.delegate(options, "Make b.txt.");
        let error = run.exits(code).json().pop().unwrap()["error"].clone();
        assert!(error["message"].as_str().unwrap().contains(words), "{options:?}: {error}");
        assert!(!env.state().join("nisse.db").exists(), "{options:?}: a task was begun");
        env.assert_checkout_unchanged();
    };
    // each is short for another name, or leaves no room for the names of tasks
    for name in ["@", "HEAD", "@{-1}", "-x", "a..b", "nisse"] {
        refused(&[&format!("--branch={name}")], 2, name);
    }
    env.person(|checkout| drop(checkout.git(&["branch", "nisse"])));
    refused(&[], 1, "a branch is called `nisse`");
    env.person(|checkout| {
        checkout.git(&["branch", "-m", "nisse", "other"]);
        std::fs::remove_file(checkout.path().join("a.txt")).unwrap();
        let pipe = std::process::Command::new("mkfifo").arg(checkout.path().join("a.txt")).status().unwrap();
        assert!(pipe.success());
    });
    refused(&[], 1, "a.txt is tracked as a file, and is a pipe");
    env.person(|checkout| {
        std::fs::remove_file(checkout.path().join("a.txt")).unwrap();
        checkout.write("a.txt", "a\n").git(&["config", "core.bare", "true"]);
    });
    refused(&[], 1, "core.bare = true");
}

#[test]
fn a_file_name_with_a_line_break_cuts_no_list() {
    let made = Step::call("run_command", json!({"command": "touch $'one\\ntwo.txt'; touch z.txt"}));
    let list = Step::call("list_files", json!({})).and_call("read_file", json!({"path": "~/z.txt"}));
    let env = TestEnvironment::new(Wire::Chat, vec![made, list, Step::hand_back()]);
    let run = env.run(&["delegate", "Make them."]);
    assert!(run.exits(0).stdout.contains(": one two.txt, z.txt\n"), "{}", run.report());
    let answers = env.server.requests()[2].last_answers();
    assert_eq!(answers[0].text, "a.txt\none\\ntwo.txt\nz.txt\n");
    // no shell expands the paths of tools
    assert!(answers[1].text.contains("~/z.txt: `~` stands for no directory here"), "{answers:?}");
    let task = "00000000-0000-7000-8000-000000000100";
    let applied = env.run(&["apply", task]);
    assert!(applied.exits(0).stdout.contains("one two.txt, z.txt\n"), "{}", applied.report());
    let changed = env.changed_paths();
    assert!(changed.contains(&"z.txt".to_owned()) && changed.contains(&"one\ntwo.txt".to_owned()), "{changed:?}");
}

#[test]
fn of_a_renamed_file_both_names_are_told() {
    let rename = Step::call("run_command", json!({"command": "mv long.txt other.txt"}));
    let env = TestEnvironment::new(Wire::Chat, vec![rename, Step::hand_back()]);
    env.checkout.write("long.txt", "one\ntwo\nthree\nfour\n").commit("a file");
    let result = env.delegate(&[], "Rename long.txt.").ends(0, "handback");
    assert_eq!(result["artifacts"], json!(["long.txt", "other.txt"]));
    assert_eq!(result["diffstat"]["files"], 1);
    let task = result["task"].as_str().unwrap();
    let diff = env.run(&["log", task, "--diff", "--json"]).exits(0).json().remove(0);
    assert_eq!(diff["files"], json!(["long.txt", "other.txt"]));
}

#[test]
fn commits_are_said_to_be_kept_where_there_are_some() {
    for (steps, kept) in [
        (vec![Step::give_up()], false),
        (vec![Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})), Step::give_up()], true),
    ] {
        let env = TestEnvironment::new(Wire::Chat, steps);
        let run = env.run(&["delegate", "Make b.txt."]);
        assert_eq!(run.exits(3).stdout.contains("\ndiscarded  the commits are kept at "), kept, "{}", run.report());
    }
}
