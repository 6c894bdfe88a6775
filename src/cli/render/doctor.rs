//! The report of `nisse doctor`: with `-v` every setting and its source, then a line for each condition with what to do
//! about it, the bad ones last, and the verdict.

use super::{
    Width,
    layout::{Fields, GREEN, RED, YELLOW},
    plain,
    table::Table,
};
use crate::{
    commands::doctor::{Check, KEPT, Report, Verdict},
    domain::amount::counted,
};

/// Columns of a sign and the longest subject.
const NAMES: usize = 17;
/// The most warnings of one subject without `-v`.
const FEW: usize = 3;

/// The whole report as text with escape sequences for colour, which the stream takes out where they do not belong.
#[must_use]
pub fn text(report: &Report, verbose: bool, width: Width) -> String {
    let mut fields = Fields::new(width, NAMES);
    if verbose && !report.settings.is_empty() {
        let mut table = Table::new(&["SETTING", "VALUE", "SOURCE"]);
        for setting in &report.settings {
            let value = setting.value.as_deref().unwrap_or("not set");
            table.row(vec![plain(&setting.key), plain(value), plain(&setting.source)]);
        }
        table.within(width, &[1, 2]).lines().for_each(|line| fields.line(line));
        fields.line("");
    }
    let mut checks: Vec<&Check> = report.checks.iter().collect();
    // stable: else in the order in which they were made
    checks.sort_by_key(|check| rank(check.verdict));
    for (index, check) in checks.iter().enumerate() {
        if check.verdict == Verdict::Good && !verbose {
            // one row each: what is good is not studied
            if check.subject != KEPT {
                short(&mut fields, check, &check.found);
            } else if !checks.iter().take(index).any(|before| before.subject == KEPT) {
                short(&mut fields, check, "refs of earlier tasks, within their limits (nisse doctor -v)");
            }
            continue;
        }
        let same = |other: &&&Check| (other.subject, other.verdict) == (check.subject, check.verdict);
        let before = checks.iter().take(index).filter(same).count();
        let all = checks.iter().filter(same).count();
        if verbose || check.verdict != Verdict::Warning || before < FEW {
            condition(&mut fields, check);
        } else if before == FEW {
            let more = counted((all - FEW) as u64, "more warning");
            fields.field("", &format!("{more} of this kind: nisse doctor -v"));
        }
    }
    fields.line("");
    let (verdict, style) = verdict(report);
    fields.line(&format!("{style}{verdict}{style:#}"));
    fields.into_text()
}

/// A good condition in one row.
fn short(fields: &mut Fields, check: &Check, found: &str) {
    fields.cut(&format!("✓ {}", check.subject), GREEN, &plain(found));
}

fn condition(fields: &mut Fields, check: &Check) {
    let (sign, style) = match check.verdict {
        Verdict::Good => ("✓", GREEN),
        Verdict::Warning => ("!", YELLOW),
        Verdict::BadEnvironment | Verdict::BadConfiguration => ("✗", RED),
    };
    fields.styled(&format!("{sign} {}", check.subject), style, &plain(&check.found));
    if let Some(advice) = &check.advice {
        fields.field("", &format!("→ {}", plain(advice)));
    }
}

fn rank(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Good => 0,
        Verdict::Warning => 1,
        Verdict::BadEnvironment | Verdict::BadConfiguration => 2,
    }
}

/// All of it in one line.
fn verdict(report: &Report) -> (String, clap::builder::styling::Style) {
    let of = |wanted: u8| report.checks.iter().filter(|check| rank(check.verdict) == wanted).count() as u64;
    let (warnings, bad) = (of(1), of(2));
    match (bad, warnings) {
        (0, 0) => ("ready".to_owned(), GREEN.bold()),
        (0, _) => (format!("ready, with {}", counted(warnings, "warning")), YELLOW.bold()),
        (_, 0) => (format!("not ready: {}", counted(bad, "problem")), RED.bold()),
        (_, _) => (format!("not ready: {}, {}", counted(bad, "problem"), counted(warnings, "warning")), RED.bold()),
    }
}
