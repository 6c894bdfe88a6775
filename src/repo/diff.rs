//! What lies between two commits.

use std::fmt;

use super::{Checkout, Error, git::LONG};
use crate::domain::{id::CommitId, mask::Mask};

/// The difference between two commits.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Diff {
    /// A patch that `git apply` takes, binary files included.
    pub patch: Vec<u8>,
    /// Its files, in the order of the patch.
    pub files: Vec<FileStat>,
    /// Lines added, in all files that have lines.
    pub insertions: u64,
    /// Lines removed.
    pub deletions: u64,
}

/// One file's part in a difference. Its `Display` is a line for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileStat {
    /// The path after the change, or before it where the file is gone.
    pub path: String,
    /// The path before, where the file was renamed.
    pub renamed_from: Option<String>,
    /// Lines added and removed; none for a binary file.
    pub lines: Option<(u64, u64)>,
}

impl fmt::Display for FileStat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(from) = &self.renamed_from {
            write!(f, "{from} => ")?;
        }
        match self.lines {
            Some((insertions, deletions)) => write!(f, "{} | +{insertions} -{deletions}", self.path),
            None => write!(f, "{} | binary", self.path),
        }
    }
}

impl Diff {
    /// The paths that changed; of a file that was renamed both.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.iter().flat_map(|file| file.renamed_from.as_deref().into_iter().chain([file.path.as_str()]))
    }

    /// The files to which it adds what the mask would hide: secrets that are known, and what has the shape of one.
    #[must_use]
    pub fn files_that_add(&self, mask: &Mask) -> Vec<String> {
        let patch = String::from_utf8_lossy(&self.patch);
        // a patch has its files in the order of the list, each behind a line of its own
        let parts = patch.split("\ndiff --git ");
        let adds = |part: &str| {
            let body = part.split_once("\n@@").map_or("", |(_, body)| body);
            let added: Vec<&str> = body.lines().filter_map(|line| line.strip_prefix('+')).collect();
            let added = added.join("\n");
            mask.apply(&added) != added.as_str()
        };
        self.files.iter().zip(parts).filter(|(_, part)| adds(part)).map(|(file, _)| file.path.clone()).collect()
    }
}

impl Checkout {
    /// Whether both commits have the same tree.
    pub fn tree_equal(&self, a: &CommitId, b: &CommitId) -> Result<bool, Error> {
        self.store().same_tree(a, b)
    }

    /// How many files differ between two commits; all that `to` holds, where there is none to begin with.
    pub fn files_between(&self, from: Option<&CommitId>, to: &CommitId) -> Result<usize, Error> {
        for commit in from.into_iter().chain([to]) {
            if !self.has_commit(commit)? {
                return Err(Error::NoSuchCommit { rev: commit.0.clone() });
            }
        }
        let call = match from {
            Some(from) => self.git().call(["diff-tree", "-r", "-z", "--name-only", "--no-renames", &from.0, &to.0]),
            None => self.git().call(["ls-tree", "-r", "-z", "--name-only", "--full-tree", &to.0]),
        };
        Ok(call.limit(LONG).parts()?.len())
    }

    /// What lies between two commits.
    pub fn diff(&self, from: &CommitId, to: &CommitId) -> Result<Diff, Error> {
        let ask = |form: &[&str]| {
            let call = self.git().call(["diff-tree", "-r", "-M", "--no-ext-diff", "--no-textconv", "--no-color"]);
            call.args(form).args([&from.0, &to.0]).limit(LONG).run()
        };
        for commit in [from, to] {
            if self.store().message(commit)?.is_none() {
                return Err(Error::NoSuchCommit { rev: commit.0.clone() });
            }
        }
        // prefixes and context as `git apply` expects them, whatever the configuration says
        let patch = ask(&["-p", "--binary", "--full-index", "--src-prefix=a/", "--dst-prefix=b/", "-U3"])?;
        let counted = ask(&["--numstat", "-z"])?;
        let files = stats(&counted).ok_or_else(|| Error::Unreadable {
            action: "diff-tree".to_owned(),
            answer: String::from_utf8_lossy(&counted).chars().take(200).collect(),
        })?;
        let sum = |pick: fn((u64, u64)) -> u64| files.iter().filter_map(|file| file.lines.map(pick)).sum();
        let (insertions, deletions) = (sum(|lines| lines.0), sum(|lines| lines.1));
        Ok(Diff { patch, files, insertions, deletions })
    }
}

/// Reads `--numstat -z`: `added TAB removed TAB path NUL`, or for a rename `added TAB removed TAB NUL from NUL to NUL`.
fn stats(counted: &[u8]) -> Option<Vec<FileStat>> {
    let text = String::from_utf8_lossy(counted);
    let mut parts = text.split_terminator('\0');
    let mut files = Vec::new();
    while let Some(part) = parts.next() {
        let mut fields = part.splitn(3, '\t');
        let (added, removed, path) = (fields.next()?, fields.next()?, fields.next()?);
        let lines = match (added, removed) {
            ("-", "-") => None,
            (added, removed) => Some((added.parse().ok()?, removed.parse().ok()?)),
        };
        let (renamed_from, path) = if path.is_empty() {
            (Some(parts.next()?.to_owned()), parts.next()?.to_owned())
        } else {
            (None, path.to_owned())
        };
        files.push(FileStat { path, renamed_from, lines });
    }
    Some(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_with_renames_and_binaries() {
        let files = stats(b"1\t2\tsrc/a b\0-\t-\tx.png\x003\t0\t\0old\0new\0").unwrap();
        let lines: Vec<_> = files.iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["src/a b | +1 -2", "x.png | binary", "old => new | +3 -0"]);
        assert_eq!(stats(b"garbage"), None);
    }
}
