//! The clock that stamps a directory's files, which need not be this machine's: a server may keep the files, and the
//! kernel stamps with a clock that moves by ticks.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

/// A second, in nanoseconds.
pub(super) const SECOND: i128 = 1_000_000_000;
/// The longest tick of a file system's clock (HZ=100), twice, in nanoseconds.
pub(super) const TICK: i128 = 20_000_000;

/// How far the clock that stamps the files of a directory is ahead of this machine's, in nanoseconds: read from a file
/// without a name. None where the file system has no such files. On a file system of this machine's own it is a tick.
#[cfg(target_os = "linux")]
pub(super) fn clock_ahead(directory: &Path) -> Option<i128> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = fs::File::from(open(directory, flags, Mode::RUSR | Mode::WUSR).ok()?);
    let (_, changed) = times(&file.metadata().ok()?);
    // too little is safe: more files then count as just changed
    Some(changed - machine_time())
}

/// Not known.
#[cfg(not(target_os = "linux"))]
pub(super) fn clock_ahead(_directory: &Path) -> Option<i128> {
    None
}

/// The time as the kernel stamps files with it. No test can pin that.
pub(super) fn machine_time() -> i128 {
    use rustix::time::{ClockId, clock_gettime};
    let now = clock_gettime(ClockId::Realtime);
    i128::from(now.tv_sec) * SECOND + i128::from(now.tv_nsec)
}

/// When a file was modified, and when anything about it changed (which nobody can set), in nanoseconds since 1970.
pub(super) fn times(found: &fs::Metadata) -> (i128, i128) {
    let time = |seconds: i64, nanos: i64| i128::from(seconds) * SECOND + i128::from(nanos);
    (time(found.mtime(), found.mtime_nsec()), time(found.ctime(), found.ctime_nsec()))
}

/// A file's status, as far as a change shows in it: inode, mode, size and both times.
pub(super) type Stamp = (u64, u32, u64, i128, i128);

/// The same of what the system call gives.
pub(super) fn stamp_of(found: &rustix::fs::Stat) -> Stamp {
    let time = |seconds: i64, nanos: i64| i128::from(seconds) * SECOND + i128::from(nanos);
    #[expect(clippy::cast_possible_wrap, reason = "a part of a second")]
    let (modified, changed) =
        (time(found.st_mtime, found.st_mtime_nsec as i64), time(found.st_ctime, found.st_ctime_nsec as i64));
    #[expect(clippy::cast_sign_loss, reason = "no file has a size below 0")]
    let size = found.st_size as u64;
    (found.st_ino, found.st_mode, size, modified, changed)
}

pub(super) fn stamp(found: &fs::Metadata) -> Stamp {
    let (modified, changed) = times(found);
    (found.ino(), found.mode(), found.size(), modified, changed)
}
