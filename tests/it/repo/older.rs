//! A checkout that an older nisse put onto a task's branch, with unfinished work: giving the task up gives it back.

use nisse::{
    domain::{checkout::Isolation, id::CommitId},
    repo::{TaskBranch, Worktree, WorktreeSpec},
};

use super::ground::{Ground, task};

#[test]
fn its_unfinished_work_is_kept_and_the_checkout_comes_back() {
    let ground = Ground::new();
    let checkout = ground.checkout();
    let base = checkout.base().unwrap();
    ground.put("a.txt", "unfinished\n");
    ground.put("untracked.txt", "untracked\n");
    let snapshot = ground.snapshot().unwrap();
    // as version 1 of the log left it: HEAD and index at the snapshot, a ref that says which task is there
    let spec =
        WorktreeSpec { path: ground.root.clone(), isolation: Isolation::InPlace, ..ground.spec(&snapshot.commit) };
    ground.git(&["update-ref", &format!("refs/heads/{}", spec.branch), &snapshot.commit.0]);
    ground.git(&["read-tree", "--reset", &snapshot.commit.0]);
    ground.git(&["symbolic-ref", "HEAD", &format!("refs/heads/{}", spec.branch)]);
    let hash: String =
        nisse::domain::id::Hash::of(ground.root.as_os_str().as_encoded_bytes()).0.chars().take(16).collect();
    let mark = format!("refs/nisse/in-place/{hash}");
    let kept = ground.git(&["commit-tree", "-m", &format!("kept\n\nNisse-Task: {}\n", task()), "HEAD^{tree}"]);
    ground.git(&["update-ref", &mark, &kept]);

    assert!(Worktree::open_in_place(&checkout, &spec).unwrap().is_none(), "it is not gone on with");
    let branch = TaskBranch::new(&checkout, &spec).unwrap();
    assert_eq!(branch.pin_unfinished(&base, base.commit.as_ref().unwrap()).unwrap(), None, "nothing was unfinished");
    let unfinished = branch.pin_unfinished(&base, &snapshot.commit).unwrap().unwrap();
    for () in [(), ()] {
        branch.switch_to_base(&base, &snapshot.commit, 0).unwrap();
        assert_eq!(ground.git(&["symbolic-ref", "--short", "HEAD"]), "main");
        assert_eq!(ground.git(&["status", "--porcelain"]), "");
        assert_eq!(ground.rev(&mark), None);
    }
    assert_eq!(ground.git(&["show", &format!("{unfinished}:a.txt")]), "unfinished");
    assert_eq!(ground.git(&["show", &format!("{unfinished}:untracked.txt")]), "untracked");
    assert_eq!(ground.rev(&unfinished).map(CommitId), Some(snapshot.commit));
}
