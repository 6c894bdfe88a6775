//! Watches a streaming reply for text, reasoning or arguments that repeat themselves endlessly.

use crate::domain::repetition::Repetition;

/// The lookout of one reply.
#[derive(Debug)]
pub(super) struct Lookout {
    words: Repetition,
    arguments: Repetition,
    /// For a complete body, which has ended by itself.
    streamed: bool,
    found: bool,
}

impl Lookout {
    pub(super) fn new() -> Self {
        let (words, arguments) = (Repetition::of_words(), Repetition::of_arguments());
        Self { words, arguments, streamed: true, found: false }
    }

    /// Nothing is stopped any more.
    pub(super) fn end(&mut self) {
        self.streamed = false;
    }

    /// Whether to stop the reply.
    pub(super) fn found(&self) -> bool {
        self.found
    }

    /// The part of a piece of text or reasoning that belongs to the reply.
    pub(super) fn words<'a>(&mut self, piece: &'a str) -> &'a str {
        let at = if self.streamed && !self.found { self.words.take(piece) } else { None };
        self.kept(piece, at)
    }

    /// The same of a piece of a call's arguments.
    pub(super) fn arguments<'a>(&mut self, piece: &'a str) -> &'a str {
        let at = if self.streamed && !self.found { self.arguments.take(piece) } else { None };
        self.kept(piece, at)
    }

    fn kept<'a>(&mut self, piece: &'a str, at: Option<usize>) -> &'a str {
        let kept = match at {
            Some(at) => piece.get(..at).unwrap_or(piece),
            None if self.found => "",
            None => piece,
        };
        self.found |= at.is_some();
        kept
    }
}
