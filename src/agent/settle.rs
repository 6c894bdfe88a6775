//! The end of a run: a task that rests is marked so, one that ended is settled.
//!
//! Squash and discard come before the completion, the clean-up after it. A discard or clean-up that fails changes no
//! outcome: it stays pending.

use std::path::Path;

use super::{
    Error, act, answered,
    env::{Env, head},
    place, recover, switch,
    uncommittable::{self, Which},
};
use crate::{
    domain::{
        checkout::Isolation,
        event::EventKind,
        id::{CommitId, IntentId},
        intent::{IntentKind, Status},
        outcome::{End, Handback, Outcome, one_line},
        task::Task,
    },
    log::{Journal, crash},
    repo::{self, Worktree},
};

/// How many of the ignored files that go with a worktree are named.
const NAMED: usize = 20;

/// Records what `outcome` asks for and returns it.
pub(super) fn settle(journal: &mut Journal, env: &Env<'_>, outcome: Outcome) -> Result<Outcome, Error> {
    if journal.task().outcome().is_none() {
        match &outcome {
            Outcome::Paused { pause, cause } => {
                journal.push(EventKind::TaskPaused { pause: *pause, cause: cause.clone() })?;
            }
            Outcome::Ended { end, cause } => complete(journal, env, end, cause)?,
        }
    }
    journal.commit()?;
    Ok(outcome)
}

fn complete(journal: &mut Journal, env: &Env<'_>, end: &End, cause: &str) -> Result<(), Error> {
    leave_out(journal, env)?;
    if journal.task().started.isolation == Isolation::InPlace
        && let Some(worktree) = &env.worktree
    {
        uncommittable::move_out(journal, worktree, Which::Made)?;
    }
    match end {
        End::Handback => {
            squash(journal, env)?;
            switch::back(journal, env, end, cause)?;
        }
        End::Failed | End::Capped(_) | End::Dropped => {
            switch::back(journal, env, end, cause)?;
            discard(journal, env, end, cause)?;
        }
    }
    journal.push(EventKind::TaskEnded { end: end.clone(), cause: cause.to_owned() })?;
    journal.push(EventKind::IntentSettled { intent: IntentId::TASK, cause: None })?;
    if *end == End::Handback && journal.task().started.isolation == Isolation::Worktree {
        let intent = act::open(journal, IntentKind::CleanUp)?;
        crash::point("end.recorded");
        recover::clean_up(journal, env, intent, None)?;
    }
    Ok(())
}

/// Names what goes with the worktree and is in no commit. What cannot be listed changes no outcome.
fn leave_out(journal: &mut Journal, env: &Env<'_>) -> Result<(), Error> {
    let task = journal.task();
    let told = task.left_out.is_some() || task.pending_intents().next().is_some();
    if told || task.started.isolation != Isolation::Worktree {
        return Ok(());
    }
    let listed = match &env.worktree {
        Some(worktree) => worktree.ignored_work().map_err(Error::from),
        // given up, it was not opened; gone, nothing is in it
        None => answered::standing(task, env.checkout)
            .and_then(|found| Ok(found.map(|worktree| worktree.ignored_work()).transpose()?.unwrap_or_default())),
    };
    match listed {
        Ok(paths) if paths.is_empty() => {}
        Ok(mut paths) => {
            paths.truncate(NAMED);
            journal.push(EventKind::LeftOut { paths })?;
        }
        Err(error) => {
            let cause = one_line(&format!("which ignored files go with the worktree is not known: {error}"));
            journal.push(EventKind::Recovered { cause, checkpoint: None })?;
        }
    }
    Ok(())
}

/// One commit whose message is the handback note.
fn squash(journal: &mut Journal, env: &Env<'_>) -> Result<(), Error> {
    let task = journal.task();
    let squashed = task
        .intents
        .iter()
        .any(|intent| matches!(intent.kind, IntentKind::Squash { .. }) && intent.status == Status::Settled);
    let (Some(ready), Some(note)) = (&task.ready, &task.handback) else {
        return Err(Error::Bug("a handback was to be settled that was not accepted"));
    };
    if squashed || task.started.keep_turns {
        return Ok(());
    }
    let worktree = env.worktree()?;
    let from = head(task)?;
    let to = worktree.squash_commit(&ready.snapshot, &from, &message(task, note), journal.clock().civil_ms())?;
    crash::point("squash.commit");
    let intent = act::open(journal, IntentKind::Squash { from: from.clone(), to: to.clone() })?;
    crash::point("squash.opened");
    worktree.squash_apply(&from, &to)?;
    journal.push(EventKind::IntentSettled { intent, cause: None })?;
    Ok(())
}

fn discard(journal: &mut Journal, env: &Env<'_>, end: &End, cause: &str) -> Result<(), Error> {
    let task = journal.task();
    let begun = task.intents.iter().any(|intent| matches!(intent.kind, IntentKind::Discard { .. }));
    if begun {
        return Ok(());
    }
    if task.ready.is_none() {
        return clear_unready(journal, env);
    }
    let tip = if task.given_up() {
        keep_files_without_commits(journal, env)?;
        keep_all(journal, env)?
    } else {
        keep_what_no_call_made(journal, env)?;
        head(journal.task())?
    };
    let task = journal.task();
    place::branch(task, env, &tip)?.forget_asked()?;
    let intent =
        act::open(journal, IntentKind::Discard { tip: tip.clone(), end: end.clone(), cause: cause.to_owned() })?;
    crash::point("discard.opened");
    recover::discard(journal, env, intent, None, &tip)
}

/// Given up, it leaves nothing under its names, also where it never stood. What cannot be removed changes no outcome.
fn clear_unready(journal: &mut Journal, env: &Env<'_>) -> Result<(), Error> {
    switch::take_back(journal, env)?;
    let base = journal.task().started.base.commit.clone();
    // without a base there is no commit to name the start; the branch is known by its name and its snapshot
    let start = base.clone().unwrap_or_else(|| CommitId(String::new()));
    let removed = place::branch(journal.task(), env, &start).and_then(|own| Ok(own.remove_unready(base.as_ref())?));
    if let Err(error) = removed {
        let cause = format!("what the task left could not be removed: {error}");
        journal.push(EventKind::Recovered { cause, checkpoint: None })?;
    }
    crash::point("drop.cleared");
    Ok(())
}

/// What differs in the task's own worktree though no call changed it goes with that, so it is kept, and named. What
/// cannot be looked at changes no outcome.
fn keep_what_no_call_made(journal: &mut Journal, env: &Env<'_>) -> Result<(), Error> {
    let task = journal.task();
    let Some(worktree) = env.worktree.as_ref().filter(|_| task.started.isolation == Isolation::Worktree) else {
        return Ok(());
    };
    let (head, at_ms) = (head(task)?, journal.clock().civil_ms());
    let kept = worktree.differs_from(&head).and_then(|changed| {
        let kept = if changed.is_empty() { None } else { worktree.keep_as("end", &head, at_ms)? };
        Ok(kept.map(|kept| format!("changed in the worktree, and by no call: {}; kept at {kept}", changed.join(", "))))
    });
    let cause = kept.unwrap_or_else(|error| Some(one_line(&format!("the worktree could not be looked at: {error}"))));
    switch::record(journal, cause)
}

/// Where the repository has the task's commits no more, as after it was cloned anew, nothing can be kept as a commit: the
/// worktree goes aside as it is.
fn keep_files_without_commits(journal: &mut Journal, env: &Env<'_>) -> Result<(), Error> {
    let task = journal.task();
    let path = Path::new(&task.started.worktree);
    if task.started.isolation != Isolation::Worktree || env.checkout.has_commit(&head(task)?)? || !path.is_dir() {
        return Ok(());
    }
    let place = journal.kept_dir().join(task.seq.to_string());
    repo::move_whole(path, &place.join("worktree"))?;
    let paths = vec!["worktree/".to_owned()];
    journal.push(EventKind::KeptAside { paths, place: place.display().to_string() })?;
    Ok(())
}

/// The tip to be kept of a task that is given up: a checkpoint that the log does not name yet is part of it, and what
/// the worktree holds beyond that is kept aside.
fn keep_all(journal: &Journal, env: &Env<'_>) -> Result<CommitId, Error> {
    let task = journal.task();
    let head = head(task)?;
    let tip = place::branch(task, env, &head)?.beyond(&head)?.unwrap_or(head);
    // in place, giving back kept it; a worktree that cannot be opened is nothing to keep: not the task's, or gone
    if task.started.isolation == Isolation::Worktree
        && let Ok(Some(worktree)) = Worktree::open(env.checkout, &place::spec(task, &tip))
        && let Some(decision) = task.decision
    {
        worktree.keep_found(&tip, decision.seq, decision.at_ms)?;
        crash::point("drop.kept");
    }
    Ok(tip)
}

/// The commit's message: a subject from the note's first line, the note, and the task's trailer.
pub(super) fn message(task: &Task, note: &Handback) -> String {
    let first = note.changed.trim().lines().next().unwrap_or_default();
    let mut subject: String = first.chars().take(72).collect();
    if subject.len() < first.len() {
        subject = first.chars().take(71).collect::<String>().trim_end().to_owned() + "…";
    }
    format!(
        "{subject}\n\nChanged: {}\n\nNow true: {}\n\nNext: {}\n\nNisse-Task: {}\n",
        note.changed.trim(),
        note.now_true.trim(),
        note.next.trim(),
        task.id
    )
}
