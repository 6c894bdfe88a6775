//! What became of the work in the checkout, for people.

use std::fmt::Write as _;

use super::{first_line, plain};
use crate::commands::apply::Applied;

/// The whole of it, with the way on.
#[must_use]
pub fn text(applied: &Applied) -> String {
    let Applied { task, branch, head, files, left, before, .. } = applied;
    let at = head.as_deref().map_or("no commit", |head| head.get(..10).unwrap_or(head));
    let branch = branch.as_deref().unwrap_or("HEAD");
    let mut text = match applied.how {
        "files" => format!("applied: {} changed in your checkout, uncommitted\n", counted(files.len(), "file")),
        "fast_forward" => format!("applied: {branch} is at {at} now\n"),
        "commits" => format!("applied: {} of yours, {branch} is at {at} now\n", counted(applied.commits, "commit")),
        "put_back" => "put back: your checkout is as it was before\n".to_owned(),
        _ => "already applied: nothing was done\n".to_owned(),
    };
    if !files.is_empty() {
        let _ = writeln!(text, "files      {}", plain(&first_line(&files.join(", "), 200)));
    }
    if !left.is_empty() {
        let _ = writeln!(text, "left       changed since, and not put back: {}", plain(&left.join(", ")));
    }
    if let (Some(before), "files") = (before, applied.how) {
        let _ = writeln!(text, "before     your checkout as it was is kept at {before}");
        let _ = writeln!(text, "undo       nisse apply {task} --abort");
    }
    text
}

fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
