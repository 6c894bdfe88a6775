//! Handles what a task created that no commit can hold: the model is told before it hands back, and nothing vanishes unnamed.
//! It is moved out of the tree before the tree is judged, restored or removed, and is kept beside the log.

use std::collections::BTreeSet;

use super::Error;
use crate::{
    domain::{checkout::Isolation, event::EventKind, repository::RepositoryChange, task::Task},
    log::{Journal, crash},
    repo::{Worktree, moved_out_to},
};

/// What a model is told once if it would hand back something like that.
const REFUSAL: &str = "no commit can hold repositories within the tree and special files (pipes, sockets), so the branch \
                       would not have them";

/// Why the work is not accepted yet; none if there is nothing to say, or it was said already.
pub(super) fn refusal(task: &Task, worktree: &Worktree) -> Result<Option<String>, Error> {
    let was_told = || task.turns.iter().flat_map(|turn| &turn.results).any(|result| result.content.contains(REFUSAL));
    if task.made.is_empty() || was_told() {
        return Ok(None);
    }
    let made: Vec<_> = worktree.uncommittable()?.into_iter().filter(|path| task.made.contains(path)).collect();
    Ok((!made.is_empty()).then(|| {
        format!(
            "Not accepted, and the task is still open: {REFUSAL}: {}. Where the files of such a repository are part of the \
             work, remove its .git directory; what is not needed, remove. Then hand back again. What is still there then \
             is moved out of the tree before the work is judged, and kept for the person.",
            made.join(", ")
        )
    }))
}

/// Records what appeared while a command ran.
pub(super) fn record(journal: &mut Journal, before: &[String], mut paths: Vec<String>) -> Result<(), Error> {
    let before: BTreeSet<_> = before.iter().collect();
    paths.retain(|path| !before.contains(path) && !journal.task().made.contains(path));
    if !paths.is_empty() {
        journal.push(EventKind::UncommittableMade { paths })?;
    }
    Ok(())
}

/// What to move out of the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Which {
    /// What commands of the task made.
    Made,
    /// Everything, if the directory is the task's own and is about to be restored or removed.
    All,
}

/// Moves it out of the tree. In a checkout, only what the task created: the rest is the user's.
pub(super) fn move_out(journal: &mut Journal, worktree: &Worktree, which: Which) -> Result<(), Error> {
    let task = journal.task();
    let all = which == Which::All && task.started.workplace.isolation == Isolation::Worktree;
    if !all && task.made.is_empty() {
        return Ok(());
    }
    let mut paths = worktree.uncommittable()?;
    paths.retain(|path| all || task.made.contains(path));
    if paths.is_empty() {
        return Ok(());
    }
    // each time has its own directory, because the same path may be created again
    let place = journal.kept_dir().join(task.seq.to_string());
    let moved = worktree.move_out(&paths, &place)?;
    crash::point("kept.moved");
    if !moved.kept.is_empty() {
        journal.push(EventKind::KeptAside { paths: moved.kept, place: place.display().to_string() })?;
    }
    if !moved.left.is_empty() {
        let changes = vec![RepositoryChange::NotKept { paths: moved.left }];
        journal.push(EventKind::RepositoryChanged { changes })?;
    }
    Ok(())
}

/// Records what a killed process moved without saying so.
pub(super) fn name_kept(journal: &mut Journal) -> Result<(), Error> {
    let all = std::fs::read_dir(journal.kept_dir()).into_iter().flatten().flatten();
    for place in all.map(|entry| entry.path()) {
        let told = journal.task().kept_aside.iter().any(|(told, _)| *told == place.display().to_string());
        let paths = if told { Vec::new() } else { moved_out_to(&place) };
        if !paths.is_empty() {
            journal.push(EventKind::KeptAside { paths, place: place.display().to_string() })?;
        }
    }
    Ok(())
}
