//! The log's file under other agents' troubles: torn, on a full disk, held open by a reader for days.

use std::fs;

use nisse::{
    domain::event::{Event, EventKind},
    log::{Access, Log},
};
use rusqlite::Connection;
use serde_json::json;

use crate::support::{Needs, Script, Step, TestEnvironment, Wire, lacks};

fn limited() -> Step {
    Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded.")
}

/// What tears the file, and whether what it held can still be read.
type Damage = (&'static str, fn(&[u8]) -> Vec<u8>, bool);

const DAMAGES: [Damage; 4] = [
    ("half", |whole| whole[..whole.len() / 2].to_vec(), false),
    ("page", |whole| [&whole[..16_384], &[0xa5; 8192][..], &whole[24_576..]].concat(), false),
    ("newer", |whole| [&whole[..60], &9999u32.to_be_bytes()[..], &whole[64..]].concat(), false),
    ("wal", <[u8]>::to_vec, true),
];

#[test]
fn a_torn_log_is_named_kept_and_never_called_empty() {
    let env = TestEnvironment::new(Wire::Chat, Script::by_content(|_| limited()));
    env.delegate(&[], "Say hello.").ends(5, "interrupted");
    let path = env.state().join("nisse.db");
    let whole = fs::read(&path).unwrap();
    for (what, damage, readable) in DAMAGES {
        let torn = damage(&whole);
        fs::write(&path, &torn).unwrap();
        for name in ["nisse.db-wal", "nisse.db-shm"] {
            let _ = fs::remove_file(env.state().join(name));
        }
        if what == "wal" {
            fs::write(env.state().join("nisse.db-wal"), "xx").unwrap();
        }
        for command in [&["log", "--json"][..], &["resume", "--json"], &["doctor"]] {
            let run = env.run(command);
            let said = format!("{}{}", run.stdout, run.stderr);
            assert!(!said.contains("panicked") && !said.contains("nothing is pending"), "{what}\n{}", run.report());
            if readable {
                assert!(matches!(run.code(), Some(0 | 5)), "{what}\n{}", run.report());
                continue;
            }
            run.exits(1);
            assert!(said.contains(path.to_str().unwrap()) || said.contains("event "), "{what}\n{}", run.report());
            assert_eq!(fs::read(&path).unwrap(), torn, "{what}: the file was changed\n{}", run.report());
            if what == "newer" {
                assert!(said.contains("version 9999") && said.contains("newer nisse"), "{}", run.report());
            }
        }
    }
}

/// Text that cannot be packed.
fn noise(n: usize) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(n as u64 + 1);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b' ' + u8::try_from((state >> 33) % 94).unwrap())
    };
    (0..100_000).map(|_| next()).collect()
}

#[test]
fn a_disk_that_fills_up_stops_the_run_and_with_room_it_goes_on() {
    if lacks(Needs::Mounts) {
        return;
    }
    let script = Script::by_content(|asked| match asked.replies() {
        n @ 0..12 => Step::text(&noise(n)).and_call("list_files", json!({"glob": format!("*{n}*")})),
        12 => Step::call("write_file", json!({"path": "b.txt", "content": "x\n"})),
        _ => Step::hand_back(),
    });
    let env = TestEnvironment::new(Wire::Chat, script);
    env.configure("[models.\"case-model\"]\nmax_input_tokens = 1_000_000\n");
    let out = env.root().join("out");
    fs::create_dir(&out).unwrap();
    fs::create_dir(env.state()).unwrap();
    // the repository is on another disk; log and worktree are on this one
    let lines = "mount -t tmpfs -o size=900k,mode=700 tmpfs \"$NISSE_STATE_DIR\"\n\
                 \"$0\" delegate --json 'Print much, then add b.txt.' >\"$1/first\" 2>\"$1/words\"; echo $? >\"$1/code\"\n\
                 mount -o remount,size=50m tmpfs \"$NISSE_STATE_DIR\"\n\
                 cp \"$NISSE_STATE_DIR\"/nisse.db* \"$1\"\n\
                 exec \"$0\" resume --json";
    let run =
        env.run_program("unshare", &["--mount", "sh", "-c", lines, env!("CARGO_BIN_EXE_nisse"), out.to_str().unwrap()]);
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    assert_eq!(read("code").trim(), "1", "{}{}", read("words"), run.report());
    assert!(read("words").contains("disk") && read("words").contains("nisse resume"), "{}", read("words"));
    let whole: String = Connection::open(out.join("nisse.db"))
        .unwrap()
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(whole, "ok");
    let result = run.ends(0, "handback");
    assert_eq!((&result["turns"], &result["artifacts"]), (&json!(14), &json!(["b.txt"])));
    let edits = |text: &str| text.matches("\"file_edit\"").count();
    assert_eq!((edits(&read("first")), edits(&run.stdout)), (0, 1), "b.txt was written twice");
}

#[test]
fn a_reader_that_never_ends_hinders_nobody_and_the_log_becomes_small_again() {
    let env = TestEnvironment::new(Wire::Chat, vec![limited()]);
    env.delegate(&[], "Say hello.").ends(5, "interrupted");
    let wal = env.state().join("nisse.db-wal");
    let size = || wal.metadata().map_or(0, |found| found.len());
    let reader = Connection::open(env.state().join("nisse.db")).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM event").unwrap();
    let begun: u32 = reader.query_row("SELECT count(*) FROM event", [], |row| row.get(0)).unwrap();

    let mut log = Log::open(&env.state(), Access::Write).unwrap().unwrap();
    let task = log.tasks().unwrap()[0];
    let mut last = log.events(task, 0).unwrap().pop().unwrap();
    let mut write = |log: &mut Log, times: u64| {
        for _ in 0..times {
            let kind = EventKind::SpanStarted { cause: noise(0).chars().take(1500).collect() };
            let next = (0..10).map(|n| Event { seq: last.seq + 1 + n, kind: kind.clone(), ..last.clone() });
            let events: Vec<Event> = next.collect();
            last.seq += 10;
            log.append(&events).unwrap();
        }
    };
    write(&mut log, 600);
    assert!(size() > 16 << 20, "the reader keeps the log from being brought in: {}", size());
    assert_eq!(log.events(task, 0).unwrap().len(), begun as usize + 6000);
    // whoever else looks is not hindered, and is told of what is too much
    fs::File::options().write(true).open(&wal).unwrap().set_len(80 << 20).unwrap();
    let doctor = env.run(&["doctor"]);
    assert!(doctor.stdout.contains("its write-ahead log has 80 MB"), "{}", doctor.report());
    reader.execute_batch("COMMIT").unwrap();
    drop(reader);
    write(&mut log, 5);
    assert!(size() <= 17 << 20, "what the reader let it grow to is kept: {}", size());
    write(&mut log, 300);
    assert!(size() <= 17 << 20, "it grows without a reader: {}", size());
    drop(log);
    assert_eq!(size(), 0);
    let doctor = env.run(&["doctor"]);
    assert!(!doctor.stdout.contains("write-ahead log has"), "{}", doctor.report());
}
