//! A write waits for the next second where a tool could not tell it from what the tool has read in this one.
//!
//! Python's bytecode cache (and others) know a source by its size and the whole second of its time. What is written with
//! the same size in the second in which the version before it was run leaves the *old* code running, and a check judges
//! what is not there. So whoever of us writes, removes or makes again a file asks here first. The write waits if its
//! path changed in the current second (by its times, or because we wrote or removed it) and something has run since that
//! second began. With a model that takes seconds to reply that hardly ever happens.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::files_clock::{SECOND, TICK, clock_ahead, machine_time, times};

/// A clock that stands still is not waited for.
const LONGEST: Duration = Duration::from_secs(3);
/// Between two looks at a clock that should have moved on.
const PAUSE: Duration = Duration::from_millis(2);

/// What has run, and what was written, in the current second. Cloned, it is the same.
#[derive(Clone, Debug)]
pub struct SameSecond(Arc<Mutex<Known>>);

#[derive(Debug)]
struct Known {
    /// From when on it is known what was written here.
    since: Instant,
    /// When something ran last that may have read the files; none if nothing has.
    ran: Option<Instant>,
    /// What we wrote or removed, each with its second.
    written: BTreeMap<PathBuf, i128>,
}

impl Default for SameSecond {
    /// For files that were there before: anything may have run until now.
    fn default() -> Self {
        let now = Instant::now();
        Self(Arc::new(Mutex::new(Known { since: now, ran: Some(now), written: BTreeMap::new() })))
    }
}

impl SameSecond {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something that may read the files runs, or has run until now.
    pub fn ran(&self) {
        self.lock().ran = Some(Instant::now());
    }

    /// The files are new: nothing has read them.
    pub(super) fn nothing_ran(&self) {
        self.lock().ran = None;
    }

    /// Before these paths (absolute ones, on the file system of `directory`) are written, removed or made again: waits
    /// where that is needed. From now on they count as changed.
    pub(crate) fn before_change<P: AsRef<Path>>(&self, directory: &Path, paths: &[P]) {
        if paths.is_empty() {
            return;
        }
        self.wait(directory, |known, second| paths.iter().any(|path| known.changed(path.as_ref(), second)));
        let second = now(directory).div_euclid(SECOND);
        let mut known = self.lock();
        known.written.retain(|_, written| *written >= second);
        known.written.extend(paths.iter().map(|path| (path.as_ref().to_owned(), second)));
    }

    /// The same before a whole tree is made again: what was in it is not known any more.
    pub(super) fn before_all_change(&self, directory: &Path) {
        self.wait(directory, |_, _| true);
    }

    /// Waits for the next second, if something has run in this one and `changed` says so.
    fn wait(&self, directory: &Path, changed: impl Fn(&Known, i128) -> bool) {
        let begun = Instant::now();
        while begun.elapsed() < LONGEST {
            let known = self.lock();
            let Some(ran) = known.ran else { return };
            let now = now(directory);
            let second = now.div_euclid(SECOND);
            let ran_in_it = ran.elapsed().as_nanos().cast_signed() <= now - second * SECOND + TICK;
            if !ran_in_it || !changed(&known, second) {
                return;
            }
            drop(known);
            let rest = u64::try_from((second + 1) * SECOND - now).unwrap_or(0);
            thread::sleep(Duration::from_nanos(rest) + PAUSE);
        }
    }
}

impl Known {
    fn changed(&self, path: &Path, second: i128) -> bool {
        let written = |path: &Path| self.written.get(path).is_some_and(|written| *written >= second);
        if path.ancestors().any(written) {
            return true;
        }
        let in_it = |path: &Path| {
            path.symlink_metadata().ok().map(|found| {
                let (modified, changed) = times(&found);
                modified.div_euclid(SECOND) == second || changed.div_euclid(SECOND) >= second
            })
        };
        if let Some(changed) = in_it(path) {
            return changed;
        }
        // a nisse that was killed may have removed it: its directory tells
        let known_since = self.since.elapsed().as_nanos().cast_signed() > SECOND + TICK;
        !known_since && path.parent().and_then(in_it).unwrap_or(false)
    }
}

/// The time by the clock that stamps the files of `directory`, or a tick before it.
fn now(directory: &Path) -> i128 {
    // where it cannot be told, the files' clock may be behind this machine's by its tick
    machine_time() + clock_ahead(directory).unwrap_or(-TICK)
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write};

    use super::*;

    /// The second of the files' clock, of which at least half is left.
    fn early(directory: &Path) -> i128 {
        loop {
            let now = now(directory);
            if now.rem_euclid(SECOND) < SECOND / 2 {
                return now.div_euclid(SECOND);
            }
            thread::sleep(PAUSE);
        }
    }

    fn second_of(path: &Path) -> i128 {
        times(&path.symlink_metadata().unwrap()).0.div_euclid(SECOND)
    }

    fn put(same_second: &SameSecond, root: &Path, path: &Path) -> i128 {
        same_second.before_change(root, &[path]);
        let _ = fs::remove_file(path);
        fs::File::create(path).and_then(|mut file| file.write_all(b"x")).unwrap();
        second_of(path)
    }

    fn fresh() -> (tempfile::TempDir, SameSecond) {
        let same_second = SameSecond::default();
        same_second.nothing_ran();
        let long_ago = Instant::now().checked_sub(LONGEST).unwrap();
        same_second.lock().since = long_ago;
        (tempfile::tempdir().unwrap(), same_second)
    }

    #[test]
    fn what_ran_in_this_second_parts_two_writes_to_a_path() {
        let (root, same_second) = fresh();
        let (root, path, other) = (root.path(), root.path().join("a"), root.path().join("b"));
        let second = early(root);
        assert_eq!(put(&same_second, root, &path), second);
        assert_eq!(put(&same_second, root, &path), second, "nothing has run");
        same_second.ran();
        assert_eq!(put(&same_second, root, &other), second, "it has not changed in this second");
        assert_eq!(put(&same_second, root, &path), second + 1);
        assert_eq!(put(&same_second, root, &path), second + 1, "nothing has run in the new second");
    }

    #[test]
    fn what_was_written_and_is_gone_has_changed() {
        let (root, same_second) = fresh();
        let (root, path) = (root.path(), root.path().join("a"));
        let second = early(root);
        assert_eq!(put(&same_second, root, &path), second);
        same_second.ran();
        fs::remove_file(&path).unwrap();
        assert_eq!(put(&same_second, root, &path), second + 1);
    }

    #[test]
    fn a_file_in_the_place_of_another_has_changed_whatever_its_time() {
        let (root, same_second) = fresh();
        let (root, path, old) = (root.path(), root.path().join("a"), root.path().join("old"));
        let times = fs::FileTimes::new().set_modified(std::time::SystemTime::UNIX_EPOCH);
        fs::File::create(&old).and_then(|file| file.set_times(times)).unwrap();
        let second = early(root);
        same_second.ran();
        fs::rename(&old, &path).unwrap();
        assert_eq!(put(&same_second, root, &path), second + 1);
    }

    /// A process that has just begun does not know what the one before it removed, nor what has run.
    #[test]
    fn what_went_before_this_process_began_has_changed() {
        let root = tempfile::tempdir().unwrap();
        let (root, path) = (root.path(), root.path().join("a"));
        let second = early(root);
        fs::File::create(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(put(&SameSecond::default(), root, &path), second + 1);
    }
}
