//! A task that works in place puts the checkout onto its branch, and gives it back in every outcome.
//!
//! Each way is an intent. Before `worktree_ready` a switch is taken back and made anew; after it, it is settled.

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

/// Puts the checkout onto the task's branch. The intent is settled when the worktree is ready.
pub(in super::super) fn switch_to_task(
    journal: &mut Journal,
    place: &Workplace<'_>,
    snapshot: &Snapshot,
) -> Result<(Worktree, IntentId), Error> {
    let kind = IntentKind::CheckoutSwitch { way: SwitchTo::TaskBranch, snapshot: snapshot.commit.clone() };
    let intent = record::open(journal, kind)?;
    crash::point("switch.opened");
    let spec = spec(journal.task(), &snapshot.commit);
    Ok((Worktree::switch_there(place.checkout, &spec)?, intent))
}

/// Takes a switch back that was begun and is not settled, with all that a setup left: before it nothing was unfinished.
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
    record::abandoned(journal, id, "the checkout was given back")?;
    journal.commit()?;
    Ok(())
}

/// Gives the checkout back; nothing for a task that has none, or gave it back already.
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

/// The switch that a dead process had begun: what was to be put onto the branch goes back unless the task stands, what was to
/// be given back is.
pub(super) fn recover(
    journal: &mut Journal,
    place: &Workplace<'_>,
    intent: IntentId,
    way: &SwitchTo,
    snapshot: &CommitId,
) -> Result<(), Error> {
    match way {
        SwitchTo::TaskBranch if journal.task().ready.is_none() => undo_switch(journal, place),
        // any other that recovery comes to is older than `worktree_ready`
        SwitchTo::TaskBranch => record::settled(journal, intent, "the task stood already"),
        SwitchTo::Original { .. } => {
            restore(journal, place, snapshot)?;
            record::settled(journal, intent, "the checkout is given back")
        }
    }
}

/// Gives the checkout back, and records what is to be known of it.
fn restore(journal: &mut Journal, place: &Workplace<'_>, snapshot: &CommitId) -> Result<(), Error> {
    keep_unfinished(journal, place, snapshot)?;
    let task = journal.task();
    let (tip, at_ms) = (head(task)?, journal.clock().civil_ms());
    let restored = place.branch(task, &tip)?.switch_back(&task.started.workplace.base, &tip, at_ms)?;
    tell(journal, restored)
}

/// A task of version 1 of the log may have begun in a checkout with unfinished work, which only giving it up gives back.
fn keep_unfinished(journal: &mut Journal, place: &Workplace<'_>, snapshot: &CommitId) -> Result<(), Error> {
    let task = journal.task();
    let branch = place.branch(task, snapshot)?;
    let Some(kept) = branch.keep_unfinished(&task.started.workplace.base, snapshot)? else { return Ok(()) };
    if task.ready.is_none() && !task.is_given_up() {
        let why = format!(
            "the task was begun by an older nisse, in a checkout with unfinished work; `nisse drop {:#}` ends it",
            task.id
        );
        return Err(repo::Error::Refused { checkout: place.checkout.root().to_owned(), why }.into());
    }
    let cause = format!("the unfinished work that was in the checkout before the task is kept at {kept}");
    record::recovered(journal, cause)
}

fn tell(journal: &mut Journal, restored: GivenBack) -> Result<(), Error> {
    if let Some(kept) = restored.kept {
        let cause = format!(
            "somebody else changed files of the task meanwhile: {}; what was in them is kept at {kept}",
            restored.changed.join(", ")
        );
        record::recovered(journal, cause)?;
    }
    record::notice(journal, record::torn(&restored.torn))
}

/// The last switch that was not taken back, and where the task's branch began.
fn last(task: &Task) -> Option<(&Intent, &CommitId)> {
    let intent = task.last_switch()?;
    let (_, snapshot) = intent.kind.switch()?;
    Some((intent, snapshot))
}
