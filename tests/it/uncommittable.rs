//! What a task makes and no commit can hold (repositories, special files) never vanishes unnamed.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};

use crate::support::{Checkout, Step, TestEnvironment, Wire};

fn run(line: &str) -> Step {
    Step::call("run_command", json!({"command": line}))
}

const MAKE: &str = "git init -q app; echo code > app/main.py; mkfifo pipe; mkdir -p deep/empty; echo b > b.txt";

/// Where the result says that these are kept.
fn kept(result: &Value, paths: &str) -> String {
    let notices: Vec<&str> = result["notices"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    let begin = format!("no commit can hold {paths}; kept in ");
    let told = notices.iter().find_map(|notice| notice.strip_prefix(&begin));
    let told = told.unwrap_or_else(|| panic!("{paths} are not named: {notices:?}"));
    told.split(" until").next().unwrap().to_owned()
}

#[test]
fn a_hand_back_is_refused_once_and_then_judged_without_it() {
    let check = "test ! -e app && test ! -e pipe && test ! -e deep";
    let env = TestEnvironment::new(Wire::Chat, vec![run(MAKE), Step::hand_back(), Step::hand_back()]);
    let result = env.delegate(&["--check", check], "Make it.").ends(0, "handback");
    let refusal = env.server.requests()[2].last_answers()[0].text.clone();
    assert!(refusal.contains("Not accepted") && refusal.contains("app/, pipe"), "{refusal}");
    let place = kept(&result, "app/, pipe");
    assert!(Path::new(&place).starts_with(env.state()), "{place}");
    assert_eq!(fs::read_to_string(format!("{place}/app/main.py")).unwrap(), "code\n");
    assert!(Path::new(&place).join("pipe").exists());
    assert_eq!(result["artifacts"], json!(["b.txt"]));

    let leftovers = |options: &[&str]| {
        let report = env.run(&[&["doctor", "--json"], options].concat()).json().pop().unwrap();
        let all = report["leftovers"].as_array().unwrap().clone();
        all.into_iter().filter(|one| one["kind"] == "kept").map(|one| one["state"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(leftovers(&[]), ["dead"]);
    assert_eq!(leftovers(&["--fix"]), ["removed"]);
    assert!(!Path::new(&place).exists());
    assert_eq!(leftovers(&[]), Vec::<Value>::new());
}

#[test]
fn a_model_that_makes_a_part_of_the_work_of_it_hands_it_back() {
    let mend = run("rm -rf app/.git pipe");
    let env = TestEnvironment::new(Wire::Messages, vec![run(MAKE), Step::hand_back(), mend, Step::hand_back()]);
    let result = env.delegate(&["--check", "grep code app/main.py"], "Make it.").ends(0, "handback");
    assert_eq!(env.on_branch(&result, "app/main.py").unwrap(), b"code\n");
    assert_eq!(result["notices"], json!([]));
}

#[test]
fn a_failed_check_and_an_end_that_discards_lose_nothing() {
    let env = TestEnvironment::new(Wire::Chat, vec![run(MAKE), Step::hand_back(), Step::hand_back(), Step::give_up()]);
    let result = env.delegate(&["--check", "git init -q made && exit 1"], "Make it.").ends(3, "failed");
    assert!(Path::new(&kept(&result, "app/, pipe")).join("app/main.py").exists());
    assert!(Path::new(&kept(&result, "made/")).join("made/.git").exists(), "what a check made");

    let env = TestEnvironment::new(Wire::Chat, vec![run(MAKE), Step::give_up()]);
    let result = env.delegate(&[], "Make it.").ends(3, "failed");
    assert!(Path::new(&kept(&result, "app/, pipe")).join("app/main.py").exists());
    env.assert_discarded(&result);
}

#[test]
fn what_git_ignores_artefacts_and_submodules_are_no_part_of_it() {
    let line = "git init -q build; git init -q node_modules/x; mkfifo x.log; echo b > b.txt";
    let env = TestEnvironment::new(Wire::Chat, vec![run(line), Step::hand_back()]);
    env.checkout.write(".gitignore", "*.log\nbuild/\n").commit("rules");
    let result = env.delegate(&[], "Make b.txt.").ends(0, "handback");
    assert!(!result["notices"].to_string().contains("no commit can hold"), "{result}");
}

/// In place, what the person made meanwhile is theirs.
#[test]
fn in_place_only_what_the_task_made_is_moved() {
    let place: Arc<Mutex<PathBuf>> = Arc::default();
    let at = Arc::clone(&place);
    let clone = move || drop(Checkout::new(&at.lock().unwrap()));
    let steps = vec![run(MAKE), Step::hand_back().before(clone), Step::hand_back()];
    let env = TestEnvironment::new(Wire::Chat, steps);
    env.person_will_change(".git/logs/HEAD");
    let theirs = env.checkout.path().join("theirs");
    place.lock().unwrap().clone_from(&theirs);
    for place in ["theirs", "deep", "deep/empty"] {
        env.may_add(place);
    }
    let options = ["--isolation", "in-place", "--check", "test ! -e app"];
    let result = env.delegate(&options, "Make it.").ends(0, "handback");
    assert!(Path::new(&kept(&result, "app/, pipe")).join("app/main.py").exists());
    assert!(theirs.join(".git").exists(), "it is the person's");
    assert!(!env.checkout.path().join("app").exists());
}

/// Some systems take such names for git's own directory, so git takes them in no tree.
#[test]
fn names_that_git_refuses_cut_no_task_off() {
    for isolation in ["worktree", "in-place"] {
        let refused = Step::call("write_file", json!({"path": "git~1", "content": "x\n"}));
        let made = Step::call("run_command", json!({"command": "echo x > git~1; echo b > b.txt"}));
        let env = TestEnvironment::new(Wire::Chat, vec![refused, made, Step::hand_back(), Step::hand_back()]);
        if isolation == "in-place" {
            env.person_will_change(".git/logs/HEAD");
        }
        let result = env.delegate(&["--isolation", isolation], "Make b.txt.").ends(0, "handback");
        assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"b\n");
        assert_eq!(env.on_branch(&result, "git~1"), None);
        let requests = env.server.requests();
        assert!(requests[1].last_answers()[0].text.contains("git takes no file of this name"), "{isolation}");
        assert!(requests[3].last_answers()[0].text.contains("git~1"), "{isolation}: not told before it hands back");
        assert!(result["notices"].to_string().contains("git~1"), "{isolation}: {result}");
    }
}

/// What has the name of build artefacts is left out; where the repository itself has some, the rest is named.
#[test]
fn what_is_left_out_beside_tracked_files_of_such_a_name_is_named() {
    let made = Step::call("run_command", json!({"command": "echo n > node_modules/new.js; echo b > b.txt"}));
    let env = TestEnvironment::new(Wire::Chat, vec![made, Step::hand_back()]);
    env.checkout.write("node_modules/old.js", "o\n").commit("an action");
    let result = env.delegate(&[], "Make b.txt.").ends(0, "handback");
    assert!(result["notices"].to_string().contains("node_modules/new.js"), "{result}");
}
