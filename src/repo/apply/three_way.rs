//! What becomes of a path that a task changed and that may have changed in the checkout too: a pure decision, and the
//! merge of contents behind it.
//!
//! No merge driver of a configuration runs, and no rename is guessed: a path is a path.

use std::{collections::BTreeMap, ffi::OsStr, os::unix::ffi::OsStrExt, path::PathBuf};

use crate::{
    domain::id::CommitId,
    repo::{Checkout, Error, git::LONG, io_error, staging::scratch},
};

/// A file of a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::repo) struct Entry {
    /// `100644`, `100755`, `120000`, `160000`.
    pub(in crate::repo) mode: String,
    /// The id of its content.
    pub(in crate::repo) blob: String,
}

/// A path that differs between two commits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::repo) struct Change {
    pub(in crate::repo) path: PathBuf,
    pub(in crate::repo) old: Option<Entry>,
    pub(in crate::repo) new: Option<Entry>,
}

/// What is to be done about a change.
#[derive(PartialEq, Eq, Debug)]
enum Decision {
    /// The checkout has it already.
    Already,
    /// The checkout has what the task began with: the task's state is taken.
    Take,
    /// Both changed the content: old, ours, the task's, and the mode of the result.
    Merge(String),
    /// A person must decide.
    Conflict(&'static str),
}

fn decide(change: &Change, ours: Option<&Entry>) -> Decision {
    let regular = |entry: &Entry| entry.mode == "100644" || entry.mode == "100755";
    let (old, new) = (change.old.as_ref(), change.new.as_ref());
    if ours == new {
        return Decision::Already;
    }
    if ours == old {
        return Decision::Take;
    }
    if [old, new, ours].into_iter().flatten().any(|entry| entry.mode == "160000") {
        return Decision::Conflict("a submodule, which you changed too");
    }
    match (old, ours, new) {
        (Some(old), Some(ours), Some(new)) if [old, ours, new].into_iter().all(regular) => {
            // modes are merged as contents are; both changed it to the same, where there are only two
            let mode = if ours.mode == old.mode { &new.mode } else { &ours.mode };
            Decision::Merge(mode.clone())
        }
        (Some(_), None, Some(_)) => Decision::Conflict("you deleted it, and the task changes it"),
        (Some(_), Some(_), None) => Decision::Conflict("you changed it, and the task deletes it"),
        (None, Some(_), Some(_)) => Decision::Conflict("you have another one, and the task adds it"),
        (Some(_) | None, Some(_) | None, Some(_) | None) => Decision::Conflict("you changed it too"),
    }
}

/// The paths that are to change in the checkout, with what they are to be, and those that cannot.
#[derive(Default, Debug)]
pub(in crate::repo) struct Merged {
    pub(in crate::repo) files: BTreeMap<PathBuf, Option<Entry>>,
    pub(in crate::repo) conflicts: Vec<(PathBuf, &'static str)>,
    /// How many paths were as the changes found them.
    pub(in crate::repo) taken: usize,
}

impl Checkout {
    /// The paths that differ between two commits, sorted.
    pub(in crate::repo) fn changes(&self, from: &CommitId, to: &CommitId) -> Result<Vec<Change>, Error> {
        let call = self.git().call(["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev"]);
        let parts = call.args(["--ignore-submodules=none", &from.0, &to.0]).limit(LONG).parts()?;
        let unreadable = |part: &[u8]| Error::Unreadable {
            action: "diff-tree".to_owned(),
            answer: String::from_utf8_lossy(part).into_owned(),
        };
        let mut changes = Vec::new();
        let mut parts = parts.iter();
        while let Some(head) = parts.next() {
            let text = String::from_utf8_lossy(head);
            let fields: Vec<&str> = text.trim_start_matches(':').split(' ').collect();
            let (&[old_mode, new_mode, old, new, _], Some(path)) = (&fields[..], parts.next()) else {
                return Err(unreadable(head));
            };
            let entry = |mode: &str, blob: &str| {
                (mode != "000000").then(|| Entry { mode: mode.to_owned(), blob: blob.to_owned() })
            };
            let path = PathBuf::from(OsStr::from_bytes(path));
            changes.push(Change { path, old: entry(old_mode, old), new: entry(new_mode, new) });
        }
        Ok(changes)
    }

    /// Brings `changes` together with what the checkout has: `ours` holds the paths in which it differs from where the
    /// changes begin, and is brought up to date, so that further changes can follow.
    pub(in crate::repo) fn merge(
        &self,
        changes: &[Change],
        ours: &mut BTreeMap<PathBuf, Option<Entry>>,
    ) -> Result<Merged, Error> {
        let mut merged = Merged::default();
        for change in changes {
            let present = ours.get(&change.path).unwrap_or(&change.old).clone();
            let result = match decide(change, present.as_ref()) {
                Decision::Already => continue,
                Decision::Take => {
                    merged.taken += 1;
                    change.new.clone()
                }
                Decision::Merge(mode) => {
                    let Some(blob) = self.merge_contents(change, present.as_ref())? else {
                        merged.conflicts.push((change.path.clone(), "you changed the same lines"));
                        continue;
                    };
                    Some(Entry { mode, blob })
                }
                Decision::Conflict(why) => {
                    merged.conflicts.push((change.path.clone(), why));
                    continue;
                }
            };
            if result != present {
                merged.files.insert(change.path.clone(), result.clone());
            }
            ours.insert(change.path.clone(), result);
        }
        Ok(merged)
    }

    /// The content that has both changes; none where they touch, or where it is no text.
    fn merge_contents(&self, change: &Change, ours: Option<&Entry>) -> Result<Option<String>, Error> {
        let (Some(old), Some(ours), Some(new)) = (&change.old, ours, &change.new) else { return Ok(None) };
        if ours.blob == new.blob || new.blob == old.blob {
            return Ok(Some(ours.blob.clone()));
        }
        if ours.blob == old.blob {
            return Ok(Some(new.blob.clone()));
        }
        let scratch = scratch()?;
        let mut files = Vec::new();
        for (name, entry) in [("ours", ours), ("old", old), ("new", new)] {
            let path = scratch.path().join(name);
            let bytes = self.git().call(["cat-file", "blob", &entry.blob]).run()?;
            let write = |bytes: &[u8]| {
                use std::io::Write as _;
                std::fs::File::create(&path)?.write_all(bytes)
            };
            write(&bytes).map_err(io_error("write", &path))?;
            files.push(path);
        }
        match self.git().call(["merge-file", "-p", "-q"]).args(&files).run() {
            Ok(bytes) => Ok(Some(self.git().call(["hash-object", "-w", "--stdin"]).input(bytes).line()?)),
            // its status is the number of conflicts, or it is no text
            Err(Error::Git { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(mode: &str, blob: &str) -> Option<Entry> {
        (blob != "-").then(|| Entry { mode: mode.to_owned(), blob: blob.to_owned() })
    }

    #[test]
    fn every_combination_of_three_states_is_decided() {
        let decided = |old: &str, ours: &str, new: &str| {
            let [old, ours, new] = [old, ours, new].map(|blob| entry("100644", blob));
            decide(&Change { path: "a".into(), old, new }, ours.as_ref())
        };
        assert_eq!(decided("a", "a", "b"), Decision::Take);
        assert_eq!(decided("-", "-", "b"), Decision::Take);
        assert_eq!(decided("a", "a", "-"), Decision::Take);
        assert_eq!(decided("a", "b", "b"), Decision::Already);
        assert_eq!(decided("a", "-", "-"), Decision::Already);
        assert_eq!(decided("a", "c", "b"), Decision::Merge("100644".to_owned()));
        for (old, ours, new) in [("a", "-", "b"), ("a", "c", "-"), ("-", "c", "b")] {
            assert!(matches!(decided(old, ours, new), Decision::Conflict(_)), "{old} {ours} {new}");
        }
    }

    #[test]
    fn modes_are_merged_and_only_plain_files_are() {
        let decided = |old: &str, ours: &str, new: &str| {
            let change = Change { path: "a".into(), old: entry(old, "a"), new: entry(new, "b") };
            decide(&change, entry(ours, "c").as_ref())
        };
        assert_eq!(decided("100644", "100755", "100644"), Decision::Merge("100755".to_owned()));
        assert_eq!(decided("100644", "100644", "100755"), Decision::Merge("100755".to_owned()));
        assert_eq!(decided("100755", "100644", "100755"), Decision::Merge("100644".to_owned()));
        assert!(matches!(decided("120000", "120000", "120000"), Decision::Conflict(_)));
        assert!(matches!(decided("100644", "100644", "160000"), Decision::Conflict(_)));
    }
}
