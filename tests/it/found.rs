//! Files that change while a task works, by no call of it: it waits for a person, and nothing of theirs is lost or swept
//! into its work.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use serde_json::{Value, json};

use crate::support::{Checkout, Script, Step, TestEnvironment, Wire};

const ISOLATIONS: [&str; 2] = ["worktree", "in-place"];

fn write(path: &str, content: &str) -> Step {
    Step::call("write_file", json!({"path": path, "content": content}))
}

fn read(path: &str) -> Step {
    Step::call("read_file", json!({"path": path}))
}

fn command(line: &str) -> Step {
    Step::call("run_command", json!({"command": line}))
}

/// Where the task works, known once the world stands: a person goes there while it works.
#[derive(Clone, Default)]
struct Place(Arc<OnceLock<(PathBuf, bool)>>);

impl Place {
    fn path(&self) -> PathBuf {
        let (root, in_place) = self.0.get().unwrap();
        if *in_place {
            return root.join("checkout");
        }
        let worktrees = fs::read_dir(root.join("state/worktrees")).unwrap();
        worktrees.map(|found| found.unwrap().path()).next().unwrap()
    }

    /// Adds to a file.
    fn add(&self, file: &'static str, text: &'static str) -> impl Fn() + Send + Sync + 'static {
        let place = self.clone();
        move || {
            let path = place.path().join(file);
            let old = fs::read_to_string(&path).unwrap_or_default();
            fs::write(path, old + text).unwrap();
        }
    }

    fn stands(&self, env: &TestEnvironment, isolation: &str) {
        // HEAD goes away and comes back, which its reflog tells
        env.person_will_change(".git/logs/HEAD");
        self.0.set((env.root(), isolation == "in-place")).unwrap();
    }
}

fn text<'a>(result: &'a Value, name: &str) -> &'a str {
    result[name].as_str().unwrap_or_else(|| panic!("no {name} in {result}"))
}

fn at(path: &Path, file: &str) -> Option<String> {
    fs::read_to_string(path.join(file)).ok()
}

/// A task that reads two files and changes both, each of which a person adds a line to just before.
fn two_files(wire: Wire, isolation: &str) -> (TestEnvironment, Place) {
    let place = Place::default();
    let edit = Step::call("edit_file", json!({"path": "conf.ini", "old": "k=1", "new": "k=2"}));
    let again = Step::call("edit_file", json!({"path": "notes.md", "old": "beta", "new": "BETA"}));
    let env = TestEnvironment::new(
        wire,
        Script::ByHistory(vec![
            read("notes.md"),
            write("notes.md", "alpha\nBETA\n").before(place.add("notes.md", "human line\n")),
            read("notes.md").and_call("edit_file", json!({"path": "notes.md", "old": "beta", "new": "BETA"})),
            read("conf.ini"),
            edit.before(place.add("conf.ini", "human=yes\n")),
            again,
            Step::hand_back(),
        ]),
    );
    env.checkout.write("notes.md", "alpha\nbeta\n").write("conf.ini", "k=1\n").commit("files");
    place.stands(&env, isolation);
    (env, place)
}

#[test]
fn a_file_that_somebody_else_changed_is_asked_about_before_it_is_written() {
    for (wire, isolation) in Wire::BOTH.into_iter().flat_map(|wire| ISOLATIONS.map(|isolation| (wire, isolation))) {
        let (env, place) = two_files(wire, isolation);
        let gated = env.delegate(&["--isolation", isolation], "Beta, and k.").ends(6, "gated");
        assert_eq!(gated["answers"], json!(["rollback", "keep", "drop"]));
        assert!(text(&gated, "cause").ends_with(": notes.md"), "{gated}");
        assert_eq!(at(&place.path(), "notes.md").unwrap(), "alpha\nbeta\nhuman line\n");
        let task = text(&gated, "task");
        let asked = format!("refs/nisse/found/{task}/asked");
        assert_eq!(env.checkout.file_at(&asked, "notes.md").unwrap(), b"alpha\nbeta\nhuman line\n");
        // without an answer, it asks again
        env.run(&["resume", "--json", task]).ends(6, "gated");

        let gated = env.run(&["resume", "--json", task, "--keep"]).ends(6, "gated");
        assert!(text(&gated, "cause").ends_with(": conf.ini"), "{gated}");
        let refused = env.server.requests()[2].last_answers();
        assert!(refused[0].text.contains("notes.md has changed since"), "{refused:?}");
        let result = env.run(&["resume", "--json", task, "--keep"]).ends(0, "handback");
        assert_eq!(env.on_branch(&result, "notes.md").unwrap(), b"alpha\nBETA\nhuman line\n");
        assert_eq!(env.on_branch(&result, "conf.ini").unwrap(), b"k=2\nhuman=yes\n");
        env.assert_checkout_unchanged();
    }
}

/// Steps before which a person adds to a file, and one that would sweep it in or throw it away.
fn gated_at(isolation: &str, last: Step) -> (TestEnvironment, Place, Value) {
    let place = Place::default();
    let away = Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded.");
    let steps = vec![write("b.txt", "b\n"), last.before(place.add("mine.txt", "mine\n")), Step::hand_back(), away];
    let env = TestEnvironment::new(Wire::Chat, Script::ByHistory(steps));
    place.stands(&env, isolation);
    let run = env.delegate(&["--isolation", isolation, "--check", "test ! -e mine.txt"], "Make b.txt.");
    let gated = run.ends(6, "gated");
    assert!(text(&gated, "cause").ends_with(": mine.txt"), "{gated}");
    (env, place, gated)
}

#[test]
fn a_command_and_an_end_wait_for_the_person_too() {
    for isolation in ISOLATIONS {
        for last in [command("echo ran >> ran.txt; rm mine.txt"), Step::hand_back()] {
            let (env, place, gated) = gated_at(isolation, last);
            assert_eq!(at(&place.path(), "mine.txt").as_deref(), Some("mine\n"));
            assert_eq!(at(&place.path(), "ran.txt"), None, "it ran before the person was asked");
            let task = text(&gated, "task");
            let result = env.run(&["resume", "--json", task, "--rollback"]).ends(0, "handback");
            assert_eq!(env.on_branch(&result, "mine.txt"), None, "it was swept in");
            let found = env.checkout.git(&["for-each-ref", "--format=%(refname)", &format!("refs/nisse/found/{task}")]);
            assert_eq!(env.checkout.file_at(&found, "mine.txt").unwrap(), b"mine\n");
        }
    }
}

#[test]
fn given_up_the_persons_files_are_theirs() {
    for isolation in ISOLATIONS {
        let (env, _, gated) = gated_at(isolation, command("true"));
        let task = text(&gated, "task");
        if isolation == "in-place" {
            env.may_add("mine.txt");
        }
        let dropped = env.run(&["drop", "--json", task]).ends(0, "dropped");
        env.assert_discarded(&dropped);
        if isolation == "in-place" {
            assert_eq!(at(env.checkout.path(), "mine.txt").unwrap(), "mine\n");
        } else {
            let found = env.checkout.git(&["for-each-ref", "--format=%(refname)", &format!("refs/nisse/found/{task}")]);
            assert_eq!(env.checkout.file_at(&found, "mine.txt").unwrap(), b"mine\n");
        }
    }
}

/// Whoever takes the checkout off the task's branch while it works has it: nothing is written there, HEAD stays theirs.
#[test]
fn a_checkout_taken_off_the_tasks_branch_is_the_persons() {
    for next in [command("echo ran > ran.txt"), write("c.txt", "c\n"), Step::hand_back()] {
        let place = Place::default();
        let there = place.clone();
        let switches = move || {
            let git = Checkout::existing(&there.path());
            git.git(&["switch", "--quiet", "main"]);
        };
        let steps = vec![write("b.txt", "b\n"), next.before(switches), Step::hand_back()];
        let env = TestEnvironment::new(Wire::Chat, Script::ByHistory(steps));
        place.stands(&env, "in-place");
        let gated = env.delegate(&["--isolation", "in-place"], "Make b.txt.").ends(6, "gated");
        assert!(text(&gated, "cause").contains("git switch"), "{gated}");
        assert_eq!(env.checkout.git(&["symbolic-ref", "--short", "HEAD"]), "main");
        assert_eq!(env.checkout.git(&["status", "--porcelain"]), "");
        env.checkout.git(&["switch", "--quiet", text(&gated, "branch")]);
        let result = env.run(&["resume", "--json", text(&gated, "task")]).ends(0, "handback");
        assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"b\n");
        env.changed_paths();
    }
}

/// A task that fails is discarded with all that it made, and what it did not make is kept or left.
#[test]
fn an_end_that_discards_keeps_what_no_call_made() {
    for isolation in ISOLATIONS {
        let place = Place::default();
        let give_up = Step::give_up().before(place.add("mine.txt", "mine\n"));
        let also = write("c.txt", "c\n").before(place.add("b.txt", "by hand\n"));
        let env = TestEnvironment::new(Wire::Chat, vec![write("b.txt", "b\n"), also, give_up]);
        place.stands(&env, isolation);
        if isolation == "in-place" {
            env.may_add("mine.txt");
        }
        let run = env.delegate(&["--isolation", isolation], "Make b.txt.");
        let result = run.ends(3, "failed");
        env.assert_discarded(&result);
        let what = if isolation == "in-place" { "meanwhile" } else { "end" };
        let kept = format!("refs/nisse/found/{}/{what}", text(&result, "task"));
        assert!(run.stderr.contains(&kept) && run.stderr.contains("b.txt"), "{}", run.report());
        assert_eq!(env.checkout.file_at(&kept, "b.txt").unwrap(), b"b\nby hand\n");
        assert_eq!(env.checkout.file_at(&kept, "mine.txt").unwrap(), b"mine\n");
        if isolation == "in-place" {
            assert_eq!(at(env.checkout.path(), "mine.txt").unwrap(), "mine\n", "it was in nobody's way");
        }
    }
}

/// What only looks changed, or is no part of any checkpoint, is nobody's question.
#[test]
fn what_no_checkpoint_would_take_is_not_asked_about() {
    for isolation in ISOLATIONS {
        let place = Place::default();
        let there = place.clone();
        let touched = move || {
            let path = there.path();
            for (file, bytes) in [("a.txt", "a\n"), ("x.log", "ignored\n"), ("node_modules/m.js", "made\n")] {
                fs::create_dir_all(path.join(file).parent().unwrap()).unwrap();
                fs::write(path.join(file), bytes).unwrap();
            }
        };
        let env = TestEnvironment::new(
            Wire::Chat,
            vec![write("b.txt", "b\n"), command("cat x.log").before(touched), Step::hand_back()],
        );
        env.checkout.write(".gitignore", "*.log\n").commit("rules");
        place.stands(&env, isolation);
        env.may_add("x.log").may_add("node_modules");
        let result = env.delegate(&["--isolation", isolation], "Make b.txt.").ends(0, "handback");
        assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"b\n");
        assert_eq!(env.on_branch(&result, "x.log"), None);
    }
}

/// Calls of one reply are each looked at: what an earlier one made is the task's.
#[test]
fn what_the_tasks_own_calls_made_is_not_asked_about() {
    for isolation in ISOLATIONS {
        let all = write("b.txt", "b\n")
            .and_call("run_command", json!({"command": "echo c > c.txt"}))
            .and_call("edit_file", json!({"path": "c.txt", "old": "c", "new": "d"}))
            .and_call("run_command", json!({"command": "cat c.txt && rm b.txt"}))
            .and_call("write_file", json!({"path": "b.txt", "content": "again\n"}));
        let env = TestEnvironment::new(Wire::Chat, vec![all, Step::hand_back()]);
        env.person_will_change(".git/logs/HEAD");
        let result = env.delegate(&["--isolation", isolation], "Make b.txt.").ends(0, "handback");
        assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"again\n");
        assert_eq!(env.on_branch(&result, "c.txt").unwrap(), b"d\n");
        assert!(env.server.requests()[1].last_answers()[3].text.contains('d'));
    }
}
