//! The two hands, library and program, over every kind of repository: the same answers, the same ids, nothing touched
//! that is the person's, and git itself finds the work in order.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::Path,
};

use nisse::repo::{Checkout, TaskBranch};

use super::{
    ground::{Ground, checkpoint, put, task, without_ours},
    kinds::KINDS,
};

/// A whole task's worth of work by one hand; everything that it came to, and everything taken away again.
fn story(ground: &Ground, checkout: &Checkout, kind: &str) -> Vec<String> {
    let mut told = Vec::new();
    let (worktree, snapshot) = ground.begin_in(checkout);
    told.push(format!("{:?} {snapshot:?}", checkout.base().unwrap()));
    let path = worktree.path();
    let in_order = |step: &str| {
        assert_eq!(ground.git_in(path, &["status", "--porcelain", "--ignore-submodules"]), "", "{kind}: {step}");
    };
    in_order("begun");

    put(path, "new/deep/file.txt", "with\r\nreturns\r\n");
    put(path, "id.id", "$Id$ and $Id: 123 $\n");
    put(path, "x.raw", "raw\r\n");
    put(path, "data.bin", "of the task\n");
    let named = ["new/deep/file.txt", "id.id", "x.raw", "data.bin", "x.log"];
    put(path, "x.log", "ignored\n");
    let first = checkpoint(&worktree, 1, &snapshot.commit, Some(&named)).unwrap().unwrap();
    in_order("named");
    fs::remove_file(path.join("b.txt")).unwrap();
    let second = checkpoint(&worktree, 2, &first, Some(&["b.txt", "nowhere"])).unwrap().unwrap();
    in_order("removed");

    let exists = |name: &str| path.join(name).symlink_metadata().is_ok();
    if exists("src/main.c") {
        fs::set_permissions(path.join("src/main.c"), PermissionsExt::from_mode(0o755)).unwrap();
        put(path, "src/new\nline \"é\" *?[\\", "x\n");
        fs::create_dir_all(path.join("b.txt/is a directory now")).unwrap();
        put(path, "b.txt/is a directory now/x", "x\n");
        fs::rename(path.join("a.txt"), path.join("a.TXT"))
            .or_else(|_| fs::rename(path.join("A.txt"), path.join("a.TXT")))
            .unwrap();
        fs::remove_file(path.join("link")).unwrap();
        std::os::unix::fs::symlink("no where", path.join("link")).unwrap();
        fs::remove_file(path.join("run.sh")).unwrap();
        std::os::unix::fs::symlink("src", path.join("run.sh")).unwrap();
    }
    put(path, "data.bin", "of the task, again\n");
    fs::write(path.join(OsStr::from_bytes(b"no\xfftext")), "x\n").unwrap();
    ground.git_in(path, &["init", "-q", "nested"]);
    told.push(format!("{:?}", worktree.changed_since(&second).unwrap()));
    let third = checkpoint(&worktree, 3, &second, None).unwrap().unwrap();
    fs::remove_dir_all(path.join("nested")).unwrap();
    in_order("any");
    assert_eq!(checkpoint(&worktree, 4, &third, None).unwrap(), None, "{kind}");
    told.push(format!("{:?}", worktree.changed_since(&snapshot.commit).unwrap()));
    let asked = ["x.log", "b.txt/x", "nowhere", "data.bin", "node_modules/x", "lib/a.txt"].map(str::to_owned);
    told.push(format!("ignored {:?}", worktree.ignored(&asked).unwrap()));
    told.push(format!("ours {:?}", worktree.commit_is_ours(&third, task()).unwrap()));

    put(path, "new/deep/file.txt", "spoilt\n");
    put(path, "another/file", "spoilt\n");
    worktree.restore(&second).unwrap();
    assert!(worktree.changed_since(&second).unwrap().is_empty(), "{kind}: {:?}", worktree.changed_since(&second));
    worktree.restore(&third).unwrap();
    in_order("restored");
    told.push(format!("{:?}", checkout.diff(&snapshot.commit, &third).unwrap().files));
    let one = worktree.squash_commit(&snapshot.commit, &third, "the note", 0).unwrap();
    worktree.squash_apply(&third, &one).unwrap();
    worktree.squash_apply(&third, &one).unwrap();
    assert_eq!(worktree.tip().unwrap(), Some(one.clone()), "{kind}");
    told.extend([&first, &second, &third, &one].map(ToString::to_string));
    told.push(ground.git(&["ls-tree", "-r", &one.0]));
    if let Some(blob) = ground.rev(&format!("{one}:data.bin")) {
        told.push(ground.git(&["cat-file", "-p", &blob]));
    }

    let spec = ground.spec(&snapshot.commit);
    worktree.remove_worktree().unwrap();
    let again = nisse::repo::Worktree::recreate(checkout, &spec).unwrap();
    assert!(again.changed_since(&one).unwrap().is_empty(), "{kind}: {:?}", again.changed_since(&one));
    TaskBranch::new(checkout, &spec).unwrap().discard(&one).unwrap();
    assert!(!path.exists() && ground.rev(&format!("refs/heads/{}", spec.branch)).is_none(), "{kind}");
    for name in ground.git(&["for-each-ref", "--format=%(refname)", "refs/nisse"]).lines() {
        ground.git(&["update-ref", "-d", name]);
    }
    told
}

#[test]
fn both_hands_do_the_same() {
    for (kind, arrange) in KINDS {
        let mut ground = Ground::new();
        arrange(&mut ground);
        // what the person's git would refresh in the index by itself, it has
        ground.git(&["status", "--porcelain"]);
        let before = without_ours(&ground);
        let fitting = story(&ground, &ground.checkout(), kind);
        let by_program = story(&ground, &ground.checkout().by_program(), kind);
        assert_eq!(fitting, by_program, "{kind}");
        let after = without_ours(&ground);
        let changed: Vec<_> = after.iter().filter(|found| !before.contains(found)).collect();
        assert!(changed.is_empty() && after.len() == before.len(), "{kind}: {changed:?}");
        ground.git(&["fsck", "--strict", "--no-dangling"]);
        if kind.contains("filter") {
            assert_eq!(fitting.last().unwrap(), "OF THE TASK, AGAIN", "{kind}");
        }
        if kind.contains("sparse") {
            assert!(
                fitting.iter().any(|told| told.contains("doc/read.me")),
                "{kind}: what was left out is still there"
            );
        }
    }
}

#[test]
fn both_hands_in_a_big_tree() {
    let ground = Ground::new();
    for directory in 0..200 {
        for file in 0..100 {
            put(&ground.root, &format!("big/{directory}/{file}.txt"), &format!("{directory} {file}\n"));
        }
    }
    ground.git(&["add", "-A"]);
    ground.git(&["commit", "-qm", "big"]);
    let told = story(&ground, &ground.checkout(), "big");
    assert_eq!(told, story(&ground, &ground.checkout().by_program(), "big"));
}

#[test]
fn a_filter_that_appeared_since_does_nothing() {
    for by_program in [false, true] {
        let ground = Ground::new();
        let checkout = ground.checkout();
        let checkout = if by_program { checkout.by_program() } else { checkout };
        let (worktree, snapshot) = ground.begin_in(&checkout);
        let ran = ground.top().join("ran");
        ground.git(&["config", "filter.evil.clean", &format!("touch {}; cat", ran.display())]);
        ground.git(&["config", "filter.evil.required", "true"]);
        put(worktree.path(), ".gitattributes", "* filter=evil\n");
        put(worktree.path(), "a.txt", "changed\n");
        let made = checkpoint(&worktree, 1, &snapshot.commit, None).unwrap().unwrap();
        assert_eq!(ground.git(&["show", &format!("{made}:a.txt")]), "changed");
        assert!(!Path::new(&ran).exists());
    }
}
