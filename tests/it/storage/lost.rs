//! A log that is not what it was: gone in part, locked, damaged. What is said fits it.

use super::*;

/// A write-ahead log that is gone takes tasks along; what stands of them says so.
#[test]
fn a_log_that_lost_a_task_is_never_nothing_to_do() {
    let env = TestEnvironment::new(Wire::Chat, vec![limited()]);
    let rests = env.delegate(&[], "Make b.txt.").ends(5, "interrupted");
    let (task, state) = (rests["task"].as_str().unwrap(), state_dir(&env));
    for emptied in [false, true] {
        for name in ["nisse.db", "nisse.db-wal", "nisse.db-shm"] {
            let _ = fs::remove_file(state.join(name));
        }
        if emptied {
            fs::write(state.join("nisse.db"), "").unwrap();
        }
        for command in ["log", "resume"] {
            let run = env.run(&[command]);
            let said = &run.exits(1).stderr;
            assert!(said.contains(&task[24..]) && said.contains("a part of the log is lost"), "{}", run.report());
        }
    }
    env.checkout.git(&["worktree", "unlock", rests["worktree"].as_str().unwrap()]);
    env.checkout.git(&["worktree", "remove", rests["worktree"].as_str().unwrap()]);
    // nothing stands of it any more, and the log is empty all the same
    assert!(env.run(&["resume"]).exits(1).stderr.contains("is empty although tasks exist"));
    fs::remove_file(state.join("nisse.db")).unwrap();
    assert!(env.run(&["resume"]).exits(0).stderr.contains("nothing is pending"));
}

/// What the database is like decides what is advised.
#[test]
fn a_locked_and_a_damaged_database_are_not_taken_for_a_full_disk() {
    let env = TestEnvironment::new(Wire::Chat, vec![limited()]);
    env.delegate(&[], "Make b.txt.").ends(5, "interrupted");
    let holder = database(&env);
    holder.pragma_update(None, "locking_mode", "EXCLUSIVE").unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let locked = env.run(&["resume"]);
    assert!(locked.exits(1).stderr.contains("wait for the process that holds the log"), "{}", locked.report());
    drop(holder);
    fs::write(state_dir(&env).join("nisse.db"), vec![b'x'; 8192]).unwrap();
    let damaged = env.run(&["resume"]);
    assert!(damaged.exits(1).stderr.contains("restore the damaged file"), "{}", damaged.report());
    for run in [locked, damaged] {
        assert!(!run.stderr.contains("has room"), "{}", run.report());
    }
}
