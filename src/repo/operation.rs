//! What git has left half done: a merge, a rebase and the like, by the files that tell.

use std::path::Path;

use super::{Error, store::Store};

/// Files and directories by which git knows that it stopped half-way, with the words for it. The first counts.
const OPERATIONS: &[(&str, &str)] = &[
    ("rebase-apply/applying", "`git am`"),
    ("rebase-apply", "a rebase"),
    ("rebase-merge", "a rebase"),
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("sequencer", "a cherry-pick or revert"),
];

/// By which git knows that it bisects.
pub(super) const BISECT: &str = "BISECT_START";

/// What belongs to an operation, and goes with it.
pub(super) const STATE: &[&str] = &[
    "rebase-apply",
    "rebase-merge",
    "sequencer",
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "MERGE_RR",
    "MERGE_AUTOSTASH",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "AUTO_MERGE",
    "SQUASH_MSG",
];

/// The same of a bisect, whose refs lie elsewhere.
pub(super) const BISECT_STATE: &[&str] = &[
    "BISECT_LOG",
    "BISECT_NAMES",
    "BISECT_RUN",
    "BISECT_TERMS",
    "BISECT_EXPECTED_REV",
    "BISECT_ANCESTORS_OK",
    "BISECT_FIRST_PARENT",
    BISECT,
];

/// Those of them that are refs, which need not lie in files.
pub(super) const REFS: &[&str] =
    &["CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "AUTO_MERGE", "BISECT_EXPECTED_REV"];

/// Where a rebase or a merge notes the changes that it put aside for its end.
pub(super) const AUTOSTASH: &[&str] = &["rebase-apply/autostash", "rebase-merge/autostash", "MERGE_AUTOSTASH"];

/// What git has left half done at a git directory (`a merge`), if anything; a bisect, which leaves the files whole, aside.
pub(super) fn operation(git_dir: &Path, store: &dyn Store, refs_in_files: bool) -> Result<Option<&'static str>, Error> {
    match OPERATIONS.iter().find(|(name, _)| git_dir.join(name).symlink_metadata().is_ok()) {
        Some((_, what)) => Ok(Some(what)),
        None if refs_in_files => Ok(None),
        None => store.picking(),
    }
}
