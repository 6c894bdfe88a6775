//! Taking back a merge of the person's that has not become a commit, also one in which git was ended while it wrote files:
//! then nothing is staged yet, and nothing notes that it merges.

use std::{
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    Checkout, Error,
    disk::{self, Content, Found},
    git::LONG,
    io_error,
    paths::paths,
    three_way::Entry,
};
use crate::domain::id::CommitId;

/// The mode of a link.
const LINK: &str = "120000";

impl Checkout {
    /// Takes back a merge of `other` that has not become a commit. Where git was ended before it had noted that it
    /// merges, what is staged, or
    /// only written, is known by being what `other` has, or the merge would.
    pub fn abort_merge(&self, other: &CommitId) -> Result<(), Error> {
        if self.abort_known_merge(other)? {
            return Ok(());
        }
        let changed = self.staged_since("HEAD", &[])?;
        if changed.is_empty() {
            return self.take_merged_files_back(other);
        }
        if !self.staged_since(&other.0, &changed)?.is_empty() {
            return Ok(());
        }
        self.unstage_merge(other)
    }

    pub(super) fn abort_known_merge(&self, other: &CommitId) -> Result<bool, Error> {
        let merging = std::fs::read_to_string(self.git_dir().join("MERGE_HEAD"));
        let known = merging.is_ok_and(|text| text.trim() == other.0);
        if known {
            self.before_files_become("HEAD", &other.0)?;
            self.git().call(["merge", "--abort"]).limit(LONG).run()?;
        }
        Ok(known)
    }

    /// Files and index as in HEAD where they were merged; a file that differs from the index is left, and an error.
    pub(super) fn unstage_merge(&self, other: &CommitId) -> Result<(), Error> {
        self.before_files_become("HEAD", &other.0)?;
        self.git().call(["reset", "--quiet", "--merge", "HEAD"]).limit(LONG).run().map(drop)
    }

    /// Those of the paths (none for any) that are staged otherwise than `rev` has them.
    fn staged_since(&self, rev: &str, among: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
        let call =
            self.git().call(["diff", "-z", "--cached", "--name-only", "--no-ext-diff", "--no-renames", rev, "--"]);
        Ok(paths(call.args(among).variable("GIT_LITERAL_PATHSPECS", "1").limit(LONG).parts()?))
    }

    /// Before the files of one commit become those of another in the checkout.
    pub(super) fn before_files_become(&self, from: &str, to: &str) -> Result<(), Error> {
        let call = self.git().call(["diff-tree", "-r", "-z", "--name-only", "--no-renames", from, to, "--"]);
        let changing: Vec<_> = paths(call.limit(LONG).parts()?).iter().map(|path| self.root().join(path)).collect();
        self.same_second().before_change(self.root(), &changing);
        Ok(())
    }

    /// Makes the files as HEAD has them that are already as a merge with `other` would have them, or empty on the way there.
    /// What is neither is a person's, and left.
    fn take_merged_files_back(&self, other: &CommitId) -> Result<(), Error> {
        if self.unfinished_paths()?.is_empty() {
            return Ok(());
        }
        // 1: there are conflicts, of which nothing is brought without being looked at
        let call = self.git().call(["merge-tree", "--write-tree", "HEAD", &other.0]).also_fine(1).limit(LONG);
        let answer = match call.run() {
            Ok(answer) => answer,
            // before git 2.38 it cannot say what a merge would be: the files are left, and named as in the way
            Err(Error::Git { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        let tree = String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned();
        let (mut changed, mut new) = (Vec::new(), Vec::new());
        for change in self.changes(&CommitId("HEAD".to_owned()), &CommitId(tree.clone()))? {
            let merged = match (disk::read(self.root(), &change.path)?, &change.new) {
                (Found::File(content), Some(entry)) => {
                    content.bytes.is_empty() || self.is_content_of(&change.path, &content, entry)?
                }
                (Found::Absent, None) => true,
                (Found::File(_) | Found::Absent | Found::Directory | Found::Behind(_) | Found::Other, _) => false,
            };
            if merged {
                if change.old.is_some() { changed.push(change.path) } else { new.push(change.path) }
            }
        }
        if changed.is_empty() && new.is_empty() {
            return Ok(());
        }
        self.before_files_become("HEAD", &tree)?;
        if !changed.is_empty() {
            let mut input = Vec::new();
            for path in &changed {
                input.extend_from_slice(path.as_os_str().as_bytes());
                input.push(0);
            }
            let from = ["restore", "--source=HEAD", "--worktree", "--pathspec-from-file=-", "--pathspec-file-nul"];
            let call = self.git().call(from).variable("GIT_LITERAL_PATHSPECS", "1");
            call.limit(LONG).input(input).run()?;
        }
        for path in &new {
            let place = self.root().join(path);
            fs::remove_file(&place).map_err(io_error("remove", &place))?;
            for above in disk::above(path) {
                if !disk::remove_empty(self.root(), &above)? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Whether a file is what an entry of a tree becomes when it is checked out.
    fn is_content_of(&self, path: &Path, content: &Content, entry: &Entry) -> Result<bool, Error> {
        if content.mode != entry.mode {
            return Ok(false);
        }
        let call = self.git().call(["hash-object", "--stdin"]);
        let call = if entry.mode == LINK {
            call.args(["--no-filters"])
        } else {
            call.args(["--path".as_ref(), path.as_os_str()])
        };
        Ok(call.limit(LONG).input(content.bytes.clone()).line()? == entry.blob)
    }
}
