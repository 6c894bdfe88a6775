//! One walk through a working tree: the status of every file, and on the way what no commit can hold. A large tree is gone
//! through by several threads, since nearly all of the time is spent in the system.

use std::{
    fs, mem,
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use super::{
    files_clock::{Stamp, stamp},
    staging::shown,
};

/// How many entries one thread goes through before it calls for others.
const FEW: usize = 2_000;
/// More threads than this gain nothing on one disk.
const THREADS: usize = 8;

/// What a walk meets that no commit can hold.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Unholdable {
    /// Directories below the root that hold a `.git`.
    pub(super) repositories: Vec<PathBuf>,
    /// Pipes, sockets and devices.
    pub(super) special: Vec<String>,
}

/// Goes through everything below `root` that is no directory, save git's own and what lies in a directory that is left
/// out, until `each` says no. Every thread keeps its own `T`; gives all of them. None if `each` said no, or if something
/// cannot be looked at.
pub(super) fn walk<T: Default + Send>(
    root: &Path,
    left_out: impl Fn(&Path) -> bool + Sync,
    each: impl Fn(&mut T, PathBuf, Stamp) -> bool + Sync,
) -> Option<(Vec<T>, Unholdable)> {
    let work = Work { queue: Mutex::new(Queue { open: vec![PathBuf::new()], busy: 0 }), more: Condvar::new() };
    let ended = AtomicBool::new(false);
    let walker = || Walker { root, left_out: &left_out, each: &each, work: &work, ended: &ended };
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
    root: &'a Path,
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
        E: Fn(&mut T, PathBuf, Stamp) -> bool,
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
        E: Fn(&mut T, PathBuf, Stamp) -> bool,
    {
        let directory = taken.directory.as_path();
        for entry in fs::read_dir(self.root.join(directory)).ok()? {
            let entry = entry.ok()?;
            *met += 1;
            let (name, kind) = (entry.file_name(), entry.file_type().ok()?);
            if name == ".git" {
                if directory.as_os_str().is_empty() {
                    continue;
                }
                part.found.repositories.push(directory.to_owned());
            }
            let path = directory.join(name);
            if kind.is_dir() {
                if !(self.left_out)(&path) {
                    taken.below.push(path);
                }
                continue;
            }
            if kind.is_fifo() || kind.is_socket() || kind.is_block_device() || kind.is_char_device() {
                part.found.special.push(shown(&path));
            }
            if !(self.each)(&mut part.kept, path, stamp(&entry.metadata().ok()?)) {
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
