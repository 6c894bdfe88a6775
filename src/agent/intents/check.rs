//! Judges an ending call: success is verified, failure is believed.
//!
//! The tree must differ from the snapshot, and every check command, run by nisse, must exit with 0. What the checks change
//! in the worktree is undone: it is not the model's work.

use super::super::{
    Error, after_command, command,
    outside::Outside,
    record::{self, Answered},
    reopen,
    uncommittable::{self, Which},
    workplace::{Workplace, head},
};
use crate::{
    domain::{
        checkout::Isolation,
        event::{EventKind, ResultStatus},
        id::{CallId, CommitId, IntentId},
        intent::IntentKind,
    },
    log::Journal,
};

/// Answers the ending call with the verdict.
pub(in super::super) async fn check(
    journal: &mut Journal,
    place: &Workplace<'_>,
    outside: &Outside<'_>,
    id: &CallId,
) -> Result<(), Error> {
    let task = journal.task();
    let claims = task.last_turn().and_then(|turn| turn.ending.as_ref()).is_some_and(|(_, note)| note.claims_success());
    if !claims {
        return record::answer(
            journal,
            place,
            outside,
            id,
            Answered::new(ResultStatus::Done, "The work is handed back as not done."),
        );
    }
    let head = head(task)?;
    if record::found_changed(journal, place.worktree()?.differs_from(&head)?)? {
        return Ok(());
    }
    if let Some(refusal) = unchanged(journal, place, &head)? {
        return record::answer(journal, place, outside, id, Answered::new(ResultStatus::Refused, refusal));
    }
    let task = journal.task();
    let commands = task.started.checks.clone();
    if commands.is_empty() && task.made.is_empty() {
        return record::answer(journal, place, outside, id, Answered::new(ResultStatus::Done, "Accepted."));
    }
    let intent = record::open(journal, IntentKind::Check { call: id.clone() })?;
    // the checks must see what the branch contains
    uncommittable::move_out(journal, place.worktree()?, Which::Made)?;
    if journal.task().started.workplace.isolation == Isolation::Worktree {
        place.worktree()?.remove_empty_directories()?;
    }
    journal.commit()?;
    let verdict = run_all(journal, place, outside, id, &commands).await?;
    take_back(journal, place, &head, false)?;
    record::answer(journal, place, outside, id, verdict)?;
    record::done(journal, intent)
}

/// Undoes what the checks changed. `unseen`: their end is not in the log, and someone may have changed files since.
fn take_back(journal: &mut Journal, place: &Workplace<'_>, head: &CommitId, unseen: bool) -> Result<(), Error> {
    uncommittable::move_out(journal, place.worktree()?, Which::All)?;
    let at_ms = journal.clock().civil_ms();
    let told = after_command::taken_back(journal.task(), at_ms, place.worktree()?, head, "check", unseen)?;
    record::notice(
        journal,
        told.map(|told| format!("the checks, or someone else, changed files while they ran; {told}")),
    )
}

/// The refusal of a claim of success on an unchanged tree.
fn unchanged(journal: &Journal, place: &Workplace<'_>, head: &CommitId) -> Result<Option<String>, Error> {
    let task = journal.task();
    let Some(ready) = &task.ready else { return Err(Error::Bug("a task was to be judged before it stood")) };
    let worktree = place.worktree()?;
    if !worktree.tree_equal(&ready.snapshot, head)? {
        return Ok(None);
    }
    let written: Vec<String> = task.seen.keys().cloned().collect();
    let ignored = worktree.ignored(&written)?;
    let why = if ignored.is_empty() {
        "nothing has changed: every file is as it was when you started".to_owned()
    } else {
        format!(
            "the only files that you wrote are ignored by git ({}), so they are not part of the branch",
            ignored.join(", ")
        )
    };
    Ok(Some(format!(
        "Not accepted, and the task is still open: you say that it succeeded, but {why}. Do the work, or call hand_back with \
         succeeded=false and say why it cannot be done."
    )))
}

async fn run_all(
    journal: &mut Journal,
    place: &Workplace<'_>,
    outside: &Outside<'_>,
    id: &CallId,
    commands: &[String],
) -> Result<Answered, Error> {
    let worktree = place.worktree()?;
    for line in commands {
        let to_run = command::of_project(journal, line);
        worktree.note_persons_durably()?;
        let before = worktree.uncommittable()?;
        let ran = command::run(place.host, outside, &to_run).await?;
        after_command::see_to(journal, worktree, &head(journal.task())?)?;
        uncommittable::record(journal, &before, worktree.uncommittable()?)?;
        let Some(ran) = ran else {
            return Ok(Answered::new(
                ResultStatus::NotRun,
                "Not judged: the person asked to stop while the check ran.",
            ));
        };
        let (status, output_tail) = (ran.status(), ran.tail());
        journal.push(EventKind::CheckRan {
            call: id.clone(),
            command: outside.mask.apply(line).into_owned(),
            status,
            output_tail: output_tail.clone(),
            duration_ms: ran.duration_ms(),
        })?;
        // the next one may run for long, and who watches wants to know which it is
        journal.commit()?;
        if ran.met_time_cap(journal) {
            return Ok(Answered::new(
                ResultStatus::NotRun,
                "Not judged: the task's time cap was reached while the check ran.",
            ));
        }
        if status != Some(0) {
            return Ok(Answered::new(ResultStatus::Failed, failing(line, &ran.how(), &output_tail)));
        }
    }
    let accepted = if commands.is_empty() { "Accepted." } else { "Accepted: the checks passed." };
    Ok(Answered::new(ResultStatus::Done, accepted))
}

fn failing(line: &str, how: &str, tail: &str) -> String {
    format!(
        "Not accepted, and the task is still open: the check `{line}` {how}. Its output ends with:\n\n{tail}\n\nMend the \
         work and call hand_back again, or hand it back with succeeded=false."
    )
}

/// An interrupted check runs again, on the last checkpoint.
pub(super) async fn recover(
    journal: &mut Journal,
    place: &mut Workplace<'_>,
    outside: &Outside<'_>,
    intent: IntentId,
) -> Result<(), Error> {
    if !reopen::reopen(journal, place, outside).await? {
        return Ok(());
    }
    let head = head(journal.task())?;
    take_back(journal, place, &head, true)?;
    record::abandoned(journal, intent, "the check was interrupted; it will run again")
}
