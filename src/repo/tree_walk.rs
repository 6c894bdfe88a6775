//! One walk through a working tree: the status of every file, and on the way what no commit can hold. A large tree is gone
//! through by several threads, since nearly all of the time is spent in the system.

use std::{
    ffi::{OsStr, OsString},
    mem,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::{OsStrExt as _, OsStringExt as _},
    },
    path::{Path, PathBuf},
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};

use super::{
    files_clock::{Stamp, stamp_of},
    paths::path_text,
};
use crate::domain::git_names;

/// How many entries one thread goes through before it calls for others.
const FEW: usize = 2_000;
/// More threads than this gain nothing on one disk.
const THREADS: usize = 8;

/// What a walk meets that no commit can hold.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Unholdable {
    /// Directories below the root that hold a `.git`.
    pub(super) repositories: Vec<PathBuf>,
    /// Pipes, sockets and devices, and what has a name that git takes in no tree.
    pub(super) special: Vec<String>,
}

/// Goes through everything below `root` that is no directory, save git's own and what lies in a directory that is left
/// out, until `each` says no. Every thread keeps its own `T`; gives all of them. None if `each` said no, or if something
/// cannot be looked at.
pub(super) fn walk<T: Default + Send>(
    root: &Path,
    left_out: impl Fn(&Path) -> bool + Sync,
    each: impl Fn(&mut T, &Path, Stamp) -> bool + Sync,
) -> Option<(Vec<T>, Unholdable)> {
    let root = openat(CWD, root, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let work = Work { queue: Mutex::new(Queue { open: vec![PathBuf::new()], busy: 0 }), more: Condvar::new() };
    let ended = AtomicBool::new(false);
    let walker = || Walker { root: &root, left_out: &left_out, each: &each, work: &work, ended: &ended };
    let mut first = Part::default();
    walker().go_on(&mut first, FEW);
    let mut parts = vec![first];
    if !ended.load(Ordering::Relaxed) && !work.lock().open.is_empty() {
        let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS);
        parts.extend(thread::scope(|scope| {
            let others: Vec<_> = (1..threads)
                .map(|_| {
                    scope.spawn(|| {
                        let mut part = Part::default();
                        walker().go_on(&mut part, usize::MAX);
                        part
                    })
                })
                .collect();
            let mut own = Part::default();
            walker().go_on(&mut own, usize::MAX);
            // one that panicked has not looked at all that it should
            let joined =
                others.into_iter().map(|other| other.join().inspect_err(|_| walker().end()).unwrap_or_default());
            joined.chain([own]).collect::<Vec<_>>()
        }));
    }
    if ended.into_inner() {
        return None;
    }
    let mut unholdable = Unholdable::default();
    let mut kept = Vec::with_capacity(parts.len());
    for Part { kept: one, mut found } in parts {
        unholdable.repositories.append(&mut found.repositories);
        unholdable.special.append(&mut found.special);
        kept.push(one);
    }
    Some((kept, unholdable))
}

/// What one thread found.
#[derive(Default)]
struct Part<T> {
    kept: T,
    found: Unholdable,
}

/// The directories that are still to be gone through.
struct Work {
    queue: Mutex<Queue>,
    /// There are more, or the last is done.
    more: Condvar,
}

struct Queue {
    open: Vec<PathBuf>,
    /// How many are being gone through, each of which may add others.
    busy: usize,
}

impl Work {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next directory; none when all is done.
    fn next(&self) -> Option<Taken<'_>> {
        let mut queue = self.lock();
        loop {
            if let Some(directory) = queue.open.pop() {
                queue.busy += 1;
                return Some(Taken { work: self, directory, below: Vec::new() });
            }
            if queue.busy == 0 {
                return None;
            }
            queue = self.more.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A directory that a thread goes through. It is done with when this is dropped, however the thread ends: else the others
/// would wait for it for ever.
struct Taken<'a> {
    work: &'a Work,
    directory: PathBuf,
    below: Vec<PathBuf>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut queue = self.work.lock();
        queue.busy -= 1;
        queue.open.append(&mut self.below);
        if !queue.open.is_empty() || queue.busy == 0 {
            self.work.more.notify_all();
        }
    }
}

struct Walker<'a, L, E> {
    root: &'a OwnedFd,
    left_out: &'a L,
    each: &'a E,
    work: &'a Work,
    ended: &'a AtomicBool,
}

impl<L: Fn(&Path) -> bool, E> Walker<'_, L, E> {
    fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Goes through directories until there are no more, or it has met so many entries.
    fn go_on<T>(&self, part: &mut Part<T>, most: usize)
    where
        E: Fn(&mut T, &Path, Stamp) -> bool,
    {
        let mut met = 0;
        while met < most
            && let Some(mut taken) = self.work.next()
        {
            if !self.ended.load(Ordering::Relaxed) && self.directory(part, &mut taken, &mut met).is_none() {
                self.end();
            }
        }
    }

    fn directory<T>(&self, part: &mut Part<T>, taken: &mut Taken<'_>, met: &mut usize) -> Option<()>
    where
        E: Fn(&mut T, &Path, Stamp) -> bool,
    {
        let directory = taken.directory.as_os_str();
        let name = if directory.is_empty() { OsStr::new(".") } else { directory };
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(self.root, name, flags, Mode::empty()).ok()?;
        // one buffer for all paths: most of them are looked up and not kept
        let mut path = directory.as_bytes().to_vec();
        if !path.is_empty() {
            path.push(b'/');
        }
        let above = path.len();
        for entry in Dir::read_from(&opened).ok()? {
            let entry = entry.ok()?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            *met += 1;
            path.truncate(above);
            path.extend_from_slice(name.to_bytes());
            if name.to_bytes() == b".git" {
                if above == 0 {
                    continue;
                }
                part.found.repositories.push(taken.directory.clone());
            }
            if name.to_bytes() != b".git" && git_names::is_reserved(&name.to_string_lossy()) {
                part.found.special.push(path_text(Path::new(OsStr::from_bytes(&path))));
                continue;
            }
            let mut status = None;
            let kind = match entry.file_type() {
                // the file system does not say it with the name
                FileType::Unknown => {
                    let found = statat(opened.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
                    status = Some(found);
                    FileType::from_raw_mode(found.st_mode)
                }
                kind => kind,
            };
            let here = Path::new(OsStr::from_bytes(&path));
            if kind == FileType::Directory {
                if !(self.left_out)(here) {
                    taken.below.push(PathBuf::from(OsString::from_vec(path.clone())));
                }
                continue;
            }
            if matches!(kind, FileType::Fifo | FileType::Socket | FileType::BlockDevice | FileType::CharacterDevice) {
                part.found.special.push(path_text(here));
            }
            let status = match status {
                Some(status) => status,
                None => statat(opened.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW).ok()?,
            };
            if !(self.each)(&mut part.kept, here, stamp_of(&status)) {
                return None;
            }
        }
        Some(())
    }
}

impl Unholdable {
    /// Without what lies within a repository, or in a directory that is left out.
    pub(super) fn outermost(mut self, left_out: impl Fn(&Path) -> bool) -> Self {
        self.repositories.sort();
        let all = mem::take(&mut self.repositories);
        for path in all {
            let is_within = self.repositories.iter().any(|outer| path.starts_with(outer));
            if !is_within && !path.ancestors().any(|above| !above.as_os_str().is_empty() && left_out(above)) {
                self.repositories.push(path);
            }
        }
        let repositories = &self.repositories;
        self.special.retain(|path| {
            let path = Path::new(path);
            !repositories.iter().any(|outer| path.starts_with(outer))
                && !path.ancestors().skip(1).any(|above| !above.as_os_str().is_empty() && left_out(above))
        });
        self
    }
}
