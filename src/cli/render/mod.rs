//! The one place that prints: data to standard output, everything else to standard error.
//!
//! Renderers are functions of events and of the commands' data; none of them decides anything.

pub mod apply;
pub mod ask;
pub mod demo;
pub mod diff;
pub mod doctor;
pub mod json;
pub mod live;
pub mod log;
pub mod models;
pub mod progress;
pub mod result;
pub mod schema;
mod status;
pub mod story;
mod table;
pub mod tidy;

use std::{
    io::{IsTerminal as _, Write as _},
    sync::OnceLock,
    time::Duration,
};

use anstream::{AutoStream, ColorChoice};

use super::{args::Common, error::Report};
use crate::commands::settings::Environment;

/// How the person wants to be spoken to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a wish of its own")]
pub struct Manner {
    /// JSON on standard output.
    pub json: bool,
    /// Colour, where the stream can show it.
    pub color: ColorChoice,
    /// Nothing on standard error but errors.
    pub quiet: bool,
    /// More on standard error.
    pub verbose: bool,
    /// The terminal can move its cursor.
    pub moves_cursor: bool,
}

impl Manner {
    /// As the command line asks for.
    #[must_use]
    pub fn of(common: &Common, environment: &Environment) -> Self {
        let color = match common.color {
            clap::ColorChoice::Auto => ColorChoice::Auto,
            clap::ColorChoice::Always => ColorChoice::Always,
            clap::ColorChoice::Never => ColorChoice::Never,
        };
        let moves_cursor = environment.get("TERM").is_some_and(|term| term != "dumb");
        Self { json: common.json, color, quiet: common.quiet, verbose: common.verbose, moves_cursor }
    }
}

/// Writes a line of data. A reader that has gone away is no reason to stop the work.
pub fn data(manner: Manner, line: &str) {
    let _ = try_data(manner, line);
}

/// Does something that may take its time, and says so where it does.
pub async fn while_waiting<T>(manner: Manner, words: &str, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        () = tokio::time::sleep(Duration::from_secs(2)) => say(manner, words),
    }
    work.await
}

/// Writes a line of data. A reader that went away is no failure; any other is remembered for [`output_failure`].
pub fn try_data(manner: Manner, line: &str) -> std::io::Result<()> {
    let mut out = AutoStream::new(std::io::stdout(), manner.color);
    noted(writeln!(out, "{line}").and_then(|()| out.flush()))
}

/// The first failure to write to standard output, if there was one.
static FAILED: OnceLock<String> = OnceLock::new();

/// Remembers that standard output could not be written: whoever reads it has less than was said.
fn noted(written: std::io::Result<()>) -> std::io::Result<()> {
    if let Err(error) = &written
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        let _ = FAILED.set(error.to_string()); // the first one tells enough
    }
    written
}

/// The exit status of a command that came to `status`: that its output could not be written is told, and no success.
#[must_use]
pub fn status_of_output(status: u8, written: std::io::Result<()>) -> u8 {
    let _ = noted(written);
    let Some(error) = FAILED.get() else { return status };
    let line =
        format!("error: the output could not be written to stdout: {error}\n  try: write it to where there is room");
    let _ = writeln!(std::io::stderr(), "{line}");
    if status == 0 { 1 } else { status }
}

/// Writes a line of data after which no other comes: whoever else would write waits for the process to end.
pub fn last_data(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = noted(writeln!(out, "{line}").and_then(|()| out.flush()));
    std::mem::forget(out);
}

/// Writes a line for a person, whatever the manner.
pub fn say(manner: Manner, line: &str) {
    let mut out = AutoStream::new(std::io::stderr(), manner.color);
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

/// Writes data as it is.
pub fn bytes(content: &[u8]) {
    let mut out = std::io::stdout();
    let _ = noted(out.write_all(content).and_then(|()| out.flush()));
}

/// Shows an error: as lines for a person, and with `--json` as an object beside the results.
pub fn error(manner: Manner, report: &Report) {
    if manner.json {
        data(manner, &report.json().to_string());
    }
    for line in report.lines() {
        say(manner, &line);
    }
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

/// `text` without control characters: much of it was written by others, and must not steer a terminal.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// `text` in its lines, each [plain]; tabs stay.
fn screen(text: &str) -> String {
    text.lines().map(|line| line.split('\t').map(plain).collect::<Vec<_>>().join("\t") + "\n").collect()
}

/// A number with its thousands apart: `12,345`.
#[must_use]
pub fn grouped(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

/// A span of time for people: `850 ms`, `12 s`, `3 min 05 s`, `2 h 10 min`.
#[must_use]
pub fn span(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("{ms} ms"),
        1..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
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

/// The first line of a text, cut at `most` characters.
#[must_use]
pub fn first_line(text: &str, most: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    if line.chars().count() <= most {
        return line.to_owned();
    }
    line.chars().take(most.saturating_sub(1)).collect::<String>().trim_end().to_owned() + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_spans_are_readable() {
        assert_eq!([grouped(0), grouped(999), grouped(1000), grouped(1_500_000)], ["0", "999", "1,000", "1,500,000"]);
        assert_eq!(
            [span(850), span(12_000), span(185_000), span(7_800_000)],
            ["850 ms", "12 s", "3 min 05 s", "2 h 10 min"]
        );
        assert_eq!(first_line("  one two three\nfour", 8), "one two…");
    }
}
