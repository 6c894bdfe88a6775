//! A task that works in place puts the checkout onto its branch, and gives it back in every outcome.
//!
//! Each way is an intent. Before `worktree_ready` a switch is taken back and made anew; after it, it is settled.

use super::{Error, act, env::Env, place};
use crate::{
    domain::{
        checkout::Isolation,
        event::EventKind,
        id::{CommitId, IntentId},
        intent::{IntentKind, Status, Way},
        outcome::End,
        task::Task,
    },
    log::{Journal, crash},
    repo::{Snapshot, Worktree},
};

/// Keeps what the checkout is, and puts it onto the task's branch. The intent is settled when the worktree is ready.
pub(super) fn there(journal: &mut Journal, env: &Env<'_>, snapshot: &Snapshot) -> Result<(Worktree, IntentId), Error> {
    env.checkout.refuse_in_place(Some(snapshot))?;
    let task = journal.task();
    let at_ms = task.intents.first().map_or(0, |own| own.at_ms);
    let kept = env.checkout.keep(task.id, &task.started.base, &snapshot.commit, at_ms)?;
    crash::point("switch.kept");
    let kind = IntentKind::CheckoutSwitch { way: Way::There, kept: kept.clone(), snapshot: snapshot.commit.clone() };
    let intent = act::open(journal, kind)?;
    crash::point("switch.opened");
    let spec = place::spec(journal.task(), &snapshot.commit);
    Ok((Worktree::switch_there(env.checkout, &spec, &kept)?, intent))
}

/// Takes a switch back that was begun and is not settled; nothing if there is none.
pub(super) fn take_back(journal: &mut Journal, env: &Env<'_>) -> Result<(), Error> {
    let Some(there) = last(journal.task()).filter(|switch| switch.status == Status::Pending) else { return Ok(()) };
    let Switch { id: intent, kept, snapshot, .. } = there;
    place::branch(journal.task(), env, &snapshot)?.undo_switch(&kept, &snapshot)?;
    journal.push(EventKind::IntentAbandoned { intent, cause: "the checkout was given back".to_owned() })?;
    journal.commit()?;
    Ok(())
}

/// Gives the checkout back, files, index and branch; nothing for a task that has none, or gave it back already.
pub(super) fn back(journal: &mut Journal, env: &Env<'_>, end: &End, cause: &str) -> Result<(), Error> {
    let task = journal.task();
    if task.started.isolation != Isolation::InPlace || task.gave_back().is_some() || task.ready.is_none() {
        return Ok(());
    }
    let Some(Switch { kept, snapshot, .. }) = last(task) else {
        return Err(Error::Bug("a task in place is to end that has no checkout"));
    };
    let way = Way::Back { end: end.clone(), cause: cause.to_owned() };
    let kind = IntentKind::CheckoutSwitch { way, kept: kept.clone(), snapshot: snapshot.clone() };
    let intent = act::open(journal, kind)?;
    crash::point("back.opened");
    give_back(journal, env, &kept, &snapshot)?;
    journal.push(EventKind::IntentSettled { intent, cause: None })?;
    Ok(())
}

/// Gives the checkout back, and records what somebody else changed there meanwhile.
pub(super) fn give_back(
    journal: &mut Journal,
    env: &Env<'_>,
    kept: &CommitId,
    snapshot: &CommitId,
) -> Result<(), Error> {
    let by_others = place::branch(journal.task(), env, snapshot)?.switch_back(kept, snapshot)?;
    if !by_others.paths.is_empty() {
        let cause = format!(
            "somebody else changed files meanwhile: {}; what the task did not touch is left as it is, and all of it is \
             under {}",
            by_others.paths.join(", "),
            by_others.kept.join(", ")
        );
        journal.push(EventKind::Recovered { cause, checkpoint: None })?;
    }
    if let Some(kept) = by_others.unfinished {
        let cause = format!(
            "the checkout was taken off the task's branch by hand and holds something else by now; the unfinished work \
             that was in it before the task is kept at {kept}"
        );
        journal.push(EventKind::Recovered { cause, checkpoint: None })?;
    }
    Ok(())
}

/// The commit that keeps what the checkout was, while a task has it.
pub(super) fn kept(task: &Task) -> Result<CommitId, Error> {
    last(task).map(|switch| switch.kept).ok_or(Error::Bug("a task in place was resumed that has no checkout"))
}

/// A switch of the checkout.
struct Switch {
    id: IntentId,
    status: Status,
    kept: CommitId,
    snapshot: CommitId,
}

/// The last switch that was not taken back.
fn last(task: &Task) -> Option<Switch> {
    let intent = task.switched()?;
    let (_, kept, snapshot) = intent.kind.switch()?;
    Some(Switch { id: intent.id, status: intent.status, kept: kept.clone(), snapshot: snapshot.clone() })
}
