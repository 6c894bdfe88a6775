//! A working tree that was seen before is judged by its looks: it must come to what git itself would say.

use std::{fs, path::Path, process::Command};

use nisse::{domain::id::CommitId, repo::Worktree};

use super::ground::{Ground, checkpoint, put};

fn shell(root: &Path, line: &str) {
    let status = Command::new("bash").args(["-ec", line]).current_dir(root).status().unwrap();
    assert!(status.success(), "{line}");
}

/// The tree that git makes of what is in the worktree, on top of `parent`.
fn by_git(ground: &Ground, worktree: &Worktree, parent: &CommitId) -> String {
    let index = ground.top().join("other-index");
    let _ = fs::remove_file(&index);
    let git = |args: &[&str]| {
        let out = Command::new("git")
            .args(args)
            .current_dir(worktree.path())
            .envs([("GIT_INDEX_FILE", index.as_os_str()), ("HOME", ground.home().as_os_str())])
            .output()
            .unwrap();
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    };
    git(&["read-tree", &parent.0]);
    git(&["add", "-A"]);
    git(&["write-tree"])
}

#[test]
fn every_kind_of_change_is_taken_as_git_takes_it() {
    let changes = [
        "true",
        "printf 'ONE\\n' > a.txt",
        "touch -d 2001-01-01 a.txt",
        "touch -r a.txt stamp; printf 'Two\\n' > a.txt; touch -r stamp a.txt; rm stamp",
        "chmod +x a.txt",
        "printf 'x' >> a.txt; printf 'y' > c.txt",
        "mkdir -p deep/er && echo d > deep/er/d.txt",
        "mkdir empty",
        "mv deep/er/d.txt deep/e.txt",
        "ln -s a.txt link1; ln -s deep link2",
        "ln -sfn c.txt link1",
        "rm link1; echo plain > link1",
        "rm b.txt",
        "rm c.txt; mkdir c.txt; echo in > c.txt/f",
        "rm -r c.txt; echo file > c.txt",
        "echo '*.log' > .gitignore; echo 1 > x.log; echo 2 > deep/y.log; echo 3 > z.txt",
        "echo more >> x.log; rm deep/y.log",
        "for i in $(seq 90); do echo $i > deep/n$i; done",
        "for i in $(seq 300); do echo $i > m$i; done",
        "rm m*",
        "echo a > $'od\\td \"name\"'; echo b > $'not\\xfftext'",
        "rm $'not\\xfftext'",
        "mkdir q; echo '!x.log' > q/.gitignore; echo 1 > q/x.log",
        "rm .gitignore",
        "echo 'deep/*' > .gitignore; echo e >> deep/e.txt; echo new > deep/new.txt",
        "git mv a.txt moved.txt",
        "git rm -q --cached moved.txt",
        "rm -r deep",
        "true",
    ];
    let ground = Ground::new();
    let (worktree, snapshot) = ground.begin();
    let mut parent = snapshot.commit;
    for (number, change) in changes.into_iter().enumerate() {
        shell(worktree.path(), change);
        let expected = by_git(&ground, &worktree, &parent);
        let made = checkpoint(&worktree, u32::try_from(number).unwrap(), &parent, None).unwrap();
        let tip = made.unwrap_or_else(|| parent.clone());
        assert_eq!(ground.git(&["rev-parse", &format!("{tip}^{{tree}}")]), expected, "after: {change}");
        parent = tip;
    }
}

#[test]
fn a_change_in_the_same_tick_and_of_the_same_size_is_seen() {
    let ground = Ground::new();
    let (worktree, snapshot) = ground.begin();
    let mut parent = snapshot.commit;
    for number in 1..=200 {
        fs::write(worktree.path().join("a.txt"), format!("{number:04}\n")).unwrap();
        let made = checkpoint(&worktree, number, &parent, None).unwrap();
        parent = made.unwrap_or_else(|| panic!("change {number} was not seen"));
    }
    // made by a tool and known by name, then changed by a command
    for number in 201..=300 {
        put(worktree.path(), "b.txt", &format!("{number:04}\n"));
        parent = checkpoint(&worktree, number, &parent, Some(&["b.txt"])).unwrap().unwrap();
        put(worktree.path(), "b.txt", &format!("{:04}\n", number + 500));
        let made = checkpoint(&worktree, number, &parent, None).unwrap();
        parent = made.unwrap_or_else(|| panic!("change {number} was not seen"));
    }
}

#[test]
fn what_was_seen_before_needs_no_git() {
    let ground = Ground::new();
    let (worktree, snapshot) = ground.begin();
    put(worktree.path(), "a.txt", "first\n");
    let mut parent = checkpoint(&worktree, 1, &snapshot.commit, None).unwrap().unwrap();
    let calls = ground.top().join("calls");
    ground.before_git(&format!("echo \"$@\" >> '{}'", calls.display()));
    // the worktree knows where git is only through its environment
    let known = |calls: &Path| fs::read_to_string(calls).unwrap_or_default();
    assert_eq!(checkpoint(&worktree, 2, &parent, None).unwrap(), None);
    put(worktree.path(), "a.txt", "second\n");
    put(worktree.path(), "new/file.txt", "n\n");
    parent = checkpoint(&worktree, 3, &parent, None).unwrap().unwrap();
    assert_eq!(checkpoint(&worktree, 4, &parent, None).unwrap(), None);
    assert_eq!(known(&calls), "");
    // rules may change what counts: git is asked
    put(worktree.path(), ".gitignore", "*.log\n");
    checkpoint(&worktree, 5, &parent, None).unwrap().unwrap();
    assert!(known(&calls).contains("ls-files"), "{}", known(&calls));
}

#[test]
fn a_repository_within_is_left_out() {
    let ground = Ground::new();
    let (worktree, snapshot) = ground.begin();
    assert_eq!(checkpoint(&worktree, 1, &snapshot.commit, None).unwrap(), None);
    for line in ["git init -q inner; echo i > inner/i.txt", "echo j > inner/j.txt", "mkdir inner/k; echo k > inner/k/k"]
    {
        shell(worktree.path(), line);
        assert_eq!(checkpoint(&worktree, 2, &snapshot.commit, None).unwrap(), None, "{line}");
    }
}
