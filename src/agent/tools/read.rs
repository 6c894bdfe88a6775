//! `read_file`.
//!
//! What is shown is bounded, in lines, in bytes and within a line, and says how to go on. The hash that goes with it is
//! the whole file's.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{FileRules, Looked};
use crate::{
    domain::{
        event::{ResultStatus, Seen},
        mask::Mask,
    },
    ports::host::{Error, FileBytes, FileKind, Host},
};

pub(super) const DESCRIPTION: &str = "Read a text file. Each line is shown with its number and a tab before it; they are \
                                      not part of the file. A long file is shown in parts: go on with `start_line`.";

/// Lines shown at once.
const LINES: usize = 2000;
/// Bytes shown at once, about.
const BYTES: usize = 50 * 1024;
/// Characters shown of a line.
const LINE: usize = 2000;
/// Bytes of a file that can be shown at all.
const REACH: u64 = 16 * 1024 * 1024;
/// Bytes by which it is told whether a file is text.
const SAMPLE: usize = 8192;

/// Reads a file.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadFile {
    /// The file, relative to the root of the project, e.g. `README.md`.
    #[schemars(length(min = 1))]
    pub path: String,
    /// The first line to show, from 1. Default: 1.
    #[schemars(range(min = 1))]
    pub start_line: Option<u64>,
    /// The last line to show. Default: the end of the file.
    #[schemars(range(min = 1))]
    pub end_line: Option<u64>,
}

pub(super) async fn read_file(
    read: &ReadFile,
    host: &dyn Host,
    rules: &FileRules,
    mask: &Mask,
) -> Result<Looked, Error> {
    let path = &read.path;
    let resolved = rules.resolve(host, path).await?;
    match resolved.kind {
        FileKind::File => {}
        FileKind::Absent => {
            return Err(Error::Refused(format!("{path}: there is no such file; list_files shows what there is")));
        }
        FileKind::Directory => {
            return Err(Error::Refused(format!("{path} is a directory; list_files with `under` shows its files")));
        }
        FileKind::Other => return Err(Error::Refused(format!("{path} is not a regular file"))),
    }
    let file = host.read(&resolved.path, REACH).await?;
    let (content, whole) = file_range(read, &file, mask).map_err(Error::Refused)?;
    // a part of a file licenses no one to replace the rest
    let seen = whole.then_some(Seen { path: resolved.path, hash: file.hash });
    Ok(Looked { status: ResultStatus::Done, content, seen })
}

/// What the model is shown of a file, and whether that is all of it; or why the range cannot be shown.
fn file_range(read: &ReadFile, file: &FileBytes, mask: &Mask) -> Result<(String, bool), String> {
    let path = &read.path;
    if let Some(kind) = not_text(&file.bytes) {
        return Ok((format!("[{path} is {kind}, {} bytes; it is not shown]", file.size), false));
    }
    if file.bytes.is_empty() {
        return Ok((format!("[{path} is empty]"), true));
    }
    let text = file.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&file.bytes);
    let decoded = String::from_utf8_lossy(text);
    // as a whole: of a secret over several lines each is one
    let masked = mask.line_by_line(&decoded);
    let mut lines: Vec<&str> = masked.split('\n').collect();
    let whole = file.size == file.bytes.len() as u64;
    // after the last newline there is no line; where reading stopped there is only a part of one
    if lines.len() > 1 && (!whole || lines.last().is_some_and(|last| last.is_empty())) {
        lines.pop();
    }
    let total = lines.len();
    let first = read.start_line.map_or(1, |line| usize::try_from(line).unwrap_or(usize::MAX));
    let last = read.end_line.map_or(total, |line| usize::try_from(line).unwrap_or(usize::MAX)).min(total);
    if first > total {
        return Err(format!("{path} has only {total} lines{}", if whole { "" } else { " that can be shown" }));
    }
    if first > last {
        return Err(format!("`start_line` {first} is behind `end_line` {last}"));
    }

    let (mut content, mut cuts) = (String::new(), false);
    let mut next = first;
    for line in lines.iter().take(last).skip(first - 1).take(LINES) {
        let line = line.strip_suffix('\r').unwrap_or(line).replace('\0', "\u{fffd}");
        let length = line.chars().count();
        let cut: String = line.chars().take(LINE).collect();
        if next > first && content.len() + cut.len() > BYTES {
            break;
        }
        let _ = write!(content, "{next}\t{cut}");
        if length > LINE {
            cuts = true;
            let _ = write!(content, " [... {} characters more]", length - LINE);
        }
        content.push('\n');
        next += 1;
    }
    if next <= last {
        let _ = writeln!(content, "[lines {first} to {} of {total}; go on with start_line={next}]", next - 1);
    } else if (first, last) != (1, total) {
        let _ = writeln!(content, "[lines {first} to {last} of {total}]");
    }
    if !whole {
        let _ = writeln!(
            content,
            "[the file has {} bytes; beyond the first {REACH} use search, or run_command with sed]",
            file.size
        );
    }
    if text.contains(&0) {
        content.push_str("[NUL bytes are shown as \u{fffd}]\n");
    }
    if std::str::from_utf8(text).is_err() && (whole || not_utf8(text)) {
        content.push_str(
            "[not UTF-8, but another encoding such as Windows-1252: the bytes shown as \u{fffd} stay as they are when \
             edit_file changes other text]\n",
        );
    }
    if lines.len() > 1 && lines.iter().take(total - 1).all(|line| line.ends_with('\r')) {
        content.push_str("[line endings: CRLF; write_file and edit_file keep them]\n");
    }
    let all = whole && !cuts && (first, next) == (1, total + 1);
    Ok((content, all))
}

/// Not UTF-8, a character that was cut at the end aside.
fn not_utf8(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_err_and(|error| error.error_len().is_some())
}

/// What a file is, if it is not text for a reader. A few control bytes do not make a text binary; in what is not UTF-8
/// either, far fewer do.
pub(super) fn not_text(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Some("UTF-16 text, which only run_command (iconv) can read");
    }
    let sample = &bytes[..bytes.len().min(SAMPLE)];
    let control = sample.iter().filter(|byte| matches!(byte, 0..=8 | 11 | 14..=26 | 28..=31 | 127)).count();
    let binary =
        if not_utf8(sample) { control * 50 > sample.len() } else { control > 8 && control * 10 > sample.len() };
    binary.then_some("binary")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::Hash;

    fn range(start_line: Option<u64>, end_line: Option<u64>) -> ReadFile {
        ReadFile { path: "f".to_owned(), start_line, end_line }
    }

    fn read(bytes: &[u8], start_line: Option<u64>, end_line: Option<u64>) -> Result<String, String> {
        let file = FileBytes { bytes: bytes.to_vec(), size: bytes.len() as u64, hash: Hash::of(bytes) };
        file_range(&range(start_line, end_line), &file, &Mask::default()).map(|(content, _)| content)
    }

    fn all(bytes: &[u8]) -> String {
        read(bytes, None, None).unwrap()
    }

    #[test]
    fn lines_are_numbered_and_a_range_says_what_it_is_of() {
        assert_eq!(all(b"a\nb\n"), "1\ta\n2\tb\n");
        assert_eq!(all(b"a\n\nb"), "1\ta\n2\t\n3\tb\n");
        assert_eq!(all(b"\n"), "1\t\n");
        assert_eq!(all(b""), "[f is empty]");
        assert_eq!(read(b"a\nb\nc\n", Some(2), Some(2)).unwrap(), "2\tb\n[lines 2 to 2 of 3]\n");
        assert_eq!(read(b"a\nb\nc\n", Some(2), Some(99)).unwrap(), "2\tb\n3\tc\n[lines 2 to 3 of 3]\n");
        assert_eq!(read(b"a\n", Some(2), None).unwrap_err(), "f has only 1 lines");
        assert_eq!(read(b"a\nb\n", Some(2), Some(1)).unwrap_err(), "`start_line` 2 is behind `end_line` 1");
    }

    #[test]
    fn a_long_file_is_shown_in_parts_that_join() {
        let text = (1..=5000).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n") + "\n";
        let first = all(text.as_bytes());
        assert!(first.ends_with("2000\tline 2000\n[lines 1 to 2000 of 5000; go on with start_line=2001]\n"));
        assert!(read(text.as_bytes(), Some(2001), None).unwrap().starts_with("2001\tline 2001\n"));
        let wide: String = (1..=200).map(|_| "ä".repeat(1000) + "\n").collect();
        let part = all(wide.as_bytes());
        assert!(part.len() < BYTES + 3000 && part.contains("go on with start_line="), "{}", part.len());
        let long = all("🔥".repeat(LINE + 7).as_bytes());
        assert!(long.ends_with("🔥 [... 7 characters more]\n"));
    }

    #[test]
    fn a_part_of_a_secret_is_masked_too() {
        let key = b"a\n-----BEGIN PRIVATE KEY-----\nCANARY1\nCANARY2\n-----END PRIVATE KEY-----\nb\n";
        assert_eq!(read(key, Some(4), Some(4)).unwrap(), "4\t[masked by nisse]\n[lines 4 to 4 of 6]\n");
        let across = format!("{}ghp_{}\n", "x".repeat(LINE - 10) + " ", "CANARY".repeat(6));
        let shown = all(across.as_bytes());
        assert!(!shown.contains("CANAR") && !shown.contains("ghp_"), "{shown}");
    }

    #[test]
    fn binary_files_get_a_short_answer_and_odd_text_is_shown_and_marked() {
        let noise: Vec<u8> = (0..400_u32).map(|n| u8::try_from(n * 167 % 256).unwrap()).collect();
        assert_eq!(all(&noise), "[f is binary, 400 bytes; it is not shown]");
        assert!(all(b"\xff\xfea\0").contains("UTF-16"));
        assert_eq!(all(b"x\0y\n"), "1\tx\u{fffd}y\n[NUL bytes are shown as \u{fffd}]\n");
        let windows = all(b"// pr\xe9fixe \x93q\x94\nOLD\n");
        assert!(windows.starts_with("1\t// pr\u{fffd}fixe \u{fffd}q\u{fffd}\n2\tOLD\n[not UTF-8"), "{windows}");
        assert_eq!(all(b"\xef\xbb\xbfhead\n"), "1\thead\n");
        assert!(all(b"a\r\nb\r\n").starts_with("1\ta\n2\tb\n[line endings: CRLF"));
        assert_eq!(all(b"a\nb\r\n"), "1\ta\n2\tb\n");
    }

    #[test]
    fn a_file_beyond_reach_says_so_and_shows_no_half_line() {
        let file = FileBytes { bytes: b"a\nb\nha".to_vec(), size: 1 << 40, hash: Hash::of(b"") };
        let (content, whole) = file_range(&range(None, None), &file, &Mask::default()).unwrap();
        assert!(!whole && content.starts_with("1\ta\n2\tb\n[the file has 1099511627776 bytes"), "{content}");
    }
}
