//! The terminal's last one or two lines: redrawn while other lines scroll above them.
//!
//! - The cursor stays at the first column of the first of them and is never hidden. So after a resize, Ctrl-C or a kill
//!   there is nothing to restore, and erasing from the cursor always erases all of it, even if the terminal has wrapped a
//!   line.
//! - Each frame is one write, so that nothing flickers.
//! - No line is wider than the terminal.

use std::{
    io::Write as _,
    os::fd::AsFd,
    sync::atomic::{AtomicBool, Ordering},
};

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Whether a line is on the screen; for a panic, which must write without a lock.
static SHOWN: AtomicBool = AtomicBool::new(false);
/// Erases from the cursor to the end of the screen.
const ERASE_BELOW: &str = "\x1b[J";

/// Erases from the cursor to the end of its line.
const ERASE_LINE: &str = "\x1b[K";

/// Columns of the terminal at standard error.
#[must_use]
pub(super) fn columns() -> usize {
    columns_of(&std::io::stderr())
}

/// Columns of a terminal.
#[must_use]
pub(super) fn columns_of(terminal: &impl AsFd) -> usize {
    match rustix::termios::tcgetwinsize(terminal) {
        Ok(size) if size.ws_col > 1 => usize::from(size.ws_col),
        Ok(_) | Err(_) => 80, // unknown
    }
}

/// Moves the cursor one line up.
const UP: &str = "\x1b[A";

/// Redraws `line`, below the lines `above` (if any) and the streamed line `arrives` (if any).
pub(super) fn draw(above: &[String], arrives: Option<&str>, line: &str) {
    let mut frame = String::from("\r");
    if !above.is_empty() {
        // first, so that no line is padded with what was erased: it would wrap in a narrower terminal
        frame.push_str(ERASE_BELOW);
    }
    for above in above {
        frame.push_str(above);
        frame.push('\n');
    }
    if let Some(arrives) = arrives {
        frame.push_str(arrives);
        frame.push_str(ERASE_LINE);
        frame.push('\n');
    }
    frame.push_str(line);
    frame.push_str(ERASE_BELOW);
    frame.push('\r');
    if arrives.is_some() {
        frame.push_str(UP);
    }
    SHOWN.store(true, Ordering::Relaxed);
    write(&frame);
}

/// Erases the line, if there is one. Signal handlers and panics may call it.
pub fn erase() {
    if SHOWN.swap(false, Ordering::Relaxed) {
        write(&format!("\r{ERASE_BELOW}"));
    }
}

fn write(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// `text` in at most `most` columns, with `…` at its end where it was cut.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let (head, _) = split(text, most.saturating_sub(1));
    format!("{}…", head.trim_end())
}

/// `text` in lines of at most `most` columns, broken between words if possible.
pub(super) fn wrap(text: &str, most: usize) -> Vec<String> {
    let (mut lines, mut rest) = (Vec::new(), text);
    while rest.width() > most {
        let (head, _) = split(rest, most);
        // a word goes to the next line whole, if that leaves no gap or it fits there
        let next = |at: usize| rest[at + 1..].split(' ').next().unwrap_or_default().width();
        let at = head.rfind(' ').filter(|at| *at > 0 && (*at > head.len() / 2 || next(*at) <= most));
        let at = at.unwrap_or(head.len()).max(1);
        let (line, more) = rest.split_at_checked(at).unwrap_or((rest, ""));
        lines.push(line.trim_end().to_owned());
        rest = more.trim_start();
    }
    lines.push(rest.to_owned());
    lines
}

/// The beginning of `text` that fits `most` columns, one character at least, and the rest.
fn split(text: &str, most: usize) -> (&str, &str) {
    let mut columns = 0;
    for (at, c) in text.char_indices() {
        columns += c.width().unwrap_or(0);
        if columns > most && at > 0 {
            return text.split_at(at);
        }
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_by_columns() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("longer text", 8), "longer…");
        assert_eq!(cut("日本語日本語", 7), "日本語…");
        assert!(cut("日本語日本語", 6).width() <= 6);
    }

    #[test]
    fn texts_are_wrapped_between_words() {
        assert_eq!(wrap("one two three four", 9), ["one two", "three", "four"]);
        assert_eq!(wrap("aaaaaaaaaaaa b", 5), ["aaaaa", "aaaaa", "aa b"]);
        assert_eq!(wrap("a bbbbbbbbb c", 10), ["a", "bbbbbbbbb", "c"]);
        assert_eq!(wrap("a bbbbbbbbbbbbb", 10), ["a bbbbbbbb", "bbbbb"]);
        assert_eq!(wrap("", 5), [""]);
        for line in wrap(&"日本語 mixed with latin ".repeat(9), 11) {
            assert!(line.width() <= 11, "{line}");
        }
    }
}
