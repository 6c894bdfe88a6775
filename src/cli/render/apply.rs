//! What became of the work in the checkout, for people.

use super::{Width, first_line, layout::Fields, plain};
use crate::{commands::apply::Applied, domain::amount::counted};

/// Columns of the names.
const NAMES: usize = 10;

/// The whole of it, with the way on.
#[must_use]
pub fn text(applied: &Applied, width: Width) -> String {
    let Applied { task, branch, head, files, left, before, .. } = applied;
    let at = head.as_deref().map_or("no commit", |head| head.get(..10).unwrap_or(head));
    let branch = branch.as_deref().unwrap_or("HEAD");
    let counted = |number: usize, thing| counted(number as u64, thing);
    let what = match (applied.how, applied.seen) {
        ("files", _) => format!("applied: {} changed in your checkout, uncommitted", counted(files.len(), "file")),
        ("fast_forward", _) => format!("applied: {branch} is at {at} now"),
        ("commits", _) => format!("applied: {} of yours, {branch} is at {at} now", counted(applied.commits, "commit")),
        ("put_back", _) => format!("put back: {} as before", counted(files.len(), "file")),
        (_, Some("head")) => format!("already applied: {branch} ({at}) holds the work; nothing was done"),
        (_, Some("committed")) => {
            format!("already applied: the files are committed on {branch} ({at}); nothing was done")
        }
        _ => "already applied: the files are in your checkout, uncommitted; nothing was done".to_owned(),
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
                "files" | "fast_forward" => format!("changed or taken away again while it was applied: {left}"),
                _ => format!("not as the task left them, so nothing was done to: {left}"),
            },
        );
    }
    if !applied.committed.is_empty() {
        let named = plain(&applied.committed.join(", "));
        fields.field("committed", &format!("by you since, and not put back: {named}"));
    }
    for notice in &applied.notices {
        fields.field("note", &plain(notice));
    }
    if let (Some(before), "files") = (before, applied.how) {
        fields.field("before", &format!("your checkout as it was is kept at {before}"));
    }
    if applied.how == "files" || applied.seen == Some("uncommitted") {
        fields.whole("undo", &format!("nisse apply {task:#} --abort"));
    }
    fields.into_text()
}
