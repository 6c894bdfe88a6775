//! Snapshot, branch and worktree. They count only when `worktree_ready` is in the log; before it, whatever stands under
//! the task's own names is removed and made again.

use std::path::Path;

use super::{
    Error,
    env::Env,
    place::{Furnished, furnish, spec},
    settle, switch,
};
use crate::{
    domain::{
        checkout::Isolation,
        event::EventKind,
        id::{CommitId, IntentId},
        outcome::{End, Outcome, one_line},
    },
    log::{Journal, crash},
    repo::{self, Snapshot, SnapshotRequest, Worktree},
};

/// Makes snapshot, branch and worktree, and records that they stand. Asked to stop meanwhile, it leaves them unrecorded.
pub(super) async fn prepare(journal: &mut Journal, env: &mut Env<'_>) -> Result<(), Error> {
    journal.commit()?;
    switch::take_back(journal, env)?;
    crash::point("prepare.begun");
    let task = journal.task();
    let started = &task.started;
    let request = SnapshotRequest {
        task: task.id,
        base: &started.base,
        at_ms: task.intents.first().map_or(0, |own| own.at_ms),
        max_untracked: started.max_untracked,
    };
    let snapshot = match started.isolation {
        Isolation::Worktree => env.checkout.snapshot(&request)?,
        Isolation::InPlace => env.checkout.start_in_place(&request)?,
    };
    crash::point("prepare.snapshot");
    let (worktree, switched) = match started.isolation {
        Isolation::Worktree => (make(journal, env, &snapshot.commit)?, None),
        Isolation::InPlace => {
            let switched = switch::there(journal, env, &snapshot);
            if switched.is_err() {
                switch::take_back(journal, env)?;
            }
            let (worktree, intent) = switched?;
            (worktree, Some(intent))
        }
    };
    crash::point("prepare.worktree");
    match stand(journal, env, &worktree, &snapshot, switched).await {
        Ok(()) => {
            env.worktree = Some(worktree);
            Ok(())
        }
        Err(error) => {
            // in place, the person has the checkout back before they read why; else nothing is in their way
            if switched.is_some() && journal.task().ready.is_none() {
                switch::take_back(journal, env)?;
            }
            Err(error)
        }
    }
}

/// Makes branch and worktree. Where none will ever stand the task ends, since nothing was paid for yet and each resume would
/// only say the same again.
fn make(journal: &mut Journal, env: &Env<'_>, at: &CommitId) -> Result<Worktree, Error> {
    let error = match Worktree::create(env.checkout, &spec(journal.task(), at)) {
        Ok(worktree) => return Ok(worktree),
        Err(error) => error,
    };
    if !error.lasts() {
        return Err(error.into());
    }
    let path = journal.task().started.worktree.clone();
    let cause = one_line(&format!("no worktree could be made at {path}: {error}"));
    settle::settle(journal, env, Outcome::Ended { end: End::Dropped, cause })?;
    Err(Error::Unmade { path, source: error })
}

/// Makes the worktree fit for work and records that it stands.
async fn stand(
    journal: &mut Journal,
    env: &Env<'_>,
    worktree: &Worktree,
    snapshot: &Snapshot,
    switched: Option<IntentId>,
) -> Result<(), Error> {
    let mut notices = snapshot.notices.clone();
    match furnish(journal, env, worktree, &snapshot.commit).await? {
        Furnished::Ready(more) => notices.extend(more),
        Furnished::Stopped | Furnished::OutOfTime => {
            if switched.is_some() {
                switch::take_back(journal, env)?;
            }
            return Ok(());
        }
    }
    let workspace = repo::workspace::describe(Path::new(&journal.task().started.worktree));
    journal.push(EventKind::WorktreeReady {
        snapshot: snapshot.commit.clone(),
        dirty: snapshot.dirty,
        workspace: env.mask.apply(&workspace.text).into_owned(),
        notices: [notices, workspace.notices].concat(),
    })?;
    if let Some(intent) = switched {
        journal.push(EventKind::IntentSettled { intent, cause: None })?;
    }
    journal.commit()?;
    crash::point("prepare.ready");
    Ok(())
}
