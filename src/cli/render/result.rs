//! The result of a run, for people: the outcome, the note, the checks, the branch, and what to do next.

use super::{
    Manner, Width, data, first_line, grouped,
    layout::{BOLD, Fields, GREEN, RED, YELLOW},
    plain, say, screen,
};
use crate::{
    commands::result::{Check, TaskResult},
    domain::{
        amount::{counted, span},
        command_line,
        id::TaskId,
    },
};

/// Columns of the names.
const NAMES: usize = 10;
/// The most lines of a failed check's output.
const MOST_LINES: usize = 20;

/// Shows the result.
pub fn result(manner: Manner, result: &TaskResult) {
    if manner.json {
        line(manner, result);
        if !manner.quiet {
            for (name, what) in way_on(result) {
                say(manner, &format!("{name:<NAMES$} {what}"));
            }
        }
        return;
    }
    data(manner, text(result, Width::of_stdout()).trim_end());
}

/// The result as the last line of `--json`.
pub fn line(manner: Manner, result: &TaskResult) {
    if let Ok(line) = serde_json::to_string(result) {
        data(manner, &line);
    }
}

/// How to resume a task that was stopped.
#[must_use]
pub fn go_on(task: TaskId) -> String {
    format!("nothing is lost: nisse resume {task:#}")
}

/// The whole result as text for people.
#[must_use]
pub fn text(result: &TaskResult, width: Width) -> String {
    let mut fields = facts(result, width);
    for (name, what) in way_on(result) {
        fields.whole(name, &plain(&what));
    }
    fields.into_text()
}

/// The result without what to do next.
pub(super) fn facts(result: &TaskResult, width: Width) -> Fields {
    let mut fields = Fields::new(width, NAMES);
    let (word, style) = outcome(result.outcome, result.checks.is_empty());
    // tasks of older versions have no better cause
    let cause = if result.cause == "the work was handed back" { "" } else { result.cause.as_str() };
    // the cause says it itself
    let link = if cause.starts_with("not checked") { ", " } else { ": " };
    let mut head = width.folded(&plain(&format!("{word}{link}{cause}")), 0).into_iter();
    let first = head.next().unwrap_or_default();
    let rest = first.strip_prefix(word).unwrap_or_default().trim_end_matches([':', ' ']);
    fields.line(&format!("{style}{word}{style:#}{rest}"));
    head.for_each(|line| fields.line(&line));
    if let Some(note) = &result.handback {
        fields.line("");
        for (name, content) in [("changed", &note.changed), ("now true", &note.now_true), ("next", &note.next)] {
            fields.field(name, &screen(content.trim()));
        }
    }
    fields.line("");
    if let Some(stat) = &result.diffstat {
        let files = counted(stat.files as u64, "file");
        let names = first_line(&plain(&result.artifacts.join(", ")), 100);
        fields.field("diff", &format!("{files} changed, +{} -{}: {names}", stat.insertions, stat.deletions));
    }
    checks(&mut fields, result);
    let cost = result.cost_usd.map_or_else(|| "cost unknown".to_owned(), |usd| format!("${usd:.4}"));
    let ms = std::time::Duration::from_secs_f64(result.duration_s.max(0.0)).as_millis();
    let turns = counted(u64::from(result.turns), "turn");
    let tokens = grouped(result.tokens.input + result.tokens.output);
    let time = span(u64::try_from(ms).unwrap_or(u64::MAX));
    fields.field("spent", &format!("{turns}, {tokens} tokens, {cost}, {time}"));
    if let Some(branch) = &result.branch {
        fields.field("branch", &plain(branch));
        if result.unfinished_files > 0 {
            fields.field("begins", &unfinished(result));
        }
    }
    // a task without commits kept nothing there
    if let Some(kept) = result.discarded_ref.as_ref().filter(|_| result.head != result.snapshot) {
        fields.field("discarded", &format!("the commits are kept at {kept}"));
    }
    for notice in &result.notices {
        fields.field("note", &plain(notice));
    }
    fields
}

/// An outcome for people, with its colour. Success is not green if only the model claims it.
#[must_use]
pub(super) fn outcome(word: &'static str, unchecked: bool) -> (&'static str, clap::builder::styling::Style) {
    match word {
        "handback" if unchecked => ("handed back", YELLOW.bold()),
        "handback" => ("handed back", GREEN.bold()),
        "failed" | "capped" => (word, RED.bold()),
        "gated" => ("waits for you", YELLOW.bold()),
        "interrupted" | "stopped" => (word, YELLOW.bold()),
        _ => (word, BOLD),
    }
}

/// Every check, with the end of its output if it failed.
fn checks(fields: &mut Fields, result: &TaskResult) {
    if result.checks.is_empty() && result.outcome == "handback" {
        fields.styled(
            "check",
            YELLOW,
            "none is set: only the model says that it is done (set --check or check.commands)",
        );
    }
    for check in &result.checks {
        let command = plain(&command_line::one_line(&check.command));
        let (how, style) = match (check.ran, check.status) {
            (false, _) => ("not run".to_owned(), YELLOW),
            (true, Some(0)) => ("passed".to_owned(), GREEN),
            (true, Some(status)) => (format!("failed with status {status}"), RED),
            (true, None) => ("was killed".to_owned(), RED),
        };
        fields.styled("check", style, &format!("{command}: {how}"));
        if style == RED {
            let lines = tail(check);
            fields.quoted(lines.iter().map(String::as_str));
        }
    }
}

/// The end of a check's output.
fn tail(check: &Check) -> Vec<String> {
    super::tail(&check.output_tail, MOST_LINES)
}

/// How many uncommitted files of the user's the branch holds, and two ways to a branch without them.
fn unfinished(result: &TaskResult) -> String {
    let them = if result.unfinished_files == 1 { "it" } else { "them" };
    format!(
        "with {} of yours, which a push would publish; to leave {} out, commit the task's part only \
         (`nisse apply --commit {:#}`), or start without {} (`nisse delegate --base HEAD`)",
        counted(result.unfinished_files as u64, "uncommitted file"),
        them,
        result.task,
        them,
    )
}

/// What to do next, whatever the outcome.
fn way_on(result: &TaskResult) -> Vec<(&'static str, String)> {
    let task = result.task;
    let place = || result.worktree.clone().unwrap_or_else(|| "the branch".to_owned());
    match result.outcome {
        "handback" => {
            vec![("look", format!("nisse log {task:#} --diff")), ("apply", format!("nisse apply {task:#}"))]
        }
        "interrupted" | "stopped" => vec![("go on", format!("nothing is lost: nisse resume {task:#}"))],
        "gated" if !result.answers.is_empty() => vec![
            ("look", place()),
            ("decide", format!("nisse resume {task:#} --rollback")),
            ("", format!("nisse resume {task:#} --keep")),
            ("", format!("nisse resume {task:#} --drop")),
        ],
        "gated" => {
            vec![("look", format!("{}, and nisse log {task:#}", place())), ("go on", format!("nisse resume {task:#}"))]
        }
        _ => {
            let changed = result.discarded_ref.is_some() && !result.artifacts.is_empty();
            let mut way = Vec::new();
            if changed {
                way.push(("look", format!("nisse log {task:#} --diff")));
            }
            way.push(("story", format!("nisse log {task:#}")));
            if let Some(command) = &result.begin_again {
                way.push(("go on", format!("with a larger cap: {command}")));
                if changed {
                    way.push((
                        "",
                        "it starts with the files of this task, but `nisse apply` applies only its own".to_owned(),
                    ));
                    way.push((
                        "",
                        format!("changes; for the changes of this one: nisse log {task:#} --diff | git apply"),
                    ));
                }
            }
            way
        }
    }
}
