//! `write_file`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::read::not_text;
use crate::{domain::id::Hash, ports::host::FileBytes};

pub(super) const DESCRIPTION: &str = "Write a whole file: make a new one, or replace all of an existing one, which you \
                                      must have read before. To change a part of a file, use edit_file. Missing \
                                      directories are made.";

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Writes a file whole.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteFile {
    /// The file, relative to the root of the project.
    #[schemars(length(min = 1))]
    pub path: String,
    /// The whole content of the file, from its first to its last line.
    pub content: String,
}

/// The bytes to write and the answer, or why nothing is written. `current` is the file as it is, `known` the hash of
/// what the model last saw of it.
pub(super) fn bytes(
    write: &WriteFile,
    current: Option<&FileBytes>,
    known: Option<&Hash>,
) -> Result<(Vec<u8>, String), String> {
    let WriteFile { path, content } = write;
    let mut bytes = content.clone().into_bytes();
    let Some(current) = current else {
        let answer = format!("made {path} ({} bytes)", bytes.len());
        return Ok((bytes, answer));
    };
    if let Some(kind) = not_text(&current.bytes) {
        return Err(format!("{path} is {kind}, and was not shown to you: written whole, its content would be lost."));
    }
    match known {
        None => {
            return Err(format!(
                "{path} exists and you have not read all of it. Change a part with edit_file; or read it whole first, then \
                 write it."
            ));
        }
        Some(known) if *known != current.hash => {
            return Err(format!(
                "{path} has changed since you last read or wrote it; writing would undo that. Read it again, then write."
            ));
        }
        Some(_) => {}
    }
    if std::str::from_utf8(&current.bytes).is_err() && !content.is_ascii() {
        return Err(format!(
            "{path} is not UTF-8 (perhaps Windows-1252); writing it whole would damage its other characters. Change the \
             parts with edit_file."
        ));
    }
    let mut kept = String::new();
    if is_all_crlf(&current.bytes) && content.contains('\n') && !content.contains('\r') {
        bytes = content.replace('\n', "\r\n").into_bytes();
        kept.push_str("; its line endings stay CRLF");
    }
    if current.bytes.starts_with(BOM) && !bytes.starts_with(BOM) {
        bytes.splice(0..0, BOM.iter().copied());
        kept.push_str("; its byte order mark stays");
    }
    let answer = format!("wrote {path} ({} bytes){kept}", bytes.len());
    Ok((bytes, answer))
}

/// Whether there are line endings and each is CRLF.
fn is_all_crlf(bytes: &[u8]) -> bool {
    let newlines = memchr::memchr_iter(b'\n', bytes).count();
    newlines > 0 && newlines == memchr::memmem::find_iter(bytes, b"\r\n").count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(content: &str, current: &[u8]) -> Result<(Vec<u8>, String), String> {
        let hash = Hash::of(current);
        let current = FileBytes { bytes: current.to_vec(), size: current.len() as u64, hash: hash.clone() };
        bytes(&WriteFile { path: "f".to_owned(), content: content.to_owned() }, Some(&current), Some(&hash))
    }

    #[test]
    fn line_endings_and_mark_of_an_existing_file_are_kept_and_named() {
        let (bytes, answer) = write("a\nb\n", b"\xef\xbb\xbfx\r\ny\r\n").unwrap();
        assert_eq!(bytes, b"\xef\xbb\xbfa\r\nb\r\n");
        assert_eq!(answer, "wrote f (9 bytes); its line endings stay CRLF; its byte order mark stays");
        for (content, current) in [("a\nb", "x\r\ny\n"), ("a\r\nb", "x\r\n"), ("a\n", "x"), ("a\n", "x\n")] {
            assert_eq!(write(content, current.as_bytes()).unwrap().0, content.as_bytes());
        }
    }

    #[test]
    fn another_encoding_is_not_overwritten_unless_by_plain_ascii() {
        assert!(write("é", b"caf\xe9").unwrap_err().contains("not UTF-8"));
        assert_eq!(write("cafe", b"caf\xe9").unwrap().0, b"cafe");
    }
}
