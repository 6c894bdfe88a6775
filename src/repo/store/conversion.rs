//! Whether git would store a file's bytes as they are: asked before the library stores them, which converts nothing.

use std::path::Path;

use git2::{AttrCheckFlags, AttrValue, Repository};

/// What a configuration says of the file system, and which value makes it an odd one.
pub(super) const FILE_SYSTEM: [(&str, bool); 3] =
    [("core.filemode", false), ("core.symlinks", false), ("core.ignorecase", true)];

/// Whether git would store a file's bytes as they are: no filter, no encoding, no line endings to convert.
pub(super) fn keeps_bytes(repository: &Repository, path: &Path, bytes: &[u8]) -> Result<bool, git2::Error> {
    let asked = |name| {
        let value = repository.get_attr_bytes(path, name, AttrCheckFlags::FILE_THEN_INDEX)?;
        Ok::<_, git2::Error>(match AttrValue::always_bytes(value) {
            AttrValue::Unspecified => None,
            AttrValue::False => Some(false),
            AttrValue::True | AttrValue::Bytes(_) | AttrValue::String(_) => Some(true),
        })
    };
    if asked("filter")? == Some(true) || asked("working-tree-encoding")? == Some(true) {
        return Ok(false);
    }
    if memchr::memmem::find(bytes, b"$Id").is_some() && asked("ident")? == Some(true) {
        return Ok(false);
    }
    if memchr::memchr(b'\r', bytes).is_none() {
        return Ok(true);
    }
    let (text, crlf, eol) = (asked("text")?, asked("crlf")?, asked("eol")?);
    // whether these are line endings to convert depends on more settings than libgit2 knows; git takes what holds such
    // bytes for binary, and converts it only where an attribute says so
    Ok(text == Some(false) || [text, crlf, eol] == [None; 3] && is_binary(bytes))
}

/// Whether git takes bytes for those of a binary file by these two signs.
fn is_binary(bytes: &[u8]) -> bool {
    let lone = |at: usize| bytes.get(at + 1) != Some(&b'\n');
    memchr::memchr(0, bytes).is_some() || memchr::memchr_iter(b'\r', bytes).any(lone)
}

/// Whether the file system is one where git looks away from modes, links or letters' cases.
pub(super) fn is_odd_file_system(repository: &Repository) -> Result<bool, git2::Error> {
    let config = repository.config()?.snapshot()?;
    Ok(FILE_SYSTEM.iter().any(|(key, odd)| config.get_bool(key).is_ok_and(|found| found == *odd)))
}
