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
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{
    Error, Worktree, excludes,
    files_clock::{Stamp, TICK, clock_ahead, machine_time, stamp},
    tree_walk::{Unholdable, walk},
};
use crate::domain::{
    checkout::Isolation,
    id::{CommitId, Hash},
};

/// Trees with more files are left to git, which need not look into ignored directories.
const MOST: usize = 30_000;
/// Bytes of a file that is compared by its bytes.
const SMALL: u64 = 1 << 20;

/// How many paths may differ for their looks to be enough.
const FEW: usize = 100;

/// What was seen. Cloned, it is the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    seen: Option<Seen>,
    /// What the last look met that no commit can hold; none if it was not a look at all.
    unholdable: Option<Unholdable>,
    /// See [`clock_ahead`]; looked up once, since it costs a file.
    clock_ahead: OnceCell<Option<i128>>,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// The time by the clock that stamps these files.
    fn now(&mut self, root: &Path) -> Option<i128> {
        let ahead = *self.clock_ahead.get_or_init(|| clock_ahead(root));
        ahead.map(|ahead| machine_time() + ahead)
    }
}

/// A working tree as it was.
#[derive(Debug)]
pub(super) struct Seen {
    /// The commit that holds all of it.
    at: CommitId,
    /// By path; plain text compares and hashes faster than a path does.
    files: HashMap<OsString, File>,
    /// What git's answer depends on besides: index, HEAD, configuration, rules.
    own: Vec<Option<Stamp>>,
}

/// A file as it was.
#[derive(Debug)]
pub(super) struct File {
    stamp: Stamp,
    /// Its bytes, if it had just changed.
    fresh: Option<Hash>,
}

/// What a look tells.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Looks {
    /// All is as it was.
    Same,
    /// At most these paths are not, and how git stands to any other has not changed.
    Differ(Vec<String>),
    /// Ask git.
    Unknown,
}

impl Worktree {
    /// How the tree looks beside what it was when all of it was in `commit`.
    pub(super) fn looks_beside(&self, commit: &CommitId) -> Looks {
        let mut kept = self.memory.lock();
        let now = kept.now(self.path());
        let own = self.own_stamps();
        kept.unholdable = None;
        let Some((seen, now)) = kept.seen.as_mut().filter(|seen| seen.at == *commit && seen.own == own).zip(now) else {
            return Looks::Unknown;
        };
        let (looks, unholdable) = seen.compare(self.path(), self.kept_out(), now);
        kept.unholdable = unholdable;
        looks
    }

    /// What the last look met that no commit can hold, once; none if no look went through all of the tree.
    pub(super) fn unholdable_as_looked(&self) -> Option<Unholdable> {
        self.memory.lock().unholdable.take()
    }

    /// The paths whose files differ from those of `commit`, as [`Self::changed_since`] gives them, and at once where all
    /// looks as it did when all of it was in there. Of a checkout that somebody took off the task's branch, it is HEAD.
    pub fn differs_from(&self, commit: &CommitId) -> Result<Vec<String>, Error> {
        if self.looks_beside(commit) == Looks::Same {
            return Ok(Vec::new());
        }
        if self.branch().isolation == Isolation::InPlace && !self.branch().is_checked_out()? {
            return Ok(vec!["HEAD".to_owned()]);
        }
        let seen = self.look();
        self.forget();
        let changed = self.changed_since(commit)?;
        if changed.is_empty() {
            self.remember(seen, commit);
        }
        Ok(changed)
    }

    /// Whether one path looks as it did when all of the tree was in `commit`, and so does what git's answer depends on.
    #[must_use]
    pub fn looks_same_at(&self, path: &str, commit: &CommitId) -> bool {
        let (kept, own) = (self.memory.lock(), self.own_stamps());
        let Some(seen) = kept.seen.as_ref().filter(|seen| seen.at == *commit && seen.own == own) else { return false };
        match (seen.files.get(OsStr::new(path)), self.path().join(path).symlink_metadata()) {
            (Some(file), Ok(found)) => file.is(self.path(), Path::new(path), stamp(&found)),
            (None, Err(error)) => error.kind() == std::io::ErrorKind::NotFound,
            (Some(_), Err(_)) | (None, Ok(_)) => false,
        }
    }

    /// Looks, before git does: what changes later will not look so. None if this tree is not to be judged by looks.
    pub(super) fn look(&self) -> Option<Seen> {
        let (root, now) = (self.path(), self.memory.lock().now(self.path())?);
        let count = AtomicUsize::new(0);
        let (parts, unholdable) = walk(
            root,
            |path| Some(path) == self.kept_out(),
            |files: &mut Vec<_>, path, stamp| {
                let Some(file) = File::new(root, path, stamp, now) else { return false };
                files.push((path.as_os_str().to_owned(), file));
                count.fetch_add(1, Ordering::Relaxed) < MOST
            },
        )?;
        self.memory.lock().unholdable = Some(unholdable);
        Some(Seen { at: CommitId(String::new()), files: parts.into_iter().flatten().collect(), own: Vec::new() })
    }

    /// The same for some paths; none for one that is not there.
    pub(super) fn look_at(&self, paths: &[String]) -> Option<Looked> {
        let now = self.memory.lock().now(self.path())?;
        let look = |path: &String| {
            let path = PathBuf::from(path);
            match self.path().join(&path).symlink_metadata() {
                Ok(found) => Some((path.clone(), Some(File::new(self.path(), &path, stamp(&found), now)?))),
                Err(_) => Some((path, None)),
            }
        };
        paths.iter().map(look).collect()
    }

    /// From now on, what was seen is what `commit` holds.
    pub(super) fn remember(&self, seen: Option<Seen>, commit: &CommitId) {
        let own = self.own_stamps();
        self.memory.lock().seen = seen.map(|seen| Seen { at: commit.clone(), own, ..seen });
    }

    /// What was seen at `parent` goes on at `commit`, with some paths as they were looked at.
    pub(super) fn remember_paths(&self, looked: Option<Looked>, parent: &CommitId, commit: &CommitId) {
        let mut kept = self.memory.lock();
        let Some((mut seen, looked)) = kept.seen.take().filter(|seen| seen.at == *parent).zip(looked) else { return };
        for (path, file) in looked {
            match file {
                Some(file) => seen.files.insert(path.into_os_string(), file),
                None => seen.files.remove(path.as_os_str()),
            };
        }
        kept.seen = Some(Seen { at: commit.clone(), own: self.own_stamps(), ..seen });
    }

    /// Nothing is known of the files any more.
    pub(super) fn forget(&self) {
        self.memory.lock().seen = None;
    }

    fn own_stamps(&self) -> Vec<Option<Stamp>> {
        let common = self.checkout().common_dir();
        [
            self.git_dir().join("index"),
            self.git_dir().join("HEAD"),
            self.git_dir().join("config.worktree"),
            common.join("config"),
            common.join("info/exclude"),
            common.join("info/attributes"),
            common.join("refs/heads").join(self.branch().name()),
            self.path().join(".git"),
        ]
        .iter()
        // in place, `.git` is a directory, whose times tell nothing
        .map(|path| path.symlink_metadata().ok().filter(|found| !found.is_dir()).map(|found| stamp(&found)))
        .collect()
    }
}

/// Some paths, each with what is there.
pub(super) type Looked = Vec<(PathBuf, Option<File>)>;

impl Seen {
    fn compare(&mut self, root: &Path, kept_out: Option<&Path>, now: i128) -> (Looks, Option<Unholdable>) {
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
        let Some((parts, unholdable)) = walked else { return (Looks::Unknown, None) };
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
                return (Looks::Unknown, None);
            };
            let there: HashSet<OsString> = parts.into_iter().flatten().collect();
            let gone = self.files.keys().filter(|path| !there.contains(*path)).take(FEW + 1);
            let before = differ.len();
            differ.extend(gone.map(PathBuf::from));
            if differ.len() == before {
                // it is back by now
                return (Looks::Unknown, None);
            }
        }
        (judged(root, differ), Some(unholdable))
    }
}

/// What a look tells of the paths that differ.
fn judged(root: &Path, mut differ: Vec<PathBuf>) -> Looks {
    if differ.is_empty() {
        return Looks::Same;
    }
    differ.sort();
    let plain = differ.len() <= FEW
        && differ.iter().all(|path| is_plain(root, path))
        // a file where a directory was, or the other way round
        && !differ.windows(2).any(|pair| pair[1].starts_with(&pair[0]));
    let texts: Option<Vec<String>> = differ.iter().map(|path| path.to_str().map(str::to_owned)).collect();
    texts.filter(|_| plain).map_or(Looks::Unknown, Looks::Differ)
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

impl File {
    /// None if it cannot be judged by its looks.
    fn new(root: &Path, path: &Path, stamp: Stamp, now: i128) -> Option<Self> {
        let fresh = if is_fresh(stamp, now) { Some(bytes_of(&root.join(path))?) } else { None };
        Some(Self { stamp, fresh })
    }

    fn is(&self, root: &Path, path: &Path, stamp: Stamp) -> bool {
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
        let just = File::new(root, path, stamp, changed + 1).unwrap();
        let long_ago = File::new(root, path, stamp, changed + TICK).unwrap();
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
            assert!(File::new(root.path(), Path::new(name), stamp, changed).is_none(), "{name}");
            assert!(File::new(root.path(), Path::new(name), stamp, changed + TICK).is_some(), "{name}");
        }
    }
}
