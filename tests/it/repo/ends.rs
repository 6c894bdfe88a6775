//! How a task's branch and worktree end, done twice and after being half done.

use std::fs;

use nisse::repo::{Error, TaskBranch, Worktree};

use super::ground::{Ground, checkpoint, put, snapshot, task};

#[test]
fn a_squash_can_be_done_again() {
    let ground = Ground::new();
    ground.put("a.txt", "unfinished\n");
    let (worktree, snapshot) = ground.begin();
    put(worktree.path(), "new.txt", "new\n");
    let tip = checkpoint(&worktree, 1, &snapshot.commit, None).unwrap().unwrap();
    let note = "What was done\n\nNisse-Call: nothing\0 of ours\n";
    let one = worktree.squash_commit(&snapshot.commit, &tip, note, 0).unwrap();
    assert_eq!(worktree.tip().unwrap(), Some(tip.clone()), "the branch has not moved");
    for () in [(), ()] {
        worktree.squash_apply(&tip, &one).unwrap();
        assert_eq!(worktree.tip().unwrap(), Some(one.clone()));
        assert_eq!(ground.rev(&format!("refs/nisse/turns/{}", task())).as_deref(), Some(&*tip.0));
    }
    let parents = ground.git(&["rev-list", "--parents", "-1", &one.0]);
    assert_eq!(parents, format!("{one} {}", snapshot.commit));
    assert!(worktree.changed_since(&one).unwrap().is_empty());
    assert_eq!(ground.git_in(worktree.path(), &["status", "--porcelain"]), "");
    assert_eq!(worktree.commit_is_ours(&one, task()).unwrap(), None);

    ground.git(&["update-ref", "-d", &format!("refs/nisse/turns/{}", task())]);
    worktree.squash_apply(&tip, &one).unwrap();
    assert!(ground.rev(&format!("refs/nisse/turns/{}", task())).is_some());
}

#[test]
fn a_squash_of_other_files_or_from_elsewhere_is_refused() {
    let ground = Ground::new();
    let (worktree, snapshot) = ground.begin();
    put(worktree.path(), "new.txt", "new\n");
    let first = checkpoint(&worktree, 1, &snapshot.commit, None).unwrap().unwrap();
    put(worktree.path(), "new.txt", "newer\n");
    let tip = checkpoint(&worktree, 2, &first, None).unwrap().unwrap();
    let of_first = worktree.squash_commit(&snapshot.commit, &first, "note", 0).unwrap();
    assert!(matches!(worktree.squash_apply(&tip, &of_first), Err(Error::TreesDiffer { .. })));
    assert!(matches!(worktree.squash_apply(&first, &of_first), Err(Error::BranchMoved { .. })));
    assert_eq!(worktree.tip().unwrap(), Some(tip));
    assert_eq!(ground.rev(&format!("refs/nisse/turns/{}", task())), None);
}

#[test]
fn a_discard_goes_on_from_wherever_it_was_left() {
    type Before = fn(&Ground, &Worktree);
    let halves: &[(&str, Before)] = &[
        ("nothing done", |_, _| ()),
        ("ref kept", |g, w| {
            let tip = w.tip().unwrap().unwrap();
            g.git(&["update-ref", &format!("refs/nisse/discarded/{}", task()), &tip.0]);
        }),
        ("half of the files gone", |_, w| {
            fs::remove_file(w.path().join("a.txt")).unwrap();
            fs::remove_file(w.path().join(".git")).unwrap();
        }),
        ("files gone", |_, w| fs::remove_dir_all(w.path()).unwrap()),
        ("entry gone", |g, w| {
            fs::remove_dir_all(w.path()).unwrap();
            fs::remove_dir_all(g.root.join(".git/worktrees")).unwrap();
        }),
        ("only the entry gone", |g, _| fs::remove_dir_all(g.root.join(".git/worktrees")).unwrap()),
        ("all done", |_, w| drop(w.discard(&w.tip().unwrap().unwrap()).unwrap())),
    ];
    for (what, before) in halves {
        let ground = Ground::new();
        let (worktree, snapshot) = ground.begin();
        put(worktree.path(), "new.txt", "new\n");
        let tip = checkpoint(&worktree, 1, &snapshot.commit, None).unwrap().unwrap();
        before(&ground, &worktree);
        let branch = TaskBranch::new(&ground.checkout(), &ground.spec(&snapshot.commit)).unwrap();
        branch.discard(&tip).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(branch.tip().unwrap(), None, "{what}");
        assert!(!worktree.path().exists(), "{what}");
        assert!(!ground.root.join(".git/worktrees").exists(), "{what}");
        assert!(!ground.root.join(".git/refs/heads/nisse").exists(), "{what}");
        let kept = ground.rev(&format!("refs/nisse/discarded/{}", task()));
        assert_eq!(kept.as_deref(), Some(&*tip.0), "{what}");
    }
}

#[test]
fn a_discard_keeps_what_a_moved_branch_holds_and_leaves_alone_what_is_checked_out_elsewhere() {
    let ground = Ground::new();
    let (worktree, snapshot) = ground.begin();
    put(worktree.path(), "new.txt", "new\n");
    let tip = checkpoint(&worktree, 1, &snapshot.commit, None).unwrap().unwrap();
    worktree.remove_worktree().unwrap();
    ground.git(&["checkout", "-q", worktree.branch().name()]);
    let error = worktree.discard(&tip).unwrap_err();
    assert!(matches!(&error, Error::Foreign { .. }), "{error}");
    assert_eq!(ground.rev("HEAD").as_deref(), Some(&*tip.0));

    // the task was at the snapshot when it ended
    ground.git(&["checkout", "-q", "main"]);
    let kept = worktree.discard(&snapshot.commit).unwrap().expect("a ref that keeps what was found");
    assert_eq!(ground.rev(&kept).as_deref(), Some(&*tip.0));
    assert_eq!(worktree.tip().unwrap(), None);
    assert_eq!(worktree.discard(&snapshot.commit).unwrap(), None, "done again");
}

#[test]
fn a_clean_up_frees_the_branch_and_can_be_done_again() {
    let ground = Ground::new();
    let (worktree, snapshot) = ground.begin();
    put(worktree.path(), "cache/deep/file", "x\n");
    put(worktree.path(), "x.log", "ignored\n");
    let closed = worktree.path().join("cache/deep");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o555);
    fs::set_permissions(&closed, mode).unwrap();
    for () in [(), ()] {
        worktree.remove_worktree().unwrap();
        assert!(!worktree.path().exists());
    }
    ground.git(&["checkout", "-q", worktree.branch().name()]);
    assert_eq!(ground.rev("HEAD").as_deref(), Some(&*snapshot.commit.0));
}

#[test]
fn a_killed_attempt_is_made_again() {
    type Leave = fn(&Ground, &Worktree);
    let rests: &[(&str, Leave)] = &[
        ("all of it", |_, _| ()),
        ("half of the files", |_, w| fs::remove_file(w.path().join("a.txt")).unwrap()),
        ("no .git file", |_, w| fs::remove_file(w.path().join(".git")).unwrap()),
        ("no entry", |g, _| fs::remove_dir_all(g.root.join(".git/worktrees")).unwrap()),
        ("a lock without a place", |g, w| {
            fs::remove_dir_all(w.path()).unwrap();
            let entry = g.root.join(".git/worktrees").join(task().to_string());
            fs::read_dir(&entry).unwrap().flatten().filter(|file| file.file_name() != "locked").for_each(|file| {
                let path = file.path();
                if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
            });
        }),
        ("an empty directory", |g, w| {
            fs::remove_dir_all(w.path()).unwrap();
            fs::remove_dir_all(g.root.join(".git/worktrees")).unwrap();
            fs::create_dir(w.path()).unwrap();
        }),
        ("only the branch", |_, w| w.remove_worktree().unwrap()),
    ];
    for (what, leave) in rests {
        let ground = Ground::new();
        ground.put("a.txt", "unfinished\n");
        let (worktree, _) = ground.begin();
        leave(&ground, &worktree);
        ground.put("a.txt", "unfinished, and more since\n");
        let checkout = ground.checkout();
        let again = snapshot(&checkout, &checkout.base().unwrap()).unwrap();
        let worktree =
            Worktree::create(&checkout, &ground.spec(&again.commit)).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(worktree.changed_since(&again.commit).unwrap().is_empty(), "{what}");
        assert_eq!(worktree.tip().unwrap(), Some(again.commit), "{what}");
    }
}

#[test]
fn what_is_not_the_tasks_is_left_alone() {
    type Place = fn(&Ground, &nisse::repo::WorktreeSpec);
    let kinds: &[(&str, Place)] = &[
        ("no worktree of this repository", |_, spec| put(&spec.path, "precious", "x\n")),
        ("not locked by this task", |g, spec| {
            g.git(&["worktree", "add", "-q", spec.path.to_str().unwrap(), "-b", "own"]);
        }),
        ("locked with the words `mine`", |g, spec| {
            let path = spec.path.to_str().unwrap();
            g.git(&["worktree", "add", "-q", "--lock", "--reason=mine", path, "-b", "own"]);
        }),
        ("commits beyond", |g, spec| {
            g.git(&["checkout", "-q", "-b", &spec.branch]);
            g.git(&["commit", "-q", "--allow-empty", "-m", "precious"]);
            g.git(&["checkout", "-q", "main"]);
        }),
        ("checked out elsewhere", |g, spec| drop(g.git(&["checkout", "-q", "-b", &spec.branch]))),
    ];
    for (words, place) in kinds {
        let ground = Ground::new();
        let start = ground.snapshot().unwrap().commit;
        let spec = ground.spec(&start);
        place(&ground, &spec);
        let tip = ground.rev(&format!("refs/heads/{}", spec.branch));
        let standing = spec.path.exists();
        let error = Worktree::create(&ground.checkout(), &spec).unwrap_err();
        assert!(matches!(&error, Error::Foreign { .. }) && error.to_string().contains(words), "{error}");
        assert_eq!(ground.rev(&format!("refs/heads/{}", spec.branch)), tip, "{words}");
        assert_eq!(spec.path.exists(), standing, "{words}");
    }
}

#[test]
fn a_diff_can_be_applied() {
    let ground = Ground::new();
    let (worktree, snapshot) = ground.begin();
    let path = worktree.path();
    put(path, "new é.txt", "red\ngreen\n");
    fs::write(path.join("blob.bin"), [0, 159, 146, 150, 0, 1]).unwrap();
    fs::remove_file(path.join("b.txt")).unwrap();
    fs::rename(path.join("src/main.c"), path.join("src/start.c")).unwrap();
    let tip = checkpoint(&worktree, 1, &snapshot.commit, None).unwrap().unwrap();
    ground.git(&["config", "diff.noprefix", "true"]);
    let diff = worktree.diff(&snapshot.commit, &tip).unwrap();
    assert_eq!((diff.insertions, diff.deletions), (2, 1));
    let lines: Vec<_> = diff.files.iter().map(ToString::to_string).collect();
    assert_eq!(lines, ["b.txt | +0 -1", "blob.bin | binary", "new é.txt | +2 -0", "src/main.c => src/start.c | +0 -0"]);

    let file = ground.top().join("patch");
    fs::write(&file, &diff.patch).unwrap();
    ground.git(&["apply", "--index", file.to_str().unwrap()]);
    assert_eq!(ground.git(&["write-tree"]), ground.git(&["rev-parse", &format!("{tip}^{{tree}}")]));
    assert!(worktree.tree_equal(&tip, &tip).unwrap());
    assert!(!worktree.tree_equal(&snapshot.commit, &tip).unwrap());
    assert_eq!(worktree.diff(&tip, &tip).unwrap(), nisse::repo::Diff::default());
}
