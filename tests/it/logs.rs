//! Logs that earlier versions wrote: they fold for ever, and a task that one of them began goes on as if by the same.

mod record;
mod worlds;

use std::{fs, path::Path};

use nisse::{
    domain::{
        event::{Event, EventKind},
        id::TaskId,
        task::Task,
        wording::Wording,
    },
    log::{Access, Log},
};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::{TestEnvironment, Wire};

/// Puts the log that version `version` wrote into a state directory, its places within `root`.
fn restore(version: u32, state: &Path, root: &str) -> Connection {
    fs::create_dir_all(state).unwrap();
    let sql = fs::read_to_string(record::directory().join(format!("v{version}.sql"))).unwrap();
    let database = Connection::open(state.join("nisse.db")).unwrap();
    database.execute_batch(&format!("BEGIN; {} COMMIT;", sql.replace(record::ROOT, root))).unwrap();
    database
}

/// The versions of which there is a recorded log.
fn versions() -> Vec<u32> {
    let recorded = |version: &u32| record::directory().join(format!("v{version}.sql")).exists();
    (1..=nisse::log::EVENTS).filter(recorded).collect()
}

#[test]
fn every_version_that_was_is_recorded() {
    assert_eq!(versions(), (1..=nisse::log::EVENTS).collect::<Vec<_>>(), "{}", record::HOW);
}

#[test]
fn a_changed_shape_is_a_new_version() {
    let kept = record::directory().join(format!("v{}.shape.json", nisse::log::EVENTS));
    let kept = fs::read_to_string(&kept).unwrap_or_else(|_| panic!("{} is missing; {}", kept.display(), record::HOW));
    assert_eq!(
        record::shape(),
        kept,
        "the shape of an event has changed. If any build that somebody may run has written this version, raise \
         `log::EVENTS` and add a step to `log/upcast`, then {}",
        record::HOW
    );
}

/// Else an older nisse, which knows the events, would call a newer wording corruption.
#[test]
fn a_new_wording_comes_with_a_new_version_of_the_events() {
    let place = tempfile::tempdir().unwrap();
    restore(nisse::log::EVENTS, place.path(), place.path().to_str().unwrap());
    let log = Log::open(place.path(), Access::Read).unwrap().unwrap();
    for id in log.tasks().unwrap() {
        assert_eq!(log.started(id).unwrap().wording.version, Wording::NEWEST, "raise log::EVENTS; {}", record::HOW);
    }
}

#[test]
fn recorded_logs_fold_to_what_they_did() {
    for version in versions() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().to_str().unwrap();
        restore(version, place.path(), root);
        let log = Log::open(place.path(), Access::Read).unwrap().unwrap();
        let recorded: Vec<Value> =
            serde_json::from_slice(&fs::read(record::directory().join(format!("v{version}.json"))).unwrap()).unwrap();
        assert_eq!(log.tasks().unwrap().len(), recorded.len());
        for was in recorded {
            let id: TaskId = was["task"].as_str().unwrap().parse().unwrap();
            assert_eq!(summary(&log.task(id).unwrap(), root), was, "version {version}");
        }
    }
}

#[test]
fn recorded_logs_are_told_and_listed() {
    for version in versions() {
        let env = TestEnvironment::new(Wire::Chat, Vec::new());
        let database = restore(version, &env.state(), env.root().to_str().unwrap());
        drop(database);
        let listed = env.run(&["log", "--json"]).exits(0).json().pop().unwrap();
        assert_eq!(listed["unreadable"], json!([]));
        let tasks = listed["tasks"].as_array().unwrap();
        assert!(tasks.len() > 40, "{} tasks", tasks.len());
        for task in [&tasks[0], &tasks[tasks.len() / 2], &tasks[tasks.len() - 1]] {
            let id = task["task"].as_str().unwrap();
            assert!(env.run(&["log", id]).exits(0).stdout.contains(worlds::STORY));
        }
    }
}

/// A recorded task cut before each of its requests asks the same again, byte for byte: tools, headings, stubs and all.
#[test]
fn a_task_of_an_earlier_version_asks_what_it_would_have_asked() {
    for version in versions() {
        let packed = fs::read(record::directory().join(format!("v{version}-requests.zst"))).unwrap();
        let lines = String::from_utf8(zstd::bulk::decompress(&packed, 64 << 20).unwrap()).unwrap();
        for line in lines.lines() {
            let recorded: Value = serde_json::from_str(line).unwrap();
            let bodies: Vec<&str> =
                recorded["bodies"].as_array().unwrap().iter().map(|body| body.as_str().unwrap()).collect();
            // the reader's are long and alike: those around its evictions and its last ones
            let chosen: Vec<usize> = match recorded["story"].as_str().unwrap() {
                "reader" => (0..bodies.len()).filter(|nth| nth % 5 == 0 || nth + 1 == bodies.len()).collect(),
                _ => (0..bodies.len()).collect(),
            };
            for nth in chosen {
                assert_eq!(asked_after_a_cut(version, &recorded, nth), bodies[nth], "version {version}, request {nth}");
            }
        }
    }
}

/// What is asked when the recorded task is cut before its `nth` request and resumed.
fn asked_after_a_cut(version: u32, recorded: &Value, nth: usize) -> String {
    let (story, alias) = (recorded["story"].as_str().unwrap(), recorded["alias"].as_str().unwrap());
    let wire = Wire::BOTH.into_iter().find(|wire| wire.alias() == alias).unwrap();
    let answers = vec![worlds::away()];
    let env = match story {
        "story" => TestEnvironment::new(wire, answers),
        _ => worlds::reader_answered(wire, answers),
    };
    env.server.sent_thinking(wire, &worlds::STORY_THINKING);
    if version == 1 {
        env.server.takes_old_wording();
    }
    let root = env.root();
    let bundle = record::directory().join(format!("v{version}-{story}-{alias}.bundle"));
    let task: TaskId = recorded["task"].as_str().unwrap().parse().unwrap();
    let database = restore(version, &env.state(), root.to_str().unwrap());
    let events = Log::open(&env.state(), Access::Read).unwrap().unwrap().events(task, 0).unwrap();
    let sent = |event: &&Event| matches!(event.kind, EventKind::RequestSent { .. });
    let cut = events.iter().filter(sent).nth(nth).unwrap().seq;
    let triggers = "DROP TRIGGER event_delete; DROP TRIGGER event_update; DROP TRIGGER event_without_gaps;";
    database.execute_batch(triggers).unwrap();
    database
        .execute("DELETE FROM event WHERE task <> ?1 OR seq >= ?2", (task.to_string(), i64::try_from(cut).unwrap()))
        .unwrap();
    drop(database);
    let before = Task::fold(&events[..usize::try_from(cut).unwrap() - 1]).unwrap().unwrap();
    let (branch, head) = (format!("refs/heads/{}", before.started.workplace.branch), before.head.unwrap());
    env.checkout.git(&["fetch", "--quiet", bundle.to_str().unwrap(), &format!("refs/nisse/turns/{task}")]);
    env.checkout.git(&["update-ref", &branch, &head.0]);
    env.run(&["resume", "--json", &task.to_string()]).ends(5, "interrupted");
    env.server.requests().remove(0).raw
}

/// What a task folds to, as far as it means the same in every version.
fn summary(task: &Task, root: &str) -> Value {
    let text = |text: &str| text.replace(root, record::ROOT);
    let outcome = task.outcome();
    json!({
        "task": task.id,
        "events": task.seq,
        "outcome": outcome.as_ref().map(nisse::domain::outcome::Outcome::word),
        "cause": outcome.as_ref().map(|outcome| text(outcome.cause())),
        "branch": task.started.workplace.branch,
        "route": task.started.models.own.route,
        "head": task.head,
        "turns": task.spend.turns,
        "requests": task.requests,
        "tokens": task.spend.usage.total(),
        "cost": task.spend.cost,
        "cost_unknown": task.spend.cost_unknown,
        "evicted_through": task.evicted_through,
        "intents": task.intents.iter().map(|intent| format!("{:?}", intent.status)).collect::<Vec<_>>(),
        "files": task.seen.keys().collect::<Vec<_>>(),
        "handback": task.note.as_ref().map(|note| &note.handback().changed),
    })
}

/// The names of all kinds of events, and of intents, as they are stored.
fn every_kind() -> Vec<String> {
    let schema = schemars::schema_for!(nisse::domain::event::EventKind).to_value();
    let variants = |schema: &Value| -> Vec<String> {
        let names = |variant: &Value| -> Vec<String> {
            let words = variant["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
            let word = variant["const"].as_str().map(str::to_owned);
            let members = variant["properties"].as_object().into_iter().flat_map(|members| members.keys().cloned());
            words.chain(word).chain(members).collect()
        };
        schema["oneOf"].as_array().unwrap().iter().flat_map(names).collect()
    };
    let intents = variants(&schema["$defs"]["IntentKind"]).into_iter().filter(|kind| kind != "task");
    let events = variants(&schema);
    events.into_iter().chain(intents.map(|kind| format!("intent {kind}"))).collect()
}
