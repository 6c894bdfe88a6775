//! Somebody saves a file in the very moment in which it is brought or taken back: what they saved is there at the end,
//! also if the program dies then.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::reached;
use crate::{
    apply::{
        cut::{LINE, arranged},
        handed_back,
    },
    support::{Run, Step, TestEnvironment, Wire},
};

const MOMENTS: [&str; 3] = ["file.written", "file.exchanged", "file.aside"];
const FILES: [&str; 4] = ["a.txt", "b.txt", "gone.txt", "run.sh"];
/// In place, and as editors do: beside it, then by rename.
const SAVES: [&str; 2] = ["echo mine > FILE", "echo mine > ../save; mv ../save FILE"];

/// A world whose task is to be applied, or was (`back`), beside something of the person's.
fn world(back: bool) -> (TestEnvironment, String) {
    let (env, task) = handed_back(arranged, LINE);
    env.person(|checkout| drop(checkout.write("notes.txt", "mine\n").write("staged", "s\n").git(&["add", "staged"])));
    if back {
        env.run(&["apply", "--json", &task]).exits(0);
    }
    (env, task)
}

fn command(task: &str, back: bool) -> Vec<&str> {
    [&["apply", "--json", task][..], if back { &["--abort"] } else { &[] }].concat()
}

/// The moments that the command comes by, each with how often it has come by then.
fn moments(env: &TestEnvironment, command: &[&str]) -> Vec<String> {
    env.keep("before");
    let whole = env.set("CRASHPOINT", "?").run(command);
    whole.exits(0);
    env.set("CRASHPOINT", "");
    let moments: Vec<_> = reached(&whole).into_iter().filter(|(point, _)| MOMENTS.contains(&&**point)).collect();
    assert!(MOMENTS.iter().all(|moment| moments.iter().any(|(point, _)| point == moment)), "{moments:?}");
    moments.into_iter().map(|(point, time)| format!("{point}#{time}")).collect()
}

/// Somebody's file is there, and nothing of ours beside it.
#[track_caller]
fn is_mine(root: &Path, file: &str, at: &str) {
    assert_eq!(fs::read_to_string(root.join(file)).unwrap_or_default(), "mine\n", "{file} {at}");
    let names = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<_> = names.filter(|name| name.starts_with(".nisse-")).collect();
    assert_eq!(left, Vec::<String>::new(), "{at}");
}

fn document(run: &Run) -> Value {
    run.json().pop().unwrap_or_else(|| panic!("no JSON\n{}", run.report()))
}

fn saved_meanwhile(back: bool, dies: bool) {
    let (env, task) = world(back);
    let command = command(&task, back);
    let moments = moments(&env, &command);
    let mut deaths = 0;
    for (number, moment) in moments.iter().enumerate() {
        // at once; or once the file has come out under a name of ours
        let exchanged = moments[number..].iter().find(|next| next.starts_with("file.exchanged"));
        let death = exchanged.filter(|_| moment.starts_with("file.written")).unwrap_or(moment);
        for (place, file) in FILES.into_iter().enumerate() {
            // one of the ways of saving each, so that each way comes with every moment and with every file
            let save = SAVES[(number + place) % SAVES.len()];
            env.bring_back("before");
            env.set("MEANWHILE", &format!("{moment} {}", save.replace("FILE", file)));
            if dies {
                env.set("CRASHPOINT", death);
            }
            let first = env.run(&command);
            env.set("MEANWHILE", "").set("CRASHPOINT", "");
            let at = format!("{moment} {save}\n{}", first.report());
            assert!(first.stderr.contains("meanwhile at"), "{at}");
            if first.stderr.contains("crashed at") {
                deaths += 1;
                // on, and then back: nothing of theirs goes
                let on = env.run(&command);
                is_mine(env.checkout.path(), file, &format!("{at}\n{}", on.report()));
            } else {
                is_mine(env.checkout.path(), file, &at);
            }
            let aborted = env.run(&["apply", "--json", &task, "--abort"]);
            let at = format!("{at}\n{}", aborted.report());
            is_mine(env.checkout.path(), file, &at);
            for (other, was) in [("a.txt", "a\n"), ("gone.txt", "g\n"), ("run.sh", "true\n")] {
                let is = fs::read_to_string(env.checkout.path().join(other)).unwrap_or_default();
                assert!(other == file || is == was, "{other}: {is:?} {at}");
            }
        }
    }
    assert!(deaths >= if dies { moments.len() } else { 0 }, "it died {deaths} times");
    env.changed_paths();
}

#[test]
fn a_save_while_it_is_brought_is_kept() {
    saved_meanwhile(false, false);
}

#[test]
fn a_save_while_it_is_taken_back_is_kept() {
    saved_meanwhile(true, false);
}

#[test]
fn a_save_is_kept_when_the_program_dies_right_after_it() {
    saved_meanwhile(false, true);
}

#[test]
fn a_save_is_kept_when_the_program_dies_on_the_way_back() {
    saved_meanwhile(true, true);
}

/// What is said of it.
#[test]
fn a_save_in_between_stops_it_and_is_named() {
    let (env, task) = world(false);
    env.set("MEANWHILE", "file.written echo mine > a.txt");
    let stopped = env.run(&command(&task, false));
    let error = document(&stopped)["error"].clone();
    stopped.exits(6);
    assert_eq!(error["kind"], "apply_changed");
    assert!(error["message"].as_str().unwrap().contains("a.txt"), "{error}");
    env.set("MEANWHILE", "");
    let back = env.run(&command(&task, true));
    assert_eq!(document(&back)["left"], json!(["a.txt"]));
    env.changed_paths();
}

/// The model's own edits go the same way: a save between the look and the exchange is told to the model, and stays.
#[test]
fn a_save_while_the_model_edits_is_kept() {
    for dies in [false, true] {
        let edit = Step::call("edit_file", json!({"path": "a.txt", "old": "a", "new": "model"}));
        let limit = Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded.");
        let script = vec![edit, limit];
        let env = TestEnvironment::new(Wire::Chat, script);
        let save = format!("for tree in '{}'/worktrees/*; do echo mine > $tree/a.txt; done", env.state().display());
        env.set("MEANWHILE", &format!("file.written {save}"));
        if dies {
            env.set("CRASHPOINT", "file.exchanged");
        }
        let run = env.delegate(&[], "Edit a.txt.");
        env.set("MEANWHILE", "").set("CRASHPOINT", "");
        assert_eq!(run.stderr.contains("crashed at"), dies, "{}", run.report());
        let run = if dies { env.run(&["resume", "--json"]) } else { run };
        run.ends(if dies { 6 } else { 5 }, if dies { "gated" } else { "interrupted" });
        let worktree = fs::read_dir(env.state().join("worktrees")).unwrap().next().map(|one| one.unwrap().path());
        let at = format!("{dies} {worktree:?}\n{}", run.report());
        is_mine(&worktree.expect("it rests"), "a.txt", &at);
    }
}
