//! The result of `nisse apply`, for people.

use super::{Width, first_line, layout::Fields, plain};
use crate::{commands::apply::Applied, domain::amount::counted};

/// Columns of the names.
const NAMES: usize = 10;

/// The result, with what to do next.
#[must_use]
pub fn text(applied: &Applied, width: Width) -> String {
    let Applied { task, branch, head, files, left, before, .. } = applied;
    let at = head.as_deref().map_or("no commit", |head| head.get(..10).unwrap_or(head));
    let branch = branch.as_deref().unwrap_or("HEAD");
    let counted = |number: usize, thing| counted(number as u64, thing);
    let what = match (applied.how, applied.seen) {
        ("files", _) => format!("applied: {} changed in your checkout, uncommitted", counted(files.len(), "file")),
        ("fast_forward", _) => format!("applied: {branch} is now at {at}"),
        ("commits", _) => {
            format!("applied: {} in your name; {branch} is now at {at}", counted(applied.commits, "commit"))
        }
        ("put_back", _) => format!("undone: {} restored", counted(files.len(), "file")),
        (_, Some("head")) => format!("already applied: {branch} ({at}) has the work; nothing was changed"),
        (_, Some("committed")) => {
            format!("already applied: the files are committed on {branch} ({at}); nothing was changed")
        }
        _ => "already applied: the files are in your checkout, uncommitted; nothing was changed".to_owned(),
    };
    let mut fields = Fields::new(width, NAMES);
    width.folded(&plain(&what), 0).iter().for_each(|line| fields.line(line));
    if !files.is_empty() {
        fields.field("files", &first_line(&plain(&files.join(", ")), 200));
    }
    if !left.is_empty() {
        let left = plain(&left.join(", "));
        fields.field(
            "left",
            &match applied.how {
                "files" | "fast_forward" => format!("changed or removed while nisse applied the work: {left}"),
                _ => format!("not changed, because they differ from what the task left: {left}"),
            },
        );
    }
    if !applied.committed.is_empty() {
        let named = plain(&applied.committed.join(", "));
        fields.field("committed", &format!("by you since then, and not undone: {named}"));
    }
    for notice in &applied.notices {
        fields.field("note", &plain(notice));
    }
    if let (Some(before), "files") = (before, applied.how) {
        fields.field("before", &format!("your checkout as it was before is kept at {before}"));
    }
    if applied.how == "files" || applied.seen == Some("uncommitted") {
        fields.whole("undo", &format!("nisse apply {task:#} --abort"));
    }
    fields.into_text()
}
