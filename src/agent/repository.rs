//! What a command may have done to the repository beside its files: seen to after it, and told to the model.

use super::{
    Error, answered,
    env::{Env, record_repairs},
    place, uncommittable,
};
use crate::{
    domain::{event::EventKind, id::CommitId, repository::RepositoryChange, task::Task},
    log::Journal,
    repo::Worktree,
};

/// What a model is told once that made commits or moved between branches.
const COMMITS: &str = "Note: nisse commits for you, after every call that changes files. Your branch and HEAD were put \
                       back to where nisse had them; the files are as you left them, and they are what counts. Leave \
                       committing, amending, rebasing and switching branches alone.";

/// What a model is told whose command took something of the person's away.
const PERSONS: &str = "Branches, tags and stash of this repository are the person's; leave them alone. The stash is the \
                       same in every worktree: to put changes aside, use `git diff > file`.";

/// After a command: branch and HEAD go back to where the task has them, and what is the person's and gone comes back. Gives
/// what the model has to know of the latter.
pub(super) fn see_to(journal: &mut Journal, worktree: &Worktree, head: &CommitId) -> Result<Option<String>, Error> {
    // nothing of the command runs any more
    record_locks(journal, worktree.remove_left_locks()?)?;
    worktree.take_in(head)?;
    worktree.see_to_persons()?;
    let before = journal.task().changes.len();
    record_repairs(journal, worktree)?;
    let put_back = journal.task().changes.iter().skip(before).filter(|change| change.is_put_back());
    let lines: Vec<String> = put_back.map(|change| format!("Note: {change}.")).collect();
    Ok((!lines.is_empty()).then(|| format!("{}\n{PERSONS}", lines.join("\n"))))
}

fn record_locks(journal: &mut Journal, locks: Vec<String>) -> Result<(), Error> {
    if !locks.is_empty() {
        journal.push(EventKind::LocksRemoved { locks })?;
    }
    Ok(())
}

/// The person's, where the process was cut off that ran a command.
pub(super) fn see_to_again(journal: &mut Journal, env: &Env<'_>) -> Result<(), Error> {
    let standing = match answered::standing(journal.task(), env.checkout) {
        // what is given up needs nothing of a place that cannot be reached any more, or whose commits are gone
        Err(Error::Repo(_)) if journal.task().given_up() => return Ok(()),
        standing => standing?,
    };
    let Some(standing) = standing else { return Ok(()) };
    record_locks(journal, standing.remove_left_locks_again()?)?;
    standing.see_to_persons_again()?;
    record_repairs(journal, &standing)
}

/// Names what a process kept that was cut off before it could say so.
pub(super) fn name_what_is_kept(journal: &mut Journal, env: &Env<'_>) -> Result<(), Error> {
    let task = journal.task();
    // whoever goes on with a task that rests looks again
    let (Some(head), None) = (&task.head, &task.paused) else { return Ok(()) };
    let mut changes = place::branch(task, env, head)?.kept_commits()?;
    changes.retain(|kept| !task.changes.iter().any(|told| told.kept() == kept.kept()));
    if !changes.is_empty() {
        journal.push(EventKind::RepositoryChanged { changes })?;
    }
    uncommittable::name_kept(journal)
}

/// The answer to a call, with what the model has to know of the repository and was not told yet.
pub(super) fn told(task: &Task, mut answer: String) -> String {
    let was_told = || task.turns.iter().flat_map(|turn| &turn.results).any(|result| result.content.contains(COMMITS));
    if task.changes.iter().any(RepositoryChange::is_of_branch) && !was_told() {
        answer = format!("{answer}\n{COMMITS}");
    }
    answer
}
