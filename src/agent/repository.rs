//! What a command may have done to the repository beside its files: seen to after it, and told to the model.

use super::{
    Error,
    env::{Env, head, record_repairs},
    place,
};
use crate::{
    domain::{event::EventKind, repository::RepositoryChange, task::Task},
    log::Journal,
};

/// What a model is told once that made commits or moved between branches.
const COMMITS: &str = "Note: nisse commits for you, after every call that changes files. Your branch and HEAD were put \
                       back to where nisse had them; the files are as you left them, and they are what counts. Leave \
                       committing, amending, rebasing and switching branches alone.";

/// After a command: branch and HEAD go back to where the task has them.
pub(super) fn see_to(journal: &mut Journal, env: &Env<'_>) -> Result<(), Error> {
    let worktree = env.worktree()?;
    worktree.take_in(&head(journal.task())?)?;
    record_repairs(journal, worktree)
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
    Ok(())
}

/// The answer to a call, with what the model has to know of the repository and was not told yet.
pub(super) fn told(task: &Task, mut answer: String) -> String {
    let was_told = || task.turns.iter().flat_map(|turn| &turn.results).any(|result| result.content.contains(COMMITS));
    if task.changes.iter().any(RepositoryChange::is_of_branch) && !was_told() {
        answer = format!("{answer}\n{COMMITS}");
    }
    answer
}
