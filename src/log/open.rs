//! Opening the log: pragmas, schema, permissions, and what to do on a file system that is shared or read-only.

use std::{
    fs::{self, OpenOptions},
    io::ErrorKind,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use super::{Error, Log, SCHEMA, schema};

/// The first `SQLite` without the WAL-reset bug, which can corrupt a database that two connections write
/// (<https://sqlite.org/wal.html#walresetbug>).
const OLDEST_LIBRARY: i32 = 3_051_003;

/// Bytes of the write-ahead log that are kept when it begins anew.
const WAL_KEPT: u64 = 16 << 20;
/// From so many bytes on a write-ahead log is one that someone keeps from being brought into the database.
const WAL_STUCK: u64 = 64 << 20;

/// The size of a state directory's write-ahead log in bytes, where that is more than nisse by itself lets it grow to.
#[must_use]
pub fn stuck_wal(state_dir: &Path) -> Option<u64> {
    state_dir.join("nisse.db-wal").metadata().ok().map(|found| found.len()).filter(|size| *size >= WAL_STUCK)
}

/// What the log is opened for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Reading and appending; the database is made if it is missing.
    Write,
    /// Reading only; a state directory that cannot be written is no hindrance.
    Read,
}

impl Log {
    /// Opens the log of a state directory. None if it is only to be read and there is none.
    pub fn open(state_dir: &Path, access: Access) -> Result<Option<Self>, Error> {
        if is_unsafe(rusqlite::version_number()) {
            return Err(Error::OldLibrary { found: rusqlite::version().to_owned() });
        }
        let path = state_dir.join("nisse.db");
        let database = |what| {
            let path = path.clone();
            move |source| Error::Database { what, path, source }
        };
        let (mut notice, mut copy) = (None, None);
        // whoever took the file away knows
        let existed = path.exists();
        let mut connection = match access {
            Access::Write => {
                private_dir(state_dir)?;
                private_file(&path)?;
                Connection::open(&path).map_err(database("opening the log"))?
            }
            Access::Read if !path.exists() => return Ok(None),
            Access::Read => {
                copy = copy_with_wal(&path)?;
                let at = copy.as_ref().map_or_else(|| path.clone(), |copy| copy.path().join("nisse.db"));
                open_for_reading(&at)?
            }
        };
        connection.busy_timeout(Duration::from_secs(5)).map_err(database("setting up the log"))?;
        let version = |connection: &Connection| -> Result<u32, Error> {
            let found = connection.query_row("PRAGMA user_version", [], |row| row.get(0));
            let found = found.map_err(database("reading the version"))?;
            if found > SCHEMA { Err(Error::Newer { path: path.clone(), found }) } else { Ok(found) }
        };
        let mut found = version(&connection)?;
        // in this order: whoever begins a task beside this has made the tables first
        if existed
            && found == 0
            && had_tasks(state_dir)
            && !has_tables(&connection).map_err(database("reading the tables"))?
        {
            return Err(Error::Emptied { path });
        }
        // of what a newer nisse made, nothing is changed
        if access == Access::Write {
            notice = prepare(&mut connection, state_dir, &path)?;
            found = version(&connection)?;
        }
        if found == 0 {
            return Ok(None);
        }
        let (connection, copy) = (Arc::new(Mutex::new(connection)), copy.map(Arc::new));
        Ok(Some(Self { connection, state_dir: state_dir.to_owned(), notice, checkout: None, _copy: copy }))
    }

    /// What the user should know about where the log lies.
    #[must_use]
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }
}

fn has_tables(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT EXISTS (SELECT 1 FROM sqlite_master)", [], |row| row.get(0))
}

/// Whether tasks were begun beside a database: each leaves a lock, and each in a worktree has that there.
fn had_tasks(state_dir: &Path) -> bool {
    let any = |name: &str| fs::read_dir(state_dir.join(name)).is_ok_and(|mut listing| listing.next().is_some());
    any("locks") || any("worktrees")
}

/// Whether a log that several tasks write can be corrupted by this `SQLite`.
fn is_unsafe(library: i32) -> bool {
    library < OLDEST_LIBRARY
}

fn open_for_reading(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let opened = if dir_is_writable(path) {
        Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_READ_WRITE)
    } else {
        // no one can be writing: the shared-memory file that WAL needs could not be made
        let escaped = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
        Connection::open_with_flags(format!("file:{escaped}?immutable=1"), flags | OpenFlags::SQLITE_OPEN_READ_ONLY)
    };
    opened.map_err(|source| Error::Database { what: "opening the log", path: path.to_owned(), source })
}

/// A copy of a database in a directory that cannot be written, where a killed process left events in its write-ahead log:
/// read in its place they would not be seen. None where nothing is left, or where it can be read in its place.
fn copy_with_wal(path: &Path) -> Result<Option<TempDir>, Error> {
    let wal = path.with_extension("db-wal");
    if dir_is_writable(path) || !wal.metadata().is_ok_and(|found| found.len() > 0) {
        return Ok(None);
    }
    let copy = || {
        let directory = tempfile::Builder::new().prefix("nisse-log-").tempdir()?;
        for from in [path, &wal] {
            fs::copy(from, directory.path().join(from.file_name().unwrap_or_default()))?;
        }
        Ok(directory)
    };
    copy().map(Some).map_err(|source| Error::Io {
        what: "copying the log, to read it, from",
        path: path.to_owned(),
        source,
    })
}

fn dir_is_writable(path: &Path) -> bool {
    path.parent().is_some_and(|dir| rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_ok())
}

fn prepare(connection: &mut Connection, state_dir: &Path, path: &Path) -> Result<Option<String>, Error> {
    let database = |what| move |source| Error::Database { what, path: path.to_owned(), source };
    let pragma =
        |name: &str, value: &str| connection.pragma_update(None, name, value).map_err(database("setting up the log"));
    // two 2 KB events do not fit a 4 KB page; only a new database takes it
    pragma("page_size", "8192")?;
    let network = is_network_file_system(state_dir);
    let (mode, synchronous) = if network { ("DELETE", "EXTRA") } else { ("WAL", "FULL") };
    connection
        .query_row(&format!("PRAGMA journal_mode = {mode}"), [], |_| Ok(()))
        .map_err(database("setting up the log"))?;
    pragma("synchronous", synchronous)?;
    // what a long reader let it grow to is given back when the log is next brought into the database
    pragma("journal_size_limit", &WAL_KEPT.to_string())?;
    schema::bring_up_to_date(connection).map_err(database("making or migrating the tables"))?;
    Ok(network.then(|| {
        format!(
            "{} is on a network file system, so the log works without write-ahead logging, which is slower",
            state_dir.display()
        )
    }))
}

/// Makes a directory that only its owner can look into.
pub(super) fn private_dir(path: &Path) -> Result<(), Error> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|source| Error::Io {
        what: "making the directory",
        path: path.to_owned(),
        source,
    })
}

/// Makes the file, private, if it is missing. An existing one is not opened: closing it would drop `SQLite`'s locks.
fn private_file(path: &Path) -> Result<(), Error> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(source) => Err(Error::Io { what: "making the log", path: path.to_owned(), source }),
    }
}

/// WAL needs shared memory, which a network file system does not have (<https://sqlite.org/wal.html>).
#[cfg(target_os = "linux")]
#[must_use]
pub fn is_network_file_system(path: &Path) -> bool {
    // magic numbers of statfs(2): NFS, SMB, SMB2, CIFS, AFS, Coda, 9p, Ceph
    const NETWORK: [u64; 8] =
        [0x6969, 0x517b, 0xfe53_4d42, 0xff53_4d42, 0x5346_414f, 0x7375_7245, 0x0102_1997, 0x00c3_6400];
    rustix::fs::statfs(path).is_ok_and(|found| {
        #[expect(clippy::cast_sign_loss, reason = "magic numbers are bit patterns")]
        let kind = found.f_type as u64 & 0xffff_ffff;
        NETWORK.contains(&kind)
    })
}

/// WAL needs shared memory, which a network file system does not have (<https://sqlite.org/wal.html>).
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn is_network_file_system(_path: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_committed_is_on_the_disk_and_the_library_is_safe() {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::open(dir.path(), Access::Write).unwrap().unwrap();
        let synchronous: u32 = log.connection().query_row("PRAGMA synchronous", [], |row| row.get(0)).unwrap();
        assert!(synchronous >= 2, "FULL is 2, EXTRA is 3: {synchronous}");
        assert!([3_051_002, 3_050_004].into_iter().all(is_unsafe));
        assert!(!is_unsafe(3_051_003) && !is_unsafe(rusqlite::version_number()));
    }

    #[test]
    fn a_log_that_was_emptied_is_told_from_one_that_never_held_a_task() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nisse.db");
        fs::File::create(&path).unwrap();
        assert!(Log::open(dir.path(), Access::Read).unwrap().is_none());
        fs::create_dir_all(dir.path().join("worktrees/one")).unwrap();
        for access in [Access::Read, Access::Write] {
            assert!(matches!(Log::open(dir.path(), access), Err(Error::Emptied { path: told }) if told == path));
        }
        assert_eq!(path.metadata().unwrap().len(), 0, "nothing was made of it");
    }

    #[test]
    fn a_log_that_is_only_to_be_read_is_not_made() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Log::open(&dir.path().join("state"), Access::Read).unwrap().is_none());
        assert!(!dir.path().join("state").exists());
    }
}
