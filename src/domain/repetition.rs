//! Detects a stream that repeats itself endlessly, while it streams.
//!
//! Only the content counts: however a stream is cut into pieces, it is stopped at the same byte. Only long, exact
//! repetition counts, because tables, code and data repeat themselves, too; the output limit bounds the rest.

use super::message::{Part, Reply, Stop};

/// A run of this many bytes that repeats a piece of at most this many bytes.
type Endless = (usize, usize);

/// The limit for text and reasoning, which have no effect.
const WORDS: &[Endless] = &[(4 << 10, 512), (16 << 10, 4 << 10)];
/// The limit for arguments of calls, which contain files, and those may repeat themselves.
const ARGUMENTS: &[Endless] = &[(32 << 10, 4 << 10)];
/// A stream is checked this many times per length of the shortest run.
const LOOKS: usize = 8;
/// How far the end of a character may be from the place where a run was found, in bytes.
const OFF: usize = 4;

/// Detects endless repetition in a stream.
#[derive(Debug)]
pub struct Repetition {
    much: &'static [Endless],
    /// The last bytes, as many as the longest run, or somewhat more.
    tail: Vec<u8>,
    /// Bytes taken.
    taken: usize,
}

impl Repetition {
    /// For words and reasoning.
    #[must_use]
    pub fn of_words() -> Self {
        Self { much: WORDS, tail: Vec::new(), taken: 0 }
    }

    /// For the arguments of calls.
    #[must_use]
    pub fn of_arguments() -> Self {
        Self { much: ARGUMENTS, tail: Vec::new(), taken: 0 }
    }

    /// Takes the next piece. If the stream repeats itself endlessly, returns how many bytes of this piece to keep.
    pub fn take(&mut self, piece: &str) -> Option<usize> {
        let step = self.much.iter().map(|(run, _)| run / LOOKS).min().unwrap_or(usize::MAX).max(1);
        let longest = self.much.iter().map(|(run, _)| *run).max().unwrap_or(0);
        let mut at = 0;
        while at < piece.len() {
            let end = piece.len().min(at + step - self.taken % step);
            self.tail.extend_from_slice(&piece.as_bytes()[at..end]);
            self.taken += end - at;
            at = end;
            if self.taken.is_multiple_of(step) && is_endless(&self.tail, self.much, 0) {
                return Some((0..=at).rev().find(|at| piece.is_char_boundary(*at)).unwrap_or(0));
            }
            if self.tail.len() > 2 * longest {
                self.tail.drain(..self.tail.len() - longest);
            }
        }
        None
    }
}

/// Whether a reply was stopped, or reached its output limit, during endless repetition.
#[must_use]
pub fn ends_repeating(reply: &Reply) -> bool {
    if reply.stop != Stop::Truncated {
        return false;
    }
    let ends = |text: &str, much: &[Endless]| is_endless(text.as_bytes(), much, OFF);
    let reasoned = |raw: &str| match serde_json::from_str(raw) {
        Ok(serde_json::Value::Object(members)) => {
            members.values().filter_map(serde_json::Value::as_str).any(|text| ends(text, WORDS))
        }
        Ok(_) | Err(_) => false,
    };
    ends(&reply.text(), WORDS)
        || reply.parts.iter().any(|part| match part {
            Part::Reasoning(raw) => reasoned(raw),
            Part::Call(call) => ends(&call.arguments, ARGUMENTS),
            Part::Text(_) => false,
        })
}

/// Whether the end of `bytes` is such a run, of which `less` bytes may be missing.
fn is_endless(bytes: &[u8], much: &[Endless], less: usize) -> bool {
    much.iter().any(|(run, longest)| {
        let last = bytes.len().checked_sub(run - less).map(|from| &bytes[from..]);
        last.is_some_and(|last| period(last) <= *longest)
    })
}

/// The length of the shortest piece that the bytes are repetitions of, the last one perhaps not whole.
fn period(bytes: &[u8]) -> usize {
    // the failure function of Knuth, Morris and Pratt: the longest suffix that is also a prefix
    let mut borders = vec![0usize; bytes.len()];
    let mut border = 0;
    for at in 1..bytes.len() {
        while border > 0 && bytes[at] != bytes[border] {
            border = borders[border - 1];
        }
        if bytes[at] == bytes[border] {
            border += 1;
        }
        borders[at] = border;
    }
    bytes.len() - border
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a text is stopped that comes in pieces of about that many bytes.
    fn stopped(mut watch: Repetition, text: &str, size: usize) -> Option<usize> {
        let mut done = 0;
        while done < text.len() {
            let end = (done + size..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
            if let Some(kept) = watch.take(&text[done..end]) {
                return Some(done + kept);
            }
            done = end;
        }
        None
    }

    fn endless() -> Vec<String> {
        let before = "First I look at what fails, and then at why. ".to_owned();
        let lines: Vec<_> = (0..40).map(|n| format!("{n}. Then I will look at the file once more.\n")).collect();
        vec![
            "\n".repeat(5000),
            before.clone() + &"{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.txt\"}}\n".repeat(200),
            before.repeat(3) + &"so é it is 🔥 ".repeat(500),
            before + &lines.concat().repeat(20),
        ]
    }

    #[test]
    fn endless_repetition_is_stopped_at_the_same_byte_however_it_comes() {
        for text in endless() {
            let whole = stopped(Repetition::of_words(), &text, text.len());
            assert!(whole.is_some_and(|at| at < text.len()), "{}", &text[..60]);
            for size in [1, 3, 7, 100, 511, 512, 513, 4096] {
                assert_eq!(stopped(Repetition::of_words(), &text, size), whole, "{size}: {}", &text[..60]);
            }
        }
    }

    #[test]
    fn what_is_long_and_dull_but_not_endless_is_left_alone() {
        let rows: Vec<_> = (0..400).map(|n| format!("| {n:>4} | {:>6} | - | - |\n", n * n)).collect();
        let rule = format!("|{}|\n", "-".repeat(300)).repeat(2);
        let code = "    {\n        0, 0, 0, 0, 0, 0, 0, 0,\n    },\n".repeat(60) + "};\n";
        let base64: String = (0u64..6000)
            .map(|n| {
                char::from(
                    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
                        [(n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(n * n) >> 33) as usize % 64],
                )
            })
            .collect();
        for text in [rows.concat().as_str(), &rule, &code, &base64, &"A".repeat(3000)] {
            assert_eq!(stopped(Repetition::of_words(), text, 50), None, "{}", &text[..60]);
        }
        // a file may hold much more of it
        for text in [&"a line of which nothing matters much\\n".repeat(700), &"AAAA".repeat(7000), &code.repeat(5)] {
            assert_eq!(stopped(Repetition::of_arguments(), text, 50), None, "{}", &text[..60]);
        }
        assert!(stopped(Repetition::of_arguments(), &"AAAA".repeat(20_000), 50).is_some());
    }

    #[test]
    fn what_was_stopped_is_known_from_the_record() {
        let reply = |parts, stop| Reply { parts, stop, usage: None, cost: None, answered_by: None };
        for text in endless() {
            let kept = stopped(Repetition::of_words(), &text, 9).unwrap_or_default();
            let text = &text[..kept];
            assert!(ends_repeating(&reply(vec![Part::Text(text.to_owned())], Stop::Truncated)));
            let thought = serde_json::json!({"type": "thinking", "thinking": text}).to_string();
            assert!(ends_repeating(&reply(vec![Part::Reasoning(thought)], Stop::Truncated)));
            assert!(!ends_repeating(&reply(vec![Part::Text(text.to_owned())], Stop::End)));
        }
        assert!(!ends_repeating(&reply(vec![Part::Text("cut".to_owned())], Stop::Truncated)));
    }
}
