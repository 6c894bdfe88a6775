//! The state directory, its file system, and the log in it.

use std::{io, os::unix::fs::MetadataExt as _, path::Path};

use rustix::fs::access;

use super::{Check, Verdict};
use crate::{
    domain::amount::counted,
    log::{Access, Log, is_network_file_system, stuck_wal},
};

/// Checks the state directory, or where it would be created. Changes nothing.
pub(super) fn check_state_directory(state_dir: &Path, checks: &mut Vec<Check>) {
    const SUBJECT: &str = "state directory";
    let bad = |found: String, advice: &str| Check::new(SUBJECT, Verdict::BadEnvironment, found, advice);
    let shown = state_dir.display();
    let Some(existing) = state_dir.ancestors().find(|path| path.exists()) else {
        return checks.push(bad(format!("cannot create {shown}"), "choose another with --state-dir"));
    };
    if !existing.is_dir() {
        return checks
            .push(bad(format!("{} is not a directory", existing.display()), "choose another with --state-dir"));
    }
    if let Err(errno) = access(existing, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK) {
        let why = io::Error::from(errno);
        return checks.push(bad(format!("cannot write to {}: {why}", existing.display()), "make it writable"));
    }
    if existing != state_dir {
        checks.push(Check::good(SUBJECT, format!("{shown} (will be created)")));
    } else if open_to_others(state_dir) {
        checks.push(bad(format!("others may write to {shown}"), "remove that permission: chmod 700"));
    } else {
        checks.push(Check::good(SUBJECT, shown.to_string()));
    }
    if is_network_file_system(existing) {
        let found = format!("{shown} is on a network file system, so the log works without write-ahead logging");
        let advice = "choose a local disk with --state-dir; it is faster";
        checks.push(Check::new(SUBJECT, Verdict::Warning, found, advice));
    }
    log(state_dir, checks);
}

/// Checks that the log can be opened and read. The first task creates it.
fn log(state_dir: &Path, checks: &mut Vec<Check>) {
    let read = |log: Log| log.tasks()?.into_iter().map(|id| log.task(id).map(drop)).collect::<Result<Vec<()>, _>>();
    let read = Log::open(state_dir, Access::Read).and_then(|log| log.map(read).transpose());
    let sqlite = rusqlite::version();
    checks.push(match read {
        Ok(Some(tasks)) => Check::good("log", format!("{} (SQLite {sqlite})", counted(tasks.len() as u64, "task"))),
        Ok(None) => Check::good("log", format!("not created yet (SQLite {sqlite})")),
        Err(error) => super::bad("log", Verdict::BadEnvironment, &error.into()),
    });
    if let Some(size) = stuck_wal(state_dir) {
        let found = format!("its write-ahead log has {} MB, because some program keeps reading nisse.db", size >> 20);
        checks.push(Check::new("log", Verdict::Warning, found, "end that program; the next task frees the space"));
    }
}

fn open_to_others(state_dir: &Path) -> bool {
    state_dir.metadata().is_ok_and(|metadata| metadata.mode() & 0o002 != 0)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    fn verdicts(path: &Path) -> Vec<Verdict> {
        let mut checks = Vec::new();
        check_state_directory(path, &mut checks);
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
    fn a_log_that_is_none_is_bad_and_is_left_alone() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("nisse.db");
        let mut file = fs::File::create(&path).unwrap();
        std::io::Write::write_all(&mut file, &[b'x'; 8192]).unwrap();
        assert_eq!(verdicts(temp.path()), [Verdict::Good, Verdict::BadEnvironment]);
        assert_eq!(fs::read(&path).unwrap(), [b'x'; 8192]);
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
}
