//! Small files of git's: read as text, and replaced whole.

use std::{fs, io::Write, os::unix::fs::PermissionsExt, path::Path};

use super::{Error, io_error, removal::remove_tree};

/// A small file's text; none if there is no such regular file (to read a pipe would take for ever).
pub(super) fn read_file(path: &Path) -> Option<String> {
    path.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
    fs::read_to_string(path).ok()
}

/// The first line of a small file; none if there is no such file.
pub(super) fn read_line(path: &Path) -> Option<String> {
    read_file(path)?.lines().next().map(str::to_owned)
}

/// Makes a file of git's hold this text, whole or not at all, durably.
pub(super) fn replace_file(path: &Path, text: &str) -> Result<(), Error> {
    // always the same name, so that one that was cut off is written over
    let beside = path.with_file_name(".nisse-writes-git");
    remove_tree(&beside)?;
    let put = || -> std::io::Result<()> {
        let mut new = fs::File::create_new(&beside)?;
        new.write_all(text.as_bytes())?;
        // as git makes them
        new.set_permissions(fs::Permissions::from_mode(0o644))?;
        new.sync_all()?;
        fs::rename(&beside, path)
    };
    put().map_err(io_error("write", path))
}
