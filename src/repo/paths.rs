//! Paths as git prints them, and as text.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// The most names in one notice.
const NAMED: usize = 10;

/// The paths that git printed: bytes, whatever their encoding.
pub(super) fn paths(parts: Vec<Vec<u8>>) -> Vec<PathBuf> {
    parts.into_iter().map(|bytes| PathBuf::from(OsStr::from_bytes(&bytes))).collect()
}

/// A path as text for people.
pub(super) fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A notice that lists names; none if there are none.
pub(super) fn names_notice(what: &str, names: &[String]) -> Option<String> {
    if names.is_empty() {
        return None;
    }
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("{what}: {}{more}", names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ")))
}
