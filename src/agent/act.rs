//! Answering a call: what the model got wrong is a refusal that it can read, what it asks for is done.
//!
//! An effect is preceded by its intent and followed, in one transaction, by result, checkpoint and settlement.

use std::time::Duration;

use super::{
    Error,
    env::{Answered, Env, head, time_left},
    repository,
    tools::{self, Edit, FileRules, Look, PlannedEdit, RunCommand, Tool},
    uncommittable,
};
use crate::{
    domain::{
        event::{EventKind, ResultStatus, Seen},
        id::{CallId, CommitId, IntentId},
        intent::IntentKind,
        mask::MASKED,
        next::Skip,
        repetition,
    },
    log::{Journal, crash},
    ports::host,
    repo::CheckpointRequest,
};

/// Does what the call asks for and answers it.
pub(super) async fn act(journal: &mut Journal, env: &mut Env<'_>, id: &CallId) -> Result<(), Error> {
    let task = journal.task();
    let Some(call) = task.unanswered().filter(|call| call.id == *id).cloned() else {
        return Err(Error::Bug("a call was to be answered that waits for no answer"));
    };
    let rules = FileRules::new(&task.started.deny)?;
    match tools::parse(&call, &task.started.role.tools) {
        Err(refusal) => env.answer(journal, id, Answered::new(refusal.status(), refusal.text())),
        Ok(Tool::Look(asked)) => look(journal, env, id, &asked, &rules).await,
        Ok(Tool::Edit(asked)) => edit(journal, env, id, &asked, &rules).await,
        Ok(Tool::RunCommand(asked)) => run(journal, env, id, &asked).await,
        Ok(Tool::HandBack(note)) => {
            if note.succeeded
                && let Some(refusal) = uncommittable::refusal(journal.task(), env.worktree()?)?
            {
                return env.answer(journal, id, Answered::new(ResultStatus::Refused, refusal));
            }
            journal.push(EventKind::EndingAccepted { call: id.clone(), handback: note.into() })?;
            Ok(())
        }
    }
}

/// Answers a call without doing it.
pub(super) fn skip(journal: &mut Journal, env: &Env<'_>, id: &CallId, why: Skip) -> Result<(), Error> {
    let max_output = journal.task().started.model.max_output;
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
        Skip::GivenUp => "Not run: the person gave the task up.".to_owned(),
    };
    env.answer(journal, id, Answered::new(ResultStatus::NotRun, content))
}

async fn look(journal: &mut Journal, env: &Env<'_>, id: &CallId, asked: &Look, rules: &FileRules) -> Result<(), Error> {
    journal.commit()?;
    let looked = tools::look(asked, env.host, rules, &env.mask).await?;
    let answer = Answered { status: looked.status, content: looked.content, checkpoint: None, seen: looked.seen };
    env.answer(journal, id, answer)
}

async fn edit(journal: &mut Journal, env: &Env<'_>, id: &CallId, asked: &Edit, rules: &FileRules) -> Result<(), Error> {
    let planned = {
        let seen = &journal.task().seen;
        tools::plan_edit(asked, env.host, rules, &|path| seen.get(path).cloned(), &env.mask).await?
    };
    // after it was read, so that what was read is what the checkpoint holds
    if let Some(path) = tools::edited_path(asked, env.host, rules).await? {
        let (worktree, head) = (env.worktree()?, head(journal.task())?);
        let same = worktree.looks_same_at(&path, &head);
        if !same && found_changed(journal, worktree.differs_from(&head)?)? {
            return Ok(());
        }
    }
    let edit = match planned {
        Ok(edit) => edit,
        Err(refusal) => return env.answer(journal, id, Answered::new(ResultStatus::Refused, refusal)),
    };
    let answer = with_ignored_notice(env, &edit)?;
    let intent = open(
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
    match env.host.write(&edit.path, edit.before.as_ref(), &edit.bytes).await {
        Ok(()) => {
            crash::point("edit.written");
            finish_edit(journal, env, intent, id, &edit.path, answer)
        }
        Err(host::Error::Changed { path }) => {
            let text =
                format!("{path} was changed by somebody else just now; nothing was written. Read it again first.");
            abandon(journal, env, intent, id, text)
        }
        Err(host::Error::Refused(text)) => abandon(journal, env, intent, id, text),
        Err(error @ host::Error::Io { .. }) => Err(error.into()),
    }
}

/// Checkpoint, result and settlement of a file edit that stands; recovery ends here too.
pub(super) fn finish_edit(
    journal: &mut Journal,
    env: &Env<'_>,
    intent: IntentId,
    call: &CallId,
    path: &str,
    answer: String,
) -> Result<(), Error> {
    let Some(IntentKind::FileEdit { after, .. }) = journal.task().intent(intent).map(|intent| intent.kind.clone())
    else {
        return Err(Error::Bug("a file edit was to be finished that was not begun"));
    };
    let checkpoint = checkpoint(journal, env, intent, call, Some(path))?;
    let seen = Some(Seen { path: path.to_owned(), hash: after });
    env.answer(journal, call, Answered { status: ResultStatus::Done, content: answer, checkpoint, seen })?;
    journal.push(EventKind::IntentSettled { intent, cause: None })?;
    Ok(())
}

/// Whether files differ that no call of the task changed. Then that is recorded, and recovery comes next, which asks.
pub(super) fn found_changed(journal: &mut Journal, paths: Vec<String>) -> Result<bool, Error> {
    let any = !paths.is_empty();
    if any {
        journal.push(EventKind::FilesChanged { paths })?;
    }
    Ok(any)
}

async fn run(journal: &mut Journal, env: &mut Env<'_>, id: &CallId, asked: &RunCommand) -> Result<(), Error> {
    if asked.command.contains(MASKED) {
        let refusal = format!(
            "Not run: the command holds `{MASKED}`, which stands for a secret in what you were shown. Write a command that \
             needs it not, or names the environment variable or the file that holds it."
        );
        return env.answer(journal, id, Answered::new(ResultStatus::Refused, refusal));
    }
    let found = match env.found.take() {
        Some(found) => found,
        None => env.worktree()?.differs_from(&head(journal.task())?)?,
    };
    if found_changed(journal, found)? {
        return Ok(());
    }
    let started = &journal.task().started;
    let most = Duration::from_millis(started.command_time_ms).min(time_left(journal));
    let command = asked.on_host(most, &started.pass_env);
    env.worktree()?.note_persons_durably()?;
    let before = env.worktree()?.uncommittable_as_looked()?;
    let intent = open(journal, IntentKind::Command { call: id.clone(), command: command.line.clone() })?;
    let ran = tokio::select! {
        ran = env.run(&command) => Some(ran),
        () = env.stop.wait() => None,
    };
    let (status, mut content) = match ran {
        Some(Ok(output)) => tools::command_answer(&command.line, &output),
        Some(Err(host::Error::Refused(text))) => return abandon(journal, env, intent, id, text),
        Some(Err(error @ (host::Error::Changed { .. } | host::Error::Io { .. }))) => return Err(error.into()),
        None => (ResultStatus::Failed, "The person asked to stop while the command ran; it was ended.".to_owned()),
    };
    if let Some(note) = repository::see_to(journal, env.worktree()?, &head(journal.task())?)? {
        content = format!("{content}\n{note}");
    }
    let checkpoint = checkpoint(journal, env, intent, id, None)?;
    uncommittable::record(journal, &before, env.worktree()?.uncommittable_as_looked()?)?;
    env.answer(journal, id, Answered { status, content, checkpoint, seen: None })?;
    journal.push(EventKind::IntentSettled { intent, cause: None })?;
    Ok(())
}

/// Makes the intent durable, together with all that is staged.
pub(super) fn open(journal: &mut Journal, kind: IntentKind) -> Result<IntentId, Error> {
    let id = IntentId(u32::try_from(journal.task().intents.len()).unwrap_or(u32::MAX));
    journal.push(EventKind::IntentOpened { intent: id, kind })?;
    journal.commit()?;
    Ok(id)
}

fn abandon(journal: &mut Journal, env: &Env<'_>, intent: IntentId, call: &CallId, text: String) -> Result<(), Error> {
    env.answer(journal, call, Answered::new(ResultStatus::Refused, text))?;
    journal.push(EventKind::IntentAbandoned { intent, cause: "refused: nothing was done".to_owned() })?;
    Ok(())
}

/// A commit of the task's tree, if it changed. Its date is the intent's, so that it can be made again with the same id.
pub(super) fn checkpoint(
    journal: &Journal,
    env: &Env<'_>,
    intent: IntentId,
    call: &CallId,
    path: Option<&str>,
) -> Result<Option<CommitId>, Error> {
    let task = journal.task();
    let at_ms = task.intent(intent).map_or(0, |intent| intent.at_ms);
    let turn = task.last_turn().map_or(0, |turn| turn.number);
    let paths = path.map(|path| [path.to_owned()]);
    Ok(env.worktree()?.checkpoint(&CheckpointRequest {
        task: task.id,
        turn,
        call,
        parent: &head(task)?,
        subject: &format!("nisse: turn {turn}, call {call}"),
        at_ms,
        paths: paths.as_ref().map(<[String; 1]>::as_slice),
    })?)
}

fn with_ignored_notice(env: &Env<'_>, edit: &PlannedEdit) -> Result<String, Error> {
    let ignored = env.worktree()?.ignored(std::slice::from_ref(&edit.path))?;
    if ignored.is_empty() {
        return Ok(edit.answer.clone());
    }
    Ok(format!(
        "{}\nNote: {} is left out by git's ignore rules, or as a build artefact, so it is not part of the branch and does not \
         count as work.",
        edit.answer, edit.path
    ))
}
