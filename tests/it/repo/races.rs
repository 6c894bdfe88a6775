//! The person goes on working while the snapshot of their checkout is made: commits, stages, edits, switches.

use std::fs;

use nisse::repo::Error;

use super::ground::{Ground, checkpoint, files, fingerprint, put};

/// Makes the snapshot of unfinished work while `meanwhile` runs once, before git's `step` of ours.
fn snapshot_while(step: &str, meanwhile: &str) -> (Ground, Result<nisse::repo::Snapshot, Error>) {
    let ground = Ground::new();
    ground.put("a.txt", "unfinished\n");
    ground.put("new.txt", "untracked\n");
    let once = ground.top().join("once");
    ground.before_git(&format!(
        "case \"$*\" in *{step}*)
            if [ ! -e '{once}' ]; then
                : > '{once}'
                (unset GIT_INDEX_FILE; cd '{root}'; {meanwhile}) >/dev/null 2>&1
            fi
        esac",
        once = once.display(),
        root = ground.root.display()
    ));
    let result = ground.snapshot();
    assert!(once.exists(), "{step} never came");
    fs::remove_file(ground.top().join("bin/git")).unwrap();
    (ground, result)
}

const STEPS: [&str; 3] = ["ls-files", "update-index", "write-tree"];

#[test]
fn a_commit_meanwhile_is_told() {
    for step in STEPS {
        let (ground, result) = snapshot_while(step, "\"$real\" add -A; \"$real\" commit -qm meanwhile");
        let error = result.unwrap_err();
        assert!(matches!(&error, Error::HeadMoved { .. }), "{step}: {error}");
        assert!(error.to_string().contains("begin it again"), "{error}");
        assert_eq!(ground.git(&["log", "--format=%s", "-1"]), "meanwhile");
        assert!(!ground.snapshot().unwrap().dirty, "begun again, it starts from what was committed");
    }
}

#[test]
fn a_switch_of_branches_meanwhile_is_told() {
    for step in STEPS {
        let (_, result) = snapshot_while(
            step,
            "\"$real\" stash -q; \"$real\" checkout -q -b other; \"$real\" commit -q --allow-empty -m other",
        );
        assert!(matches!(result, Err(Error::HeadMoved { .. })), "{step}: {result:?}");
    }
}

#[test]
fn what_is_staged_meanwhile_is_in_the_snapshot() {
    for step in STEPS {
        let (ground, result) = snapshot_while(step, "echo staged > staged.txt; \"$real\" add staged.txt");
        let snapshot = result.unwrap();
        assert_eq!(ground.git(&["show", &format!("{}:staged.txt", snapshot.commit)]), "staged", "{step}");
        assert_eq!(ground.git(&["diff", "--cached", "--name-only"]), "staged.txt", "{step}");
    }
}

#[test]
fn a_file_saved_meanwhile_is_in_the_snapshot_whole_or_as_it_was() {
    for step in STEPS {
        let (ground, result) = snapshot_while(step, "echo saved > a.txt.new; mv a.txt.new a.txt");
        let held = ground.git(&["show", &format!("{}:a.txt", result.unwrap().commit)]);
        assert!(["unfinished", "saved"].contains(&held.as_str()), "{step}: {held}");
        assert_eq!(fs::read_to_string(ground.root.join("a.txt")).unwrap(), "saved\n", "{step}");
    }
}

#[test]
fn a_file_removed_meanwhile_is_no_hindrance() {
    for step in STEPS {
        let (ground, result) = snapshot_while(step, "rm new.txt b.txt");
        result.unwrap_or_else(|error| panic!("{step}: {error}"));
        assert!(!ground.root.join("b.txt").exists(), "{step}");
    }
}

#[test]
fn the_person_works_on_while_the_task_does() {
    let ground = Ground::new();
    ground.put("a.txt", "unfinished\n");
    let (worktree, snapshot) = ground.begin();
    put(worktree.path(), "of-the-task.txt", "x\n");
    let first = checkpoint(&worktree, 1, &snapshot.commit, None).unwrap().unwrap();
    ground.git(&["commit", "-qam", "finished by hand"]);
    ground.git(&["checkout", "-q", "-b", "elsewhere"]);
    ground.put("b.txt", "more of the person's\n");
    ground.git(&["add", "-A"]);
    ground.git(&["gc", "-q", "--prune=now"]);
    ground.git(&["worktree", "prune", "--expire=now"]);
    let before = fingerprint(&ground.root);
    put(worktree.path(), "a.txt", "of the task\n");
    let second = checkpoint(&worktree, 2, &first, Some(&["a.txt"])).unwrap().unwrap();
    assert!(worktree.changed_since(&second).unwrap().is_empty());
    assert_eq!(ground.git(&["show", &format!("{second}:b.txt")]), "two");
    let theirs =
        |path: &String| !path.starts_with(".git/objects") && !path.contains("nisse") && !path.contains("worktrees");
    let mut after = fingerprint(&ground.root);
    after.retain(|path, _| theirs(path));
    assert!(before.iter().filter(|(path, _)| theirs(path)).eq(after.iter()));
    assert!(files(worktree.path()).contains_key("of-the-task.txt"));
}

#[test]
fn a_worktree_that_another_git_has_only_begun_is_waited_for() {
    for fails in [1, 3] {
        let ground = Ground::new();
        let count = ground.top().join("count");
        // as git does that reads the entry of another `worktree add` before its files are whole
        ground.before_git(&format!(
            "case \"$*\" in *'worktree add'*)
                echo x >> '{count}'
                if [ $(wc -l < '{count}') -le {fails} ]; then
                    \"$real\" \"$@\"
                    echo \"fatal: failed to read $PWD/.git/worktrees/other/commondir: Success\" >&2
                    exit 128
                fi
            esac",
            count = count.display()
        ));
        let (worktree, snapshot) = ground.begin();
        assert!(worktree.changed_since(&snapshot.commit).unwrap().is_empty());
        assert_eq!(fs::read_to_string(&count).unwrap().lines().count(), fails + 1);
        worktree.discard(&snapshot.commit).unwrap();
        assert_eq!(ground.git(&["worktree", "list"]).lines().count(), 1);
    }
}
