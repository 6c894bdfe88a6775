//! The state directory, its file system, and SQLite.

use std::{io, os::unix::fs::MetadataExt as _, path::Path};

use rustix::fs::{Access, access, statfs};

use super::{Check, Verdict};

/// SQLite before this can corrupt a WAL database that has several writers
/// (the WAL-reset bug, <https://sqlite.org/wal.html>), in its own numbering.
const SQLITE: i32 = 3_051_003;

/// Looks at the state directory, or where it would be made. Changes nothing.
pub(super) fn look(state_dir: &Path, checks: &mut Vec<Check>) {
    const SUBJECT: &str = "state directory";
    let bad = |found: String, advice: &str| Check::new(SUBJECT, Verdict::BadEnvironment, found, advice);
    let shown = state_dir.display();
    let Some(existing) = state_dir.ancestors().find(|path| path.exists()) else {
        return checks.push(bad(format!("{shown} cannot be made"), "name another with --state-dir"));
    };
    if !existing.is_dir() {
        return checks.push(bad(format!("{} is no directory", existing.display()), "name another with --state-dir"));
    }
    if let Err(errno) = access(existing, Access::WRITE_OK | Access::EXEC_OK) {
        let why = io::Error::from(errno);
        return checks.push(bad(format!("{} cannot be written: {why}", existing.display()), "make it writable"));
    }
    if existing != state_dir {
        checks.push(Check::good(SUBJECT, format!("{shown}, which will be made")));
    } else if open_to_others(state_dir) {
        checks.push(bad(format!("others may write to {shown}"), "take that right away: chmod 700"));
    } else {
        checks.push(Check::good(SUBJECT, shown.to_string()));
    }
    let local = "put it on a disk of this machine, with --state-dir";
    match kind_of_disk(existing) {
        Ok(Disk::Local) => {}
        Ok(Disk::Network(name)) => {
            checks.push(bad(format!("{shown} is on {name}, where the database is not safe"), local));
        }
        Ok(Disk::Unclear(name)) => {
            let found = format!("{shown} is on {name}, which may be another machine's");
            checks.push(Check::new(SUBJECT, Verdict::Warning, found, local));
        }
        Err(why) => {
            let found = format!("the file system of {shown} does not say what it is: {why}");
            checks.push(Check::new(SUBJECT, Verdict::Warning, found, local));
        }
    }
}

fn open_to_others(state_dir: &Path) -> bool {
    state_dir.metadata().is_ok_and(|metadata| metadata.mode() & 0o002 != 0)
}

/// Whether a database's shared memory works there.
enum Disk {
    Local,
    Network(&'static str),
    Unclear(&'static str),
}

#[cfg(target_os = "linux")]
fn kind_of_disk(path: &Path) -> io::Result<Disk> {
    // statfs(2)
    #[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "a magic number of 32 bits")]
    let magic = statfs(path)?.f_type as u32;
    Ok(match magic {
        0x6969 => Disk::Network("NFS"),
        0x517b | 0xfe53_4d42 | 0xff53_4d42 => Disk::Network("SMB"),
        0x5346_414f => Disk::Network("AFS"),
        0x00c3_6400 => Disk::Network("Ceph"),
        0x0102_1997 => Disk::Unclear("9P"),
        0x6573_5546 => Disk::Unclear("FUSE"),
        _ => Disk::Local,
    })
}

#[cfg(not(target_os = "linux"))]
fn kind_of_disk(path: &Path) -> io::Result<Disk> {
    /// `MNT_LOCAL` of getmntinfo(3).
    const LOCAL: u32 = 0x1000;
    let flags = statfs(path)?.f_flags;
    Ok(if flags & LOCAL == 0 { Disk::Network("a network file system") } else { Disk::Local })
}

/// Judges a version of SQLite.
pub(super) fn sqlite(version: i32) -> Check {
    let shown = format!("{}.{}.{}", version / 1_000_000, version / 1000 % 1000, version % 1000);
    if version >= SQLITE {
        Check::good("SQLite", shown)
    } else {
        let found = format!("{shown} can corrupt a database that two tasks write to");
        Check::new("SQLite", Verdict::BadEnvironment, found, "build nisse with 3.51.3 or newer")
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    fn verdicts(path: &Path) -> Vec<Verdict> {
        let mut checks = Vec::new();
        look(path, &mut checks);
        checks.iter().map(|check| check.verdict).collect()
    }

    #[test]
    fn a_directory_that_is_not_there_yet_is_good_and_is_not_made() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a/b");
        assert_eq!(verdicts(&path).first(), Some(&Verdict::Good));
        assert!(!temp.path().join("a").exists());
    }

    #[test]
    fn a_file_in_the_way_and_an_open_directory_are_bad() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("file");
        fs::File::create(&file).unwrap();
        assert_eq!(verdicts(&file), [Verdict::BadEnvironment]);
        assert_eq!(verdicts(&file.join("below")), [Verdict::BadEnvironment]);
        fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(verdicts(temp.path()).first(), Some(&Verdict::BadEnvironment));
    }

    #[test]
    fn sqlite_is_judged_by_the_version_that_was_mended() {
        assert_eq!(sqlite(3_051_003).verdict, Verdict::Good);
        assert_eq!(sqlite(3_051_002).verdict, Verdict::BadEnvironment);
        assert_eq!(sqlite(3_053_002).found, "3.53.2");
    }
}
