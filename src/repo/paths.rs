//! Paths as git gives them, and in words.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// The most names in one notice.
const NAMED: usize = 10;

/// Paths as git gives them: bytes, whatever their encoding.
pub(super) fn paths(parts: Vec<Vec<u8>>) -> Vec<PathBuf> {
    parts.into_iter().map(|bytes| PathBuf::from(OsStr::from_bytes(&bytes))).collect()
}

/// A path in words.
pub(super) fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A notice with names, or none without any.
pub(super) fn names_notice(what: &str, names: &[String]) -> Option<String> {
    if names.is_empty() {
        return None;
    }
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("{what}: {}{more}", names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ")))
}
