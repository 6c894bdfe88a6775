//! Writes a file. The intent names the bytes before and after, so that recovery recognises what it finds.

use super::super::{
    Error, decisions,
    outside::Outside,
    record::{self, Answered},
    reopen,
    tools::{self, Edit, FileRules, PlannedEdit},
    workplace::{Workplace, head},
};
use crate::{
    domain::{
        event::{ResultStatus, Seen},
        gate::Answer,
        id::{CallId, Hash, IntentId},
        intent::IntentKind,
    },
    log::{Journal, crash},
    ports::host::{self, FileKind},
};

/// Plans the edit, makes its intent durable, writes the file.
pub(in super::super) async fn edit(
    journal: &mut Journal,
    place: &Workplace<'_>,
    outside: &Outside<'_>,
    id: &CallId,
    asked: &Edit,
    rules: &FileRules,
) -> Result<(), Error> {
    let planned = {
        let seen = &journal.task().seen;
        tools::plan_edit(asked, place.host, rules, &|path| seen.get(path).cloned(), &outside.mask).await?
    };
    // after it was read, so that what was read is what the checkpoint holds
    if let Some(path) = tools::edited_path(asked, place.host, rules).await? {
        let (worktree, head) = (place.worktree()?, head(journal.task())?);
        let same = worktree.is_unchanged(&path, &head);
        if !same && record::found_changed(journal, worktree.differs_from(&head)?)? {
            return Ok(());
        }
    }
    let edit = match planned {
        Ok(edit) => edit,
        Err(refusal) => {
            return record::answer(journal, place, outside, id, Answered::new(ResultStatus::Refused, refusal));
        }
    };
    let answer = with_ignored_notice(place, &edit)?;
    let intent = record::open(
        journal,
        IntentKind::FileEdit {
            call: id.clone(),
            path: edit.path.clone(),
            before: edit.before.clone(),
            after: edit.after.clone(),
            answer: answer.clone(),
        },
    )?;
    crash::point("edit.opened");
    match place.host.write(&edit.path, edit.before.as_ref(), &edit.bytes).await {
        Ok(()) => {
            crash::point("edit.written");
            finish(journal, place, outside, intent, id, &edit.path, answer)
        }
        Err(host::Error::Changed { path }) => {
            let text =
                format!("{path} was changed by somebody else just now; nothing was written. Read it again first.");
            record::refused(journal, place, outside, intent, id, text)
        }
        Err(host::Error::Refused(text)) => record::refused(journal, place, outside, intent, id, text),
        Err(error @ host::Error::Io { .. }) => Err(error.into()),
    }
}

/// Checkpoint, result and settlement of a finished file edit; recovery ends here, too.
fn finish(
    journal: &mut Journal,
    place: &Workplace<'_>,
    outside: &Outside<'_>,
    intent: IntentId,
    call: &CallId,
    path: &str,
    answer: String,
) -> Result<(), Error> {
    let Some(IntentKind::FileEdit { after, .. }) = journal.task().intent(intent).map(|intent| intent.kind.clone())
    else {
        return Err(Error::Bug("a file edit was to be finished that was not begun"));
    };
    let checkpoint = place.checkpoint(journal.task(), intent, call, Some(path))?;
    let seen = Some(Seen { path: path.to_owned(), hash: after });
    record::answer(
        journal,
        place,
        outside,
        call,
        Answered { status: ResultStatus::Done, content: answer, checkpoint, seen },
    )?;
    record::done(journal, intent)
}

/// Recovers an edit by the file's bytes.
pub(super) async fn recover(
    journal: &mut Journal,
    place: &mut Workplace<'_>,
    outside: &Outside<'_>,
    intent: IntentId,
    left: &Left<'_>,
) -> Result<(), Error> {
    if journal.task().answer() == Some(Answer::Rollback) {
        return decisions::roll_call_back(journal, place, outside, intent, left.call).await;
    }
    if !reopen::reopen(journal, place, outside).await? {
        return Ok(());
    }
    place.host.settle(left.path, left.before, left.after).await?;
    if journal.task().answer() == Some(Answer::Keep) {
        return decisions::keep_call(journal, place, outside, intent, left.call);
    }
    let now = current_hash(place, left.path).await?;
    if now.as_ref() == Some(left.after) {
        finish(journal, place, outside, intent, left.call, left.path, left.answer.to_owned())
    } else if now.as_ref() == left.before {
        record::abandoned(journal, intent, "the edit had not happened")
    } else {
        let cause = format!(
            "{} differs both from before the interrupted edit and from what the edit should have made of it",
            left.path
        );
        record::gate(journal, place.checkout, &cause)
    }
}

/// What the intent of an edit says.
pub(super) struct Left<'a> {
    pub(super) call: &'a CallId,
    pub(super) path: &'a str,
    pub(super) before: Option<&'a Hash>,
    pub(super) after: &'a Hash,
    pub(super) answer: &'a str,
}

async fn current_hash(place: &Workplace<'_>, path: &str) -> Result<Option<Hash>, Error> {
    let resolved = place.host.resolve(path).await?;
    match resolved.kind {
        // the hash covers all bytes, even if few are kept
        FileKind::File => Ok(Some(place.host.read(&resolved.path, 0).await?.hash)),
        FileKind::Absent | FileKind::Directory | FileKind::Other => Ok(None),
    }
}

fn with_ignored_notice(place: &Workplace<'_>, edit: &PlannedEdit) -> Result<String, Error> {
    let ignored = place.worktree()?.ignored(std::slice::from_ref(&edit.path))?;
    if ignored.is_empty() {
        return Ok(edit.answer.clone());
    }
    Ok(format!(
        "{}\nNote: {} is left out by git's ignore rules, or as a build artefact, so it is not part of the branch and does not \
         count as work.",
        edit.answer, edit.path
    ))
}
