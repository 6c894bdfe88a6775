//! What a working tree looked like when all that was in it was in a commit. Whether it still looks so is told by one
//! look at the status of every file, without git, which costs a process and more.
//!
//! A file counts as unchanged if inode, mode, size and both its times are what they were; nobody can set the second
//! time. What had changed within a clock's tick before the look is compared by its bytes: another change in the same
//! tick would show no other time. Anything that is not as it was leads to git, which decides.

use std::{
    cell::OnceCell,
    collections::{HashMap, HashSet},
    ffi::{OsStr, OsString},
    fs,
    io::Read,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    excludes,
    files_clock::{Stamp, TICK, clock_ahead, machine_time},
    tree_walk::{Unholdable, walk},
};
use crate::domain::id::{CommitId, Hash};

/// Trees with more files are left to git, which need not look into ignored directories.
pub(super) const MOST: usize = 30_000;
/// Bytes of a file that is compared by its bytes.
const SMALL: u64 = 1 << 20;

/// How many paths may differ for their looks to be enough.
const FEW: usize = 100;

/// What was tree. Cloned, it is the same.
#[derive(Clone, Debug, Default)]
pub(super) struct StatCache(Arc<Mutex<Cached>>);

#[derive(Debug, Default)]
pub(super) struct Cached {
    pub(super) tree: Option<CachedTree>,
    /// What the last look met that no commit can hold; none if it was not a look at all.
    pub(super) unholdable: Option<Unholdable>,
    /// See [`clock_ahead`]; looked up once, since it costs a file.
    clock_ahead: OnceCell<Option<i128>>,
}

impl StatCache {
    pub(super) fn lock(&self) -> MutexGuard<'_, Cached> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cached {
    /// The time by the clock that stamps these files.
    pub(super) fn now(&mut self, root: &Path) -> Option<i128> {
        let ahead = *self.clock_ahead.get_or_init(|| clock_ahead(root));
        ahead.map(|ahead| machine_time() + ahead)
    }
}

/// A working tree as it was.
#[derive(Debug)]
pub(super) struct CachedTree {
    /// The commit that holds all of it.
    pub(super) at: CommitId,
    /// By path; plain text compares and hashes faster than a path does.
    pub(super) files: HashMap<OsString, CachedFile>,
    /// What git's answer depends on besides: index, HEAD, configuration, rules.
    pub(super) own: Vec<Option<Stamp>>,
}

/// A file as it was.
#[derive(Debug)]
pub(super) struct CachedFile {
    stamp: Stamp,
    /// Its bytes, if it had just changed.
    fresh: Option<Hash>,
}

/// What a look tells.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum TreeState {
    /// All is as it was.
    Unchanged,
    /// At most these paths are not, and how git stands to any other has not changed.
    Changed(Vec<String>),
    /// Ask git.
    Unknown,
}

/// Some paths, each with what is there.
pub(super) type CachedFiles = Vec<(PathBuf, Option<CachedFile>)>;

impl CachedTree {
    pub(super) fn compare(
        &mut self,
        root: &Path,
        kept_out: Option<&Path>,
        now: i128,
    ) -> (TreeState, Option<Unholdable>) {
        /// What one thread found.
        #[derive(Default)]
        struct Part {
            known: usize,
            differ: Vec<PathBuf>,
            /// A change would show in the status of these by now.
            settled: Vec<PathBuf>,
        }
        let files = &self.files;
        let walked = walk(
            root,
            |path| Some(path) == kept_out,
            |part: &mut Part, path, stamp| {
                let file = files.get(path.as_os_str());
                part.known += usize::from(file.is_some());
                match file {
                    Some(file) if file.is(root, path, stamp) => {
                        if file.fresh.is_some() && !is_fresh(stamp, now) {
                            part.settled.push(path.to_owned());
                        }
                    }
                    Some(_) | None => part.differ.push(path.to_owned()),
                }
                part.differ.len() <= FEW
            },
        );
        let Some((parts, unholdable)) = walked else { return (TreeState::Unknown, None) };
        let (mut known, mut differ) = (0, Vec::new());
        for part in parts {
            known += part.known;
            differ.extend(part.differ);
            for path in part.settled {
                self.files.entry(path.into_os_string()).and_modify(|file| file.fresh = None);
            }
        }
        if known < self.files.len() {
            // which: told by another walk, since the first had nowhere to note it
            let Some((parts, _)) = walk(
                root,
                |path| Some(path) == kept_out,
                |there: &mut Vec<OsString>, path, _| {
                    there.push(path.as_os_str().to_owned());
                    true
                },
            ) else {
                return (TreeState::Unknown, None);
            };
            let there: HashSet<OsString> = parts.into_iter().flatten().collect();
            let gone = self.files.keys().filter(|path| !there.contains(*path)).take(FEW + 1);
            let before = differ.len();
            differ.extend(gone.map(PathBuf::from));
            if differ.len() == before {
                // it is back by now
                return (TreeState::Unknown, None);
            }
        }
        (judged(root, differ), Some(unholdable))
    }
}

/// What a look tells of the paths that differ.
fn judged(root: &Path, mut differ: Vec<PathBuf>) -> TreeState {
    if differ.is_empty() {
        return TreeState::Unchanged;
    }
    differ.sort();
    let plain = differ.len() <= FEW
        && differ.iter().all(|path| is_plain(root, path))
        // a file where a directory was, or the other way round
        && !differ.windows(2).any(|pair| pair[1].starts_with(&pair[0]));
    let texts: Option<Vec<String>> = differ.iter().map(|path| path.to_str().map(str::to_owned)).collect();
    texts.filter(|_| plain).map_or(TreeState::Unknown, TreeState::Changed)
}

/// Whether a change here changes nothing in how git stands to any other path: it is no file of rules, and in no
/// repository of its own.
fn is_plain(root: &Path, path: &Path) -> bool {
    let name = path.file_name().map(OsStr::as_encoded_bytes).unwrap_or_default();
    !name.starts_with(b".git")
        && !excludes::is_marker(path)
        && path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).all(|above| {
            above.file_name() != Some(OsStr::new(".git")) && root.join(above).join(".git").symlink_metadata().is_err()
        })
}

impl CachedFile {
    /// None if it cannot be judged by its looks.
    pub(super) fn new(root: &Path, path: &Path, stamp: Stamp, now: i128) -> Option<Self> {
        let fresh = if is_fresh(stamp, now) { Some(bytes_of(&root.join(path))?) } else { None };
        Some(Self { stamp, fresh })
    }

    pub(super) fn is(&self, root: &Path, path: &Path, stamp: Stamp) -> bool {
        self.stamp == stamp && self.fresh.as_ref().is_none_or(|hash| bytes_of(&root.join(path)).as_ref() == Some(hash))
    }
}

/// Whether a file had changed so shortly before `now` that another change might not show.
fn is_fresh((.., changed): Stamp, now: i128) -> bool {
    changed + TICK > now
}

/// The bytes of a small file, or a link's target; none for anything else.
fn bytes_of(path: &Path) -> Option<Hash> {
    let found = path.symlink_metadata().ok()?;
    if found.is_symlink() {
        return Some(Hash::of(fs::read_link(path).ok()?.as_os_str().as_encoded_bytes()));
    }
    if !found.is_file() || found.len() > SMALL {
        return None;
    }
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(SMALL + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= SMALL).then(|| Hash::of(&bytes))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::repo::files_clock::stamp;

    #[test]
    fn what_had_just_changed_is_compared_by_its_bytes() {
        let root = tempfile::tempdir().unwrap();
        let (root, path) = (root.path(), Path::new("a"));
        let write = |text: &str| {
            fs::File::create(root.join(path)).and_then(|mut file| file.write_all(text.as_bytes())).unwrap();
        };
        write("one");
        let stamp = stamp(&root.join(path).symlink_metadata().unwrap());
        let (.., changed) = stamp;
        let just = CachedFile::new(root, path, stamp, changed + 1).unwrap();
        let long_ago = CachedFile::new(root, path, stamp, changed + TICK).unwrap();
        assert!(just.is(root, path, stamp) && long_ago.is(root, path, stamp));
        // as if the clock had not moved on
        write("two");
        assert!(!just.is(root, path, stamp) && long_ago.is(root, path, stamp));
    }

    #[test]
    fn what_is_no_file_or_large_and_had_just_changed_is_not_judged() {
        let root = tempfile::tempdir().unwrap();
        fs::File::create(root.path().join("large")).unwrap().set_len(SMALL + 1).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, root.path().join("pipe"), rustix::fs::Mode::RUSR).unwrap();
        for name in ["large", "pipe"] {
            let stamp = stamp(&root.path().join(name).symlink_metadata().unwrap());
            let (.., changed) = stamp;
            assert!(CachedFile::new(root.path(), Path::new(name), stamp, changed).is_none(), "{name}");
            assert!(CachedFile::new(root.path(), Path::new(name), stamp, changed + TICK).is_some(), "{name}");
        }
    }
}
