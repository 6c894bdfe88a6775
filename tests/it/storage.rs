//! The log as a file: what it is made of, and what happens when it cannot be written or read.
//!
//! A fault of the storage is told with exit 1, the checkout is what it was, nothing of the task is lost, and when the
//! fault is gone the task goes on.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use nisse::{
    domain::{
        event::{Event, EventKind},
        id::{CallId, TaskId},
        intent::Status,
        task::Task,
    },
    log::{Access, Log},
};
use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Run, Script, Step, TestEnvironment, Wire, wait_until};

mod corrupt;
mod lost;
pub(crate) mod versions;

fn state_dir(env: &TestEnvironment) -> PathBuf {
    env.root().join("state")
}

fn database(env: &TestEnvironment) -> Connection {
    Connection::open(state_dir(env).join("nisse.db")).unwrap()
}

fn read(env: &TestEnvironment) -> Log {
    Log::open(&state_dir(env), Access::Read).unwrap().unwrap()
}

fn only_task(env: &TestEnvironment) -> Task {
    let log = read(env);
    let [id] = log.tasks().unwrap()[..] else { panic!("one task, not {:?}", log.tasks()) };
    log.task(id).unwrap()
}

/// Edits a file, is corrected by the check, writes what it asks for, and hands back.
fn job() -> Script {
    Script::ByHistory(vec![
        Step::call("edit_file", json!({"path": "a.txt", "old": "a", "new": "b"})),
        Step::hand_back(),
        Step::call("write_file", json!({"path": "c.txt", "content": "c\n"})),
        Step::hand_back(),
    ])
}

const CHECK: &str = "test -e c.txt && touch left-by-the-check";

/// A reply that nothing comes of for now.
fn limited() -> Step {
    Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded.")
}

/// Asserts that a run was ended by the log, in words and in JSON.
#[track_caller]
fn told_of_the_log(run: &Run, words: &str) {
    run.exits(1);
    let error = run.json().pop().unwrap();
    assert_eq!((&error["type"], &error["error"]["kind"]), (&json!("error"), &json!("log")), "{}", run.report());
    assert!(run.stderr.contains("nisse.db") && run.stderr.contains(words), "{}", run.report());
    assert!(run.stderr.lines().skip_while(|line| !line.starts_with("error: ")).count() <= 3, "{}", run.report());
}

#[test]
fn a_new_log_is_private_and_built_for_many_writers() {
    let env = TestEnvironment::new(Wire::Chat, vec![limited()]);
    env.delegate(&[], "Make b.txt.").ends(5, "interrupted");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let state = state_dir(&env);
    let (mut dirs, mut seen) = (vec![state.clone()], Vec::new());
    while let Some(dir) = dirs.pop() {
        if dir.ends_with("worktrees") {
            continue; // git's, behind the state directory's own mode
        }
        assert_eq!(mode(&dir), 0o700, "{}", dir.display());
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                assert_eq!(mode(&path), 0o600, "{}", path.display());
                seen.push(path);
            }
        }
    }
    assert!(seen.contains(&state.join("nisse.db")), "{seen:?}");
    let pragma = |name: &str| -> String {
        let value = |row: &rusqlite::Row<'_>| row.get::<_, rusqlite::types::Value>(0);
        format!("{:?}", database(&env).query_row(&format!("PRAGMA {name}"), [], value).unwrap())
    };
    assert_eq!(
        [pragma("page_size"), pragma("journal_mode"), pragma("user_version")],
        ["Integer(8192)", "Text(\"wal\")", "Integer(2)"]
    );
    assert!(rusqlite::version_number() >= 3_051_003, "this SQLite can corrupt a log that several tasks write");
}

#[test]
fn events_are_never_changed_deleted_or_skipped() {
    let env = TestEnvironment::new(Wire::Chat, vec![limited()]);
    env.delegate(&[], &"Make b.txt. ".repeat(1000)).ends(5, "interrupted");
    let before = read(&env).events(only_task(&env).id, 0).unwrap();
    let row =
        "INSERT INTO event SELECT task, (SELECT max(seq) FROM event) + 2, v, at_ms, spent_ms, kind, body FROM event";
    for (statement, words) in [
        ("UPDATE event SET body = '{}'", "never changed"),
        ("DELETE FROM event", "never deleted"),
        ("UPDATE blob SET raw_len = 0", "never changed"),
        ("DELETE FROM blob", "never deleted"),
        (row, "without gaps"),
        ("REPLACE INTO event SELECT task, seq, v, at_ms, spent_ms, kind, '{}' FROM event", "without gaps"),
    ] {
        let error = database(&env).execute(statement, []).unwrap_err().to_string();
        assert!(error.contains(words), "{statement}: {error}");
    }
    assert_eq!(read(&env).events(before[0].task, 0).unwrap(), before);
}

/// Where a fault strikes, and what must not have happened then.
type Fault = (&'static str, &'static str, fn(&TestEnvironment));

fn nothing_made(env: &TestEnvironment) {
    assert!(read(env).tasks().unwrap().is_empty());
    assert!(!state_dir(env).join("worktrees").exists());
    assert_eq!(env.checkout.git(&["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
}

fn nothing_asked(env: &TestEnvironment) {
    assert_eq!(env.server.requests().len(), 0, "a request was sent that the log does not know");
}

fn nothing_edited(env: &TestEnvironment) {
    let file = Path::new(&only_task(env).started.workplace.worktree).join("a.txt");
    assert_eq!(fs::read_to_string(file).unwrap(), "a\n", "a file was changed before it was in the log");
}

fn nothing_checked(env: &TestEnvironment) {
    assert!(!env.root().join("checked").exists(), "a check ran before it was in the log");
}

fn not_squashed(env: &TestEnvironment) {
    let task = only_task(env);
    let tip = env.checkout.git(&["rev-parse", &task.started.workplace.branch]);
    assert_eq!(Some(&tip), task.head.as_ref().map(|head| &head.0), "the branch was moved before it was in the log");
}

fn worktree_stands(env: &TestEnvironment) {
    let task = only_task(env);
    assert!(Path::new(&task.started.workplace.worktree).exists() && task.ended.is_none());
}

fn nothing(_: &TestEnvironment) {}

const FAULTS: [Fault; 16] = [
    ("the task's start", "kind = 'task_started'", nothing_made),
    ("the worktree", "kind = 'worktree_ready'", nothing_asked),
    ("a request", "kind = 'request_sent'", nothing_asked),
    ("a reply", "kind = 'reply_received'", nothing_edited),
    ("an edit's intent", "kind = 'intent_opened' AND NEW.body LIKE '%file_edit%'", nothing_edited),
    ("a result", "kind = 'tool_result'", nothing),
    ("an edit's settlement", r#"kind = 'intent_settled' AND NEW.body LIKE '{"intent":1,%'"#, nothing),
    ("a turn's end", "kind = 'turn_ended'", nothing),
    ("an accepted ending", "kind = 'ending_accepted'", nothing_checked),
    ("a check's intent", "kind = 'intent_opened' AND NEW.body LIKE '%check%'", nothing_checked),
    ("a check's verdict", "kind = 'check_ran'", nothing),
    ("a check's settlement", r#"kind = 'intent_settled' AND NEW.body LIKE '{"intent":2,%'"#, nothing),
    ("the squash's intent", "kind = 'intent_opened' AND NEW.body LIKE '%squash%'", not_squashed),
    ("the completion", "kind = 'task_ended'", worktree_stands),
    ("the task's settlement", r#"kind = 'intent_settled' AND NEW.body LIKE '{"intent":0,%'"#, worktree_stands),
    ("the clean-up's intent", "kind = 'intent_opened' AND NEW.body LIKE '%clean_up%'", worktree_stands),
];

#[test]
fn an_event_that_cannot_be_written_stops_everything_before_its_effect() {
    for (index, (what, condition, not_happened)) in FAULTS.into_iter().enumerate() {
        let wire = Wire::BOTH[index % 2];
        let env = TestEnvironment::new(wire, job());
        env.checkout.write("a.txt", "a\n");
        let check = format!("touch {}; {CHECK}", env.root().join("checked").display());
        Log::open(&state_dir(&env), Access::Write).unwrap();
        let trigger = format!(
            "CREATE TRIGGER fault BEFORE INSERT ON event WHEN NEW.{condition} BEGIN SELECT raise(ABORT, 'no room'); END"
        );
        database(&env).execute_batch(&trigger).unwrap();
        let run = env.delegate(&["--check", &check], "Make a.txt say b.");
        told_of_the_log(&run, "no room");
        not_happened(&env);
        env.assert_checkout_unchanged();
        database(&env).execute_batch("DROP TRIGGER fault").unwrap();
        if index == 0 {
            env.delegate(&["--check", &check], "Make a.txt say b.").ends(0, "handback");
            continue;
        }
        let task = only_task(&env);
        assert!(
            run.stderr.contains(&format!("nothing is lost: nisse resume {:#}", task.id)),
            "{what}: {}",
            run.report()
        );
        rows_are_whole(&task, what);
        let result = env.run(&["resume", "--json"]).ends(0, "handback");
        assert_eq!(env.on_branch(&result, "a.txt").unwrap(), b"b\n", "{what}");
        assert_eq!(result["artifacts"], json!(["a.txt", "c.txt"]), "{what}: what the check left is no work");
        assert_eq!(result["turns"], 4, "{what}: nothing recorded is asked again");
        let ended = only_task(&env);
        assert!(ended.intents.iter().all(|intent| intent.status != Status::Pending), "{what}: {:?}", ended.intents);
        assert!(!Path::new(&ended.started.workplace.worktree).exists(), "{what}: the worktree is left");
    }
}

/// No row of the table "What is written, and when" is split over two transactions.
fn rows_are_whole(task: &Task, what: &str) {
    let answered = |call: &CallId| task.turns.iter().flat_map(|turn| &turn.results).any(|result| result.call == *call);
    for intent in task.pending_intents() {
        assert!(intent.kind.call().is_none_or(|call| !answered(call)), "{what}: a result without its settlement");
    }
    assert!(task.ended.is_none(), "{what}: a completion without the task's settlement");
}

#[test]
fn a_discard_is_in_the_log_before_the_branch_goes() {
    let env = TestEnvironment::new(
        Wire::Chat,
        Script::ByHistory(vec![Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})), Step::give_up()]),
    );
    Log::open(&state_dir(&env), Access::Write).unwrap();
    let trigger = "CREATE TRIGGER fault BEFORE INSERT ON event WHEN NEW.kind = 'intent_opened' AND NEW.body LIKE '%discard%' \
                   BEGIN SELECT raise(ABORT, 'no room'); END";
    database(&env).execute_batch(trigger).unwrap();
    told_of_the_log(&env.delegate(&[], "Make b.txt."), "no room");
    not_squashed(&env);
    worktree_stands(&env);
    database(&env).execute_batch("DROP TRIGGER fault").unwrap();
    let result = env.run(&["resume", "--json"]).ends(3, "failed");
    env.assert_discarded(&result);
}

#[test]
fn a_full_disk_is_told_and_the_task_goes_on_when_there_is_room() {
    for wire in Wire::BOTH {
        // noise, so that nothing of it can be packed
        let noise = |n: u64| {
            let mut state = 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(n + 1);
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                char::from(b' ' + u8::try_from((state >> 33) % 94).unwrap())
            };
            (0..120_000).map(|_| next()).collect::<String>()
        };
        let script = Script::by_content(move |asked| match asked.replies() {
            n @ 0..8 => Step::text(&noise(n as u64)).and_call("read_file", json!({"path": format!("f{n}.txt")})),
            8 => Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})),
            _ => Step::hand_back(),
        });
        let env = TestEnvironment::new(wire, script);
        env.configure(&format!("[models.\"{}\"]\nmax_input_tokens = 1_000_000\n", wire.alias()));
        let full = env.finish(env.start_behind("trap '' XFSZ; ulimit -f 600", &["delegate", "--json", "Make b.txt."]));
        told_of_the_log(&full, "disk");
        let task = only_task(&env);
        assert!((1..8).contains(&task.spend.turns), "{}", task.spend.turns);
        assert!(full.stderr.contains(&format!("nisse resume {:#}", task.id)), "{}", full.report());
        env.assert_checkout_unchanged();
        let result = env.run(&["resume", "--json"]).ends(0, "handback");
        assert_eq!(result["turns"], 10);
    }
}

#[test]
fn a_locked_database_is_waited_for_and_then_told() {
    let env = TestEnvironment::new(Wire::Chat, job());
    Log::open(&state_dir(&env), Access::Write).unwrap();
    let writer = database(&env);
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    told_of_the_log(&env.delegate(&[], "Make a.txt say b."), "locked");
    nothing_made(&env);
    writer.execute_batch("ROLLBACK").unwrap();
    env.delegate(&["--check", CHECK], "Make a.txt say b.").ends(0, "handback");
}

#[test]
fn a_database_that_is_locked_in_the_middle_loses_nothing() {
    let writer: Arc<Mutex<Option<Connection>>> = Arc::default();
    let (held, path) = (Arc::clone(&writer), Arc::new(Mutex::new(PathBuf::new())));
    let at = Arc::clone(&path);
    let script = Script::by_content(move |asked| match asked.replies() {
        0 => {
            let (held, at) = (Arc::clone(&held), Arc::clone(&at));
            Step::call("edit_file", json!({"path": "a.txt", "old": "a", "new": "b"})).before(move || {
                let mut held = held.lock().unwrap();
                if held.is_none() {
                    let connection = Connection::open(&*at.lock().unwrap()).unwrap();
                    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
                    *held = Some(connection);
                }
            })
        }
        _ => Step::hand_back(),
    });
    let env = TestEnvironment::new(Wire::Messages, script);
    *path.lock().unwrap() = state_dir(&env).join("nisse.db");
    told_of_the_log(&env.delegate(&[], "Make a.txt say b."), "locked");
    nothing_edited(&env);
    writer.lock().unwrap().as_ref().unwrap().execute_batch("ROLLBACK").unwrap();
    env.run(&["resume", "--json"]).ends(0, "handback");
}

#[test]
fn a_state_directory_that_cannot_be_made_or_is_in_the_way_is_told() {
    let env = TestEnvironment::new(Wire::Chat, Vec::new());
    fs::write(env.root().join("file"), "").unwrap();
    let in_the_way = env.root().join("file/state");
    for dir in ["/proc/nisse", in_the_way.to_str().unwrap()] {
        let run = env.delegate(&["--state-dir", dir], "Make b.txt.");
        run.exits(1);
        assert!(run.stderr.contains(dir) && run.stderr.contains("--state-dir"), "{}", run.report());
    }
    assert_eq!(env.server.requests().len(), 0);
}

#[test]
fn a_log_that_can_only_be_read_is_read() {
    let env = TestEnvironment::new(Wire::Chat, vec![limited()]);
    env.delegate(&[], "Make b.txt.").ends(5, "interrupted");
    let task = only_task(&env).id;
    // a root may write everywhere: somebody else looks then
    let nobody = 65_534;
    let is_root = rustix::process::geteuid().is_root();
    let state = state_dir(&env);
    for name in ["nisse.db", "nisse.db-wal", "nisse.db-shm", ""] {
        let path = state.join(name);
        if !path.exists() {
            continue;
        }
        if is_root {
            std::os::unix::fs::chown(&path, Some(nobody), Some(nobody)).unwrap();
        }
        let mode = if name.is_empty() { 0o500 } else { 0o400 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let root = env.root();
    for path in [&root, &root.join("checkout"), &root.join("home")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let program = root.join("nisse");
    fs::copy(env!("CARGO_BIN_EXE_nisse"), &program).unwrap();
    let before = fs::read(state.join("nisse.db")).unwrap();
    let drop_rights = format!("exec setpriv --reuid={nobody} --regid={nobody} --clear-groups");
    let run = format!("{} {} \"$@\"", if is_root { &drop_rights } else { "exec" }, program.display());
    let run = env.finish(env.start_behind(&run, &["log", "--json", &task.to_string()]));
    assert_eq!(run.exits(0).json()[0]["events"].as_array().unwrap().len(), 5, "{}", run.report());
    assert_eq!(fs::read(state.join("nisse.db")).unwrap(), before);
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_task_has_one_owner_and_the_second_is_told_who() {
    for wire in Wire::BOTH {
        let scratch = tempfile::tempdir().unwrap();
        let asked = scratch.path().join("asked");
        let seen = asked.clone();
        let script = Script::by_content(move |request| match request.replies() {
            0 if !seen.exists() => {
                let seen = seen.clone();
                Step::hand_back().before(move || fs::write(&seen, "").unwrap()).delay(Duration::from_mins(10))
            }
            0 => Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})),
            _ => Step::hand_back(),
        });
        let env = TestEnvironment::new(wire, script);
        let first = env.start(&["delegate", "--json", "Make b.txt."]);
        assert!(wait_until(Duration::from_mins(2), || asked.exists()), "the request was not sent");
        let events = read(&env).events(only_task(&env).id, 0).unwrap().len();
        let second = env.run(&["resume", "--json"]);
        let error = second.exits(1).json().pop().unwrap();
        assert_eq!(error["error"]["kind"], "task_held");
        let who = format!("process {}", first.id());
        assert!(second.stderr.contains(&who), "{who} is not named\n{}", second.report());
        assert_eq!(read(&env).events(only_task(&env).id, 0).unwrap().len(), events, "the second has written");
        // a dead owner's lock is free at once
        first.signal(Signal::KILL);
        env.finish(first);
        env.run(&["resume", "--json"]).ends(0, "handback");
    }
}

#[test]
fn several_tasks_in_one_repository_at_once_do_not_hinder_each_other() {
    for wire in Wire::BOTH {
        let env = TestEnvironment::new(
            wire,
            Script::by_content(|asked| match asked.replies() {
                n @ 0..4 => Step::call("write_file", json!({"path": format!("f{n}.txt"), "content": "x\n"})),
                _ => Step::hand_back(),
            }),
        );
        let running: Vec<_> = (0..4)
            .map(|n| env.start(&["delegate", "--json", "--check", "true", &format!("Write files, {n}.")]))
            .collect();
        let results: Vec<Value> = running.into_iter().map(|run| env.finish(run).ends(0, "handback")).collect();
        let log = read(&env);
        for result in &results {
            let id: TaskId = result["task"].as_str().unwrap().parse().unwrap();
            assert_eq!(log.task(id).unwrap().spend.turns, 5);
            assert_eq!(env.on_branch(result, "f3.txt").unwrap(), b"x\n");
        }
        let listed = env.run(&["log", "--json"]).json()[0]["tasks"].as_array().unwrap().len();
        assert_eq!(listed, 4);
    }
}
