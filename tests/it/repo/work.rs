//! A task's work: the worktree, its checkpoints, what counts as a change.

use std::fs;

use nisse::{
    domain::id::{CallId, CommitId},
    repo::{Error, Worktree},
};

use super::ground::{AT_MS, Ground, checkpoint, files, put, snapshot, task};

#[test]
fn the_same_work_gives_the_same_commits() {
    let once = |ground: &Ground| {
        ground.put("a.txt", "unfinished\n");
        let (worktree, snapshot) = ground.begin();
        put(worktree.path(), "x/y.txt", "x\n");
        let named = checkpoint(&worktree, 1, &snapshot.commit, Some(&["x/y.txt"])).unwrap().unwrap();
        fs::remove_file(worktree.path().join("b.txt")).unwrap();
        let any = checkpoint(&worktree, 2, &named, None).unwrap().unwrap();
        let one = worktree.squash_commit(&snapshot.commit, &any, "note", AT_MS).unwrap();
        [snapshot.commit, named, any, one]
    };
    let ground = Ground::new();
    let first = once(&ground);
    let spec = ground.spec(&first[0]);
    Worktree::open(&ground.checkout(), &spec).unwrap().unwrap().discard(&first[2]).unwrap();
    assert_eq!(once(&ground), first);
}

#[test]
fn a_checkpoint_is_by_the_person_and_names_its_call() {
    let ground = Ground::new();
    let (worktree, snapshot) = ground.begin();
    put(worktree.path(), "a.txt", "changed\n");
    let made = checkpoint(&worktree, 3, &snapshot.commit, Some(&["a.txt"])).unwrap().unwrap();
    let shown = ground.git(&["log", "-1", "--format=%an %ae %cn %ce %aI %cI%n%B", &made.0]);
    let expected = format!(
        "Ada ada@example.org Ada ada@example.org 2026-01-01T00:00:03Z 2026-01-01T00:00:03Z\n\
         edit\n\nNisse-Task: {}\nNisse-Turn: 3\nNisse-Call: c00003n00",
        task()
    );
    assert_eq!(shown, expected);
    assert_eq!(worktree.tip().unwrap(), Some(made.clone()));

    let other = "01993c5e-7b1a-7000-8000-ffffffffffff".parse().unwrap();
    assert_eq!(worktree.commit_is_ours(&made, task()).unwrap(), Some(CallId::new(3, 0)));
    assert_eq!(worktree.commit_is_ours(&made, other).unwrap(), None);
    assert_eq!(worktree.commit_is_ours(&snapshot.commit, task()).unwrap(), None);
    assert_eq!(worktree.commit_is_ours(&CommitId("0".repeat(40)), task()).unwrap(), None);
}

#[test]
fn an_identity_that_is_not_set_is_nisses_own() {
    for config in ["", "[user]\n\tname = Ada\n", "[user]\n\tname = \" ,\"\n\temail = ada@example.org\n"] {
        let ground = Ground::new();
        fs::write(ground.home().join(".gitconfig"), config).unwrap();
        let checkout = ground.checkout();
        assert_eq!(checkout.identity(), ("nisse", "nisse@localhost"));
        let (worktree, snapshot) = ground.begin();
        put(worktree.path(), "a.txt", "changed\n");
        let made = checkpoint(&worktree, 1, &snapshot.commit, None).unwrap().unwrap();
        assert_eq!(ground.git(&["log", "-1", "--format=%an %ae", &made.0]), "nisse nisse@localhost");
    }
}

#[test]
fn nothing_changed_is_no_checkpoint() {
    let ground = Ground::new();
    let (worktree, snapshot) = ground.begin();
    assert_eq!(checkpoint(&worktree, 1, &snapshot.commit, None).unwrap(), None);
    assert_eq!(checkpoint(&worktree, 1, &snapshot.commit, Some(&["a.txt", "nowhere"])).unwrap(), None);
    put(worktree.path(), "a.txt", "one\n");
    assert_eq!(checkpoint(&worktree, 1, &snapshot.commit, Some(&["a.txt"])).unwrap(), None);
    assert_eq!(worktree.tip().unwrap(), Some(snapshot.commit));
}

#[test]
fn named_paths_are_all_that_a_checkpoint_takes() {
    let ground = Ground::new();
    let (worktree, snapshot) = ground.begin();
    put(worktree.path(), "a.txt", "named\n");
    put(worktree.path(), "b.txt", "not named\n");
    let made = checkpoint(&worktree, 1, &snapshot.commit, Some(&["a.txt"])).unwrap().unwrap();
    assert_eq!(ground.git(&["show", &format!("{made}:b.txt")]), "two");
    assert_eq!(worktree.changed_since(&made).unwrap(), ["b.txt"]);
    assert_eq!(worktree.changed_since(&snapshot.commit).unwrap(), ["a.txt", "b.txt"]);
}

#[test]
fn ignored_files_and_artefacts_are_no_work() {
    let ground = Ground::new();
    let (worktree, snapshot) = ground.begin();
    let none = ["x.log", "build/out", "node_modules/x/i.js", "p/__pycache__/m.pyc", "rust/target/debug/bin", "t.pyc"];
    for path in none {
        put(worktree.path(), path, "x\n");
    }
    put(worktree.path(), "rust/Cargo.toml", "x\n");
    put(worktree.path(), "rust/src/target/mod.rs", "x\n");
    let work = ["rust/Cargo.toml", "rust/src/target/mod.rs"];
    assert_eq!(worktree.changed_since(&snapshot.commit).unwrap(), work);
    let named: Vec<_> = none.iter().chain(&work).map(ToString::to_string).collect();
    assert_eq!(worktree.ignored(&named).unwrap(), none);

    assert_eq!(checkpoint(&worktree, 1, &snapshot.commit, Some(&none)).unwrap(), None);
    let made = checkpoint(&worktree, 1, &snapshot.commit, None).unwrap().unwrap();
    assert_eq!(ground.git(&["diff", "--name-only", &snapshot.commit.0, &made.0]), work.join("\n"));
    assert!(worktree.changed_since(&made).unwrap().is_empty());
}

#[test]
fn what_the_repository_tracks_or_unignores_is_work_whatever_its_name() {
    let ground = Ground::new();
    ground.put("node_modules/own.js", "x\n");
    ground.put("vendor/.gitignore", "!node_modules/\n");
    ground.git(&["add", "-Af"]);
    ground.git(&["commit", "-qm", "vendored"]);
    let (worktree, snapshot) = ground.begin();
    put(worktree.path(), "node_modules/own.js", "y\n");
    put(worktree.path(), "vendor/node_modules/new.js", "y\n");
    assert_eq!(worktree.ignored(&["node_modules/own.js".to_owned()]).unwrap(), Vec::<String>::new());
    let work = ["node_modules/own.js", "vendor/node_modules/new.js"];
    assert_eq!(worktree.changed_since(&snapshot.commit).unwrap(), work);
}

#[test]
fn nested_repositories_are_neither_added_nor_entered() {
    let ground = Ground::new();
    let (worktree, snapshot) = ground.begin();
    ground.git_in(worktree.path(), &["init", "-q", "nested"]);
    ground.git_in(&worktree.path().join("nested"), &["config", "filter.x.clean", "touch ../../filter-ran; cat"]);
    put(worktree.path(), "nested/.gitattributes", "* filter=x\n");
    put(worktree.path(), "nested/file", "x\n");
    assert_eq!(checkpoint(&worktree, 1, &snapshot.commit, None).unwrap(), None);
    assert!(worktree.changed_since(&snapshot.commit).unwrap().is_empty());
    assert!(!worktree.path().join("../filter-ran").exists());
}

#[test]
fn filters_that_appear_during_the_task_do_not_run() {
    let ground = Ground::new();
    let (worktree, snapshot) = ground.begin();
    let trap = format!("touch '{}'; cat", ground.top().join("ran").display());
    for part in ["clean", "smudge"] {
        ground.git(&["config", &format!("filter.trap.{part}"), &trap]);
    }
    put(worktree.path(), ".gitattributes", "* filter=trap\n");
    put(worktree.path(), "a.txt", "changed\n");
    let made = checkpoint(&worktree, 1, &snapshot.commit, None).unwrap().unwrap();
    fs::remove_file(worktree.path().join("a.txt")).unwrap();
    worktree.restore(&made).unwrap();
    assert_eq!(fs::read_to_string(worktree.path().join("a.txt")).unwrap(), "changed\n");
    assert!(!ground.top().join("ran").exists());
}

#[test]
fn marks_that_hide_paths_from_git_hide_nothing() {
    let ground = Ground::new();
    let (worktree, snapshot) = ground.begin();
    for (number, mark) in [(1, "--assume-unchanged"), (2, "--skip-worktree")] {
        ground.git_in(worktree.path(), &["update-index", mark, "a.txt"]);
        put(worktree.path(), "a.txt", &format!("{mark}\n"));
        assert_eq!(worktree.changed_since(&snapshot.commit).unwrap(), ["a.txt"]);
        ground.git_in(worktree.path(), &["update-index", mark, "a.txt"]);
        let parent = worktree.tip().unwrap().unwrap();
        checkpoint(&worktree, number, &parent, None).unwrap().unwrap();
    }
    fs::write(ground.root.join(".git/worktrees").join(task().to_string()).join("index"), "broken").unwrap();
    put(worktree.path(), "a.txt", "once more\n");
    let parent = worktree.tip().unwrap().unwrap();
    let made = checkpoint(&worktree, 3, &parent, None).unwrap().unwrap();
    assert_eq!(ground.git(&["diff", "--name-only", &parent.0, &made.0]), "a.txt");
}

#[test]
fn a_branch_that_somebody_moved_is_not_overwritten() {
    let ground = Ground::new();
    let (worktree, snapshot) = ground.begin();
    put(worktree.path(), "a.txt", "changed\n");
    ground.git_in(worktree.path(), &["commit", "-qam", "not ours"]);
    let theirs = worktree.tip().unwrap();
    put(worktree.path(), "a.txt", "changed again\n");
    for () in [(), ()] {
        let error = checkpoint(&worktree, 1, &snapshot.commit, None).unwrap_err();
        assert!(matches!(&error, Error::BranchMoved { found, .. } if *found == theirs), "{error}");
    }
    assert_eq!(worktree.tip().unwrap(), theirs);
    ground.git(&["update-ref", "-d", &format!("refs/heads/{}", worktree.branch().name())]);
    let error = checkpoint(&worktree, 1, &snapshot.commit, None).unwrap_err();
    assert!(matches!(&error, Error::BranchMoved { found: None, .. }), "{error}");
}

#[test]
fn a_checkpoint_done_again_is_the_same_one() {
    let ground = Ground::new();
    let (worktree, snapshot) = ground.begin();
    put(worktree.path(), "a.txt", "changed\n");
    let first = checkpoint(&worktree, 1, &snapshot.commit, None).unwrap();
    assert_eq!(checkpoint(&worktree, 1, &snapshot.commit, None).unwrap(), first);
    assert_eq!(checkpoint(&worktree, 1, &snapshot.commit, Some(&["a.txt"])).unwrap(), first);
}

#[test]
fn what_ties_a_worktree_to_its_branch_is_put_back() {
    let ground = Ground::new();
    let (worktree, snapshot) = ground.begin();
    assert!(!worktree.verify().unwrap());
    let file = worktree.path().join(".git");
    let was = fs::read_to_string(&file).unwrap();

    fs::write(&file, "gitdir: /elsewhere\n").unwrap();
    assert!(worktree.verify().unwrap());
    fs::remove_file(&file).unwrap();
    ground.git_in(worktree.path(), &["init", "-q"]);
    assert!(worktree.verify().unwrap());
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(ground.root.join(".git"), &file).unwrap();
    assert!(worktree.verify().unwrap());
    assert_eq!(fs::read_to_string(&file).unwrap(), was);
    assert!(ground.root.join(".git/HEAD").exists());

    ground.git_in(worktree.path(), &["checkout", "-q", "--detach"]);
    put(worktree.path(), "a.txt", "changed\n");
    let made = checkpoint(&worktree, 1, &snapshot.commit, None).unwrap().unwrap();
    assert_eq!(
        ground.git_in(worktree.path(), &["status", "--porcelain", "-b"]),
        format!("## {}", worktree.branch().name())
    );
    assert_eq!(worktree.tip().unwrap(), Some(made));
}

#[test]
fn a_worktree_is_found_again_or_made_again() {
    let ground = Ground::new();
    ground.put("a.txt", "unfinished\n");
    let (worktree, snapshot) = ground.begin();
    put(worktree.path(), "a.txt", "changed\n");
    let made = checkpoint(&worktree, 1, &snapshot.commit, None).unwrap().unwrap();
    let held = files(worktree.path());
    let (checkout, spec) = (ground.checkout(), ground.spec(&snapshot.commit));
    let lock = ground.root.join(".git/worktrees").join(task().to_string()).join("index.lock");
    fs::write(&lock, "").unwrap();
    let found = Worktree::open(&checkout, &spec).unwrap().unwrap();
    assert!(found.changed_since(&made).unwrap().is_empty() && !lock.exists());

    fs::remove_dir_all(worktree.path()).unwrap();
    assert!(Worktree::open(&checkout, &spec).unwrap().is_none());
    let again = Worktree::recreate(&checkout, &spec).unwrap();
    assert_eq!((files(again.path()), again.tip().unwrap()), (held.clone(), Some(made.clone())));

    // its entry is made again, and what was in it is still there
    put(again.path(), "new.txt", "in no commit\n");
    fs::remove_dir_all(ground.root.join(".git/worktrees")).unwrap();
    let found = Worktree::open(&checkout, &spec).unwrap().unwrap();
    assert_eq!(
        (found.take_repairs(), found.changed_since(&made).unwrap()),
        (vec!["entry".to_owned()], vec!["new.txt".to_owned()])
    );
    ground.git(&["worktree", "prune", "--expire=now"]);
    assert!(ground.git(&["worktree", "list", "--porcelain"]).contains("locked"));

    fs::remove_dir_all(ground.root.join(".git/worktrees")).unwrap();
    fs::remove_dir_all(found.path()).unwrap();
    assert!(Worktree::open(&checkout, &spec).unwrap().is_none());
    let again = Worktree::recreate(&checkout, &spec).unwrap();
    assert_eq!((files(again.path()), again.tip().unwrap()), (held, Some(made)));
    ground.git(&["worktree", "prune", "--expire=now"]);
    assert!(Worktree::open(&checkout, &spec).unwrap().is_none(), "it may be there by half");
    again.stands().unwrap();
    ground.git(&["worktree", "prune", "--expire=now"]);
    assert!(Worktree::open(&checkout, &spec).unwrap().is_some());

    again.discard(&again.tip().unwrap().unwrap()).unwrap();
    assert!(matches!(Worktree::recreate(&checkout, &spec), Err(Error::BranchMoved { found: None, .. })));
}

#[test]
fn a_second_task_is_no_conflict_and_stays_when_the_first_goes() {
    let ground = Ground::new();
    let (first, snapshot_) = ground.begin();
    let checkout = ground.checkout();
    let other = "01993c5e-7b1a-7000-8000-fedcba987654".parse().unwrap();
    let mut spec = ground.spec(&snapshot_.commit);
    spec.task = other;
    spec.branch = "nisse/fedcba987654-other".to_owned();
    spec.path = ground.top().join("state/worktrees/other");
    let second = Worktree::create(&checkout, &spec).unwrap();
    snapshot(&checkout, &checkout.base().unwrap()).unwrap();
    first.discard(&snapshot_.commit).unwrap();
    assert!(second.changed_since(&snapshot_.commit).unwrap().is_empty());
}
