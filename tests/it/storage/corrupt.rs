//! A log in which something stands that no nisse has written: told with task and number, and never a panic.

use super::*;

/// Two tasks that rest, and a connection that may do anything.
fn two_tasks(wire: Wire) -> (TestEnvironment, [TaskId; 2], Connection) {
    let long = "x".repeat(9000);
    let script = Script::by_content(move |asked| match asked.replies() {
        0 => Step::call("write_file", json!({"path": "b.txt", "content": long})),
        1 if asked.raw.contains("Go on") => Step::hand_back(),
        _ => limited(),
    });
    let env = TestEnvironment::new(wire, script);
    let tasks = ["Make b.txt.", "Make b.txt. Go on."].map(|brief| {
        let run = env.delegate(&[], brief);
        let result = run.result();
        result["task"].as_str().unwrap().parse().unwrap()
    });
    let connection = database(&env);
    for trigger in ["event_without_gaps", "event_update", "event_delete", "blob_update", "blob_delete"] {
        connection.execute_batch(&format!("DROP TRIGGER {trigger}")).unwrap();
    }
    (env, tasks, connection)
}

/// What is done to a row of the first task, and the number of the event that is named.
const DAMAGE: [(&str, u64); 16] = [
    ("UPDATE event SET body = '{' WHERE seq = 3", 3),
    ("UPDATE event SET body = '{}' WHERE seq = 2", 2),
    ("UPDATE event SET body = '[]' WHERE seq = 1", 1),
    ("UPDATE event SET body = json_remove(body, '$.assignment') WHERE seq = 1", 1),
    ("UPDATE event SET body = json_set(body, '$.caps.more', 1) WHERE seq = 1", 1),
    ("UPDATE event SET kind = 'unheard_of' WHERE seq = 4", 4),
    ("UPDATE event SET kind = 'turn_ended', body = '{\"turn\":1}' WHERE seq = 3", 3),
    ("UPDATE event SET v = 0 WHERE seq = 5", 5),
    ("UPDATE event SET v = -1 WHERE seq = 5", 5),
    ("UPDATE event SET spent_ms = -7 WHERE seq = 5", 5),
    ("UPDATE event SET spent_ms = 9999999 WHERE seq = 2", 3),
    ("UPDATE event SET body = CAST(X'ff' AS TEXT) WHERE seq = 3", 3),
    ("DELETE FROM event WHERE seq = 4", 5),
    ("UPDATE event SET seq = -3 WHERE seq = 4", 0),
    ("INSERT INTO event SELECT task, -9223372036854775808, v, at_ms, spent_ms, kind, body FROM event WHERE seq = 3", 0),
    ("UPDATE event SET body = replace(body, '\"turn\":1', '\"turn\":7') WHERE seq = 4", 4),
];

#[test]
fn a_corrupt_event_is_named_and_other_tasks_are_not_concerned() {
    for (index, (damage, seq)) in DAMAGE.into_iter().enumerate() {
        let (env, [corrupt, other], connection) = two_tasks(Wire::BOTH[index % 2]);
        let changed = connection.execute(&format!("{damage} AND task = ?1"), [corrupt.to_string()]).unwrap();
        assert_eq!(changed, 1, "{damage}");
        let named = format!("task {corrupt:#}, event {seq}");
        for command in ["log", "resume"] {
            let run = env.run(&[command, "--json", &corrupt.to_string()]);
            assert!(run.exits(1).stderr.contains(&named), "{damage}: {named} is not named\n{}", run.report());
            assert_eq!(run.json().pop().unwrap()["error"]["kind"], "log_corrupt", "{damage}");
        }
        let list = env.run(&["log", "--json"]);
        assert!(list.exits(1).stderr.contains(&named), "{damage}\n{}", list.report());
        let document = &list.json()[0];
        assert_eq!(document["tasks"][0]["task"], json!(other), "{damage}: {document}");
        assert!(document["unreadable"][0].as_str().unwrap().contains(&named), "{damage}: {document}");
        let doctor = env.run(&["doctor"]);
        assert!(doctor.stdout.contains(&named), "{damage}\n{}", doctor.report());
        env.run(&["resume", "--json", &other.to_string()[..30]]).exits(2); // both begin so
        env.run(&["resume", "--json", &other.to_string()]).ends(0, "handback");
        let nothing_else = env.run(&["resume", "--json"]);
        assert!(nothing_else.exits(1).stderr.contains(&named), "{damage}\n{}", nothing_else.report());
    }
}

#[test]
fn a_missing_or_changed_blob_is_its_events_corruption() {
    for damage in ["DELETE FROM blob", "UPDATE blob SET zstd = X'00'", "UPDATE blob SET raw_len = -1"] {
        let (env, [corrupt, _], connection) = two_tasks(Wire::Chat);
        assert!(connection.execute(damage, []).unwrap() > 0);
        let run = env.run(&["log", &corrupt.to_string()]);
        let named = format!("task {corrupt:#}, event ");
        assert!(run.exits(1).stderr.contains(&named), "{damage}\n{}", run.report());
    }
}

#[test]
fn a_file_that_is_no_database_is_told_and_left_alone() {
    let env = TestEnvironment::new(Wire::Chat, Vec::new());
    Log::open(&state_dir(&env), Access::Write).unwrap();
    let path = state_dir(&env).join("nisse.db");
    for garbage in [vec![b'x'; 8192], b"SQLite format 3\0 and no more".to_vec()] {
        fs::write(&path, &garbage).unwrap();
        for arguments in [&["delegate", "--json", "Make b.txt."][..], &["log", "--json"], &["resume", "--json"]] {
            told_of_the_log(&env.run(arguments), "database");
            assert_eq!(fs::read(&path).unwrap(), garbage, "{arguments:?}");
        }
    }
    assert_eq!(env.checkout.git(&["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
}

#[test]
fn no_flipped_byte_makes_a_panic() {
    let (env, tasks, connection) = two_tasks(Wire::Chat);
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    let whole = fs::read(state_dir(&env).join("nisse.db")).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("nisse.db");
    let (mut told, mut place) = (0, 1usize);
    for _ in 0..2000 {
        // pages are mostly empty: only bytes that hold something are struck
        place = (place * 48_271 + 11) % whole.len();
        let Some(at) = (place..whole.len()).find(|at| whole[*at] != 0) else { continue };
        let mut broken = whole.clone();
        broken[at] ^= 1 << (place % 8);
        fs::write(&path, broken).unwrap();
        let Ok(Some(log)) = Log::open(scratch.path(), Access::Read) else {
            told += 1;
            continue;
        };
        let all = log.tasks().map(|ids| ids.into_iter().map(|id| log.task(id)).collect::<Result<Vec<_>, _>>());
        told += u32::from(!matches!(all, Ok(Ok(tasks)) if tasks.len() == 2));
        for task in tasks {
            let _ = (log.named(&task.to_string()), log.events(task, 0), log.started(task));
        }
    }
    assert!(told > 200, "the flips struck nothing: {told}");
}
