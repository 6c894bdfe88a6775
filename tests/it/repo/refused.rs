//! What tasks cannot work with is refused with a sentence, and nothing is changed.

use std::fs;

use nisse::{domain::checkout::Base, repo::Error};

use super::ground::{Ground, fingerprint, put, snapshot};
use crate::support::{Needs, lacks};

/// Opens and takes a snapshot; both must leave everything alone and the sentence must hold `words`.
fn refused(ground: &Ground, words: &str) {
    let before = fingerprint(&ground.top());
    let error = ground.snapshot().unwrap_err();
    let sentence = error.to_string();
    assert!(sentence.contains(words), "wanted `{words}`, got: {sentence}");
    assert!(fingerprint(&ground.top()) == before, "{words}: something changed");
}

#[test]
fn kinds_of_repositories() {
    type Arrange = fn(&Ground);
    let kinds: &[(&str, Arrange)] = &[
        ("program tidy-not-installed is not installed", |g| {
            g.put(".gitattributes", "*.c filter=tidy\n");
            g.git(&["config", "filter.tidy.clean", "tidy-not-installed"]);
            g.git(&["config", "filter.tidy.required", "true"]);
        }),
        ("merge is in progress", |g| {
            g.git(&["checkout", "-q", "-b", "side"]);
            g.put("b.txt", "side\n");
            g.git(&["commit", "-qam", "side"]);
            g.git(&["checkout", "-q", "main"]);
            g.put("a.txt", "main\n");
            g.git(&["commit", "-qam", "main"]);
            g.git(&["merge", "-q", "--no-commit", "side"]);
        }),
        ("rebase is in progress", |g| {
            let conflict = conflicting(g);
            assert!(!g.try_git(&g.root, &["rebase", "-q", &conflict]).0);
        }),
        ("conflicts in a.txt", |g| {
            let conflict = conflicting(g);
            g.put("a.txt", "unfinished\n");
            g.git(&["stash", "-q"]);
            g.git(&["reset", "-q", "--hard", &conflict]);
            assert!(!g.try_git(&g.root, &["stash", "pop", "-q"]).0);
        }),
        ("index.lock is there, ", |g| g.put(".git/index.lock", "")),
        ("a branch is called `nisse`", |g| drop(g.git(&["branch", "nisse"]))),
        ("core.bare = true", |g| drop(g.git(&["config", "core.bare", "true"]))),
    ];
    for (words, arrange) in kinds {
        let ground = Ground::new();
        arrange(&ground);
        refused(&ground, words);
    }
}

/// Makes `main` and another branch change the same line; gives the other's name.
fn conflicting(ground: &Ground) -> String {
    ground.git(&["checkout", "-q", "-b", "side"]);
    ground.put("a.txt", "side\n");
    ground.git(&["commit", "-qam", "side"]);
    ground.git(&["checkout", "-q", "main"]);
    ground.put("a.txt", "main\n");
    ground.git(&["commit", "-qam", "main"]);
    "side".to_owned()
}

#[test]
fn a_bare_repository_and_a_git_directory() {
    let ground = Ground::bare();
    ground.git(&["init", "-q", "--bare"]);
    refused(&ground, "bare repository");
    let mut ground = Ground::new();
    ground.root = ground.root.join(".git");
    refused(&ground, "it is a git directory");
}

#[test]
fn a_path_that_is_no_repository() {
    let ground = Ground::bare();
    refused(&ground, "not inside a git repository");
    let mut ground = Ground::new();
    ground.root = ground.root.join("a.txt");
    assert!(matches!(ground.open(), Err(Error::NoDirectory { .. })));
    ground.root = ground.root.join("nowhere");
    assert!(matches!(ground.open(), Err(Error::NoDirectory { .. })));
}

#[test]
fn somebody_elses_repository() {
    if lacks(Needs::Superuser) {
        return;
    }
    let ground = Ground::new();
    std::os::unix::fs::chown(&ground.root, Some(12345), None).unwrap();
    std::os::unix::fs::chown(ground.root.join(".git"), Some(12345), None).unwrap();
    refused(&ground, "dubious ownership");
}

#[test]
fn a_filter_that_is_set_up_nowhere_is_no_hindrance() {
    let ground = Ground::new();
    ground.put(".gitattributes", "*.ipynb filter=nbstripout\n");
    let snapshot = ground.snapshot().unwrap();
    assert!(snapshot.dirty);
    assert_eq!(snapshot.notices, ["not set up here, so files are taken as they are: the filters: nbstripout"]);
}

#[test]
fn a_head_that_moved_since() {
    let ground = Ground::new();
    let checkout = ground.checkout();
    let base = checkout.base().unwrap();
    ground.put("a.txt", "more\n");
    ground.git(&["commit", "-qam", "more"]);
    assert!(matches!(snapshot(&checkout, &base), Err(Error::HeadMoved { .. })));
}

#[test]
fn a_checkout_that_changes_while_it_is_read_is_read_again() {
    for (times, steady) in [(1, true), (2, true), (100, false)] {
        let ground = Ground::new();
        ground.put("a.txt", "unfinished\n");
        // stages something in the caller's index while its snapshot is being made
        ground.before_git(&format!(
            "case \"$*\" in *write-tree*)
                echo changed >> b.txt
                if [ $(grep -c changed b.txt) -le {times} ]; then (unset GIT_INDEX_FILE; \"$real\" add b.txt); fi
            esac"
        ));
        match ground.snapshot() {
            Ok(snapshot) => {
                assert!(steady, "{times}");
                let held = ground.git(&["show", &format!("{}:b.txt", snapshot.commit)]);
                assert_eq!(held.matches("changed").count(), times);
            }
            Err(error) => assert!(!steady && matches!(error, Error::Unsteady { .. }), "{times}: {error}"),
        }
    }
}

#[test]
fn a_base_that_is_no_commit() {
    let ground = Ground::new();
    for rev in ["nothing", "HEAD:a.txt", "", "-x", "HEAD~7"] {
        let error = ground.checkout().resolve_base(rev).unwrap_err();
        assert!(matches!(&error, Error::NoSuchCommit { .. }), "{rev}: {error}");
    }
}

#[test]
fn a_file_that_cannot_be_stored_is_named() {
    let ground = Ground::new();
    fs::remove_file(ground.root.join("a.txt")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(ground.root.join("a.txt")).status().unwrap();
    assert!(pipe.success());
    refused(&ground, "a.txt");
}

#[test]
fn what_is_not_carried_is_said() {
    let ground = Ground::new();
    ground.put("large.bin", &"x".repeat(2000));
    ground.put("small.txt", "x\n");
    ground.put("c.txt", "three\n");
    ground.git(&["add", "c.txt"]);
    ground.git(&["commit", "-qm", "three"]);
    ground.git(&["update-index", "--assume-unchanged", "a.txt", "c.txt"]);
    ground.put("a.txt", "hidden edit\n");
    ground.git(&["init", "-q", "nested"]);
    put(&ground.root, "nested/file", "x\n");
    let (worktree, snapshot) = ground.begin();
    assert_eq!(
        snapshot.notices,
        [
            "not carried over, because they are too large and untracked: large.bin",
            "not carried over, because they are repositories of their own: nested/",
            "not carried over, because git is told not to look at them: a.txt",
        ]
    );
    assert!(worktree.path().join("small.txt").exists() && !worktree.path().join("large.bin").exists());
}

#[test]
fn an_explicit_base_leaves_unfinished_work_out() {
    let ground = Ground::new();
    let first = ground.rev("HEAD").unwrap();
    ground.put("a.txt", "more\n");
    ground.git(&["commit", "-qam", "more"]);
    ground.put("b.txt", "unfinished\n");
    let checkout = ground.checkout();
    let base = checkout.resolve_base("HEAD~").unwrap();
    assert_eq!(base.commit.as_ref().map(|commit| commit.0.as_str()), Some(&*first));
    let Base { branch, explicit, .. } = &base;
    assert_eq!((branch.as_deref(), *explicit), (Some("main"), true));
    let snapshot = snapshot(&checkout, &base).unwrap();
    assert_eq!((snapshot.commit.0.as_str(), snapshot.dirty), (&*first, false));
}
