//! Packing a task's objects in every kind of repository.

use std::fs;

use super::{
    ground::{Ground, checkpoint, task, without_ours},
    kinds::KINDS,
};

/// Bytes that do not compress, over the size from which it is worth while.
fn noise() -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(next).take(1 << 20).flatten().collect()
}

fn packs_and_loses_nothing(ground: &Ground, kind: &str) {
    ground.git(&["status", "--porcelain"]);
    let before = without_ours(ground);
    let checkout = ground.checkout();
    let (worktree, snapshot) = ground.begin_in(&checkout);
    let mut bytes = noise();
    let mut tip = snapshot.commit.clone();
    for turn in 1..=3 {
        bytes[turn as usize] = b'x';
        fs::write(worktree.path().join("large.bin"), &bytes).unwrap();
        tip = checkpoint(&worktree, turn, &tip, None).unwrap().unwrap();
    }
    let base = checkout.base().unwrap().commit;
    let look = || checkout.worth_packing(task(), worktree.branch().name(), base.as_ref()).unwrap();
    let loose = look().unwrap_or_else(|| panic!("{kind}: nothing to pack"));
    assert!(loose.bytes > 3 << 23, "{kind}: {loose:?}");
    let packed = checkout.pack(&loose).unwrap();
    assert!(packed.after < 2 << 23, "{kind}: {packed:?}");
    // what was packed already may be packed again
    checkout.pack(&loose).unwrap();
    assert!(look().is_none(), "{kind}: it is all packed");
    ground.git(&["fsck", "--strict", "--no-dangling"]);
    assert!(worktree.changed_since(&tip).unwrap().is_empty(), "{kind}");
    let once_more = checkpoint(&worktree, 4, &tip, None).unwrap();
    assert_eq!(once_more, None, "{kind}");
    let objects = checkout.common_dir().join("objects");
    let left = fs::read_dir(objects).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(!left.into_iter().any(|name| name.starts_with("tmp_")), "{kind}");
    worktree.discard(&tip).unwrap();
    assert_eq!(without_ours(ground), before, "{kind}");
}

#[test]
fn in_every_kind_of_repository() {
    let kinds = [
        "plain",
        "partial clone",
        "partial and sparse",
        "shallow",
        "sha256",
        "reftable",
        "a submodule",
        "linked worktree",
        "no commit yet",
    ];
    for kind in kinds {
        let arrange = KINDS.iter().find(|(name, _)| *name == kind).expect("a kind").1;
        let mut ground = Ground::new();
        arrange(&mut ground);
        packs_and_loses_nothing(&ground, kind);
    }
}

#[test]
fn at_a_path_that_means_something_to_git() {
    let mut ground = Ground::new();
    let odd = ground.top().join("a:b \"c\" \\d");
    fs::rename(&ground.root, &odd).unwrap();
    ground.root = odd;
    packs_and_loses_nothing(&ground, "an odd path");
}
