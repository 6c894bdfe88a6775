//! Lines of files under the root by regular expression, with ripgrep's engine: its time grows with the text, never
//! faster. Binary files are left at their first NUL, links are not followed (their targets are met themselves).
//! What is found is masked before it is cut, a line that may be part of a longer secret together with its file.

use std::{
    io::Read as _,
    sync::atomic::{AtomicBool, Ordering},
};

use grep_regex::RegexMatcherBuilder;
use grep_searcher::{BinaryDetection, SearcherBuilder, sinks::Lossy};

use super::{files, listing, root_directory::RootDirectory};
use crate::{
    domain::mask::{BEYOND, Mask},
    ports::host::{Error, Found, FoundLine, Search},
};

/// A found line is cut here, in characters.
const LINE: usize = 500;
/// A file with a longer line than this, in bytes, is not searched beyond it.
const HEAP: usize = 32 * 1024 * 1024;

/// See [`crate::ports::host::Host::search`].
pub(super) fn search(root: &RootDirectory, search: &Search, mask: &Mask, stop: &AtomicBool) -> Result<Found, Error> {
    let matcher = RegexMatcherBuilder::new()
        .case_insensitive(search.ignore_case)
        .multi_line(true)
        .crlf(true)
        // `crlf` sets one that the searcher does not have; a pattern over several lines would find nothing, unsaid
        .line_terminator(None)
        .ban_byte(Some(b'\n'))
        .build(&search.pattern)
        .map_err(|error| Error::Refused(format!("`{}` cannot be searched for: {error}", search.pattern)))?;
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(HEAP))
        .build();
    let mut found = Found::default();
    for met in listing::files(root, &search.listing)? {
        if found.more || stop.load(Ordering::Relaxed) {
            break;
        }
        if met.is_link {
            continue;
        }
        // a file that went away or may not be read holds nothing for the asker
        let Ok(file) = files::open(root, &met.path) else { continue };
        let mut whole = None;
        let sink = Lossy(|number, line| {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            if found.lines.len() == search.max_lines {
                found.more = true;
                return Ok(false);
            }
            let line = line.trim_end_matches(['\n', '\r']);
            let text = if may_be_of_a_key(line) {
                let whole = whole.get_or_insert_with(|| masked_lines(root, &met.path, mask));
                let at = usize::try_from(number).ok().and_then(|number| whole.get(number.checked_sub(1)?));
                at.map_or_else(|| cut(line, mask), |masked| cut(masked, mask))
            } else {
                cut(line, mask)
            };
            found.lines.push(FoundLine { path: met.path.clone(), number, text });
            Ok(true)
        });
        // what was found before it failed (a line beyond HEAP, a disk error) stands
        let _ = searcher.search_file(&matcher, &file, sink);
    }
    Ok(found)
}

/// The beginning of a line, masked before it is cut.
fn cut(line: &str, mask: &Mask) -> String {
    let Some((end, _)) = line.char_indices().nth(LINE) else { return mask.apply(line).into_owned() };
    let looked_at = line.char_indices().nth(LINE + BEYOND).map_or(line, |(beyond, _)| &line[..beyond]);
    mask.up_to(looked_at, end)
}

/// Whether a line could be one of a private key, which is known as such only by what stands above it.
fn may_be_of_a_key(line: &str) -> bool {
    let line = line.trim();
    line.len() >= 16 && line.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='))
}

/// The lines of a file, masked together; none if it cannot be read any more.
fn masked_lines(root: &RootDirectory, path: &str, mask: &Mask) -> Vec<String> {
    let mut bytes = Vec::new();
    let read = files::open(root, path).map(|file| file.take(HEAP as u64).read_to_end(&mut bytes));
    if !matches!(read, Ok(Ok(_))) {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    mask.line_by_line(&text).split('\n').map(|line| line.trim_end_matches('\r').to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::{
        super::listing::tests::{listing, tree},
        *,
    };

    fn lines(root: &RootDirectory, pattern: &str, ignore_case: bool, under: &str) -> Vec<String> {
        let search = Search { pattern: pattern.to_owned(), ignore_case, listing: listing(under, None), max_lines: 100 };
        let found = super::search(root, &search, &Mask::default(), &AtomicBool::new(false)).unwrap();
        found.lines.into_iter().map(|line| format!("{}:{}:{}", line.path, line.number, line.text)).collect()
    }

    #[test]
    fn lines_come_by_path_and_number_from_files_that_may_be_seen() {
        let (_outer, root) = tree();
        assert_eq!(lines(&root, "needle", false, ""), ["src/lib.rs:1:fn needle() {}", "src-old.rs:1:needle old"]);
        assert_eq!(lines(&root, "NEEDLE", true, "src"), ["src/lib.rs:1:fn needle() {}", "src/lib.rs:2:// Needle"]);
        assert_eq!(lines(&root, "Needle$", false, ""), ["src/lib.rs:2:// Needle"]);
    }

    #[test]
    fn a_pattern_that_is_none_and_a_limit_are_told() {
        let (_outer, root) = tree();
        let mut search =
            Search { pattern: "(".to_owned(), ignore_case: true, listing: listing("", None), max_lines: 2 };
        for pattern in ["(", "a\\nb"] {
            pattern.clone_into(&mut search.pattern);
            let refused = super::search(&root, &search, &Mask::default(), &AtomicBool::new(false));
            assert!(matches!(refused, Err(Error::Refused(reason)) if reason.contains(pattern)));
        }
        "needle".clone_into(&mut search.pattern);
        let found = super::search(&root, &search, &Mask::default(), &AtomicBool::new(false)).unwrap();
        assert_eq!((found.lines.len(), found.more), (2, true));
    }

    #[test]
    fn long_lines_and_other_encodings_are_shown_within_bounds() {
        let (_outer, root) = tree();
        let mut text = b"caf\xe9 target ".to_vec();
        text.extend("ä".repeat(600).into_bytes());
        std::fs::copy(
            {
                let path = root.path().join("target/long");
                std::io::Write::write_all(&mut std::fs::File::create(&path).unwrap(), &text).unwrap();
                path
            },
            root.path().join("sub/long.txt"),
        )
        .unwrap();
        let search = Search {
            pattern: "caf. target|caf".to_owned(),
            ignore_case: false,
            listing: listing("sub", None),
            max_lines: 9,
        };
        let found = super::search(&root, &search, &Mask::default(), &AtomicBool::new(false)).unwrap();
        assert_eq!(found.lines.len(), 1);
        assert!(found.lines[0].text.starts_with("caf\u{fffd} target ä"));
        assert_eq!(found.lines[0].text.chars().count(), 500);
    }
}
