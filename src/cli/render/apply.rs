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
    let mut text = match (applied.how, applied.seen) {
        ("files", _) => format!("applied: {} changed in your checkout, uncommitted\n", counted(files.len(), "file")),
        ("fast_forward", _) => format!("applied: {branch} is at {at} now\n"),
        ("commits", _) => {
            format!("applied: {} of yours, {branch} is at {at} now\n", counted(applied.commits, "commit"))
        }
        ("put_back", _) => format!("put back: {} as before\n", counted(files.len(), "file")),
        (_, Some("head")) => format!("already applied: {branch} ({at}) holds the work; nothing was done\n"),
        (_, Some("committed")) => {
            format!("already applied: the files are committed on {branch} ({at}); nothing was done\n")
        }
        _ => "already applied: the files are in your checkout, uncommitted; nothing was done\n".to_owned(),
    };
    if !files.is_empty() {
        let _ = writeln!(text, "files      {}", first_line(&plain(&files.join(", ")), 200));
    }
    if !left.is_empty() {
        let _ =
            writeln!(text, "left       not as the task left them, so nothing was done to: {}", plain(&left.join(", ")));
    }
    if !applied.committed.is_empty() {
        let named = plain(&applied.committed.join(", "));
        let _ = writeln!(text, "committed  by you since, and not put back: {named}");
    }
    for notice in &applied.notices {
        let _ = writeln!(text, "note       {}", plain(notice));
    }
    if let (Some(before), "files") = (before, applied.how) {
        let _ = writeln!(text, "before     your checkout as it was is kept at {before}");
    }
    if applied.how == "files" || applied.seen == Some("uncommitted") {
        let _ = writeln!(text, "undo       nisse apply {task:#} --abort");
    }
    text
}

fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
