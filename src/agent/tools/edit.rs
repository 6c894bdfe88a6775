//! `edit_file`.
//!
//! Exact text or nothing: no nearest match is ever edited. The file is bytes; only those of the replaced text change.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{flat::Flat, nearest};
use crate::{domain::mask::Mask, ports::host::FileBytes};

pub(super) const DESCRIPTION: &str = "Replace an exact text in a file. `old` must be in the file exactly, with its \
                                      white space, and only once: give enough lines around the change. With \
                                      `replace_all`, every occurrence is replaced.";

/// Lines named at most.
const NAMED: usize = 20;
/// Lines that the answer shows at most.
const SHOWN: usize = 12;
/// Characters that it shows of a line.
const SHOWN_OF_A_LINE: usize = 200;

/// Replaces a text in a file.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditFile {
    /// The file, relative to the root of the project.
    #[schemars(length(min = 1))]
    pub path: String,
    /// The text to replace, exactly as it is in the file, without the line numbers that `read_file` shows.
    pub old: String,
    /// The text to put in its place.
    pub new: String,
    /// True: replace every occurrence. Default: false, and `old` must occur once.
    pub replace_all: Option<bool>,
}

/// The bytes to write and the answer, or why nothing is written.
pub(super) fn bytes(edit: &EditFile, current: Option<&FileBytes>, mask: &Mask) -> Result<(Vec<u8>, String), String> {
    let EditFile { path, old, new, .. } = edit;
    if old == new {
        return Err("`old` and `new` are equal: nothing would change.".to_owned());
    }
    if old.is_empty() {
        return Err(
            "`old` is empty. Give the text to replace; to make or replace a whole file, use write_file.".to_owned()
        );
    }
    let Some(FileBytes { bytes, .. }) = current else {
        return Err(format!("{path}: there is no such file. write_file makes new files."));
    };
    if std::str::from_utf8(bytes).is_err() && !new.is_ascii() {
        return Err(format!(
            "{path} is not UTF-8 (perhaps Windows-1252), and `new` holds characters beyond ASCII: the file would be \
             damaged. Use only ASCII characters in `new`, or convert the file by a command first."
        ));
    }
    // carriage returns in `old` are meant if they are found; else line endings are the file's affair
    if old.contains('\r') && memchr::memmem::find(bytes, old.as_bytes()).is_some() {
        let places = places(edit, bytes, old.as_bytes(), new.as_bytes(), mask)?;
        return Ok(replaced(edit, bytes, bytes, &places, mask, |at| (at..at + old.len(), new.as_bytes().to_vec())));
    }
    let flat = Flat::of(bytes);
    let (old, new) = (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"));
    let (old, new) = (old.as_bytes(), new.as_bytes());
    if old == new {
        return Err(
            "`old` and `new` differ only in their line endings, and `old` is not in the file as it is.".to_owned()
        );
    }
    let places = places(edit, flat.text(), old, new, mask)?;
    // only what differs is written, so that the line endings around it stay
    let before = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let after = old[before..].iter().rev().zip(new[before..].iter().rev()).take_while(|(a, b)| a == b).count();
    Ok(replaced(edit, bytes, flat.text(), &places, mask, |at| {
        let range = at + before..at + old.len() - after;
        (flat.original(&range), flat.written(&range, &new[before..new.len() - after]))
    }))
}

/// Where `new` is, if each place of `old` is within a `new` that is there already: an edit that was made before.
fn made_already(text: &[u8], places: &[usize], old: &[u8], new: &[u8]) -> Option<usize> {
    let within = memchr::memmem::find(new, old).filter(|_| new.len() > old.len())?;
    let made = |place: &usize| {
        let begin = place.checked_sub(within)?;
        text.get(begin..begin + new.len()).filter(|there| *there == new).map(|_| begin)
    };
    let begins: Option<Vec<usize>> = places.iter().map(made).collect();
    begins?.first().copied()
}

/// Where `old` is in `text`: once, or as often as `replace_all` allows.
fn places(edit: &EditFile, text: &[u8], old: &[u8], new: &[u8], mask: &Mask) -> Result<Vec<usize>, String> {
    let path = &edit.path;
    let places: Vec<usize> = memchr::memmem::find_iter(text, old).collect();
    let Some(&first) = places.first() else {
        return Err(format!(
            "`old` is not in {path}. {}",
            nearest::place(&mask.line_by_line(&String::from_utf8_lossy(text)), old)
        ));
    };
    if let Some(made) = made_already(text, &places, old, new) {
        return Err(format!(
            "Nothing was written: {path} holds `new` already, at {}, and `old` is only a part of it. This edit has been \
             made; go on with the next step.",
            lines(text, &[made])
        ));
    }
    if edit.replace_all.unwrap_or(false) {
        return Ok(places);
    }
    // the second may overlap the first
    let second = memchr::memmem::find(&text[first + 1..], old).map(|at| first + 1 + at);
    match second {
        None => Ok(places),
        Some(second) => {
            let all = if places.len() > 1 { places } else { vec![first, second] };
            Err(format!(
                "`old` occurs {} times in {path}, at {}. Give more lines around it, so that it occurs once, or set \
                 `replace_all`.",
                all.len(),
                lines(text, &all)
            ))
        }
    }
}

/// The bytes with each place replaced as `change` says, and the answer.
fn replaced(
    edit: &EditFile,
    bytes: &[u8],
    text: &[u8],
    places: &[usize],
    mask: &Mask,
    change: impl Fn(usize) -> (std::ops::Range<usize>, Vec<u8>),
) -> (Vec<u8>, String) {
    let (mut out, mut copied) = (Vec::with_capacity(bytes.len()), 0);
    for &place in places {
        let (range, new) = change(place);
        out.extend_from_slice(&bytes[copied..range.start]);
        out.extend_from_slice(&new);
        copied = range.end;
    }
    out.extend_from_slice(&bytes[copied..]);
    let count = if places.len() == 1 { "1 place".to_owned() } else { format!("{} places", places.len()) };
    let first = places.first().map_or(0, |place| memchr::memchr_iter(b'\n', &text[..*place]).count());
    let shown = after(&mask.line_by_line(&String::from_utf8_lossy(&out)), first, edit.new.lines().count().max(1));
    (out, format!("edited {}: {count}, at {}\n{shown}", edit.path, lines(text, places)))
}

/// The lines of the first place as they are now, with one around it, as `read_file` shows them.
fn after(text: &str, first: usize, changed: usize) -> String {
    // after the last newline there is no line
    let text = text.strip_suffix('\n').unwrap_or(text);
    let begin = first.saturating_sub(1);
    let most = (changed + 2).min(SHOWN);
    let lines = text.split('\n').enumerate().skip(begin).take(most + usize::from(first > begin) - 1);
    let line = |(number, line): (usize, &str)| {
        let text = line.strip_suffix('\r').unwrap_or(line);
        format!("{}\t{}", number + 1, text.chars().take(SHOWN_OF_A_LINE).collect::<String>())
    };
    lines.map(line).collect::<Vec<_>>().join("\n")
}

/// `line 3`, `lines 3, 7 and 9`, by places.
fn lines(text: &[u8], places: &[usize]) -> String {
    let (mut numbers, mut line, mut counted) = (Vec::new(), 1, 0);
    for &place in places.iter().take(NAMED) {
        line += memchr::memchr_iter(b'\n', &text[counted..place]).count();
        counted = place;
        numbers.push(line.to_string());
    }
    if places.len() > NAMED {
        return format!("lines {}, ...", numbers.join(", "));
    }
    match numbers.split_last() {
        Some((last, [])) => format!("line {last}"),
        Some((last, rest)) => format!("lines {} and {last}", rest.join(", ")),
        None => "no line".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::Hash;

    fn edit(bytes: &[u8], old: &str, new: &str, replace_all: bool) -> Result<(Vec<u8>, String), String> {
        let current = FileBytes { bytes: bytes.to_vec(), size: bytes.len() as u64, hash: Hash::of(bytes) };
        let edit =
            EditFile { path: "f".to_owned(), old: old.to_owned(), new: new.to_owned(), replace_all: Some(replace_all) };
        super::bytes(&edit, Some(&current), &Mask::default())
    }

    #[test]
    fn only_the_bytes_of_the_replaced_text_change() {
        for (bytes, wanted) in [
            (&b"first\r\nTARGET one\r\nlast\r\n"[..], &b"first\r\nCHANGED two\r\nlast\r\n"[..]),
            (b"u1\nu2\r\nTARGET one\nu3\r\nu4\n", b"u1\nu2\r\nCHANGED two\nu3\r\nu4\n"),
            (b"p1\rp2\rTARGET one\rp3\n", b"p1\rp2\rCHANGED two\rp3\n"),
            (b"\xef\xbb\xbfhead\nTARGET one\n", b"\xef\xbb\xbfhead\nCHANGED two\n"),
            (b"x\nTARGET one", b"x\nCHANGED two"),
            (b"// pr\xe9fixe\nTARGET one \x93\x94\0\n", b"// pr\xe9fixe\nCHANGED two \x93\x94\0\n"),
        ] {
            assert_eq!(edit(bytes, "TARGET one", "CHANGED two", false).unwrap().0, wanted);
        }
    }

    #[test]
    fn several_lines_match_whatever_the_endings_and_new_lines_follow_their_neighbour() {
        let (bytes, answer) =
            edit(b"first\r\nTWO\r\nlast\r\n", "first\nTWO\n", "first\nTWO\nINSERTED\n", false).unwrap();
        assert_eq!(bytes, b"first\r\nTWO\r\nINSERTED\r\nlast\r\n");
        assert_eq!(answer, "edited f: 1 place, at line 1\n1\tfirst\n2\tTWO\n3\tINSERTED\n4\tlast");
        let mixed = b"a\nb\r\nc\nd\r\n";
        assert_eq!(edit(mixed, "a\nb\nc\nd\n", "a\nB\nc\nD\n", false).unwrap().0, b"a\nB\r\nc\nD\r\n");
        assert_eq!(edit(mixed, "b\nc\n", "", false).unwrap().0, b"a\nd\r\n");
        assert_eq!(edit(b"a\nb\n", "a\r\nb", "a\r\nx\r\nb", false).unwrap().0, b"a\nx\nb\n");
        // endings that the model means
        assert_eq!(edit(b"a\r\nb\r\n", "a\r\nb", "a\nb", false).unwrap().0, b"a\nb\r\n");
        assert!(edit(b"a\nb\n", "a\r\nb", "a\nb", false).unwrap_err().contains("line endings"));
    }

    #[test]
    fn a_text_that_occurs_several_times_is_told_with_its_lines() {
        let python = b"def a():\n    return 1\n\ndef b():\n    return 1\n";
        let refused = edit(python, "    return 1", "    return 2", false).unwrap_err();
        assert!(refused.starts_with("`old` occurs 2 times in f, at lines 2 and 5."), "{refused}");
        assert!(edit(b"aaa", "aa", "b", false).unwrap_err().contains("2 times"));
        let (bytes, answer) = edit(python, "    return 1", "    return 2", true).unwrap();
        assert_eq!(bytes, b"def a():\n    return 2\n\ndef b():\n    return 2\n");
        assert_eq!(answer, "edited f: 2 places, at lines 2 and 5\n1\tdef a():\n2\t    return 2\n3\t");
        let once = edit(python, "def b():\n    return 1", "def b():\n    return 2", false).unwrap().0;
        assert_eq!(once, b"def a():\n    return 1\n\ndef b():\n    return 2\n");
    }

    #[test]
    fn an_edit_that_was_made_before_is_not_made_again() {
        let text = b"import os\nimport sys\nx = 1\n";
        let refused = edit(text, "import os", "import os\nimport sys", false).unwrap_err();
        assert!(refused.contains("already, at line 1"), "{refused}");
        assert!(edit(text, "import os", "import os\nimport sys", true).is_err());
        // only inside: elsewhere it is meant
        let twice = b"import os\nimport sys\n\nimport os\n";
        assert!(edit(twice, "import os", "import os\nimport sys", true).is_ok());
        assert!(edit(b"a\n", "a", "aa", false).is_ok() && edit(b"aa\n", "aa", "aaa", false).is_ok());
    }

    #[test]
    fn what_cannot_be_edited_says_why() {
        for (old, new, word) in
            [("zzz", "zzz", "equal"), ("", "x", "empty"), ("- [x] three (src/two)", "y", "2\t- [x] two (src/two)")]
        {
            let refused = edit(b"- [x] one (src/one)\n- [x] two (src/two)\n", old, new, false).unwrap_err();
            assert!(refused.contains(word), "{refused}");
        }
        assert!(edit(b"caf\xe9 OLD", "OLD", "né", false).unwrap_err().contains("not UTF-8"));
        let nothing = EditFile { path: "gone".to_owned(), old: "a".to_owned(), new: "b".to_owned(), replace_all: None };
        assert!(super::bytes(&nothing, None, &Mask::default()).unwrap_err().contains("gone: there is no such file"));
    }
}
