//! Directories above the worktree that a command replaced by links.

use std::fs;

use serde_json::json;

use crate::support::{Fingerprint, Script, Step, TestEnvironment, Wire};

fn write(path: &str, content: &str) -> Step {
    Step::call("write_file", json!({"path": path, "content": content}))
}

fn command(line: &str) -> Step {
    Step::call("run_command", json!({"command": line}))
}

/// A link in the place of a directory above the worktree leads to somebody else's: nothing of nisse's goes there, nothing
/// there goes away, and the task can be given up, or goes on when the directory is back.
#[test]
fn a_directory_above_the_worktree_that_became_a_link_is_not_followed() {
    for answer in ["drop", "--rollback"] {
        let foreign = tempfile::tempdir().unwrap();
        let foreign_path = foreign.path().display().to_string();
        // a link now, and the way back later
        let line = format!("d=$(dirname \"$PWD\"); mv \"$d\" \"$d-moved\"; ln -s '{foreign_path}' \"$d\"");
        let steps =
            vec![write("b.txt", "b\n"), command("true"), command(&line), write("c.txt", "c\n"), Step::hand_back()];
        let env = TestEnvironment::new(Wire::Chat, Script::ByHistory(steps));
        let task = {
            // what is there looks like the worktree itself
            let twin = foreign.path().join("00000000-0000-7000-8000-000000000100");
            fs::create_dir(&twin).unwrap();
            fs::write(twin.join("a.txt"), "precious\n").unwrap();
            fs::create_dir(twin.join("only-here")).unwrap();
            fs::write(twin.join("only-here/c.txt"), "precious\n").unwrap();
            let before = Fingerprint::of(foreign.path());
            let unchanged = |when: &str| {
                assert_eq!(before.changes(&Fingerprint::of(foreign.path()), &[]), Vec::<String>::new(), "{when}");
            };
            let left = env.delegate(&[], "Make b.txt.").exits(1).json().pop().unwrap();
            assert_eq!(left["error"]["kind"], "repository_changed", "{left}");
            let message = left["error"]["message"].as_str().unwrap();
            assert!(message.contains("state/worktrees is"), "the link is not named: {message}");
            unchanged("after the command");
            let task = left["task"].as_str().unwrap().to_owned();
            assert!(twin.ends_with(&task), "the test knows the id that the task gets");
            let again = env.run(&["resume", "--json", &task]).exits(1).json().pop().unwrap();
            assert_eq!(again["error"]["kind"], "repository_changed", "{again}");
            unchanged("after a resume");
            env.run(&["doctor", "--json", "--fix"]);
            unchanged("after the doctor");
            if answer == "drop" {
                let result = env.run(&["drop", "--json", &task]).ends(0, "dropped");
                env.assert_discarded(&result);
                unchanged("after it was given up");
            }
            task
        };
        if answer == "--rollback" {
            let worktrees = env.state().join("worktrees");
            fs::remove_file(&worktrees).unwrap();
            fs::rename(env.state().join("worktrees-moved"), &worktrees).unwrap();
            env.run(&["resume", "--json", &task]).ends(6, "gated");
            let result = env.run(&["resume", "--json", &task, answer]).ends(0, "handback");
            assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"b\n");
            assert_eq!(env.on_branch(&result, "c.txt").unwrap(), b"c\n");
        }
    }
}
