//! A command's output: head and tail are kept while it comes, and made text when it has ended.
//!
//! More is kept than is shown, so that a secret across a cut is seen whole and masked before it is cut.

use std::{borrow::Cow, collections::VecDeque, fmt::Write as _};

use crate::domain::mask::Mask;

/// The first and the last bytes of a stream: `keep` of each to be shown, and `beyond` more on the inner side of each.
#[derive(Debug)]
pub(super) struct HeadAndTail {
    keep: usize,
    beyond: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

/// Output as text.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Text {
    /// Where something was left out, a line between head and tail says how much.
    pub(super) clean: String,
    /// Bytes left out.
    pub(super) omitted: u64,
    /// Bytes that were not UTF-8 were replaced.
    pub(super) lossy: bool,
}

impl HeadAndTail {
    pub(super) fn new(keep: usize, beyond: usize) -> Self {
        Self { keep, beyond, head: Vec::new(), tail: VecDeque::new(), total: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let most = self.keep + self.beyond;
        let (first, rest) = bytes.split_at(bytes.len().min(most - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(most)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(most);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// What is shown of it, masked.
    pub(super) fn into_text(self, mask: &Mask) -> Text {
        let Self { keep, total, mut head, tail, .. } = self;
        let mut tail = Vec::from(tail);
        // nothing is missing in between: each end is looked at together with all the rest
        if total == (head.len() + tail.len()) as u64 {
            head.append(&mut tail);
            if head.len() <= 2 * keep {
                let (text, lossy) = clean(&head);
                return Text { clean: mask.apply(&text).into_owned(), omitted: 0, lossy };
            }
            tail.clone_from(&head);
        }
        let end = whole_characters(&head[..keep]);
        let first = tail.len() - keep;
        let start = first + tail[first..].iter().take(3).take_while(|byte| is_continuation(**byte)).count();
        let omitted = total - (end + tail.len() - start) as u64;
        // cleaned apart, so that an escape sequence that was cut swallows nothing of the other part
        let (head, tail) = (Cleaned::of(&head, end), Cleaned::of(&tail, start));
        let mut text = mask.up_to(&head.text, head.at);
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let _ = writeln!(text, "[... {omitted} bytes of output left out ...]");
        text.push_str(&mask.onward(&tail.text, tail.at));
        Text { clean: text, omitted, lossy: head.lossy.0 || tail.lossy.1 }
    }
}

/// Bytes as text, and where a place in them is in that.
struct Cleaned {
    text: String,
    at: usize,
    /// Whether what is before that place, and what is after it, holds bytes that are not UTF-8.
    lossy: (bool, bool),
}

impl Cleaned {
    /// A sequence that goes over the place belongs to what is before it.
    fn of(bytes: &[u8], at: usize) -> Self {
        let (before, after) = (String::from_utf8_lossy(&bytes[..at]), String::from_utf8_lossy(&bytes[at..]));
        let lossy = (matches!(before, Cow::Owned(_)), matches!(after, Cow::Owned(_)));
        let (text, at) = cleaned(&format!("{before}{after}"), before.len());
        Self { text, at, lossy }
    }
}

/// Bytes of the newest output in which its last line is looked for.
const RECENT: usize = 1000;

/// The newest bytes of a stream.
#[derive(Default, Debug)]
pub(super) struct Recent(Vec<u8>);

impl Recent {
    /// Takes more of the stream, and returns its last line that is not blank, as far as that has come.
    pub(super) fn last_line(&mut self, bytes: &[u8]) -> Option<String> {
        self.0.extend_from_slice(&bytes[bytes.len().saturating_sub(RECENT)..]);
        self.0.drain(..self.0.len().saturating_sub(RECENT));
        let (text, _) = clean(&self.0[..whole_characters(&self.0)]);
        text.lines().map(str::trim_end).rfind(|line| !line.is_empty()).map(str::to_owned)
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// The length without a UTF-8 sequence that begins at the end and is not whole.
fn whole_characters(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let byte = bytes[bytes.len() - back];
        let wanted = match byte {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            _ if is_continuation(byte) => continue,
            _ => break,
        };
        return if wanted > back { bytes.len() - back } else { bytes.len() };
    }
    bytes.len()
}

/// Bytes as text: what is not UTF-8, and NUL, become U+FFFD; escape sequences and control characters go, save tab and
/// newline; a carriage return alone, with which progress bars draw over their line, becomes a newline.
fn clean(bytes: &[u8]) -> (String, bool) {
    let decoded = String::from_utf8_lossy(bytes);
    (cleaned(&decoded, 0).0, matches!(decoded, Cow::Owned(_)))
}

/// The same of what is text already, and where the place `at` is in the answer.
fn cleaned(decoded: &str, at: usize) -> (String, usize) {
    let mut text = String::with_capacity(decoded.len());
    let mut found = None;
    let mut rest = decoded;
    while let Some(next) = rest.chars().next() {
        if found.is_none() && decoded.len() - rest.len() >= at {
            found = Some(text.len());
        }
        let after = &rest[next.len_utf8()..];
        rest = after;
        match next {
            '\u{1b}' => rest = after_escape(after),
            '\0' => text.push('\u{fffd}'),
            '\r' if after.starts_with('\n') => {}
            '\r' => text.push('\n'),
            '\n' | '\t' => text.push(next),
            _ if next.is_control() => {}
            _ => text.push(next),
        }
    }
    let found = found.unwrap_or(text.len());
    (text, found)
}

/// What follows an escape sequence whose ESC is before `rest` (ECMA-48). A sequence that is not whole ends where its
/// form breaks, and none goes beyond its line: garbage must not swallow the text behind it.
fn after_escape(rest: &str) -> &str {
    let bytes = rest.as_bytes();
    let run = |from: usize, range: std::ops::RangeInclusive<u8>| {
        bytes[from..].iter().take_while(|byte| range.contains(byte)).count()
    };
    let end = match bytes.first() {
        Some(b'[') => {
            let parameters = run(1, 0x30..=0x3f);
            let end = 1 + parameters + run(1 + parameters, 0x20..=0x2f);
            end + run(end, 0x40..=0x7e).min(1)
        }
        // strings (titles, links): up to BEL or ESC \
        Some(b']' | b'P' | b'X' | b'^' | b'_') => {
            let end = bytes.iter().take_while(|byte| !matches!(byte, 0x07 | 0x1b | b'\n' | b'\r')).count();
            match (bytes.get(end), bytes.get(end + 1)) {
                (Some(0x07), _) => end + 1,
                (Some(0x1b), Some(b'\\')) => end + 2,
                _ => end,
            }
        }
        Some(0x20..=0x2f) => {
            let end = run(0, 0x20..=0x2f);
            end + run(end, 0x30..=0x7e).min(1)
        }
        Some(0x30..=0x7e) => 1,
        Some(_) | None => 0,
    };
    // every byte taken is ASCII, or a string's, which ends at an ASCII byte
    rest.get(end..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(keep: usize, chunks: &[&[u8]]) -> Text {
        beyond(keep, 0, chunks, &Mask::default())
    }

    fn beyond(keep: usize, beyond: usize, chunks: &[&[u8]], mask: &Mask) -> Text {
        let mut output = HeadAndTail::new(keep, beyond);
        for chunk in chunks {
            output.push(chunk);
        }
        output.into_text(mask)
    }

    #[test]
    fn of_a_secret_across_a_cut_nothing_is_shown_wherever_the_cut_is() {
        let secret = "CANARY-0123456789";
        let mask = Mask::new(&[secrecy::SecretString::from(secret)]);
        let colour = format!("CANARY-\x1b[31m{}", &secret[7..]);
        for written in [secret, &colour] {
            for at in 0..60 {
                // short enough to be kept whole, and not
                for fill in [100, 1000] {
                    let line =
                        format!("{}{written}{}{written}{}", ".".repeat(at), "-".repeat(fill), "+".repeat(60 - at));
                    let cut = beyond(40, 30, &[line.as_bytes()], &mask).clean;
                    for length in 4..secret.len() {
                        assert!(!cut.contains(&secret[..length]), "{at}: {cut}");
                        assert!(!cut.contains(&secret[secret.len() - length..]), "{at}: {cut}");
                    }
                    assert!(cut.contains("left out"), "{cut}");
                }
            }
        }
    }

    #[test]
    fn what_fits_is_kept_whole_however_it_was_split() {
        assert_eq!(text(4, &[b"12", b"345", b"678"]), Text { clean: "12345678".to_owned(), omitted: 0, lossy: false });
        assert_eq!(text(3, &["ä".as_bytes(), "ö".as_bytes()]).clean, "äö");
        assert_eq!(text(9, &[b"\xc3", b"\xa4 split"]).clean, "ä split");
    }

    #[test]
    fn the_last_line_is_what_stands_there_now() {
        let mut recent = Recent::default();
        let pieces: [(&[u8], Option<&str>); 6] = [
            (b"\n", None),
            (b"test a ... ok\ntest b", Some("test b")),
            (b" ... ok\n\n", Some("test b ... ok")),
            (b"\x1b[32m50 %\x1b[0m\r", Some("50 %")),
            (b"51 %\r", Some("51 %")),
            (b"caf\xc3", Some("caf")),
        ];
        for (bytes, wanted) in pieces {
            assert_eq!(recent.last_line(bytes).as_deref(), wanted);
        }
        recent.last_line(&[b'x'; 5000]);
        assert!(recent.0.len() <= RECENT);
    }

    #[test]
    fn what_does_not_fit_is_cut_at_characters_and_counted() {
        for shift in 0..4 {
            let mut bytes = vec![b'x'; shift];
            bytes.extend("🔥".repeat(100).into_bytes());
            let cut = text(10, &[&bytes]);
            assert!(!cut.lossy && !cut.clean.contains('\u{fffd}'), "{cut:?}");
            let shown = cut.clean.matches('🔥').count() * 4 + shift;
            assert_eq!(cut.omitted, (bytes.len() - shown) as u64);
            assert!(cut.clean.contains(&format!("\n[... {} bytes of output left out ...]\n", cut.omitted)));
        }
        let flood = text(2, &[b"ab", &[b'.'; 5000], b"yz"]);
        assert_eq!(flood.clean, "ab\n[... 5000 bytes of output left out ...]\nyz");
        assert_eq!(text(0, &[b"abc"]).omitted, 3);
    }

    #[test]
    fn control_bytes_and_escape_sequences_are_stripped_and_nothing_else() {
        for (bytes, wanted) in [
            (&b"before\0after"[..], "before\u{fffd}after"),
            (b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07x\x1b]8;;http://a\x1b\\link\x1b(B.", "red xlink."),
            (b"a\r\nb\rc\td\x08\x07", "a\nb\nc\td"),
            (b"\x1b]unended garbage\nnext line", "\nnext line"),
            (b"\x1b[12\xc3\xa4", "ä"),
            (b"\x1b", ""),
            (b"\x1b]\xc3\xa4", ""),
            (b"caf\xe9 ok", "caf\u{fffd} ok"),
            (b"\xc2\x9bx", "x"),
        ] {
            assert_eq!(clean(bytes).0, wanted, "{bytes:?}");
        }
        assert!(clean(b"caf\xe9").1 && !clean("café \u{fffd}".as_bytes()).1);
    }

    #[test]
    fn an_escape_sequence_that_was_cut_swallows_nothing_of_the_tail() {
        let cut = text(4, &[b"ab\x1b]", &[b'.'; 100], b"tail"]);
        assert!(cut.clean.ends_with("]\ntail"), "{cut:?}");
    }
}
