//! Seeing to what a dead process left, from what can be observed, before any new work.
//!
//! Every verdict is either *clean* (it is known what happened, and on it goes) or a gate: a person must decide.

use super::{
    Error, act, answered, apply, check,
    env::{Env, head, record_repairs},
    place, repository, switch,
    uncommittable::{self, Which},
};
use crate::{
    domain::{
        checkout::Isolation,
        command_line,
        event::EventKind,
        gate::Answer,
        id::{CommitId, Hash, IntentId},
        intent::{Intent, IntentKind, Way},
        next::Recovery,
        outcome::{Pause, one_line},
    },
    log::{Journal, crash},
    ports::host::FileKind,
    repo::{self, Worktree, WorktreeSpec},
};

/// The most paths that are named to a person.
const MOST: usize = 10;

/// Looks, decides, and records the verdict.
pub(super) async fn recover(journal: &mut Journal, env: &mut Env<'_>, found: &Recovery) -> Result<(), Error> {
    match found {
        Recovery::Worktree => worktree(journal, env).await?,
        Recovery::Intent(id) => {
            let Some(intent) = journal.task().intent(*id).cloned() else {
                return Err(Error::Bug("an intent was to be recovered that was never opened"));
            };
            if matches!(intent.kind, IntentKind::Command { .. } | IntentKind::Check { .. }) {
                repository::see_to_again(journal, env)?;
            }
            recover_intent(journal, env, &intent).await?;
        }
    }
    repository::name_what_is_kept(journal, env)
}

async fn recover_intent(journal: &mut Journal, env: &mut Env<'_>, intent: &Intent) -> Result<(), Error> {
    let id = intent.id;
    if let Some(call) = intent.kind.call()
        && journal.task().unanswered().is_none_or(|open| open.id != *call)
    {
        return settled(journal, id, "its call was answered already");
    }
    if journal.task().given_up() && intent.kind.call().is_some() {
        return answered::give_call_up(journal, env, id);
    }
    match (&intent.kind, journal.task().answer()) {
        (IntentKind::FileEdit { call, .. } | IntentKind::Command { call, .. }, Some(Answer::Rollback)) => {
            return answered::roll_call_back(journal, env, id, call).await;
        }
        (IntentKind::FileEdit { call, .. } | IntentKind::Command { call, .. }, Some(Answer::Keep)) => {
            if !stands(journal, env).await? {
                return Ok(());
            }
            if let IntentKind::FileEdit { path, before, after, .. } = &intent.kind {
                env.host.settle(path, before.as_ref(), after).await?;
            }
            return answered::keep_call(journal, env, id, call);
        }
        (_, Some(Answer::Rollback | Answer::Keep | Answer::Drop) | None) => {}
    }
    match &intent.kind {
        IntentKind::CheckoutSwitch { way: Way::There, .. } if journal.task().ready.is_none() => {
            switch::take_back(journal, env)
        }
        // any other switch there that recovery comes to is older than `worktree_ready`
        IntentKind::CheckoutSwitch { way: Way::There, .. } => settled(journal, id, "the task stood already"),
        IntentKind::Task => settled(journal, id, "the task's end was in the log already"),
        IntentKind::FileEdit { call, path, before, after, answer } => {
            if !stands(journal, env).await? {
                return Ok(());
            }
            env.host.settle(path, before.as_ref(), after).await?;
            let now = current_hash(env, path).await?;
            if now.as_ref() == Some(after) {
                act::finish_edit(journal, env, id, call, path, answer.clone())
            } else if now == *before {
                abandoned(journal, id, "the edit had not happened")
            } else {
                gate(
                    journal,
                    env,
                    &format!(
                        "{path} is neither what it was before the interrupted edit nor what it should be after it"
                    ),
                )
            }
        }
        IntentKind::Command { command, .. } => {
            let left = left_by_command(journal, env)?;
            let cause = format!(
                "how this command ended was not recorded, so it is not known how far it came: {}{left}",
                command_line::shown(command)
            );
            gate(journal, env, &cause)
        }
        IntentKind::Check { .. } => {
            if !stands(journal, env).await? {
                return Ok(());
            }
            let head = head(journal.task())?;
            check::take_back(journal, env, &head, true)?;
            abandoned(journal, id, "the check was cut off; it is run again")
        }
        IntentKind::Squash { from, to } if journal.task().given_up() => {
            place::branch(journal.task(), env, to)?.squash_apply(from, to)?;
            settled(journal, id, "the branch holds the one commit")
        }
        IntentKind::Squash { from, to } => {
            if !stands(journal, env).await? {
                return Ok(());
            }
            env.worktree()?.squash_apply(from, to)?;
            settled(journal, id, "the branch holds the one commit")
        }
        IntentKind::Discard { tip, .. } => discard(journal, env, id, Some("the branch is discarded"), tip),
        IntentKind::CheckoutSwitch { way: Way::Back { .. }, snapshot } => {
            switch::give_back(journal, env, snapshot)?;
            settled(journal, id, "the checkout is given back")
        }
        IntentKind::CleanUp => clean_up(journal, env, id, Some("the worktree is gone")),
        IntentKind::Apply { .. } | IntentKind::Land(_) | IntentKind::PutBack { .. } => {
            match apply::go_on(journal, env.checkout, id) {
                Err(Error::Repo(error)) => {
                    let cause = format!("the work could not be applied: {error}");
                    journal.push(EventKind::Recovered { cause, checkpoint: None })?;
                    Ok(())
                }
                other => other.map(drop),
            }
        }
    }
}

/// What a command left that nobody saw the end of, in words that go on from its name.
fn left_by_command(journal: &mut Journal, env: &Env<'_>) -> Result<String, Error> {
    let head = head(journal.task())?;
    let Some(standing) = answered::standing(journal.task(), env.checkout)? else { return Ok(String::new()) };
    let changed = standing.changed_since(&head)?;
    record_repairs(journal, &standing)?;
    let mut left = if changed.is_empty() { String::new() } else { format!("; changed: {}", named(&changed)) };
    match standing.tip()? {
        Some(tip) if tip == head => {}
        Some(tip) => left = format!("{left}; its branch is at {}, and was at {}", tip.short(), head.short()),
        None => left += "; its branch is gone",
    }
    Ok(left)
}

/// Carries out a discard that was opened.
pub(super) fn discard(
    journal: &mut Journal,
    env: &Env<'_>,
    intent: IntentId,
    found: Option<&str>,
    tip: &CommitId,
) -> Result<(), Error> {
    if let Err(error) = empty_worktree(journal, env)? {
        return after_completion(journal, intent, "discard", found, Err(error));
    }
    let done = place::branch(journal.task(), env, tip)?.discard(tip);
    if let Ok(Some(_)) = &done {
        repository::name_what_is_kept(journal, env)?;
    }
    after_completion(journal, intent, "discard", found, done.map(drop))
}

/// Carries out a clean-up that was opened.
pub(super) fn clean_up(
    journal: &mut Journal,
    env: &Env<'_>,
    intent: IntentId,
    found: Option<&str>,
) -> Result<(), Error> {
    let head = head(journal.task())?;
    let done = match empty_worktree(journal, env)? {
        Ok(()) => place::branch(journal.task(), env, &head)?.remove_worktree(),
        Err(error) => Err(error),
    };
    crash::point("clean_up.done");
    after_completion(journal, intent, "clean-up", found, done)
}

/// Moves out of a worktree that is to go what would be lost with it. One that cannot be opened is for its removal to see to.
fn empty_worktree(journal: &mut Journal, env: &Env<'_>) -> Result<Result<(), repo::Error>, Error> {
    // opened anew only where nothing of this process's is at work in it: that removes locks
    let standing = match &env.worktree {
        Some(worktree) => worktree.clone(),
        None => match answered::standing(journal.task(), env.checkout) {
            Ok(Some(standing)) => standing,
            Ok(None) | Err(_) => return Ok(Ok(())),
        },
    };
    match uncommittable::move_out(journal, &standing, Which::All) {
        Err(Error::Repo(error)) => Ok(Err(error)),
        moved => moved.map(Ok),
    }
}

/// A discard or a clean-up is tried once a run; if it fails it changes no outcome, but stays pending, with its reason in
/// the log. `found` is what recovery has to say where it was recovery that did it.
pub(super) fn after_completion(
    journal: &mut Journal,
    intent: IntentId,
    what: &str,
    found: Option<&str>,
    done: Result<(), repo::Error>,
) -> Result<(), Error> {
    match done {
        Ok(()) => {
            journal.push(EventKind::IntentSettled { intent, cause: found.map(str::to_owned) })?;
            Ok(())
        }
        Err(error) => {
            journal.push(EventKind::Recovered {
                cause: one_line(&format!("the {what} failed: {error}")),
                checkpoint: None,
            })?;
            Ok(())
        }
    }
}

/// Branch and worktree, where no intent is open.
async fn worktree(journal: &mut Journal, env: &mut Env<'_>) -> Result<(), Error> {
    if journal.task().gave_back().is_some() {
        let cause = "the checkout was given back already".to_owned();
        journal.push(EventKind::Recovered { cause, checkpoint: None })?;
        return Ok(());
    }
    let answer = journal.task().answer();
    if answer == Some(Answer::Rollback) {
        return answered::roll_back(journal, env).await;
    }
    if !stands(journal, env).await? {
        return Ok(());
    }
    if answer == Some(Answer::Keep) {
        return answered::keep(journal, env);
    }
    let head = head(journal.task())?;
    let worktree = env.worktree()?;
    let changed = worktree.changed_since(&head)?;
    if !changed.is_empty() {
        let names = named(&changed);
        let cause = format!("the worktree differs from the last checkpoint though no call changed it: {names}");
        return gate(journal, env, &cause);
    }
    journal
        .push(EventKind::Recovered { cause: "branch and worktree are as the log says".to_owned(), checkpoint: None })?;
    Ok(())
}

/// Opens the worktree, making it again if it is gone, and looks whether the branch is where the log says, or one commit
/// of ours beyond it. False: a gate was recorded, or the person asked to stop.
async fn stands(journal: &mut Journal, env: &mut Env<'_>) -> Result<bool, Error> {
    let head = head(journal.task())?;
    let spec = place::spec(journal.task(), &head);
    let opened = match spec.isolation {
        Isolation::Worktree => {
            let own = place::branch(journal.task(), env, &head)?;
            if own.tip()?.is_none() && Worktree::open(env.checkout, &spec)?.is_none() {
                if journal.task().answer() != Some(Answer::Keep) {
                    let cause = format!("the branch {} and its worktree are gone", spec.branch);
                    gate(journal, env, &cause)?;
                    return Ok(false);
                }
                // nothing else is there to be kept
                own.put_back(&head, "")?;
            }
            reopened(journal, env, &spec).await?
        }
        Isolation::InPlace => in_place(journal, env, &spec)?,
    };
    let Some(opened) = opened else { return Ok(false) };
    record_repairs(journal, &opened)?;
    let task = journal.task();
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
            | IntentKind::CheckoutSwitch { .. }
            | IntentKind::Apply { .. }
            | IntentKind::Land(_)
            | IntentKind::PutBack { .. } => false,
        });
    // a check is run again from what the log says, and what a person keeps is the files
    let taken_in = task.answer() == Some(Answer::Keep)
        || task.pending_intents().any(|intent| matches!(intent.kind, IntentKind::Check { .. }));
    if !beyond && taken_in {
        opened.take_in(&head)?;
        record_repairs(journal, &opened)?;
    }
    if tip.as_ref() == Some(&head) || beyond || taken_in {
        env.worktree = Some(opened);
        return Ok(true);
    }
    let branch = spec.branch;
    let where_it_is = tip.map_or_else(|| "gone".to_owned(), |tip| format!("at {}", tip.short()));
    gate(journal, env, &format!("the branch {branch} is {where_it_is}, and the log says {}", head.short()))?;
    Ok(false)
}

/// The worktree, made again if it is gone; none if the person asked to stop meanwhile.
pub(super) async fn reopened(
    journal: &mut Journal,
    env: &Env<'_>,
    spec: &WorktreeSpec,
) -> Result<Option<Worktree>, Error> {
    if let Some(opened) = Worktree::open(env.checkout, spec)? {
        return Ok(Some(opened));
    }
    let again = Worktree::recreate(env.checkout, spec)?;
    // the branch may be one commit of ours ahead
    let at = again.tip()?.unwrap_or_else(|| spec.start.clone());
    match place::furnish(journal, env, &again, &at).await? {
        place::Furnished::Ready(_) => {
            again.stands()?;
            crash::point("recreate.ready");
            Ok(Some(again))
        }
        // looked at it is; what comes next is the cap's end
        place::Furnished::OutOfTime => {
            let cause = "the setup took what was left of the time cap".to_owned();
            journal.push(EventKind::Recovered { cause, checkpoint: None })?;
            Ok(None)
        }
        place::Furnished::Stopped => {
            let cause = "stopped on request".to_owned();
            journal.push(EventKind::TaskPaused { pause: Pause::Stopped, cause })?;
            Ok(None)
        }
    }
}

/// The checkout of a task that works in place; none, and a gate, if it is not on the task's branch, or not the task's.
pub(super) fn in_place(journal: &mut Journal, env: &Env<'_>, spec: &WorktreeSpec) -> Result<Option<Worktree>, Error> {
    let opened = Worktree::open_in_place(env.checkout, spec)?;
    if opened.is_none() {
        let its_own = env.checkout.task_in_place()?.as_deref() == Some(&*spec.task.to_string());
        let cause = if its_own {
            format!(
                "the task works in place on {0}, and the checkout is not on it; `git switch {0}`, then resume, or \
                 `nisse drop {1:#}`",
                spec.branch, spec.task
            )
        } else {
            format!(
                "the checkout is not the task's any more, or an older nisse began it there; `nisse drop {:#}` ends it",
                spec.task
            )
        };
        gate(journal, env, &cause)?;
    }
    Ok(opened)
}

async fn current_hash(env: &Env<'_>, path: &str) -> Result<Option<Hash>, Error> {
    let resolved = env.host.resolve(path).await?;
    match resolved.kind {
        // the hash is of all bytes, however few are kept
        FileKind::File => Ok(Some(env.host.read(&resolved.path, 0).await?.hash)),
        FileKind::Absent | FileKind::Directory | FileKind::Other => Ok(None),
    }
}

pub(super) fn settled(journal: &mut Journal, intent: IntentId, found: &str) -> Result<(), Error> {
    journal.push(EventKind::IntentSettled { intent, cause: Some(found.to_owned()) })?;
    Ok(())
}

pub(super) fn abandoned(journal: &mut Journal, intent: IntentId, cause: &str) -> Result<(), Error> {
    journal.push(EventKind::IntentAbandoned { intent, cause: cause.to_owned() })?;
    Ok(())
}

/// The first of these paths, and how many more there are.
fn named(paths: &[String]) -> String {
    let more = if paths.len() > MOST { format!(" and {} more", paths.len() - MOST) } else { String::new() };
    format!("{}{more}", paths.iter().take(MOST).cloned().collect::<Vec<_>>().join(", "))
}

/// Asks the person, and notes what the files are that they are asked about.
fn gate(journal: &mut Journal, env: &Env<'_>, cause: &str) -> Result<(), Error> {
    if let Some(standing) = answered::standing(journal.task(), env.checkout)? {
        standing.note_asked()?;
    }
    journal.push(EventKind::TaskPaused { pause: Pause::Gated, cause: one_line(cause) })?;
    Ok(())
}
