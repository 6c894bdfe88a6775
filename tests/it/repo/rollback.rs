//! Rolling back: all that came since goes, and nothing that was ignored before.

use std::fs;

use nisse::domain::id::CommitId;

use super::ground::{Ground, checkpoint, files, put};

#[test]
fn files_come_back_and_new_ones_go() {
    let ground = Ground::new();
    let (worktree, snapshot) = ground.begin();
    let path = worktree.path();
    put(path, "kept.log", "ignored\n");
    put(path, "build/cache", "ignored\n");
    put(path, "node_modules/x/.gitignore", "*\n");
    put(path, "node_modules/x/i.js", "an artefact\n");
    put(path, "Cargo.toml", "x\n");
    put(path, "target/debug/x", "an artefact\n");
    let at = checkpoint(&worktree, 1, &snapshot.commit, None).unwrap().unwrap();
    let held = files(path);

    put(path, "a.txt", "changed\n");
    put(path, "staged.txt", "new and staged\n");
    ground.git_in(path, &["add", "staged.txt"]);
    put(path, "new/deep/file", "new\n");
    fs::create_dir_all(path.join("empty/inside")).unwrap();
    fs::remove_file(path.join("b.txt")).unwrap();
    fs::rename(path.join("src"), path.join("moved")).unwrap();
    std::os::unix::fs::symlink("moved", path.join("src")).unwrap();
    fs::remove_file(path.join("run.sh")).unwrap();
    put(path, "run.sh/now/a/directory", "x\n");
    ground.git_in(path, &["init", "-q", "nested"]);
    put(path, "nested/file", "x\n");
    put(path, "hidden/.gitignore", "*\n");
    put(path, "hidden/file", "x\n");
    put(path, "new/.gitignore", "*\n");
    put(path, ".gitignore", "*\n");

    for () in [(), ()] {
        worktree.restore(&at).unwrap();
        assert_eq!(files(path), held);
        for gone in ["empty", "nested", "hidden", "new", "moved"] {
            assert!(!path.join(gone).exists(), "{gone}");
        }
        assert!(worktree.changed_since(&at).unwrap().is_empty());
        assert_eq!(worktree.tip().unwrap(), Some(at.clone()));
    }
}

#[test]
fn a_broken_index_and_marks_are_no_hindrance() {
    let ground = Ground::new();
    let (worktree, snapshot) = ground.begin();
    let held = files(worktree.path());
    ground.git_in(worktree.path(), &["update-index", "--skip-worktree", "a.txt"]);
    put(worktree.path(), "a.txt", "changed\n");
    worktree.restore(&snapshot.commit).unwrap();
    assert_eq!(files(worktree.path()), held);

    let index = ground.git_in(worktree.path(), &["rev-parse", "--git-path", "index"]);
    fs::write(worktree.path().join(index), "broken").unwrap();
    put(worktree.path(), "a.txt", "changed\n");
    put(worktree.path(), "new.txt", "new\n");
    worktree.restore(&snapshot.commit).unwrap();
    assert_eq!(files(worktree.path()), held);
}

#[test]
fn a_commit_that_is_not_there_is_named() {
    let ground = Ground::new();
    let (worktree, _) = ground.begin();
    let held = files(worktree.path());
    let nowhere = "0123456789".repeat(4);
    let error = worktree.restore(&CommitId(nowhere.clone())).unwrap_err().to_string();
    assert!(error.contains(&nowhere), "{error}");
    assert_eq!(files(worktree.path()), held);
}
