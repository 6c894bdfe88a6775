//! A task that was cut off finds another world than the log says: what is known goes on, what is not is a gate that
//! touches nothing.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Script, Step, TestEnvironment, Wire, wait_until};

/// A task that was killed after its first turn, which wrote `b.txt`, while the second request was under way.
struct Killed {
    env: TestEnvironment,
    branch: String,
    worktree: PathBuf,
    tip: String,
}

fn killed(wire: Wire) -> Killed {
    let scratch = tempfile::tempdir().unwrap();
    let asked = scratch.path().join("asked");
    let seen = asked.clone();
    let script = Script::by_content(move |request| match request.replies() {
        0 => Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})),
        _ if !seen.exists() && seen.parent().is_some_and(Path::exists) => {
            let seen = seen.clone();
            Step::hand_back().before(move || fs::write(&seen, "").unwrap()).delay(Duration::from_mins(10))
        }
        _ => Step::hand_back(),
    });
    let env = TestEnvironment::new(wire, script);
    let running = env.start(&["delegate", "--json", "--branch", "mine", "Make b.txt."]);
    assert!(wait_until(Duration::from_mins(2), || asked.exists()), "the second request was not sent");
    running.signal(Signal::KILL);
    let first = env.finish(running).json().remove(0);
    env.may_add(".git/refs/heads/mine").may_add(".git/logs/refs/heads/mine");
    let worktree = PathBuf::from(first["data"]["workplace"]["worktree"].as_str().unwrap());
    let tip = env.checkout.git(&["rev-parse", "mine"]);
    Killed { env, branch: "mine".to_owned(), worktree, tip }
}

impl Killed {
    /// Resumes twice: both times a person must decide, and nothing is touched or asked.
    #[track_caller]
    fn is_gated(&self) -> String {
        let asked = self.env.server.requests().len();
        // what the person was asked about is noted under a ref of its own
        let look = || {
            let refs = self.env.checkout.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
            refs.lines().filter(|line| !line.contains("/asked ")).map(str::to_owned).collect::<Vec<_>>()
        };
        let before = (look(), fs::read_dir(&self.worktree).unwrap().count());
        let gated = [(); 2].map(|()| self.env.run(&["resume", "--json"]).ends(6, "gated"));
        assert_eq!(gated[0]["cause"], gated[1]["cause"]);
        assert_eq!(self.env.server.requests().len(), asked, "the model was asked before somebody decided");
        assert_eq!((look(), fs::read_dir(&self.worktree).unwrap().count()), before, "something was touched");
        gated[0]["cause"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    fn goes_on(&self) -> Value {
        let result = self.env.run(&["resume", "--json"]).ends(0, "handback");
        assert_eq!(self.env.on_branch(&result, "b.txt").unwrap(), b"b\n");
        assert_eq!(result["artifacts"], json!(["b.txt"]));
        assert_eq!(result["turns"], 2);
        result
    }
}

#[test]
fn a_worktree_that_is_gone_is_made_again() {
    for wire in Wire::BOTH {
        let killed = killed(wire);
        fs::remove_dir_all(&killed.worktree).unwrap();
        killed.goes_on();
    }
}

#[test]
fn a_worktree_that_differs_though_no_call_was_open_is_a_gate() {
    for wire in Wire::BOTH {
        let killed = killed(wire);
        let stray = killed.worktree.join("stray.txt");
        fs::write(&stray, "whose?\n").unwrap();
        let cause = killed.is_gated();
        assert!(cause.contains("stray.txt"), "{cause}");
        assert_eq!(fs::read_to_string(&stray).unwrap(), "whose?\n");
        fs::write(killed.worktree.join("b.txt"), "other\n").unwrap();
        fs::remove_file(&stray).unwrap();
        let cause = killed.is_gated();
        assert!(cause.contains("b.txt") && !cause.contains("stray"), "{cause}");
        fs::write(killed.worktree.join("b.txt"), "b\n").unwrap();
        killed.goes_on();
    }
}

#[test]
fn a_branch_that_was_moved_is_a_gate_that_names_both_commits() {
    for wire in Wire::BOTH {
        let killed = killed(wire);
        let base = killed.env.checkout.git(&["rev-parse", "main"]);
        killed.env.checkout.git(&["update-ref", "refs/heads/mine", &base]);
        let cause = killed.is_gated();
        assert!(
            cause.contains(&killed.branch) && cause.contains(&base[..10]) && cause.contains(&killed.tip[..10]),
            "{cause}"
        );
        killed.env.checkout.git(&["update-ref", "refs/heads/mine", &killed.tip]);
        killed.goes_on();
    }
}

#[test]
fn a_file_that_is_neither_before_nor_after_its_edit_is_a_gate() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(
            wire,
            Script::ByHistory(vec![
                Step::call("edit_file", json!({"path": "a.txt", "old": "a", "new": "b"})),
                Step::hand_back(),
            ]),
        );
        let state = env.root().join("state");
        nisse::log::Log::open(&state, nisse::log::Access::Write).unwrap();
        let database = || Connection::open(state.join("nisse.db")).unwrap();
        let trigger = "CREATE TRIGGER fault BEFORE INSERT ON event WHEN NEW.kind = 'tool_result' \
                       BEGIN SELECT raise(ABORT, 'no room'); END";
        database().execute_batch(trigger).unwrap();
        let cut = env.delegate(&[], "Make a.txt say b.");
        let file = Path::new(cut.exits(1).json()[0]["data"]["workplace"]["worktree"].as_str().unwrap()).join("a.txt");
        database().execute_batch("DROP TRIGGER fault").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "b\n", "the edit had happened");
        fs::write(&file, "somebody's\n").unwrap();
        for _ in 0..2 {
            let gated = env.run(&["resume", "--json"]).ends(6, "gated");
            assert!(gated["cause"].as_str().unwrap().contains("a.txt differs both"), "{gated}");
            assert_eq!(fs::read_to_string(&file).unwrap(), "somebody's\n", "somebody's work was overwritten");
        }
        // as it is after the edit: it is only recorded
        fs::write(&file, "b\n").unwrap();
        let result = env.run(&["resume", "--json"]).ends(0, "handback");
        assert_eq!(env.on_branch(&result, "a.txt").unwrap(), b"b\n");
    }
}

#[test]
fn a_discard_that_fails_changes_no_outcome_and_is_tried_again() {
    for wire in Wire::BOTH {
        let lock: Arc<Mutex<PathBuf>> = Arc::default();
        let at = Arc::clone(&lock);
        let hold = move || fs::write(&*at.lock().unwrap(), "").unwrap();
        let write = Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}));
        let env = TestEnvironment::new(wire, vec![write, Step::give_up().before(hold)]);
        // another git holds the branch
        *lock.lock().unwrap() = env.checkout.path().join(".git/refs/heads/mine.lock");
        env.may_add(".git/refs/heads/mine").may_add(".git/refs/heads/mine.lock").may_add(".git/logs/refs/heads/mine");
        let run = env.delegate(&["--branch", "mine"], "Make b.txt.");
        let failed = run.ends(3, "failed");
        assert_eq!((&failed["branch"], &failed["discarded_ref"]), (&json!("mine"), &json!(null)));
        let task = failed["task"].as_str().unwrap();
        let notice = failed["notices"].to_string();
        assert!(notice.contains("could not discard the branch") && notice.contains(&task[24..]), "{notice}");
        let story = env.run(&["log", task]);
        assert!(story.exits(0).stdout.contains("the discard failed"), "{}", story.report());
        fs::remove_file(&*lock.lock().unwrap()).unwrap();
        let again = env.run(&["resume", "--json"]).ends(3, "failed");
        assert_eq!(again["notices"], json!([]));
        env.assert_discarded(&again);
        assert_eq!(env.server.requests().len(), 2);
    }
}

#[test]
fn a_checkpoint_that_cannot_be_made_stops_the_task_before_the_next_effect() {
    for wire in Wire::BOTH {
        let lock: Arc<Mutex<PathBuf>> = Arc::default();
        let at = Arc::clone(&lock);
        let scratch = tempfile::tempdir().unwrap();
        let next = scratch.path().join("next");
        let work = Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}))
            .and_call("run_command", json!({"command": format!("touch {}", next.display())}))
            .before(move || fs::write(&*at.lock().unwrap(), "").unwrap());
        let env = TestEnvironment::new(wire, vec![work, Step::hand_back()]);
        *lock.lock().unwrap() = env.checkout.path().join(".git/refs/heads/mine.lock");
        env.may_add(".git/refs/heads/mine").may_add(".git/refs/heads/mine.lock").may_add(".git/logs/refs/heads/mine");
        let cut = env.delegate(&["--branch", "mine"], "Make b.txt.");
        assert!(cut.exits(1).stderr.contains("nothing is lost: nisse resume"), "{}", cut.report());
        assert!(!next.exists(), "a command ran although the edit before it is in no checkpoint");
        fs::remove_file(&*lock.lock().unwrap()).unwrap();
        let result = env.run(&["resume", "--json"]).ends(0, "handback");
        assert_eq!(result["artifacts"], json!(["b.txt"]));
        assert!(next.exists());
    }
}

/// What ties a worktree to its branch is put back before it is used, and the log says so.
#[test]
fn a_worktree_that_was_tied_to_something_else_is_repaired_and_told() {
    let repaired = |env: &TestEnvironment, task: &str| {
        let events = env.run(&["log", "--json", task]).exits(0).json().remove(0)["events"].clone();
        let all = events.as_array().unwrap().iter();
        all.filter(|event| event["event"] == "worktree_repaired").map(|event| event["data"]["what"].clone()).collect()
    };
    // by a command, and by its checks
    let line = "echo b > b.txt; echo 'gitdir: /nowhere' > .git";
    let env =
        TestEnvironment::new(Wire::Chat, vec![Step::call("run_command", json!({"command": line})), Step::hand_back()]);
    let run = env.delegate(&["--check", "rm .git; mkdir .git"], "Make b.txt.");
    let result = run.ends(0, "handback");
    assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"b\n");
    let told: Vec<Value> = repaired(&env, result["task"].as_str().unwrap());
    assert_eq!(told, [json!([".git"]), json!([".git"])]);
    assert!(run.stderr.contains("restored the worktree's .git"), "{}", run.report());

    // while nobody was there
    let killed = killed(Wire::Chat);
    fs::write(killed.worktree.join(".git"), "gitdir: /nowhere\n").unwrap();
    let entry = killed.env.checkout.path().join(".git/worktrees").join(killed.worktree.file_name().unwrap());
    fs::write(entry.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let result = killed.goes_on();
    let told: Vec<Value> = repaired(&killed.env, result["task"].as_str().unwrap());
    assert_eq!(told, [json!([".git", "HEAD"])]);
}

#[test]
fn a_git_that_outlives_a_killed_nisse_keeps_the_task() {
    let env = TestEnvironment::new(
        Wire::Chat,
        vec![Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})), Step::hand_back()],
    );
    let (begun, release) = (env.root().join("begun"), env.root().join("release"));
    env.before_git(&format!(
        "case \"$*\" in *'worktree add'*)
            : > {}
            while [ ! -e {} ]; do sleep 0.05; done
        esac",
        begun.display(),
        release.display()
    ));
    let running = env.start(&["delegate", "--json", "Make b.txt."]);
    assert!(wait_until(Duration::from_mins(2), || begun.exists()), "no worktree was begun");
    running.signal(Signal::KILL);
    env.finish(running);
    let held = env.run(&["resume", "--json"]);
    assert_eq!(held.exits(1).json().pop().unwrap()["error"]["kind"], "task_held");
    fs::write(&release, "").unwrap();
    let lock = fs::read_dir(env.state().join("locks")).unwrap().next().unwrap().unwrap().path();
    let lock = fs::File::open(lock).unwrap();
    assert!(wait_until(Duration::from_mins(2), || lock.try_lock_shared().is_ok()), "git did not end");
    drop(lock);
    let result = env.run(&["resume", "--json"]).ends(0, "handback");
    assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"b\n");
}
