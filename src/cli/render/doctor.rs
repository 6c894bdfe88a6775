//! What the doctor found: a line for each condition, and below it what to do; then every setting with its source.

use std::fmt::Write as _;

use clap::builder::styling::{AnsiColor, Style};

use super::{plain, table::Table};
use crate::commands::doctor::{Report, Verdict};

/// The whole report as text with escape sequences for colour, which the stream takes out where they do not belong.
#[must_use]
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    for check in &report.checks {
        let (sign, colour) = match check.verdict {
            Verdict::Good => ("✓", AnsiColor::Green),
            Verdict::Warning => ("!", AnsiColor::Yellow),
            Verdict::BadEnvironment | Verdict::BadConfiguration => ("✗", AnsiColor::Red),
        };
        let style = Style::new().fg_color(Some(colour.into()));
        let _ = writeln!(text, "{style}{sign}{style:#} {}: {}", check.subject, plain(&check.found));
        if let Some(advice) = &check.advice {
            let _ = writeln!(text, "    {}", plain(advice));
        }
    }
    if !report.settings.is_empty() {
        let mut table = Table::new(&["SETTING", "VALUE", "SOURCE"]);
        for setting in &report.settings {
            let value = setting.value.as_deref().unwrap_or("not set");
            table.row(vec![plain(&setting.key), plain(value), plain(&setting.source)]);
        }
        let _ = write!(text, "\n{table}");
    }
    text
}
