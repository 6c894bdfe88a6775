//! Logs of other versions: earlier tables are migrated, newer ones are told and left alone.

use super::*;

#[test]
fn a_log_that_a_newer_nisse_has_written_is_left_alone() {
    let env = TestEnvironment::new(Wire::Chat, vec![limited()]);
    env.delegate(&[], "Make b.txt.").ends(5, "interrupted");
    let opened = Log::open(&state_dir(&env), Access::Write).unwrap().unwrap();
    let task = only_task(&env);
    let last = opened.events(task.id, 0).unwrap().pop().unwrap();
    database(&env).pragma_update(None, "user_version", 3).unwrap();
    // one that was open already looks before it writes
    let next = Event { seq: last.seq + 1, kind: EventKind::SpanStarted { cause: "late".to_owned() }, ..last };
    assert!(matches!(opened.append(&[next]), Err(nisse::log::Error::Newer { found: 3, .. })));
    for arguments in [&["log", "--json"][..], &["resume", "--json"], &["delegate", "--json", "Make b.txt."]] {
        let run = env.run(arguments);
        assert_eq!(run.exits(1).json()[0]["error"]["kind"], "log_too_new", "{}", run.report());
    }
    database(&env).pragma_update(None, "user_version", 2).unwrap();
    assert_eq!(only_task(&env), task, "something was written");
}

/// Tables as version 1 made them.
pub(crate) const AS_VERSION_1: &str = "DROP INDEX event_first;
    CREATE INDEX event_first ON event (at_ms) WHERE seq = 1;
    PRAGMA user_version = 1";

#[test]
fn an_event_that_a_newer_nisse_has_written_is_no_corruption_and_hides_no_other_task() {
    let env = TestEnvironment::new(Wire::Chat, vec![limited(), limited(), limited()]);
    let [newer, ours] = ["Make b.txt.", "Make c.txt."].map(|brief| {
        let result = env.delegate(&[], brief).ends(5, "interrupted");
        result["task"].as_str().unwrap().to_owned()
    });
    let connection = database(&env);
    connection.execute_batch("DROP TRIGGER event_update").unwrap();
    let version = nisse::log::EVENTS + 1;
    connection.execute("UPDATE event SET v = ?1 WHERE task = ?2 AND seq = 3", (version, &newer)).unwrap();
    for command in ["log", "resume", "drop"] {
        let run = env.run(&[command, "--json", &newer]);
        let error = run.exits(1).json().pop().unwrap();
        assert_eq!(error["error"]["kind"], "log_too_new", "{}", run.report());
        assert!(!run.stderr.contains("corrupt") && run.stderr.contains("install a newer nisse"), "{}", run.report());
    }
    let list = env.run(&["log", "--json"]);
    let document = &list.exits(1).json()[0];
    assert_eq!(document["tasks"][0]["task"], json!(ours), "{document}");
    assert!(document["unreadable"][0].as_str().unwrap().contains(&newer[24..]), "{document}");
    env.run(&["resume", "--json"]).ends(5, "interrupted");
}

#[test]
fn tables_of_an_earlier_version_are_migrated_once_however_many_open_them() {
    let env = TestEnvironment::new(Wire::Chat, vec![limited()]);
    env.delegate(&[], "Make b.txt.").ends(5, "interrupted");
    let task = only_task(&env);
    let connection = database(&env);
    connection.execute_batch(AS_VERSION_1).unwrap();
    // to be read, they need not be migrated
    assert_eq!(only_task(&env), task);
    let version = || connection.query_row("PRAGMA user_version", [], |row| row.get::<_, u32>(0)).unwrap();
    assert_eq!(version(), 1);
    let state = state_dir(&env);
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| Log::open(&state, Access::Write).unwrap().unwrap());
        }
    });
    assert_eq!((version(), only_task(&env)), (nisse::log::SCHEMA, task));
}
