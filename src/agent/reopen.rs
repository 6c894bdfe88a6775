//! Reopens a task's worktree in the state that the log says, or makes it again if it is gone.

use super::{
    Error,
    outside::Outside,
    record,
    set_up::{SetUp, set_up},
    workplace::{Workplace, head, spec},
};
use crate::{
    domain::{
        checkout::Isolation,
        event::EventKind,
        gate::Answer,
        id::CallId,
        intent::{IntentKind, Runs},
        outcome::Pause,
        task::Task,
    },
    log::{Journal, crash},
    repo::{Checkout, Worktree, WorktreeSpec},
};

/// Opens the worktree, or makes it again if it is gone, and checks that the branch is where the log says, or one commit of
/// ours ahead. False: a gate was recorded, or the user asked to stop.
pub(super) async fn reopen(
    journal: &mut Journal,
    place: &mut Workplace<'_>,
    outside: &Outside<'_>,
) -> Result<bool, Error> {
    let head = head(journal.task())?;
    let spec = spec(journal.task(), &head);
    let opened = match spec.isolation {
        Isolation::Worktree => {
            let own = place.branch(journal.task(), &head)?;
            if own.tip()?.is_none() && Worktree::open(place.checkout, &spec)?.is_none() {
                if journal.task().answer() != Some(Answer::Keep) {
                    let cause = format!("the branch {} and its worktree are gone", spec.branch);
                    record::gate(journal, place.checkout, &cause)?;
                    return Ok(false);
                }
                // nothing else is there to be kept
                own.put_back(&head, "")?;
            }
            open_or_recreate(journal, place, outside, &spec).await?
        }
        Isolation::InPlace => in_place(journal, place.checkout, &spec)?,
    };
    let Some(opened) = opened else { return Ok(false) };
    record::repairs(journal, &opened)?;
    let task = journal.task();
    let tip = opened.tip()?;
    // a checkpoint that the log does not name yet has the open call in its trailers
    let ahead = tip.as_ref().map(|tip| opened.commit_is_ours(tip, task.id)).transpose()?.flatten();
    let kept = ahead.is_some() && ahead == kept_call(task);
    let beyond = kept
        || task.pending_intents().any(|intent| {
            let is_squashed = matches!(&intent.kind, IntentKind::Squash { to, .. } if tip.as_ref() == Some(to));
            is_squashed || ahead.is_some() && intent.kind.call() == ahead.as_ref()
        });
    // a check runs again from the commit in the log, and the user's decision to keep is about the files
    let taken_in =
        task.answer() == Some(Answer::Keep) || task.pending_intents().any(|intent| intent.kind.runs() == Runs::Checks);
    if !beyond && taken_in {
        opened.take_in(&head)?;
        record::repairs(journal, &opened)?;
    }
    if tip.as_ref() == Some(&head) || beyond || taken_in {
        place.worktree = Some(opened);
        return Ok(true);
    }
    let branch = spec.branch;
    let where_it_is = tip.map_or_else(|| "gone".to_owned(), |tip| format!("at {}", tip.short()));
    record::gate(
        journal,
        place.checkout,
        &format!("the branch {branch} is {where_it_is}, but the log says {}", head.short()),
    )?;
    Ok(false)
}

/// The worktree, made again if it is gone; none if the user asked to stop meanwhile.
pub(super) async fn open_or_recreate(
    journal: &mut Journal,
    place: &Workplace<'_>,
    outside: &Outside<'_>,
    spec: &WorktreeSpec,
) -> Result<Option<Worktree>, Error> {
    if let Some(opened) = Worktree::open(place.checkout, spec)? {
        return Ok(Some(opened));
    }
    let again = Worktree::recreate(place.checkout, spec)?;
    // the branch may be one commit of ours ahead
    let at = again.tip()?.unwrap_or_else(|| spec.start.clone());
    match set_up(journal, place, outside, &again, &at).await? {
        SetUp::Ready(_) => {
            again.stands()?;
            crash::point("recreate.ready");
            Ok(Some(again))
        }
        // recovery is done; next comes the end by the cap
        SetUp::OutOfTime => {
            record::recovered(journal, "the setup used up the time cap")?;
            Ok(None)
        }
        SetUp::Stopped => {
            let cause = "stopped on request".to_owned();
            journal.push(EventKind::TaskPaused { pause: Pause::Stopped, cause })?;
            Ok(None)
        }
    }
}

/// The checkout of a task in place; none, and a gate, if it is not on the task's branch or no longer the task's.
pub(super) fn in_place(
    journal: &mut Journal,
    checkout: &Checkout,
    spec: &WorktreeSpec,
) -> Result<Option<Worktree>, Error> {
    let opened = Worktree::open_in_place(checkout, spec)?;
    if opened.is_none() {
        let its_own = checkout.task_in_place()?.as_deref() == Some(&*spec.task.to_string());
        let cause = if its_own {
            format!(
                "the task works in place on {0}, but the checkout is not on that branch; `git switch {0}` and resume, or \
                 `nisse drop {1:#}`",
                spec.branch, spec.task
            )
        } else {
            format!(
                "the checkout no longer belongs to the task, or an older nisse began it there; to end it: nisse drop {:#}",
                spec.task
            )
        };
        record::gate(journal, checkout, &cause)?;
    }
    Ok(opened)
}

/// The call id in the trailers of a checkpoint that the user decided.
pub(super) fn kept_call(task: &Task) -> Option<CallId> {
    let decision = task.decision.filter(|decision| decision.answer == Answer::Keep)?;
    Some(CallId(format!("p{:08}", decision.seq)))
}
