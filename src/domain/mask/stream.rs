//! Masks a stream: each part is released once it cannot belong to an unfinished secret.

use secrecy::ExposeSecret;

use super::Mask;

/// Masks a stream.
#[derive(Debug)]
pub struct Stream<'m> {
    mask: &'m Mask,
    seen: String,
    /// What was given out of it, masked.
    given: String,
}

impl<'m> Stream<'m> {
    /// Nothing has come yet.
    #[must_use]
    pub fn new(mask: &'m Mask) -> Self {
        Self { mask, seen: String::new(), given: String::new() }
    }

    /// Takes a piece, and returns what can be shown now.
    pub fn push(&mut self, piece: &str) -> String {
        self.seen.push_str(piece);
        let end = self.settled();
        let more = self.give(end);
        // a line is done with, unless a secret goes on
        let open = self.mask.spans(&self.seen).last().is_some_and(|span| span.end == self.seen.len());
        if !open && self.seen[..end].ends_with('\n') {
            self.seen.drain(..end);
            self.given.clear();
        }
        more
    }

    /// Returns the rest at the end.
    pub fn rest(&mut self) -> String {
        let more = self.give(self.seen.len());
        (self.seen, self.given) = (String::new(), String::new());
        more
    }

    fn give(&mut self, end: usize) -> String {
        let masked = self.mask.up_to(&self.seen, end);
        let more = masked.strip_prefix(&self.given).unwrap_or_default().to_owned();
        self.given = masked;
        more
    }

    /// The end of the part that cannot belong to an unfinished secret: before the last word, a prefix of a known secret, or
    /// the first line of a key.
    fn settled(&self) -> usize {
        let seen = self.seen.as_str();
        let mut end =
            seen.rfind(char::is_whitespace).map_or(0, |at| at + seen[at..].chars().next().map_or(1, char::len_utf8));
        let line = seen.rfind('\n').map_or(0, |at| at + 1);
        if let Some(at) = seen[line..].find("-----BEGIN") {
            end = end.min(line + at);
        }
        for value in &self.mask.values {
            let value = value.expose_secret();
            let first = seen.len().saturating_sub(value.len());
            let begins = (first..end).find(|at| seen.get(*at..).is_some_and(|rest| value.starts_with(rest)));
            end = begins.unwrap_or(end);
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;

    #[test]
    fn no_piece_shows_a_part_of_a_secret_however_it_comes() {
        let mask = Mask::new(&["correct horse battery", "hunter2-value"].map(SecretString::from));
        let key = "-----BEGIN RSA PRIVATE KEY-----\nCANARY\nCANARY\n-----END RSA PRIVATE KEY-----";
        let text = format!("é the correct horse battery, hunter2-value\nghp_{} and\n{key}\n end", "CANARY".repeat(5));
        let characters: Vec<char> = text.chars().collect();
        for size in 1..characters.len() {
            let mut stream = Stream::new(&mask);
            let mut shown: String =
                characters.chunks(size).map(|piece| stream.push(&piece.iter().collect::<String>())).collect();
            shown.push_str(&stream.rest());
            assert_eq!(shown, mask.apply(&text), "{size}");
        }
        let mut stream = Stream::new(&mask);
        assert_eq!(stream.push("plain words co"), "plain words ");
        assert_eq!(stream.push("me "), "come ");
    }
}
