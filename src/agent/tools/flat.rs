//! A text with every CRLF taken as one newline, and the way back to its bytes.
//!
//! Models write `\n`; files may hold CRLF, or both. Places are found in the flat text, and what is written there gets
//! the line ending of what it replaces, else of its neighbour; no other byte of the file changes.

use std::ops::Range;

/// Bytes without the carriage returns that stand before a newline. One that stands alone stays.
#[derive(Debug)]
pub(super) struct Flat {
    text: Vec<u8>,
    /// Places in `text` of the newlines that were CRLF, ascending.
    crlf: Vec<usize>,
}

impl Flat {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let (mut text, mut crlf) = (Vec::with_capacity(bytes.len()), Vec::new());
        for (at, byte) in bytes.iter().enumerate() {
            if *byte == b'\r' && bytes.get(at + 1) == Some(&b'\n') {
                crlf.push(text.len());
            } else {
                text.push(*byte);
            }
        }
        Self { text, crlf }
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The range in the bytes; a carriage return belongs to its newline.
    pub(super) fn original(&self, range: &Range<usize>) -> Range<usize> {
        let place = |at: usize| at + self.crlf.partition_point(|crlf| *crlf < at);
        place(range.start)..place(range.end)
    }

    /// `new` as it is to be written in place of `range`.
    pub(super) fn written(&self, range: &Range<usize>, new: &[u8]) -> Vec<u8> {
        let mut replaced =
            memchr::memchr_iter(b'\n', &self.text[range.clone()]).map(|at| self.is_crlf(range.start + at));
        let mut latest = self.neighbour(range);
        let mut written = Vec::with_capacity(new.len());
        for byte in new {
            if *byte == b'\n' {
                latest = replaced.next().unwrap_or(latest);
                if latest {
                    written.push(b'\r');
                }
            }
            written.push(*byte);
        }
        written
    }

    /// Whether the line ending next to the range is CRLF: the one before it, else the one behind it.
    fn neighbour(&self, range: &Range<usize>) -> bool {
        memchr::memrchr(b'\n', &self.text[..range.start])
            .or_else(|| memchr::memchr(b'\n', &self.text[range.start..]).map(|at| range.start + at))
            .is_some_and(|at| self.is_crlf(at))
    }

    fn is_crlf(&self, at: usize) -> bool {
        self.crlf.binary_search(&at).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_lead_back_to_the_bytes() {
        let bytes = b"a\r\nb\n\rc\r\n";
        let flat = Flat::of(bytes);
        assert_eq!(flat.text(), b"a\nb\n\rc\n");
        let original = |range| &bytes[flat.original(&range)];
        assert_eq!(original(0..1), b"a");
        assert_eq!(original(1..2), b"\r\n");
        assert_eq!(original(0..3), b"a\r\nb");
        assert_eq!(original(5..7), b"c\r\n");
        assert_eq!(original(0..7), bytes);
    }

    #[test]
    fn what_is_written_follows_what_it_replaces_else_its_neighbour() {
        let flat = Flat::of(b"a\r\nb\nc\n");
        assert_eq!(flat.written(&(0..4), b"1\n2\n3\n"), b"1\r\n2\n3\n");
        assert_eq!(flat.written(&(2..2), b"x\n"), b"x\r\n");
        assert_eq!(flat.written(&(0..0), b"x\n"), b"x\r\n");
        assert_eq!(flat.written(&(5..5), b"x\n"), b"x\n");
        assert_eq!(Flat::of(b"alone").written(&(5..5), b"\nx"), b"\nx");
    }
}
