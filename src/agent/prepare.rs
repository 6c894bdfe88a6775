//! Makes snapshot, branch and worktree. They count only once `worktree_ready` is in the log; before that, anything with the
//! task's own names is removed and made again.

use super::{
    Error, finish,
    intents::in_place,
    outside::Outside,
    record,
    set_up::{SetUp, set_up},
    workplace::{Workplace, spec},
};
use crate::{
    domain::{
        checkout::Isolation,
        event::EventKind,
        id::{CommitId, IntentId},
        line::one_line,
        outcome::{End, Outcome},
    },
    log::{Journal, crash},
    repo::{self, Snapshot, SnapshotRequest, Worktree},
};

/// Makes snapshot, branch and worktree, and records that they are ready; if asked to stop meanwhile, does not record them.
pub(super) async fn prepare(
    journal: &mut Journal,
    place: &mut Workplace<'_>,
    outside: &Outside<'_>,
) -> Result<(), Error> {
    journal.commit()?;
    in_place::undo_switch(journal, place)?;
    crash::point("prepare.begun");
    let task = journal.task();
    let started = &task.started;
    let request = SnapshotRequest {
        task: task.id,
        base: &started.workplace.base,
        at_ms: task.intents.first().map_or(0, |own| own.at_ms),
        max_untracked: started.files.max_untracked,
    };
    let snapshot = match started.workplace.isolation {
        Isolation::Worktree => place.checkout.snapshot(&request)?,
        Isolation::InPlace => place.checkout.start_in_place(&request)?,
    };
    crash::point("prepare.snapshot");
    let (worktree, switched) = match started.workplace.isolation {
        Isolation::Worktree => (make(journal, place, &snapshot.commit)?, None),
        Isolation::InPlace => {
            let switched = in_place::switch_to_task(journal, place, &snapshot);
            if switched.is_err() {
                in_place::undo_switch(journal, place)?;
            }
            let (worktree, intent) = switched?;
            (worktree, Some(intent))
        }
    };
    crash::point("prepare.worktree");
    match stand(journal, place, outside, &worktree, &snapshot, switched).await {
        Ok(()) => {
            place.worktree = Some(worktree);
            Ok(())
        }
        Err(error) => {
            // in place, the user gets the checkout back before reading why
            if switched.is_some() && journal.task().ready.is_none() {
                in_place::undo_switch(journal, place)?;
            }
            Err(error)
        }
    }
}

/// Makes branch and worktree. If that can never work, ends the task: nothing was paid for yet, and each resume would fail the
/// same way.
fn make(journal: &mut Journal, place: &Workplace<'_>, at: &CommitId) -> Result<Worktree, Error> {
    let error = match Worktree::create(place.checkout, &spec(journal.task(), at)) {
        Ok(worktree) => return Ok(worktree),
        Err(error) => error,
    };
    if !error.lasts() {
        return Err(error.into());
    }
    let path = journal.task().started.workplace.worktree.clone();
    let cause = one_line(&format!("cannot make a worktree at {path}: {error}"));
    finish::finish(journal, place, Outcome::Ended { end: End::Dropped, cause })?;
    Err(Error::Unmade { path, source: error })
}

/// Sets up the worktree and records that it is ready.
async fn stand(
    journal: &mut Journal,
    place: &Workplace<'_>,
    outside: &Outside<'_>,
    worktree: &Worktree,
    snapshot: &Snapshot,
    switched: Option<IntentId>,
) -> Result<(), Error> {
    let mut notices = snapshot.notices.clone();
    match set_up(journal, place, outside, worktree, &snapshot.commit).await? {
        SetUp::Ready(more) => notices.extend(more),
        SetUp::Stopped | SetUp::OutOfTime => {
            if switched.is_some() {
                in_place::undo_switch(journal, place)?;
            }
            return Ok(());
        }
    }
    let workspace = repo::workspace::describe(worktree.path());
    journal.push(EventKind::WorktreeReady {
        snapshot: snapshot.commit.clone(),
        dirty: snapshot.dirty,
        workspace: outside.mask.apply(&workspace.text).into_owned(),
        notices: [notices, workspace.notices].concat(),
    })?;
    if let Some(intent) = switched {
        record::done(journal, intent)?;
    }
    journal.commit()?;
    crash::point("prepare.ready");
    Ok(())
}
