//! Runs and answers a call. If the model made a mistake, the answer is a refusal that it can read.
//!
//! An effect is preceded by its intent and followed, in one transaction, by result, checkpoint and settlement: see
//! [`super::intents`].

use super::{
    Error,
    intents::{command, edit},
    outside::Outside,
    record::{self, Answered},
    tools::{self, FileRules, Look, Tool},
    uncommittable,
    workplace::Workplace,
};
use crate::{
    domain::{
        event::{EventKind, ResultStatus},
        id::CallId,
        next::Skip,
        repetition,
    },
    log::Journal,
};

/// Runs the call and answers it.
pub(super) async fn act(
    journal: &mut Journal,
    place: &mut Workplace<'_>,
    outside: &Outside<'_>,
    id: &CallId,
) -> Result<(), Error> {
    let task = journal.task();
    let Some(call) = task.unanswered().filter(|call| call.id == *id).cloned() else {
        return Err(Error::Bug("a call was to be answered that waits for no answer"));
    };
    let rules = FileRules::new(&task.started.files.deny)?;
    match tools::parse(&call, &task.started.role.tools) {
        Err(refusal) => record::answer(journal, place, outside, id, Answered::new(refusal.status(), refusal.text())),
        Ok(Tool::Look(asked)) => inspect(journal, place, outside, id, &asked, &rules).await,
        Ok(Tool::Edit(asked)) => edit::edit(journal, place, outside, id, &asked, &rules).await,
        Ok(Tool::RunCommand(asked)) => command::run(journal, place, outside, id, &asked).await,
        Ok(Tool::HandBack(note)) => {
            if note.succeeded
                && let Some(refusal) = uncommittable::refusal(journal.task(), place.worktree()?)?
            {
                return record::answer(journal, place, outside, id, Answered::new(ResultStatus::Refused, refusal));
            }
            journal.push(EventKind::EndingAccepted { call: id.clone(), note: note.into() })?;
            Ok(())
        }
    }
}

/// The answer to a call of a task that was given up.
pub(super) const GIVEN_UP: &str = "Not run: the person gave the task up.";

/// Answers a call without running it.
pub(super) fn skip(
    journal: &mut Journal,
    place: &Workplace<'_>,
    outside: &Outside<'_>,
    id: &CallId,
    why: Skip,
) -> Result<(), Error> {
    let max_output = journal.task().started.models.own.max_output;
    let endless = journal.task().last_turn().is_some_and(|turn| repetition::ends_repeating(&turn.reply));
    let content = match why {
        Skip::Truncated if endless => {
            "Not run: the reply repeated the same over and over and was stopped, so none of its \
                                       calls was run. Write a file that repeats itself by a command."
                .to_owned()
        }
        Skip::Truncated => format!(
            "Not run: the reply was cut off by its output limit of {max_output} tokens, so none of its calls was run. Work in \
             smaller steps: write long files in several parts."
        ),
        Skip::AfterEnding => "Not run: it stands behind the call that ends the task.".to_owned(),
        Skip::Capped => "Not run: a cap of the task was reached.".to_owned(),
        Skip::Stopped => "Not run: the person asked to stop.".to_owned(),
        Skip::GivenUp => GIVEN_UP.to_owned(),
    };
    record::answer(journal, place, outside, id, Answered::new(ResultStatus::NotRun, content))
}

async fn inspect(
    journal: &mut Journal,
    place: &Workplace<'_>,
    outside: &Outside<'_>,
    id: &CallId,
    asked: &Look,
    rules: &FileRules,
) -> Result<(), Error> {
    journal.commit()?;
    let looked = tools::inspect(asked, place.host, rules, &outside.mask).await?;
    let answer = Answered { status: looked.status, content: looked.content, checkpoint: None, seen: looked.seen };
    record::answer(journal, place, outside, id, answer)
}
