//! `nisse log` without a task: one line for each, as wide as the screen.

use unicode_width::UnicodeWidthStr as _;

use super::{
    Manner, Width, data, first_line,
    layout::{GREEN, RED, YELLOW},
    live::cut,
    moment, plain, say,
};
use crate::{
    cli::error::Report,
    commands::log::{Applied, Listed},
    domain::amount::{counted, short},
};

/// The most columns of a brief if the line has no limit.
const BRIEF: usize = 60;

/// The list of tasks, and errors for those that cannot be read.
pub fn list(manner: Manner, tasks: &[Listed], unreadable: &[Report]) {
    for report in unreadable {
        for line in super::styled(report, Width::of_stderr()) {
            say(manner, &line);
        }
    }
    if manner.json {
        let unreadable: Vec<_> = unreadable.iter().map(|report| &report.message).collect();
        data(manner, &serde_json::json!({"v": 1, "type": "log", "tasks": tasks, "unreadable": unreadable}).to_string());
        return;
    }
    if tasks.is_empty() && unreadable.is_empty() && !manner.quiet {
        say(manner, "this checkout has no tasks");
    }
    for line in lines(tasks, Width::of_stdout()) {
        data(manner, &line);
    }
}

/// One line per task. On a narrow screen, less important columns give way to the brief.
#[must_use]
pub fn lines(tasks: &[Listed], width: Width) -> Vec<String> {
    let columns = width.columns();
    let wide = |from: usize| columns.is_none_or(|columns| columns >= from);
    let line = |task: &Listed| {
        let (word, style) = state(task);
        let begun = moment(task.begun_ms);
        // without the year and the seconds
        let begun = if wide(100) { begun.as_str() } else { begun.get(5..16).unwrap_or(&begun) };
        let cost = task.cost_usd.map_or_else(String::new, |usd| format!("${usd:.4}"));
        let mut spent = String::new();
        if wide(100) {
            spent = format!("  {:>8}", counted(u64::from(task.turns), "turn"));
        }
        if wide(120) {
            spent = format!("{spent}  {:>5} tokens", short(task.tokens));
        }
        let head = format!("{}  {begun}  ", task.task.short());
        let middle = format!("{:pad$}{spent}  {cost:>7}  ", "", pad = 11usize.saturating_sub(word.width()));
        let taken = head.width() + word.width() + middle.width();
        let brief = plain(&first_line(&task.brief, if columns.is_none() { BRIEF } else { usize::MAX }));
        let brief = columns.map_or_else(|| brief.clone(), |columns| cut(&brief, columns.saturating_sub(taken)));
        format!("{head}{style}{word}{style:#}{middle}{brief}")
    };
    tasks.iter().map(line).collect()
}

/// A task's state, in at most eleven columns.
fn state(task: &Listed) -> (&'static str, clap::builder::styling::Style) {
    match (task.outcome, task.running, task.applied) {
        (_, true, _) => ("running", YELLOW),
        ("handback", false, Some(Applied::Files)) => ("applied", GREEN),
        ("handback", false, Some(Applied::Commits)) => ("committed", GREEN),
        ("handback", false, None) => ("handed back", if task.checked { GREEN } else { YELLOW }),
        ("failed" | "capped", false, _) => (task.outcome, RED),
        ("pending", false, _) => ("cut off", YELLOW),
        ("gated", false, _) => ("waits", YELLOW),
        (other, false, _) => (other, YELLOW),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::TaskId;

    #[test]
    fn a_line_is_as_wide_as_the_screen_at_most() {
        let task = Listed {
            task: TaskId(uuid::Uuid::nil()),
            begun_ms: 1_800_000_000_000,
            outcome: "handback",
            running: false,
            checked: true,
            applied: None,
            role: "delegate",
            model: "m".into(),
            turns: 1,
            tokens: 12_345_678,
            cost_usd: Some(123.45),
            branch: "b".into(),
            brief: "日本語 and very long ".repeat(20),
        };
        for columns in [80, 100, 120, 200] {
            let line = lines(std::slice::from_ref(&task), Width::of(Some(columns))).remove(0);
            let width = anstream::adapter::strip_str(&line).to_string().width();
            assert!(width <= columns && width + 2 > columns, "{columns}: {line}");
        }
    }
}
