//! Records what this nisse writes. Every run makes it, so that a kind of event that no world shows is found at once; for a
//! new version of the events it is kept: `RECORD_LOGS=tests/logs cargo test --test it -- logs::record`.
//!
//! - `v<N>.sql`: the whole log of every world in [`super::worlds`], rows as they are stored. The world's directory is
//!   written as [`ROOT`].
//! - `v<N>.shape.json`: the members of every event, and their types.
//! - `v<N>.json`: what each task folded to when it was recorded.
//! - `v<N>-<story>-<route>.bundle`: the commits of the tasks whose requests are compared.
//! - `v<N>-requests.zst`: the bodies of their requests, one JSON document a line.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use nisse::{
    domain::event::EventKind,
    log::{Access, Log},
};
use rusqlite::Connection;
use serde_json::{Value, json};

use super::{summary, worlds};
use crate::support::{TestEnvironment, Wire};

/// Stands for the directory of the world that was recorded.
pub(super) const ROOT: &str = "@ROOT@";

/// What to do where a version is missing.
pub(super) const HOW: &str = "record it: RECORD_LOGS=tests/logs cargo test --test it -- logs::record";

/// Where recorded logs are.
pub(super) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logs")
}

#[test]
fn every_kind_of_event_is_recorded() {
    let version = nisse::log::EVENTS;
    let scratch = tempfile::tempdir().unwrap();
    let into = std::env::var_os("RECORD_LOGS").map_or_else(|| scratch.path().to_owned(), PathBuf::from);
    let into = Path::new(env!("CARGO_MANIFEST_DIR")).join(into);
    let mut recorder = Recorder::default();
    let mut nth = 0;
    worlds::every(&mut nth, &mut |env| recorder.record(env));
    let mut requests = String::new();
    for wire in Wire::BOTH {
        for (name, env, options) in
            [("story", worlds::story(wire), &worlds::STORY_OPTIONS[..]), ("reader", worlds::reader(wire), &[])]
        {
            let env = worlds::at(env, &mut nth);
            let result = env.delegate(options, worlds::STORY).ends(0, "handback");
            recorder.record(&env);
            let task = result["task"].as_str().unwrap();
            let bundle = into.join(format!("v{version}-{name}-{}.bundle", wire.alias()));
            let turns = format!("refs/nisse/turns/{task}");
            env.checkout.git(&["bundle", "create", "--quiet", bundle.to_str().unwrap(), &turns]);
            let bodies: Vec<String> = env.server.requests().into_iter().map(|asked| asked.raw).collect();
            let line = json!({"story": name, "alias": wire.alias(), "task": task, "bodies": bodies});
            assert!(!line.to_string().contains(env.root().to_str().unwrap()), "a request holds the world's path");
            writeln!(requests, "{line}").unwrap();
        }
    }
    let packed = zstd::bulk::compress(requests.as_bytes(), 19).unwrap();
    fs::write(into.join(format!("v{version}-requests.zst")), packed).unwrap();
    recorder.write(version, &into);
}

/// The shape of today's events: their schema without the words.
pub(super) fn shape() -> String {
    fn without_words(value: &mut Value) {
        match value {
            Value::Object(members) => {
                // a member of ours may be called so too; then it is a schema, not a text
                if members.get("description").is_some_and(Value::is_string) {
                    members.remove("description");
                }
                members.values_mut().for_each(without_words);
            }
            Value::Array(items) => items.iter_mut().for_each(without_words),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut schema = schemars::schema_for!(EventKind).to_value();
    without_words(&mut schema);
    format!("{schema:#}\n")
}

#[derive(Default)]
struct Recorder {
    schema: String,
    rows: String,
    blobs: BTreeSet<String>,
    tasks: Vec<Value>,
    seen: BTreeSet<String>,
}

impl Recorder {
    /// Takes the world's log in.
    fn record(&mut self, env: &TestEnvironment) {
        let root = env.root().to_str().unwrap().to_owned();
        let log = Log::open(&env.state(), Access::Read).unwrap().unwrap();
        for id in log.tasks().unwrap() {
            let task = log.task(id).unwrap();
            self.tasks.push(summary(&task, &root));
            for event in log.events(id, 0).unwrap() {
                self.saw(&event.kind);
            }
        }
        let database = Connection::open(env.state().join("nisse.db")).unwrap();
        let texts = |query: &str| -> Vec<String> {
            let mut statement = database.prepare(query).unwrap();
            statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
        };
        self.schema = texts("SELECT sql || ';' FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid").join("\n");
        let events =
            "SELECT 'INSERT INTO event VALUES (' || quote(task) || ', ' || seq || ', ' || v || ', ' || at_ms || ', '
             || spent_ms || ', ' || quote(kind) || ', ' || quote(body) || ');' FROM event ORDER BY task, seq";
        for row in texts(events) {
            self.rows.push_str(&row.replace(&root, ROOT));
            self.rows.push('\n');
        }
        let blobs = "SELECT 'INSERT INTO blob VALUES (' || quote(hash) || ', ' || raw_len || ', ' || quote(zstd) || ');' FROM blob";
        self.blobs.extend(texts(blobs));
    }

    fn saw(&mut self, kind: &EventKind) {
        let value = serde_json::to_value(kind).unwrap();
        let (name, content) = value.as_object().unwrap().iter().next().unwrap();
        self.seen.insert(name.clone());
        if name == "intent_opened" {
            let intent = &content["kind"];
            let name = intent.as_str().or_else(|| intent.as_object().unwrap().keys().next().map(String::as_str));
            self.seen.insert(format!("intent {}", name.unwrap()));
        }
    }

    fn write(&self, version: u32, into: &Path) {
        let missing: Vec<_> = super::every_kind().into_iter().filter(|kind| !self.seen.contains(kind)).collect();
        assert!(missing.is_empty(), "no world records these: {missing:?}");
        let path = |ending: &str| into.join(format!("v{version}.{ending}"));
        let blobs = self.blobs.iter().cloned().collect::<Vec<_>>().join("\n");
        let schema = nisse::log::SCHEMA;
        let sql = format!("{}\nPRAGMA user_version = {schema};\n{blobs}\n{}", self.schema, self.rows);
        fs::write(path("sql"), sql).unwrap();
        fs::write(path("shape.json"), shape()).unwrap();
        let tasks: Vec<String> = self.tasks.iter().map(Value::to_string).collect();
        fs::write(path("json"), format!("[\n{}\n]\n", tasks.join(",\n"))).unwrap();
    }
}
