//! A task that works in place puts the checkout onto its branch, and gives it back in every outcome.
//!
//! Each way is an intent. Before `worktree_ready` a switch is taken back and made anew; after it, it is settled.

use super::{
    Error, act,
    env::{Env, head},
    place,
};
use crate::{
    domain::{
        checkout::Isolation,
        event::EventKind,
        id::{CommitId, IntentId},
        intent::{Intent, IntentKind, Status, Way},
        outcome::End,
        task::Task,
    },
    log::{Journal, crash},
    repo::{self, GivenBack, Snapshot, Worktree},
};

/// Puts the checkout onto the task's branch. The intent is settled when the worktree is ready.
pub(super) fn there(journal: &mut Journal, env: &Env<'_>, snapshot: &Snapshot) -> Result<(Worktree, IntentId), Error> {
    let kind = IntentKind::CheckoutSwitch { way: Way::There, snapshot: snapshot.commit.clone() };
    let intent = act::open(journal, kind)?;
    crash::point("switch.opened");
    let spec = place::spec(journal.task(), &snapshot.commit);
    Ok((Worktree::switch_there(env.checkout, &spec)?, intent))
}

/// Takes a switch back that was begun and is not settled, with all that a setup left: before it nothing was unfinished.
pub(super) fn take_back(journal: &mut Journal, env: &Env<'_>) -> Result<(), Error> {
    let Some((intent, snapshot)) = last(journal.task()).filter(|(intent, _)| intent.status == Status::Pending) else {
        return Ok(());
    };
    let (id, snapshot) = (intent.id, snapshot.clone());
    let branch = place::branch(journal.task(), env, &snapshot)?;
    keep_unfinished(journal, env, &snapshot)?;
    if let Some(here) = Worktree::open_in_place(env.checkout, &place::spec(journal.task(), &snapshot))? {
        let cleared = place::clear_up(journal.task(), journal.clock().civil_ms(), &here, &snapshot)?;
        record(journal, cleared)?;
    }
    let given = branch.undo_switch(&journal.task().started.base, &snapshot)?;
    tell(journal, given)?;
    journal.push(EventKind::IntentAbandoned { intent: id, cause: "the checkout was given back".to_owned() })?;
    journal.commit()?;
    Ok(())
}

/// Gives the checkout back; nothing for a task that has none, or gave it back already.
pub(super) fn back(journal: &mut Journal, env: &Env<'_>, end: &End, cause: &str) -> Result<(), Error> {
    let task = journal.task();
    if task.started.isolation != Isolation::InPlace || task.gave_back().is_some() || task.ready.is_none() {
        return Ok(());
    }
    let Some((_, snapshot)) = last(task) else {
        return Err(Error::Bug("a task in place is to end that has no checkout"));
    };
    let snapshot = snapshot.clone();
    let way = Way::Back { end: end.clone(), cause: cause.to_owned() };
    let intent = act::open(journal, IntentKind::CheckoutSwitch { way, snapshot: snapshot.clone() })?;
    crash::point("back.opened");
    give_back(journal, env, &snapshot)?;
    journal.push(EventKind::IntentSettled { intent, cause: None })?;
    Ok(())
}

/// Gives the checkout back, and records what is to be known of it.
pub(super) fn give_back(journal: &mut Journal, env: &Env<'_>, snapshot: &CommitId) -> Result<(), Error> {
    keep_unfinished(journal, env, snapshot)?;
    let task = journal.task();
    let (tip, at_ms) = (head(task)?, journal.clock().civil_ms());
    let given = place::branch(task, env, &tip)?.switch_back(&task.started.base, &tip, at_ms)?;
    tell(journal, given)
}

/// A task of version 1 of the log may have begun in a checkout with unfinished work, which only giving it up gives back.
fn keep_unfinished(journal: &mut Journal, env: &Env<'_>, snapshot: &CommitId) -> Result<(), Error> {
    let task = journal.task();
    let branch = place::branch(task, env, snapshot)?;
    let Some(kept) = branch.keep_unfinished(&task.started.base, snapshot)? else { return Ok(()) };
    if task.ready.is_none() && !task.given_up() {
        let why = format!(
            "the task was begun by an older nisse, in a checkout with unfinished work; `nisse drop {:#}` ends it",
            task.id
        );
        return Err(repo::Error::Refused { checkout: env.checkout.root().to_owned(), why }.into());
    }
    let cause = format!("the unfinished work that was in the checkout before the task is kept at {kept}");
    record(journal, Some(cause))
}

fn tell(journal: &mut Journal, given: GivenBack) -> Result<(), Error> {
    if let Some(kept) = given.kept {
        let cause = format!(
            "somebody else changed files of the task meanwhile: {}; what was in them is kept at {kept}",
            given.changed.join(", ")
        );
        record(journal, Some(cause))?;
    }
    record(journal, torn(&given.torn))
}

/// Says that files were torn apart from their other names.
pub(super) fn torn(paths: &[String]) -> Option<String> {
    (!paths.is_empty())
        .then(|| format!("written anew, so no longer one file with their hard links: {}", paths.join(", ")))
}

/// Records something that is to be known, if there is something.
pub(super) fn record(journal: &mut Journal, cause: Option<String>) -> Result<(), Error> {
    if let Some(cause) = cause {
        journal.push(EventKind::Recovered { cause, checkpoint: None })?;
    }
    Ok(())
}

/// The last switch that was not taken back, and where the task's branch began.
fn last(task: &Task) -> Option<(&Intent, &CommitId)> {
    let intent = task.switched()?;
    let (_, snapshot) = intent.kind.switch()?;
    Some((intent, snapshot))
}
