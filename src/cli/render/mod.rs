//! The one place that prints: data to standard output, everything else to standard error.
//!
//! Renderers are functions of events and of the commands' data; none of them decides anything.

pub mod apply;
pub mod ask;
pub mod demo;
pub mod diff;
pub mod doctor;
pub mod json;
mod layout;
pub mod live;
pub mod log;
pub mod models;
pub mod progress;
pub mod result;
pub mod resume;
pub mod schema;
pub mod settings;
mod status;
pub mod story;
mod table;
pub mod tasks;
pub mod tidy;

use std::{
    io::{IsTerminal as _, Write as _},
    sync::OnceLock,
    time::Duration,
};

use anstream::{AutoStream, ColorChoice};

pub use self::layout::Width;
use self::layout::{GREEN, RED, YELLOW};
use super::{args::Common, error::Report};
use crate::{
    commands::settings::Environment,
    domain::{amount::counted, line::first_line},
};

/// The output options of the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Manner {
    /// JSON on standard output.
    pub json: bool,
    /// When to use colour.
    pub color: ColorChoice,
    /// Only errors on standard error.
    pub quiet: bool,
    /// More detail on standard error.
    pub verbose: bool,
    /// The terminal can move its cursor.
    pub moves_cursor: bool,
    /// No colour except on a terminal, whatever would force it (`CLICOLOR_FORCE=0`).
    pub unforced: bool,
}

impl Manner {
    /// From the command line and the environment.
    #[must_use]
    pub fn of(common: &Common, environment: &Environment) -> Self {
        let color = match common.color {
            clap::ColorChoice::Auto => ColorChoice::Auto,
            clap::ColorChoice::Always => ColorChoice::Always,
            clap::ColorChoice::Never => ColorChoice::Never,
        };
        let moves_cursor = environment.get("TERM").is_some_and(|term| term != "dumb");
        let unforced = environment.get("CLICOLOR_FORCE").is_some_and(|value| value == "0" || value.is_empty());
        Self { json: common.json, color, quiet: common.quiet, verbose: common.verbose, moves_cursor, unforced }
    }

    /// How a stream shows colour.
    fn color_of(self, stream: &impl std::io::IsTerminal) -> ColorChoice {
        if self.color == ColorChoice::Auto && self.unforced && !stream.is_terminal() {
            return ColorChoice::Never;
        }
        self.color
    }
}

/// Writes a line of data. A closed pipe does not stop the work.
pub fn data(manner: Manner, line: &str) {
    let _ = try_data(manner, line);
}

/// Does something that may take long, and says so if it does.
pub async fn while_waiting<T>(manner: Manner, words: &str, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        () = tokio::time::sleep(Duration::from_secs(2)) => say(manner, words),
    }
    work.await
}

/// Writes a line of data. An error other than a closed pipe is remembered for [`status_of_output`].
pub fn try_data(manner: Manner, line: &str) -> std::io::Result<()> {
    let mut out = AutoStream::new(std::io::stdout(), manner.color_of(&std::io::stdout()));
    noted(writeln!(out, "{line}").and_then(|()| out.flush()))
}

/// The first failure to write to standard output, if there was one.
static FAILED: OnceLock<String> = OnceLock::new();

/// Remembers an error of standard output: its reader misses something.
fn noted(written: std::io::Result<()>) -> std::io::Result<()> {
    if let Err(error) = &written
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        let _ = FAILED.set(error.to_string()); // the first one is enough
    }
    written
}

/// The exit status of a command: never success if its output could not be written, which it reports.
#[must_use]
pub fn status_of_output(status: u8, written: std::io::Result<()>) -> u8 {
    let _ = noted(written);
    let Some(error) = FAILED.get() else { return status };
    let line = format!("error: cannot write the output to stdout: {error}\n  try: write it to a disk with free space");
    let _ = writeln!(std::io::stderr(), "{line}");
    if status == 0 { 1 } else { status }
}

/// Writes the last line of data, and keeps the lock on standard output until the process ends.
pub fn last_data(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = noted(writeln!(out, "{line}").and_then(|()| out.flush()));
    std::mem::forget(out);
}

/// Writes a line for people.
pub fn say(manner: Manner, line: &str) {
    let mut out = AutoStream::new(std::io::stderr(), manner.color_of(&std::io::stderr()));
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

/// Writes data as it is.
pub fn bytes(content: &[u8]) {
    let mut out = std::io::stdout();
    let _ = noted(out.write_all(content).and_then(|()| out.flush()));
}

/// Shows an error: as lines for people, and with `--json` also as an object.
pub fn error(manner: Manner, report: &Report) {
    if manner.json {
        data(manner, &report.json().to_string());
    }
    for line in styled(report, Width::of_stderr()) {
        say(manner, &line);
    }
}

/// An error in clap's style: the label of each line in colour, long text wrapped beside it.
#[must_use]
pub fn styled(report: &Report, width: Width) -> Vec<String> {
    let parts = report.parts();
    let shown = parts.into_iter().flat_map(|(label, text)| {
        let style = match label {
            "error:" => RED.bold(),
            "  because:" => YELLOW,
            _ => GREEN,
        };
        let mut lines = width.folded(&text, label.len() + 1).into_iter();
        let first = format!("{style}{label}{style:#} {}", lines.next().unwrap_or_default());
        let indent = label.len() + 1;
        std::iter::once(first).chain(lines.map(move |line| format!("{:indent$}{line}", ""))).collect::<Vec<_>>()
    });
    shown.collect()
}

/// Writes a document of data.
pub fn document(manner: Manner, json: impl FnOnce() -> serde_json::Value, text: impl FnOnce() -> String) {
    let content = if manner.json { json().to_string() } else { text() };
    data(manner, content.trim_end());
}

/// Whether standard error is a terminal.
#[must_use]
pub fn on_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// `text` without control characters, which could control the terminal.
fn plain(text: &str) -> String {
    // nor characters that change the direction of text
    let turns = |c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if c.is_control() || turns(c) { ' ' } else { c }).collect()
}

/// `text` with each line made [plain]; tabs stay.
fn screen(text: &str) -> String {
    text.lines().map(|line| line.split('\t').map(plain).collect::<Vec<_>>().join("\t") + "\n").collect()
}

/// A number with thousands separators: `12,345`.
#[must_use]
pub fn grouped(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

/// A moment for people, in the local time zone: `2026-11-29 18:04:05`.
#[must_use]
pub fn moment(at_ms: u64) -> String {
    let ms = i64::try_from(at_ms).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(ms).map_or_else(
        |_| at_ms.to_string(),
        |at| at.to_zoned_datetime(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

/// The last lines of a program's output, at most `most`, without control characters.
fn tail(output: &str, most: usize) -> Vec<String> {
    let lines: Vec<&str> = output.trim_end().lines().collect();
    let left_out = lines.len().saturating_sub(most);
    let shown = lines.iter().skip(left_out).map(|line| plain(&line.replace('\t', "    ")));
    let more = (left_out > 0).then(|| format!("… {} before", counted(left_out as u64, "line")));
    more.into_iter().chain(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_first_lines_are_readable() {
        assert_eq!([grouped(0), grouped(999), grouped(1000), grouped(1_500_000)], ["0", "999", "1,000", "1,500,000"]);
        assert_eq!(first_line("  one two three\nfour", 8), "one two…");
        assert_eq!(first_line("one\ntwo", 8), "one …");
        assert_eq!(first_line("one\n", 8), "one");
    }
}
