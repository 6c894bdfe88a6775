//! Removing files and whole directories.

use std::{fs, io::ErrorKind, os::unix::fs::PermissionsExt, path::Path};

use super::{Error, io_error};

/// Removes a file; gone already is as good.
pub(super) fn remove_file(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io_error("remove", path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Removes a directory with all that is in it, also in directories that a tool made read-only, or what stands in its
/// place; links are not followed.
pub(super) fn remove_tree(path: &Path) -> Result<(), Error> {
    // below a file there is nothing either
    let gone = |result: std::io::Result<()>| match result {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(()),
        other => other,
    };
    if path.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
        return gone(fs::remove_file(path)).map_err(io_error("remove", path));
    }
    let first = gone(fs::remove_dir_all(path));
    if first.is_err() {
        open_up(path);
        return gone(fs::remove_dir_all(path)).map_err(io_error("remove", path));
    }
    Ok(())
}

/// Makes all directories writable for us, as far as that goes.
fn open_up(path: &Path) {
    if !path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return;
    }
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        open_up(&entry.path());
    }
}
