//! Text that must fit on one line.

/// A cause as one line: it may contain text of a model or a proxy.
#[must_use]
pub fn one_line(cause: &str) -> String {
    cause.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first line of a text, at most `most` characters; `…` marks what is left out.
#[must_use]
pub fn first_line(text: &str, most: usize) -> String {
    let mut lines = text.trim().lines();
    let line = lines.next().unwrap_or_default().trim_end();
    let more = lines.next().is_some();
    if line.chars().count() + 2 * usize::from(more) <= most {
        return if more { format!("{line} …") } else { line.to_owned() };
    }
    line.chars().take(most.saturating_sub(1)).collect::<String>().trim_end().to_owned() + "…"
}
