//! A task in place switches the checkout to its branch, and back with every outcome.
//!
//! Each switch is an intent. Before `worktree_ready`, recovery undoes a switch and starts over; after it, settles it.

use super::super::{
    Error, record, set_up,
    workplace::{Workplace, head, spec},
};
use crate::{
    domain::{
        checkout::Isolation,
        id::{CommitId, IntentId},
        intent::{Intent, IntentKind, Status, SwitchTo},
        outcome::End,
        task::Task,
    },
    log::{Journal, crash},
    repo::{self, GivenBack, Snapshot, Worktree},
};

/// Switches the checkout to the task's branch. The intent is settled when the worktree is ready.
pub(in super::super) fn switch_to_task(
    journal: &mut Journal,
    place: &Workplace<'_>,
    snapshot: &Snapshot,
) -> Result<(Worktree, IntentId), Error> {
    let kind = IntentKind::CheckoutSwitch { way: SwitchTo::TaskBranch, snapshot: snapshot.commit.clone() };
    let intent = record::open(journal, kind)?;
    crash::point("switch.opened");
    let spec = spec(journal.task(), &snapshot.commit);
    Ok((Worktree::switch_to_task(place.checkout, &spec)?, intent))
}

/// Undoes a switch that is not settled, with all that a setup left: the checkout had been clean.
pub(in super::super) fn undo_switch(journal: &mut Journal, place: &Workplace<'_>) -> Result<(), Error> {
    let Some((intent, snapshot)) = last(journal.task()).filter(|(intent, _)| intent.status == Status::Pending) else {
        return Ok(());
    };
    let (id, snapshot) = (intent.id, snapshot.clone());
    let branch = place.branch(journal.task(), &snapshot)?;
    keep_unfinished(journal, place, &snapshot)?;
    if let Some(here) = Worktree::open_in_place(place.checkout, &spec(journal.task(), &snapshot))? {
        let cleared = set_up::clear_up(journal.task(), journal.clock().civil_ms(), &here, &snapshot)?;
        record::notice(journal, cleared)?;
    }
    let restored = branch.undo_switch(&journal.task().started.workplace.base, &snapshot)?;
    tell(journal, restored)?;
    record::abandoned(journal, id, "the checkout was switched back")?;
    journal.commit()?;
    Ok(())
}

/// Switches the checkout back, if the task has it.
pub(in super::super) fn restore_checkout(
    journal: &mut Journal,
    place: &Workplace<'_>,
    end: &End,
    cause: &str,
) -> Result<(), Error> {
    let task = journal.task();
    if task.started.workplace.isolation != Isolation::InPlace
        || task.checkout_restored().is_some()
        || task.ready.is_none()
    {
        return Ok(());
    }
    let Some((_, snapshot)) = last(task) else {
        return Err(Error::Bug("a task in place is to end that has no checkout"));
    };
    let snapshot = snapshot.clone();
    let way = SwitchTo::Original { end: end.clone(), cause: cause.to_owned() };
    let intent = record::open(journal, IntentKind::CheckoutSwitch { way, snapshot: snapshot.clone() })?;
    crash::point("back.opened");
    restore(journal, place, &snapshot)?;
    record::done(journal, intent)
}

/// Recovers a switch that a dead process began: undoes one to the task's branch unless the task has begun, and finishes one
/// back.
pub(super) fn recover(
    journal: &mut Journal,
    place: &Workplace<'_>,
    intent: IntentId,
    way: &SwitchTo,
    snapshot: &CommitId,
) -> Result<(), Error> {
    match way {
        SwitchTo::TaskBranch if journal.task().ready.is_none() => undo_switch(journal, place),
        // an unsettled one here comes from before `worktree_ready`
        SwitchTo::TaskBranch => record::settled(journal, intent, "the task had already begun"),
        SwitchTo::Original { .. } => {
            restore(journal, place, snapshot)?;
            record::settled(journal, intent, "the checkout is switched back")
        }
    }
}

/// Switches the checkout back, and records what the user should know.
fn restore(journal: &mut Journal, place: &Workplace<'_>, snapshot: &CommitId) -> Result<(), Error> {
    keep_unfinished(journal, place, snapshot)?;
    let task = journal.task();
    let (tip, at_ms) = (head(task)?, journal.clock().civil_ms());
    let restored = place.branch(task, &tip)?.switch_to_base(&task.started.workplace.base, &tip, at_ms)?;
    tell(journal, restored)
}

/// A task of log version 1 may have begun in a checkout with uncommitted work, which only giving it up restores.
fn keep_unfinished(journal: &mut Journal, place: &Workplace<'_>, snapshot: &CommitId) -> Result<(), Error> {
    let task = journal.task();
    let branch = place.branch(task, snapshot)?;
    let Some(kept) = branch.pin_unfinished(&task.started.workplace.base, snapshot)? else { return Ok(()) };
    if task.ready.is_none() && !task.is_given_up() {
        let why = format!(
            "an older nisse began the task in a checkout with uncommitted work; to end it: nisse drop {:#}",
            task.id
        );
        return Err(repo::Error::Refused { checkout: place.checkout.root().to_owned(), why }.into());
    }
    let cause = format!("the uncommitted work that was in the checkout before the task is kept at {kept}");
    record::recovered(journal, cause)
}

fn tell(journal: &mut Journal, restored: GivenBack) -> Result<(), Error> {
    if let Some(kept) = restored.kept {
        let cause = format!(
            "someone else changed files of the task meanwhile: {}; a copy is kept at {kept}",
            restored.changed.join(", ")
        );
        record::recovered(journal, cause)?;
    }
    record::notice(journal, record::torn(&restored.torn))
}

/// The last switch that was not undone, and where the task's branch began.
fn last(task: &Task) -> Option<(&Intent, &CommitId)> {
    let intent = task.last_switch()?;
    let (_, snapshot) = intent.kind.switch()?;
    Some((intent, snapshot))
}
