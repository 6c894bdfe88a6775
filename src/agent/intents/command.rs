//! A command that the model asked for. If its end is not in the log, it may have run in part: a person decides.

use super::super::{
    Error, after_command, command, decisions,
    outside::Outside,
    record::{self, Answered},
    reopen,
    tools::{self, RunCommand},
    uncommittable,
    workplace::{Workplace, existing_worktree, head},
};
use crate::{
    domain::{
        command_line,
        event::ResultStatus,
        gate::Answer,
        id::{CallId, IntentId},
        intent::IntentKind,
        mask::MASKED,
    },
    log::Journal,
    ports::host,
};

/// Runs it and answers the call.
pub(in super::super) async fn run(
    journal: &mut Journal,
    place: &mut Workplace<'_>,
    outside: &Outside<'_>,
    id: &CallId,
    asked: &RunCommand,
) -> Result<(), Error> {
    if asked.command.contains(MASKED) {
        let refusal = format!(
            "Not run: the command holds `{MASKED}`, which stands for a secret in what you were shown. Write a command that \
             needs it not, or names the environment variable or the file that holds it."
        );
        return record::answer(journal, place, outside, id, Answered::new(ResultStatus::Refused, refusal));
    }
    let found = match place.found.take() {
        Some(found) => found,
        None => place.worktree()?.differs_from(&head(journal.task())?)?,
    };
    if record::found_changed(journal, found)? {
        return Ok(());
    }
    let to_run = asked.on_host(command::limit(journal), &journal.task().started.commands);
    place.worktree()?.note_persons_durably()?;
    let before = place.worktree()?.uncommittable_as_walked()?;
    let intent = record::open(journal, IntentKind::Command { call: id.clone(), command: to_run.line.clone() })?;
    let (status, mut content) = match command::run(place.host, outside, &to_run).await {
        Ok(Some(ran)) => tools::command_answer(&to_run.line, ran.output()),
        Ok(None) => (ResultStatus::Failed, "The person asked to stop while the command ran; it was ended.".to_owned()),
        Err(host::Error::Refused(text)) => return record::refused(journal, place, outside, intent, id, text),
        Err(error @ (host::Error::Changed { .. } | host::Error::Io { .. })) => return Err(error.into()),
    };
    if let Some(note) = after_command::see_to(journal, place.worktree()?, &head(journal.task())?)? {
        content = format!("{content}\n{note}");
    }
    let checkpoint = place.checkpoint(journal.task(), intent, id, None)?;
    uncommittable::record(journal, &before, place.worktree()?.uncommittable_as_walked()?)?;
    record::answer(journal, place, outside, id, Answered { status, content, checkpoint, seen: None })?;
    record::done(journal, intent)
}

/// Asks the user, or does what the user answered.
pub(super) async fn recover(
    journal: &mut Journal,
    place: &mut Workplace<'_>,
    outside: &Outside<'_>,
    intent: IntentId,
    call: &CallId,
    line: &str,
) -> Result<(), Error> {
    match journal.task().answer() {
        Some(Answer::Rollback) => decisions::roll_call_back(journal, place, outside, intent, call).await,
        Some(Answer::Keep) => {
            if !reopen::reopen(journal, place, outside).await? {
                return Ok(());
            }
            decisions::keep_call(journal, place, outside, intent, call)
        }
        Some(Answer::Drop) | None => {
            let left = left_over(journal, place)?;
            let cause = format!(
                "the log does not say how this command ended, so it may have run only in part: {}{left}",
                command_line::one_line(line)
            );
            record::gate(journal, place.checkout, &cause)
        }
    }
}

/// What an interrupted command left, in words that continue its name.
fn left_over(journal: &mut Journal, place: &Workplace<'_>) -> Result<String, Error> {
    let head = head(journal.task())?;
    let Some(worktree) = existing_worktree(journal.task(), place.checkout)? else { return Ok(String::new()) };
    let changed = worktree.changed_since(&head)?;
    record::repairs(journal, &worktree)?;
    let mut left =
        if changed.is_empty() { String::new() } else { format!("; changed: {}", record::first_of(&changed)) };
    match worktree.tip()? {
        Some(tip) if tip == head => {}
        Some(tip) => left = format!("{left}; its branch moved from {} to {}", head.short(), tip.short()),
        None => left += "; its branch is gone",
    }
    Ok(left)
}
