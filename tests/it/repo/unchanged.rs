//! Whatever the checkout is like: the task starts from all of it, and leaves all of it as it was.

use std::{fs, os::unix::fs::PermissionsExt};

use super::ground::{Ground, assert_untouched, checkpoint, files, fingerprint, put};

/// Runs a task on a checkout, once to a squash and once to a discard, and compares everything.
/// Ends with what the worktree held at its start.
fn through(ground: &Ground, what: &str) -> std::collections::BTreeMap<String, String> {
    let git = ground.checkout().git_dir().strip_prefix(ground.top()).unwrap().to_string_lossy().into_owned() + "/";
    // of the whole ground, because a checkout's git directory need not lie in it
    let before = fingerprint(&ground.top());
    let check = |step: &str| {
        assert_untouched(&before, &ground.top(), &common(ground, &git), &format!("{what}: {step}"));
    };

    let (worktree, snapshot) = ground.begin();
    let held = files(worktree.path());
    check("worktree");
    assert!(
        worktree.changed_since(&snapshot.commit).unwrap().is_empty(),
        "{what}: {:?}",
        worktree.changed_since(&snapshot.commit)
    );

    put(worktree.path(), "new/file.txt", "from the task\n");
    let first = checkpoint(&worktree, 1, &snapshot.commit, Some(&["new/file.txt"])).unwrap().unwrap();
    put(worktree.path(), "a.txt", "changed by the task\n");
    let second = checkpoint(&worktree, 2, &first, None).unwrap().unwrap();
    check("checkpoints");

    let one = worktree.squash_commit(&snapshot.commit, &second, "the note", 0).unwrap();
    worktree.squash_apply(&second, &one).unwrap();
    assert!(worktree.changed_since(&one).unwrap().is_empty());
    check("squash");

    worktree.discard(&one).unwrap();
    check("discard");
    assert_eq!(ground.rev(&format!("refs/heads/{}", worktree.branch().name())), None);

    let (worktree, snapshot) = ground.begin();
    worktree.remove_worktree().unwrap();
    check("clean-up");
    assert_eq!(ground.rev(worktree.branch().name()).as_deref(), Some(&*snapshot.commit.0));
    assert!(!worktree.path().exists());
    held
}

/// The git directory that worktrees share, relative to the ground.
fn common(ground: &Ground, git: &str) -> String {
    git.split("worktrees/").next().filter(|common| ground.top().join(common).is_dir()).unwrap_or(git).to_owned()
}

#[test]
fn a_clean_checkout() {
    let ground = Ground::new();
    let head = ground.rev("HEAD").unwrap();
    let snapshot = ground.snapshot().unwrap();
    assert_eq!((snapshot.commit.0.as_str(), snapshot.dirty), (head.as_str(), false));
    assert_eq!(snapshot.notices, Vec::<String>::new());
    assert_eq!(through(&ground, "clean"), files(&ground.root));
}

#[test]
fn every_kind_of_unfinished_work() {
    type Arrange = fn(&Ground);
    let kinds: &[(&str, Arrange)] = &[
        ("staged", |g| {
            g.put("a.txt", "staged\n");
            g.git(&["add", "a.txt"]);
        }),
        ("unstaged", |g| g.put("a.txt", "unstaged\n")),
        ("staged and changed again", |g| {
            g.put("a.txt", "staged\n");
            g.git(&["add", "a.txt"]);
            g.put("a.txt", "and again\n");
        }),
        ("untracked", |g| g.put("new/deep/file", "untracked\n")),
        ("deleted", |g| fs::remove_file(g.root.join("b.txt")).unwrap()),
        ("deletion staged", |g| drop(g.git(&["rm", "-q", "b.txt"]))),
        ("renamed", |g| drop(g.git(&["mv", "b.txt", "c.txt"]))),
        ("mode", |g| {
            fs::set_permissions(g.root.join("a.txt"), fs::Permissions::from_mode(0o755)).unwrap();
            fs::set_permissions(g.root.join("run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
        }),
        ("link", |g| {
            fs::remove_file(g.root.join("link")).unwrap();
            std::os::unix::fs::symlink("src/main.c", g.root.join("link")).unwrap();
            std::os::unix::fs::symlink("/nowhere", g.root.join("dangling")).unwrap();
        }),
        ("a file where a directory was", |g| {
            fs::remove_dir_all(g.root.join("src")).unwrap();
            g.put("src", "a file now\n");
        }),
        ("a directory where a file was", |g| {
            fs::remove_file(g.root.join("b.txt")).unwrap();
            g.put("b.txt/inside", "x\n");
        }),
        ("a link where a directory was", |g| {
            fs::rename(g.root.join("src"), g.root.join("source")).unwrap();
            std::os::unix::fs::symlink("source", g.root.join("src")).unwrap();
        }),
        ("intent to add", |g| {
            g.put("later.txt", "later\n");
            g.git(&["add", "-N", "later.txt"]);
        }),
        ("stash", |g| {
            g.put("a.txt", "stashed\n");
            g.git(&["stash", "-q"]);
            g.put("b.txt", "not stashed\n");
        }),
        ("detached", |g| {
            g.git(&["checkout", "-q", "--detach"]);
            g.put("a.txt", "unstaged\n");
        }),
        ("names", |g| {
            g.put("with space", "x\n");
            g.put("new\nline", "x\n");
            g.put("\"quoted\" é *?[", "x\n");
            g.put("-dash", "x\n");
        }),
        ("many untracked", |g| (0..200).for_each(|n| g.put(&format!("many/{n}"), &format!("{n}\n")))),
        ("hooks", |g| {
            for hook in ["post-checkout", "pre-commit", "reference-transaction", "post-index-change", "commit-msg"] {
                let path = g.root.join(".git/hooks").join(hook);
                fs::write(&path, format!("#!/bin/sh\ntouch '{}/hook-ran-{hook}'\nexit 1\n", g.root.display())).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            }
            g.put("a.txt", "unstaged\n");
        }),
        ("signing, a monitor and odd settings", |g| {
            for (key, value) in [
                ("commit.gpgSign", "true"),
                ("gpg.program", "/bin/false"),
                ("core.fsmonitor", "/bin/false"),
                ("core.splitIndex", "true"),
                ("worktree.useRelativePaths", "true"),
                ("diff.external", "/bin/false"),
                ("diff.noprefix", "true"),
                ("core.untrackedCache", "true"),
                ("i18n.commitEncoding", "ISO-8859-1"),
                ("core.excludesFile", "/nowhere"),
            ] {
                g.git(&["config", key, value]);
            }
            g.put("a.txt", "unstaged\n");
        }),
    ];
    for (what, arrange) in kinds {
        let ground = Ground::new();
        arrange(&ground);
        let snapshot = ground.snapshot().unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(snapshot.dirty, "{what}");
        assert_eq!(snapshot.notices, Vec::<String>::new(), "{what}");
        assert_eq!(through(&ground, what), files(&ground.root), "{what}");
    }
}

#[test]
fn a_file_taken_out_of_the_index_only_is_still_a_file() {
    let ground = Ground::new();
    ground.git(&["rm", "-q", "--cached", "b.txt"]);
    assert!(!ground.snapshot().unwrap().dirty);
    assert_eq!(through(&ground, "removed from the index"), files(&ground.root));
}

#[test]
fn an_edit_of_the_same_size_in_the_moment_of_staging_is_seen() {
    let ground = Ground::new();
    // one moment for all of it; the time of a file's last change of status cannot be set, so git is not to look at it
    ground.git(&["config", "core.trustctime", "false"]);
    let moment = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    let at_that_moment = |path: &str| {
        fs::File::options().write(true).open(ground.root.join(path)).unwrap().set_modified(moment).unwrap();
    };
    ground.put("a.txt", "AAA\n");
    at_that_moment("a.txt");
    ground.git(&["add", "a.txt"]);
    ground.put("a.txt", "BBB\n");
    at_that_moment("a.txt");
    at_that_moment(".git/index");
    let (worktree, _) = ground.begin();
    assert_eq!(fs::read_to_string(worktree.path().join("a.txt")).unwrap(), "BBB\n");
}

#[test]
fn a_repository_without_commits() {
    let ground = Ground::unborn();
    assert_eq!(through_unborn(&ground), 0);
    let ground = Ground::unborn();
    ground.put("a.txt", "one\n");
    ground.put("staged.txt", "two\n");
    ground.git(&["add", "staged.txt"]);
    assert_eq!(through_unborn(&ground), 2);
}

fn through_unborn(ground: &Ground) -> usize {
    let base = ground.checkout().base().unwrap();
    assert_eq!((base.commit, base.branch.as_deref()), (None, Some("main")));
    let held = through(ground, "unborn");
    assert_eq!(held, files(&ground.root));
    assert_eq!(ground.snapshot().unwrap().dirty, !held.is_empty());
    held.len()
}

#[test]
fn line_endings_that_git_converts() {
    for autocrlf in ["true", "input", "false"] {
        let ground = Ground::new();
        ground.git(&["config", "core.autocrlf", autocrlf]);
        ground.git(&["config", "core.safecrlf", "true"]);
        fs::remove_file(ground.root.join("a.txt")).unwrap();
        ground.git(&["checkout", "-q", "--", "."]);
        ground.put("new.txt", "lines\r\nof windows\r\n");
        ground.put("mixed.txt", "lines\r\nof both\n");
        let (worktree, snapshot) = ground.begin();
        let blob = ground.git(&["cat-file", "-s", &format!("{}:new.txt", snapshot.commit)]);
        assert_eq!(blob, if autocrlf == "false" { "19" } else { "17" }, "{autocrlf}");
        assert!(worktree.changed_since(&snapshot.commit).unwrap().is_empty(), "{autocrlf}");
        worktree.discard(&snapshot.commit).unwrap();
        through(&ground, autocrlf);
    }
}

#[test]
fn an_encoding_that_git_converts() {
    let ground = Ground::new();
    ground.put(".gitattributes", "*.u16 text working-tree-encoding=UTF-16LE eol=lf\n");
    ground.git(&["add", "-A"]);
    ground.git(&["commit", "-q", "-m", "attributes"]);
    fs::write(ground.root.join("x.u16"), [b'h', 0, b'i', 0, b'\n', 0]).unwrap();
    let (worktree, snapshot) = ground.begin();
    assert_eq!(ground.git(&["show", &format!("{}:x.u16", snapshot.commit)]), "hi");
    fs::write(worktree.path().join("x.u16"), [b'h', 0, b'o', 0, b'\n', 0]).unwrap();
    let made = checkpoint(&worktree, 1, &snapshot.commit, Some(&["x.u16"])).unwrap().unwrap();
    assert_eq!(ground.git(&["show", &format!("{made}:x.u16")]), "ho");
}

#[test]
fn a_checkout_that_is_itself_a_linked_worktree() {
    let mut ground = Ground::new();
    let linked = ground.top().join("linked");
    ground.git(&["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    ground.root = linked;
    ground.put("a.txt", "unfinished\n");
    assert_eq!(ground.checkout().base().unwrap().branch.as_deref(), Some("side"));
    assert_eq!(through(&ground, "linked"), files(&ground.root));
}

#[test]
fn a_checkout_with_submodules_and_one_that_is_a_submodule() {
    let library = Ground::new();
    let mut ground = Ground::new();
    let url = library.root.to_str().unwrap();
    ground.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", url, "lib"]);
    ground.git(&["commit", "-q", "-m", "with a submodule"]);
    ground.put("lib/a.txt", "changed inside\n");
    let snapshot = ground.snapshot().unwrap();
    assert!(!snapshot.dirty && snapshot.notices.is_empty());
    let (worktree, snapshot) = ground.begin();
    assert_eq!(snapshot.notices, ["submodules are for reading, and changes in them are not part of the branch: lib"]);
    // as committed: what is unfinished in a submodule is its own
    assert_eq!(fs::read_to_string(worktree.path().join("lib/a.txt")).unwrap(), "one\n");
    put(worktree.path(), "lib/a.txt", "changed by the task\n");
    put(worktree.path(), "lib/new.txt", "new\n");
    let named = ["lib/new.txt", "lib/a.txt"];
    assert_eq!(worktree.ignored(&named.map(str::to_owned)).unwrap(), named);
    for paths in [None, Some(&named[..])] {
        assert_eq!(checkpoint(&worktree, 1, &snapshot.commit, paths).unwrap(), None);
    }
    worktree.restore(&snapshot.commit).unwrap();
    assert!(worktree.path().join("lib/new.txt").exists(), "submodules are left alone");
    worktree.discard(&snapshot.commit).unwrap();
    through(&ground, "with a submodule");
    ground.git_in(&ground.root.join("lib"), &["checkout", "-q", "."]);
    ground.git(&["rm", "-q", "--cached", "lib"]);
    ground.git(&["reset", "-q"]);
    fs::remove_file(ground.root.join("lib/.git")).unwrap();
    let (worktree, snapshot) = ground.begin();
    assert_eq!(snapshot.notices, ["submodules are empty in the task's worktree: lib"]);
    worktree.discard(&snapshot.commit).unwrap();
    ground.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--force"]);
    ground.put("lib/a.txt", "changed inside\n");

    ground.git_in(&ground.root.join("lib"), &["commit", "-qam", "moved on"]);
    let notices = ground.snapshot().unwrap().notices;
    assert_eq!(notices[0], "not carried over, because they lie in submodules: changes in: lib");

    ground.root = ground.root.join("lib");
    ground.put("b.txt", "unfinished in the submodule\n");
    assert_eq!(through(&ground, "submodule"), files(&ground.root));
}

#[test]
fn a_shallow_clone() {
    let origin = Ground::new();
    origin.put("a.txt", "second\n");
    origin.git(&["commit", "-qam", "second"]);
    let mut ground = Ground::bare();
    let url = format!("file://{}", origin.root.display());
    ground.git_in(&ground.top(), &["clone", "-q", "--depth=1", &url, "shallow"]);
    ground.root = ground.top().join("shallow");
    ground.put("b.txt", "unfinished\n");
    assert_eq!(through(&ground, "shallow"), files(&ground.root));
}
