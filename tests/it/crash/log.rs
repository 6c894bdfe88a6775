//! A log of an earlier version is migrated when it is opened for writing: before or after it, never in between.

use std::{fs, sync::Arc};

use rusqlite::Connection;
use serde_json::json;

use super::Case;
use crate::{
    storage::versions::AS_VERSION_1,
    support::{Script, Step, TestEnvironment, Wire},
};

pub(super) const POINTS: &[&[&str]] = &[MIGRATED];

const MIGRATED: &[&str] = &["migrate.begun", "migrate.step", "migrate.marked", "migrate.done"];

#[test]
fn while_a_task_is_resumed() {
    let scratch = tempfile::tempdir().unwrap();
    let mended = Arc::new(scratch.path().join("mended"));
    let known = Arc::clone(&mended);
    let script = Script::by_content(move |asked| match (asked.replies(), known.exists()) {
        (0, _) => Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})),
        (_, true) => Step::hand_back(),
        (_, false) => Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded."),
    });
    let env = TestEnvironment::new(Wire::Chat, script);
    env.delegate(&[], "Make b.txt.").ends(5, "interrupted");
    fs::write(&*mended, "").unwrap();
    Connection::open(env.state().join("nisse.db")).unwrap().execute_batch(AS_VERSION_1).unwrap();
    Case::new(&env, &["resume", "--json"]).at(MIGRATED);
}
