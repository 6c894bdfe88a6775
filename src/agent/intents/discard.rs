//! A task that did not succeed leaves only its commits, under a ref of their own.

use std::path::Path;

use super::{
    super::{
        Error, after_command, gone, record,
        workplace::{Workplace, head, spec},
    },
    in_place, removal,
};
use crate::{
    domain::{
        checkout::Isolation,
        event::EventKind,
        id::{CommitId, IntentId},
        intent::IntentKind,
        line::one_line,
        outcome::End,
        task::WHOLE_WORKTREE,
    },
    log::{Journal, crash},
    repo::{self, Worktree},
};

/// Keeps the commits below `refs/nisse/discarded`, and removes branch and worktree.
pub(in super::super) fn discard(
    journal: &mut Journal,
    place: &Workplace<'_>,
    end: &End,
    cause: &str,
) -> Result<(), Error> {
    let task = journal.task();
    let begun = task.intents.iter().any(|intent| matches!(intent.kind, IntentKind::Discard { .. }));
    if begun {
        return Ok(());
    }
    if task.ready.is_none() {
        return clear_unready(journal, place);
    }
    let tip = if task.is_given_up() {
        keep_files_without_commits(journal, place)?;
        keep_all(journal, place)?
    } else {
        keep_what_no_call_made(journal, place)?;
        head(journal.task())?
    };
    let task = journal.task();
    place.branch(task, &tip)?.forget_asked()?;
    let intent =
        record::open(journal, IntentKind::Discard { tip: tip.clone(), end: end.clone(), cause: cause.to_owned() })?;
    crash::point("discard.opened");
    carry_out(journal, place, intent, None, &tip)
}

/// Removes everything with the names of a task that is given up, even if it never began. A failure does not change the
/// outcome.
fn clear_unready(journal: &mut Journal, place: &Workplace<'_>) -> Result<(), Error> {
    in_place::undo_switch(journal, place)?;
    let base = journal.task().started.workplace.base.commit.clone();
    // without a base there is no commit to name the start; the branch is known by its name and its snapshot
    let start = base.clone().unwrap_or_else(|| CommitId(String::new()));
    let removed = place.branch(journal.task(), &start).and_then(|own| Ok(own.remove_unready(base.as_ref())?));
    if let Err(error) = removed {
        let cause = format!("could not remove what the task left: {error}");
        record::recovered(journal, cause)?;
    }
    crash::point("drop.cleared");
    Ok(())
}

/// Keeps and names changes in the task's own worktree that no call made, because the worktree is removed. A failure does not
/// change the outcome.
fn keep_what_no_call_made(journal: &mut Journal, place: &Workplace<'_>) -> Result<(), Error> {
    let task = journal.task();
    let Some(worktree) = place.worktree.as_ref().filter(|_| task.started.workplace.isolation == Isolation::Worktree)
    else {
        return Ok(());
    };
    let (head, at_ms) = (head(task)?, journal.clock().civil_ms());
    let kept = worktree.differs_from(&head).and_then(|changed| {
        let kept = if changed.is_empty() { None } else { worktree.save_files("end", &head, at_ms)? };
        Ok(kept.map(|kept| {
            format!("changed in the worktree by something other than the task: {}; kept at {kept}", changed.join(", "))
        }))
    });
    let cause = kept.unwrap_or_else(|error| Some(one_line(&format!("could not read the worktree: {error}"))));
    record::notice(journal, cause)
}

/// If the repository no longer has the task's commits, as after a new clone, nothing can be kept as a commit: the worktree is
/// moved aside as it is.
fn keep_files_without_commits(journal: &mut Journal, place: &Workplace<'_>) -> Result<(), Error> {
    let task = journal.task();
    let path = Path::new(&task.started.workplace.worktree);
    if task.started.workplace.isolation != Isolation::Worktree
        || gone::has_commits(task, place.checkout)?
        || !path.is_dir()
    {
        return Ok(());
    }
    let place = journal.kept_dir().join(task.seq.to_string());
    repo::move_whole(path, &place.join("worktree"))?;
    let paths = vec![WHOLE_WORKTREE.to_owned()];
    journal.push(EventKind::KeptAside { paths, place: place.display().to_string() })?;
    Ok(())
}

/// The tip to keep of a task that is given up, including a checkpoint that the log does not name yet; further changes in the
/// worktree are kept apart.
fn keep_all(journal: &Journal, place: &Workplace<'_>) -> Result<CommitId, Error> {
    let task = journal.task();
    let head = head(task)?;
    let tip = place.branch(task, &head)?.beyond(&head)?.unwrap_or(head);
    // in place, giving back kept it; a worktree that cannot be opened is nothing to keep: not the task's, or gone
    if task.started.workplace.isolation == Isolation::Worktree
        && let Ok(Some(worktree)) = Worktree::open(place.checkout, &spec(task, &tip))
        && let Some(decision) = task.decision
    {
        worktree.save_state(&tip, decision.seq, decision.at_ms)?;
        crash::point("drop.kept");
    }
    Ok(tip)
}

/// Runs a discard that was opened.
pub(super) fn carry_out(
    journal: &mut Journal,
    place: &Workplace<'_>,
    intent: IntentId,
    found: Option<&str>,
    tip: &CommitId,
) -> Result<(), Error> {
    if let Err(error) = removal::empty_worktree(journal, place)? {
        return removal::settle(journal, intent, "discard", found, Err(error));
    }
    let done = place.branch(journal.task(), tip)?.discard(tip);
    if let Ok(Some(_)) = &done {
        after_command::name_what_is_kept(journal, place)?;
    }
    removal::settle(journal, intent, "discard", found, done.map(drop))
}
