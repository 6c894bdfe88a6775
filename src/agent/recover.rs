//! Seeing to what a dead process left, from what can be observed, before any new work.
//!
//! Every verdict is either *clean* (it is known what happened, and on it goes) or a gate: a person must decide.

use std::path::PathBuf;

use super::{
    Error, act, answered, apply,
    env::{Env, head},
};
use crate::{
    domain::{
        event::EventKind,
        gate::Answer,
        id::{CommitId, Hash, IntentId},
        intent::{Intent, IntentKind},
        next::Recovery,
        outcome::Pause,
    },
    log::Journal,
    ports::host::FileKind,
    repo::{self, TaskBranch, Worktree, WorktreeSpec},
};

/// Looks, decides, and records the verdict.
pub(super) async fn recover(journal: &mut Journal, env: &mut Env<'_>, found: &Recovery) -> Result<(), Error> {
    match found {
        Recovery::Worktree => worktree(journal, env),
        Recovery::Intent(id) => {
            let Some(intent) = journal.task().intent(*id).cloned() else {
                return Err(Error::Bug("an intent was to be recovered that was never opened"));
            };
            recover_intent(journal, env, &intent).await
        }
    }
}

async fn recover_intent(journal: &mut Journal, env: &mut Env<'_>, intent: &Intent) -> Result<(), Error> {
    let id = intent.id;
    if let Some(call) = intent.kind.call()
        && journal.task().unanswered().is_none_or(|open| open.id != *call)
    {
        return settled(journal, id);
    }
    if journal.task().given_up() && intent.kind.call().is_some() {
        return abandoned(journal, id, "the task was given up");
    }
    match (&intent.kind, journal.task().answer()) {
        (IntentKind::FileEdit { call, .. } | IntentKind::Command { call, .. }, Some(Answer::Rollback)) => {
            return answered::roll_call_back(journal, env, id, call);
        }
        (IntentKind::FileEdit { call, .. } | IntentKind::Command { call, .. }, Some(Answer::Keep)) => {
            if !stands(journal, env)? {
                return Ok(());
            }
            return answered::keep_call(journal, env, id, call);
        }
        (_, Some(Answer::Rollback | Answer::Keep | Answer::Drop) | None) => {}
    }
    match &intent.kind {
        IntentKind::Task => settled(journal, id),
        IntentKind::FileEdit { call, path, before, after, answer } => {
            if !stands(journal, env)? {
                return Ok(());
            }
            let now = current_hash(env, path).await?;
            if now.as_ref() == Some(after) {
                act::finish_edit(journal, env, id, call, path, answer.clone())
            } else if now == *before {
                abandoned(journal, id, "the edit had not happened")
            } else {
                gate(
                    journal,
                    &format!(
                        "{path} is neither what it was before the interrupted edit nor what it should be after it"
                    ),
                )
            }
        }
        IntentKind::Command { command, .. } => {
            gate(journal, &format!("it is not known how far this command came before nisse died: {command}"))
        }
        IntentKind::Check { .. } => {
            if !stands(journal, env)? {
                return Ok(());
            }
            let head = head(journal.task())?;
            env.worktree()?.restore(&head)?;
            abandoned(journal, id, "the check was cut off; it is run again")
        }
        IntentKind::Squash { from, to } if journal.task().given_up() => {
            handle(journal, env, to)?.squash_apply(from, to)?;
            settled(journal, id)
        }
        IntentKind::Squash { from, to } => {
            if !stands(journal, env)? {
                return Ok(());
            }
            env.worktree()?.squash_apply(from, to)?;
            settled(journal, id)
        }
        IntentKind::Discard { tip, .. } => {
            let done = handle(journal, env, tip)?.discard(tip);
            after_completion(journal, id, "discard", done)
        }
        IntentKind::CleanUp => {
            let head = head(journal.task())?;
            let done = handle(journal, env, &head)?.remove_worktree();
            after_completion(journal, id, "clean-up", done)
        }
        IntentKind::Apply { .. } | IntentKind::Land(_) | IntentKind::PutBack { .. } => {
            match apply::go_on(journal, env.checkout, id) {
                Err(Error::Repo(error)) => {
                    let cause = format!("the work could not be brought home: {error}");
                    journal.push(EventKind::Recovered { cause, checkpoint: None })?;
                    Ok(())
                }
                other => other,
            }
        }
    }
}

/// A discard or a clean-up is tried once a run; if it fails it changes no outcome, but stays pending, with its reason in
/// the log.
pub(super) fn after_completion(
    journal: &mut Journal,
    intent: IntentId,
    what: &str,
    done: Result<(), repo::Error>,
) -> Result<(), Error> {
    match done {
        Ok(()) => settled(journal, intent),
        Err(error) => {
            journal.push(EventKind::Recovered { cause: format!("the {what} failed: {error}"), checkpoint: None })?;
            Ok(())
        }
    }
}

/// Branch and worktree, where no intent is open.
fn worktree(journal: &mut Journal, env: &mut Env<'_>) -> Result<(), Error> {
    let answer = journal.task().answer();
    if answer == Some(Answer::Rollback) {
        return answered::roll_back(journal, env);
    }
    if !stands(journal, env)? {
        return Ok(());
    }
    if answer == Some(Answer::Keep) {
        return answered::keep(journal, env);
    }
    let head = head(journal.task())?;
    let worktree = env.worktree()?;
    let changed = worktree.changed_since(&head)?;
    if !changed.is_empty() {
        let names = changed.iter().take(10).cloned().collect::<Vec<_>>().join(", ");
        return gate(
            journal,
            &format!("the worktree differs from the last checkpoint though no call was open: {names}"),
        );
    }
    journal
        .push(EventKind::Recovered { cause: "branch and worktree are as the log says".to_owned(), checkpoint: None })?;
    Ok(())
}

/// Opens the worktree, making it again if it is gone, and looks whether the branch is where the log says, or one commit
/// of ours beyond it. False: a gate was recorded.
fn stands(journal: &mut Journal, env: &mut Env<'_>) -> Result<bool, Error> {
    let task = journal.task();
    let head = head(task)?;
    let spec = spec(journal, &head);
    let opened = match Worktree::open(env.checkout, &spec)? {
        Some(opened) => opened,
        None => Worktree::recreate(env.checkout, &spec)?,
    };
    let tip = opened.tip()?;
    // a checkpoint that the log does not name yet carries the open call in its trailers
    let ahead = tip.as_ref().map(|tip| opened.commit_is_ours(tip, task.id)).transpose()?.flatten();
    let kept = ahead.is_some() && ahead == answered::kept_call(task);
    let beyond = kept
        || task.pending_intents().any(|intent| match &intent.kind {
            IntentKind::Squash { to, .. } => tip.as_ref() == Some(to),
            IntentKind::FileEdit { call, .. } | IntentKind::Command { call, .. } | IntentKind::Check { call } => {
                ahead.as_ref() == Some(call)
            }
            IntentKind::Task
            | IntentKind::Discard { .. }
            | IntentKind::CleanUp
            | IntentKind::Apply { .. }
            | IntentKind::Land(_)
            | IntentKind::PutBack { .. } => false,
        });
    if tip.as_ref() == Some(&head) || beyond {
        env.worktree = Some(opened);
        return Ok(true);
    }
    let branch = task.started.branch.clone();
    let where_it_is = tip.map_or_else(|| "gone".to_owned(), |tip| format!("at {}", tip.short()));
    gate(journal, &format!("the branch {branch} is {where_it_is}, and the log says {}", head.short()))?;
    Ok(false)
}

/// The worktree's names.
pub(super) fn spec(journal: &Journal, start: &CommitId) -> WorktreeSpec {
    let task = journal.task();
    WorktreeSpec {
        task: task.id,
        path: PathBuf::from(&task.started.worktree),
        branch: task.started.branch.clone(),
        start: start.clone(),
    }
}

/// The task's branch, whether its worktree stands or not.
pub(super) fn handle(journal: &Journal, env: &Env<'_>, tip: &CommitId) -> Result<TaskBranch, Error> {
    Ok(TaskBranch::new(env.checkout, &spec(journal, tip))?)
}

async fn current_hash(env: &Env<'_>, path: &str) -> Result<Option<Hash>, Error> {
    let resolved = env.host.resolve(path).await?;
    match resolved.kind {
        // the hash is of all bytes, however few are kept
        FileKind::File => Ok(Some(env.host.read(&resolved.path, 0).await?.hash)),
        FileKind::Absent | FileKind::Directory | FileKind::Other => Ok(None),
    }
}

pub(super) fn settled(journal: &mut Journal, intent: IntentId) -> Result<(), Error> {
    journal.push(EventKind::IntentSettled { intent })?;
    Ok(())
}

pub(super) fn abandoned(journal: &mut Journal, intent: IntentId, cause: &str) -> Result<(), Error> {
    journal.push(EventKind::IntentAbandoned { intent, cause: cause.to_owned() })?;
    Ok(())
}

fn gate(journal: &mut Journal, cause: &str) -> Result<(), Error> {
    journal.push(EventKind::TaskPaused { pause: Pause::Gated, cause: cause.to_owned() })?;
    Ok(())
}
