//! What a run came to, for people: the note, the branch, and the way on.

use std::fmt::Write as _;

use super::{Manner, data, first_line, grouped, plain, say, screen, span};
use crate::{commands::result::TaskResult, domain::id::TaskId};

/// Shows the result.
pub fn result(manner: Manner, result: &TaskResult) {
    if manner.json {
        line(manner, result);
        if !manner.quiet {
            say(manner, &way_on(result));
        }
        return;
    }
    data(manner, &format!("{}{}", screen(&text(result)), way_on(result)));
}

/// The result as the last line of `--json`.
pub fn line(manner: Manner, result: &TaskResult) {
    if let Ok(line) = serde_json::to_string(result) {
        data(manner, &line);
    }
}

/// What to do with a task that was stopped.
#[must_use]
pub fn go_on(task: TaskId) -> String {
    format!("nothing is lost: nisse resume {task:#}")
}

/// The result as text for people, without what to do next.
#[must_use]
pub fn text(result: &TaskResult) -> String {
    let mut text = format!("{}: {}\n", result.outcome, result.cause);
    if let Some(note) = &result.handback {
        for (name, content) in [("changed", &note.changed), ("now true", &note.now_true), ("next", &note.next)] {
            let content = content.trim().replace('\n', "\n           ");
            let _ = write!(text, "\n{name:<10} {content}");
        }
        text.push('\n');
    }
    text.push('\n');
    if let Some(stat) = &result.diffstat {
        let _ = writeln!(
            text,
            "diff       {} changed, +{} -{}: {}",
            counted(stat.files, "file"),
            stat.insertions,
            stat.deletions,
            first_line(&plain(&result.artifacts.join(", ")), 100),
        );
    }
    if let Some(check) = &result.check {
        let how = match check.status {
            Some(0) => "passed".to_owned(),
            Some(status) => format!("failed with status {status}"),
            None => "was ended".to_owned(),
        };
        let _ = writeln!(text, "check      {}: {how}", check.command);
    }
    let cost = result.cost_usd.map_or_else(|| "cost unknown".to_owned(), |usd| format!("${usd:.4}"));
    let ms = std::time::Duration::from_secs_f64(result.duration_s.max(0.0)).as_millis();
    let _ = writeln!(
        text,
        "spent      {}, {} tokens, {cost}, {}",
        counted(result.turns as usize, "turn"),
        grouped(result.tokens.input + result.tokens.output),
        span(u64::try_from(ms).unwrap_or(u64::MAX)),
    );
    if let Some(branch) = &result.branch {
        let _ = writeln!(text, "branch     {branch}");
        if result.unfinished_files > 0 {
            let _ = writeln!(text, "begins     {}", unfinished(result));
        }
    }
    if let Some(kept) = &result.discarded_ref {
        let _ = writeln!(text, "discarded  the commits are kept at {kept}");
    }
    for notice in &result.notices {
        let _ = writeln!(text, "note       {notice}");
    }
    text
}

/// What a branch holds that is not the task's, and the two ways to one that can be pushed.
fn unfinished(result: &TaskResult) -> String {
    format!(
        "with {} of yours that {} not committed, which a push would publish; without them: `nisse apply --commit {:#}` makes \
         commits of the task's part alone, `nisse delegate --base HEAD` begins without them",
        counted(result.unfinished_files, "unfinished file"),
        if result.unfinished_files == 1 { "is" } else { "are" },
        result.task,
    )
}

/// Every stop names the way on.
fn way_on(result: &TaskResult) -> String {
    let task = result.task;
    match result.outcome {
        "handback" => match (&result.snapshot, &result.branch) {
            (Some(snapshot), Some(branch)) => {
                let from = if result.dirty { snapshot.get(..10).unwrap_or(snapshot) } else { "HEAD" };
                format!("look       git diff {from} {branch}\nbring home nisse apply {task:#}")
            }
            _ => String::new(),
        },
        "interrupted" | "stopped" => go_on(task),
        "gated" if !result.answers.is_empty() => format!(
            "look into {}, then: nisse resume {task:#} --rollback, --keep or --drop",
            result.worktree.as_deref().unwrap_or("the branch")
        ),
        "gated" => {
            format!("look into {} and at `nisse log {task:#}`", result.worktree.as_deref().unwrap_or("the branch"))
        }
        _ => {
            let story = format!("the whole story: nisse log {task:#}");
            match &result.begin_again {
                Some(command) if result.discarded_ref.is_some() && !result.artifacts.is_empty() => format!(
                    "{story}\ngo on with a larger cap: {command}\nit begins with the files of this task, and `nisse apply` \
                     will bring its own part; for the part of this one: nisse log {task:#} --diff | git apply"
                ),
                Some(command) => format!("{story}\ngo on with a larger cap: {command}"),
                None => story,
            }
        }
    }
}

fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
