//! Secrets are masked before anything is stored, sent or shown: the values that are known, and the shapes of tokens.
//!
//! A text is masked before it is cut, because a cut within a secret would leave a part of it. If only a part of a text is
//! stored (both ends of an output), enough more is read to see a secret at the edge whole ([`BEYOND`]).

mod shapes;
mod stream;

use std::{borrow::Cow, ops::Range};

use secrecy::{ExposeSecret, SecretString};

pub use stream::Stream;

/// The replacement for a secret.
pub const MASKED: &str = "[masked by nisse]";

/// Values shorter than this, in bytes, are too common in ordinary text to be masked.
pub const SHORTEST: usize = 6;

/// Bytes kept beyond a cut until the text is masked: the longest secret that is expected.
pub const BEYOND: usize = 16 * 1024;

/// Each line of a multi-line value is also masked by itself if it has at least this many bytes, because output with line
/// numbers does not contain the whole value.
const SHORTEST_LINE: usize = 16;

/// Masks secrets in texts; without values, only what looks like a token.
#[derive(Clone, Debug, Default)]
pub struct Mask {
    values: Vec<SecretString>,
}

impl Mask {
    /// A mask for these values, surrounding white space aside, and for common shapes of tokens.
    #[must_use]
    pub fn new(values: &[SecretString]) -> Self {
        let whole = values.iter().map(|value| value.expose_secret().trim());
        let lines = whole.clone().filter(|value| value.contains('\n')).flat_map(str::lines).map(str::trim);
        let mut all: Vec<&str> = whole
            .filter(|value| value.len() >= SHORTEST)
            .chain(lines.filter(|line| line.len() >= SHORTEST_LINE))
            .collect();
        all.sort_unstable();
        all.dedup();
        Self { values: all.into_iter().map(SecretString::from).collect() }
    }

    /// The text with every secret masked.
    #[must_use]
    pub fn apply<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let spans = self.spans(text);
        if spans.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(masked(text, &spans, |_| MASKED.to_owned())) }
    }

    /// The same, keeping the number of lines: each line of a multi-line secret is masked.
    #[must_use]
    pub fn line_by_line<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let spans = self.spans(text);
        if spans.is_empty() {
            return Cow::Borrowed(text);
        }
        Cow::Owned(masked(text, &spans, |secret| {
            let lines = secret.split('\n').map(|line| match line.strip_suffix('\r') {
                Some(_) => format!("{MASKED}\r"),
                None if line.is_empty() => String::new(),
                None => MASKED.to_owned(),
            });
            lines.collect::<Vec<_>>().join("\n")
        }))
    }

    /// The text with known values masked, but not what only looks like a token.
    #[must_use]
    pub fn known<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let spans = merged(self.values_in(text));
        if spans.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(masked(text, &spans, |_| MASKED.to_owned())) }
    }

    /// The text up to `end`, masked, including a secret that crosses the end.
    #[must_use]
    pub fn up_to(&self, text: &str, end: usize) -> String {
        let mut spans = self.spans(text);
        spans.retain(|span| span.start < end);
        let end = spans.last().map_or(end, |last| last.end.max(end));
        masked(&text[..end], &spans, |_| MASKED.to_owned())
    }

    /// The text from `start` on, masked, including a secret that crosses the start.
    #[must_use]
    pub fn onward(&self, text: &str, start: usize) -> String {
        let mut spans = self.spans(text);
        spans.retain(|span| span.end > start);
        let start = spans.first().map_or(start, |first| first.start.min(start));
        for span in &mut spans {
            *span = span.start - start..span.end - start;
        }
        masked(&text[start..], &spans, |_| MASKED.to_owned())
    }

    /// Where secrets are, in order, without overlaps.
    fn spans(&self, text: &str) -> Vec<Range<usize>> {
        let mut spans = self.values_in(text);
        spans.extend(shapes::find(text));
        merged(spans)
    }

    fn values_in(&self, text: &str) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        for value in &self.values {
            let value = value.expose_secret();
            let mut from = 0;
            while let Some(at) = text.get(from..).and_then(|rest| rest.find(value)) {
                spans.push(from + at..from + at + value.len());
                // one may overlap the next
                from += at + value.chars().next().map_or(1, char::len_utf8);
            }
        }
        spans
    }
}

/// Spans in order, overlapping ones joined.
fn merged(mut spans: Vec<Range<usize>>) -> Vec<Range<usize>> {
    spans.sort_unstable_by_key(|span| (span.start, span.end));
    spans.into_iter().fold(Vec::new(), |mut apart: Vec<Range<usize>>, span| {
        match apart.last_mut() {
            Some(last) if span.start < last.end => last.end = last.end.max(span.end),
            Some(_) | None => apart.push(span),
        }
        apart
    })
}

/// The text with each span replaced.
fn masked(text: &str, spans: &[Range<usize>], instead: impl Fn(&str) -> String) -> String {
    let (mut out, mut copied) = (String::with_capacity(text.len()), 0);
    for span in spans {
        out.push_str(&text[copied..span.start]);
        out.push_str(&instead(&text[span.clone()]));
        copied = span.end;
    }
    out.push_str(&text[copied..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask() -> Mask {
        Mask::new(&["hunter2-value\n", "hunter2-value-longer", "short"].map(SecretString::from))
    }

    #[test]
    fn known_values_are_masked_and_short_ones_are_not() {
        assert_eq!(
            mask().apply("a=hunter2-value b=hunter2-value-longer short"),
            format!("a={MASKED} b={MASKED} short")
        );
        assert!(matches!(mask().apply("nothing here: é, task-sk-"), Cow::Borrowed(_)));
        assert_eq!(Mask::new(&[SecretString::from("abcabc")]).apply("abcabcabc."), format!("{MASKED}."));
        assert_eq!(mask().known("hunter2-value AKIAIOSFODNN7EXAMPLE"), format!("{MASKED} AKIAIOSFODNN7EXAMPLE"));
    }

    #[test]
    fn of_a_secret_across_a_cut_nothing_is_left() {
        let text = "before hunter2-value after";
        let (start, end) = (7, 7 + "hunter2-value".len());
        for at in start + 1..end {
            assert_eq!(mask().up_to(text, at), format!("before {MASKED}"));
            assert_eq!(mask().onward(text, at), format!("{MASKED} after"));
        }
        assert_eq!((mask().up_to(text, start), mask().onward(text, end)), ("before ".to_owned(), " after".to_owned()));
        assert_eq!(mask().up_to(text, end + 2), format!("before {MASKED} a"));
        assert_eq!(mask().onward(text, 3), format!("ore {MASKED} after"));
    }

    #[test]
    fn lines_stay_lines() {
        let value = "-----first line of it-----\r\nsecond line of it\nthird";
        let mask = Mask::new(&[SecretString::from(value)]);
        assert_eq!(mask.line_by_line(&format!("a\n{value}\nb")), format!("a\n{MASKED}\r\n{MASKED}\n{MASKED}\nb"));
        assert_eq!(mask.apply("2\tsecond line of it\n3\tthird\n"), format!("2\t{MASKED}\n3\tthird\n"));
        let key = "-----BEGIN RSA PRIVATE KEY-----\nCANARY\n-----END RSA PRIVATE KEY-----\n";
        assert_eq!(mask.line_by_line(key), format!("{MASKED}\n{MASKED}\n{MASKED}\n"));
    }
}
