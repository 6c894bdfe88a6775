//! Carries out the user's answer to a gate: restore the last checkpoint, or keep what is there.
//!
//! Neither loses anything: a rollback keeps what it removes under `refs/nisse/found/<task>`. The answer is in the log before
//! anything is touched, and each step can be repeated, so a crash in between does not ask the user twice.

use super::{
    Error,
    outside::Outside,
    record::{self, Answered},
    reopen::{in_place, kept_call, open_or_recreate},
    uncommittable::{self, Which},
    workplace::{Workplace, existing_worktree, head, spec},
};
use crate::{
    domain::{
        checkout::Isolation,
        event::{EventKind, ResultStatus},
        gate::Decision,
        id::{CallId, CommitId, IntentId},
        task::Task,
    },
    log::{Journal, crash},
    repo::{Checkout, CheckpointRequest, TaskBranch, Worktree, found_ref},
};

/// The files that changed since the user was asked about them. Their new state is noted, so the same answer given again
/// applies to it.
pub fn changed_since_asked(task: &Task, checkout: &Checkout) -> Result<Vec<String>, Error> {
    let Some(worktree) = existing_worktree(task, checkout)? else { return Ok(Vec::new()) };
    let changed = worktree.changed_since_asked()?;
    if !changed.is_empty() {
        worktree.note_asked()?;
    }
    Ok(changed)
}

/// Rolls back an interrupted call, and answers it accordingly.
pub(super) async fn roll_call_back(
    journal: &mut Journal,
    place: &mut Workplace<'_>,
    outside: &Outside<'_>,
    intent: IntentId,
    call: &CallId,
) -> Result<(), Error> {
    let TakenBack::Done(told) = take_back(journal, place, outside).await? else { return Ok(()) };
    let text = "Interrupted: how this ended was not recorded, and it is not known how far it came. The person decided \
                that the files go back to what they were before it. Nothing of it is left in the tracked files.";
    record::answer(journal, place, outside, call, Answered::new(ResultStatus::Failed, text))?;
    record::abandoned(journal, intent, "rolled back, as you decided")?;
    if let Some(told) = told {
        // the answer has already had its effect
        let cause = format!("the files are as they were before the call; {told}");
        record::recovered(journal, cause)?;
    }
    Ok(())
}

/// Keeps what an interrupted call did, and answers it accordingly.
pub(super) fn keep_call(
    journal: &mut Journal,
    place: &mut Workplace<'_>,
    outside: &Outside<'_>,
    intent: IntentId,
    call: &CallId,
) -> Result<(), Error> {
    if journal.task().started.workplace.isolation == Isolation::Worktree {
        // what was there before the command is unknown, and the directory is the task's own
        uncommittable::record(journal, &[], place.worktree()?.uncommittable()?)?;
    }
    let checkpoint = place.checkpoint(journal.task(), intent, call, None)?;
    let content =
        "Interrupted: how this ended was not recorded, and it is not known how far it came. The person decided \
                   to keep what it left: look at the files before you go on."
            .to_owned();
    record::answer(
        journal,
        place,
        outside,
        call,
        Answered { status: ResultStatus::Failed, content, checkpoint, seen: None },
    )?;
    record::settled(journal, intent, "kept, as you decided")
}

/// Abandons an interrupted call of a task that is given up. In a checkout, its possible changes are removed and a copy is
/// kept; otherwise they would look like the user's own.
pub(super) fn give_call_up(journal: &mut Journal, place: &Workplace<'_>, intent: IntentId) -> Result<(), Error> {
    let task = journal.task();
    let mut cause = "the task was given up".to_owned();
    if task.started.workplace.isolation == Isolation::InPlace
        && let Some(Decision { seq, at_ms, .. }) = task.decision
    {
        let head = head(task)?;
        let at = place.branch(task, &head)?.beyond(&head)?.unwrap_or(head);
        // on another branch there is nothing of it
        if let Some(here) = Worktree::open_in_place(place.checkout, &spec(task, &at))?
            && let Some(kept) = here.save_state(&at, seq, at_ms)?
        {
            crash::point("drop.kept");
            let torn = record::torn(&here.restore(&at)?).map_or_else(String::new, |torn| format!("; {torn}"));
            cause = format!(
                "the task was given up; changes in the checkout since its last checkpoint are kept at {kept}{torn}"
            );
        }
    }
    record::abandoned(journal, intent, &cause)
}

/// Restores branch and worktree as in the log, if no call is open.
pub(super) async fn roll_back(
    journal: &mut Journal,
    place: &mut Workplace<'_>,
    outside: &Outside<'_>,
) -> Result<(), Error> {
    let TakenBack::Done(told) = take_back(journal, place, outside).await? else { return Ok(()) };
    let cause = told.map_or_else(
        || "branch and worktree are as the log says".to_owned(),
        |told| format!("branch and worktree are again as the log says; {told}"),
    );
    record::recovered(journal, cause)
}

/// Makes a checkpoint of what is in the worktree, if no call is open.
pub(super) fn keep(journal: &mut Journal, place: &Workplace<'_>) -> Result<(), Error> {
    let task = journal.task();
    let (Some(decision), Some(call)) = (task.decision, kept_call(task)) else {
        return Err(Error::Bug("something was to be kept that nobody decided to keep"));
    };
    let checkpoint = place.worktree()?.checkpoint(&CheckpointRequest {
        task: task.id,
        turn: task.last_turn().map_or(0, |turn| turn.number),
        call: &call,
        parent: &head(task)?,
        subject: "nisse: kept as the person decided",
        at_ms: decision.at_ms,
        paths: None,
    })?;
    let cause = "the files in the worktree are kept, as you decided".to_owned();
    journal.push(EventKind::Recovered { cause, checkpoint })?;
    Ok(())
}

/// The changes since the last checkpoint: that checkpoint, and a commit of the files as they are. None if there are none.
pub fn beyond(task: &Task, checkout: &Checkout, at_ms: u64) -> Result<Option<(CommitId, CommitId)>, Error> {
    let head = head(task)?;
    let spec = spec(task, &head);
    let tip = TaskBranch::new(checkout, &spec)?.tip()?.unwrap_or_else(|| head.clone());
    let found = match existing_worktree(task, checkout)? {
        Some(worktree) => worktree.snapshot_files(&tip, at_ms)?.unwrap_or(tip),
        None => tip,
    };
    Ok((found != head).then_some((head, found)))
}

/// The result of restoring the last checkpoint.
enum TakenBack {
    /// Done; says where a copy is kept, if there is one.
    Done(Option<String>),
    /// Not possible; the log says why the task is paused.
    Rests,
}

/// Restores branch and worktree of the last checkpoint.
async fn take_back(
    journal: &mut Journal,
    place: &mut Workplace<'_>,
    outside: &Outside<'_>,
) -> Result<TakenBack, Error> {
    let task = journal.task();
    let head = head(task)?;
    let Some(Decision { seq, at_ms, .. }) = task.decision else {
        return Err(Error::Bug("something was to be rolled back that nobody decided to roll back"));
    };
    let (spec, branch) = (spec(task, &head), place.branch(task, &head)?);
    let kept_at = found_ref(task.id, seq);
    let worktree = match spec.isolation {
        Isolation::Worktree => Worktree::open(place.checkout, &spec)?,
        Isolation::InPlace => match in_place(journal, place.checkout, &spec)? {
            None => return Ok(TakenBack::Rests),
            here => here,
        },
    };
    let (worktree, kept) = if let Some(worktree) = worktree {
        let kept = worktree.save_state(&head, seq, at_ms)?;
        crash::point("roll_back.kept");
        branch.put_back(&head, &kept_at)?;
        crash::point("roll_back.branch");
        (worktree, kept)
    } else {
        let elsewhere = branch.tip()?.is_some_and(|tip| tip != head);
        branch.put_back(&head, &kept_at)?;
        let Some(again) = open_or_recreate(journal, place, outside, &spec).await? else { return Ok(TakenBack::Rests) };
        (again, elsewhere.then_some(kept_at))
    };
    uncommittable::move_out(journal, &worktree, Which::All)?;
    let torn = record::torn(&worktree.restore(&head)?);
    let kept = kept.map(|kept| format!("a copy of what was there is kept at {kept}"));
    let told: Vec<_> = kept.into_iter().chain(torn).collect();
    record::repairs(journal, &worktree)?;
    crash::point("roll_back.restored");
    place.worktree = Some(worktree);
    Ok(TakenBack::Done((!told.is_empty()).then(|| told.join("; "))))
}
