//! Snapshot, branch and worktree. They count only when `worktree_ready` is in the log; before it, whatever stands under
//! the task's own names is removed and made again.

use std::path::PathBuf;

use super::{Error, env::Env};
use crate::{
    domain::event::EventKind,
    log::Journal,
    repo::{self, SnapshotRequest, Worktree, WorktreeSpec},
};

/// Makes snapshot, branch and worktree, and records that they stand.
pub(super) fn prepare(journal: &mut Journal, env: &mut Env<'_>) -> Result<(), Error> {
    journal.commit()?;
    let task = journal.task();
    let started = &task.started;
    let snapshot = env.checkout.snapshot(&SnapshotRequest {
        task: task.id,
        base: &started.base,
        at_ms: task.intents.first().map_or(0, |own| own.at_ms),
        max_untracked: started.max_untracked,
    })?;
    let path = PathBuf::from(&started.worktree);
    let spec = WorktreeSpec {
        task: task.id,
        path: path.clone(),
        branch: started.branch.clone(),
        start: snapshot.commit.clone(),
    };
    let worktree = Worktree::create(env.checkout, &spec)?;
    let mut notices = snapshot.notices;
    notices.extend(worktree.fill_submodules(&snapshot.commit)?);
    env.worktree = Some(worktree);
    let workspace = repo::workspace::describe(&path);
    journal.push(EventKind::WorktreeReady {
        snapshot: snapshot.commit,
        dirty: snapshot.dirty,
        workspace: env.mask.apply(&workspace).into_owned(),
        notices,
    })?;
    journal.commit()?;
    Ok(())
}
