//! Commits of nisse's own: who they are by, what is written, and the message by which a snapshot is known.

use super::{Error, git::Git};
use crate::domain::id::{CommitId, TaskId};

/// The first line of a snapshot's message.
pub(super) const SUBJECT: &str = "nisse: snapshot of unfinished work";

/// Who a commit is by, and when it was made.
pub(super) struct Author<'a> {
    pub(super) name: &'a str,
    pub(super) email: &'a str,
    pub(super) at_ms: u64,
}

/// A commit object as git writes it.
pub(super) fn commit_text(tree: &str, parent: &CommitId, message: &str, author: &Author<'_>) -> String {
    let Author { name, email, at_ms } = author;
    let by = format!("{name} <{email}> {} +0000", at_ms / 1000);
    let message = message.replace('\0', "\u{fffd}");
    format!("tree {tree}\nparent {parent}\nauthor {by}\ncommitter {by}\n\n{message}")
}

/// Writes a commit object and gives its id; no ref moves.
pub(super) fn commit_tree(
    git: &Git,
    tree: &str,
    parents: &[&CommitId],
    message: &str,
    author: &Author<'_>,
) -> Result<CommitId, Error> {
    let mut call = git.call(["commit-tree", "--no-gpg-sign", "-F", "-"]);
    for parent in parents {
        call = call.args(["-p", parent.0.as_str()]);
    }
    let date = format!("{} +0000", author.at_ms / 1000);
    let id = call
        .args([tree])
        .variable("GIT_AUTHOR_NAME", author.name)
        .variable("GIT_AUTHOR_EMAIL", author.email)
        .variable("GIT_AUTHOR_DATE", format!("@{date}"))
        .variable("GIT_COMMITTER_NAME", author.name)
        .variable("GIT_COMMITTER_EMAIL", author.email)
        .variable("GIT_COMMITTER_DATE", format!("@{date}"))
        // git refuses NUL in a message
        .input(message.replace('\0', "\u{fffd}").into_bytes())
        .line()?;
    Ok(CommitId(id))
}

/// Whether a commit's message is that of the task's own snapshot.
pub(super) fn is_snapshot_of(message: &str, task: TaskId) -> bool {
    message.lines().next() == Some(SUBJECT) && message.lines().any(|line| line == format!("Nisse-Task: {task}"))
}
