//! `nisse resume`: entering the loop again.

use super::{
    Error,
    log::TaskDiff,
    open::Opened,
    owned::owned,
    proxy,
    result::TaskResult,
    run::{Watch, run},
    secrets,
};
use crate::{
    agent,
    domain::{event::EventKind, gate::Answer, id::TaskId, task::Task},
    log::{Access, Journal, Log, crash},
};

/// The task to resume where none is named: the only pending one of this checkout.
pub fn choose(opened: &Opened) -> Result<Choice, Error> {
    let Some(log) = Log::open(opened.state_dir(), Access::Read)? else { return Ok(Choice::Nothing) };
    opened.checkout()?;
    let (mut pending, mut unreadable) = (Vec::new(), None);
    for id in log.tasks()? {
        let task = match log.started(id) {
            Ok(started) if !opened.is_here(&started)? => continue,
            Ok(_) => log.task(id),
            Err(error) => Err(error),
        };
        match task {
            Ok(task) => pending.extend(Some(task).filter(is_pending)),
            Err(error) if error.concerns_one_task() => unreadable = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(match (pending.as_slice(), unreadable) {
        // whether it could go on is not known
        ([], Some(error)) => return Err(error.into()),
        ([], None) => Choice::Nothing,
        ([one], _) => Choice::Task(one.id),
        _ => Choice::Several(pending),
    })
}

/// What there is to resume.
pub enum Choice {
    /// Nothing is pending.
    Nothing,
    /// This task.
    Task(TaskId),
    /// Several are pending, newest first: a person must choose.
    Several(Vec<Task>),
}

/// Whether a task can go on, or owes a discard or a clean-up.
#[must_use]
pub fn is_pending(task: &Task) -> bool {
    task.ended.is_none() || task.pending_intents().next().is_some()
}

/// Goes on with the task; one that is over is only told again. Brief, base, caps, role and model are its first event's,
/// whatever is configured today. An answer is for a task that waits for one.
pub async fn resume(
    opened: &Opened,
    id: TaskId,
    answer: Option<Answer>,
    mut watch: Watch,
) -> Result<TaskResult, Error> {
    if answer == Some(Answer::Drop) {
        return super::drop::drop_task(opened, id, watch).await;
    }
    let log = opened.log()?;
    let task = log.task(id)?;
    let checkout = opened.checkout_of(&task.started)?;
    if answer.is_some() && !task.asks_about_files() {
        return Err(Error::NoQuestion { task: id });
    }
    if let Some(outcome) = task.outcome().filter(|_| !is_pending(&task)) {
        return TaskResult::new(&task, &outcome, &checkout);
    }
    let proxy = proxy::connect(&opened.settings, &opened.environment)?;
    let subscribers = std::mem::take(&mut watch.subscribers);
    let mut journal = Journal::resume(log, opened.clock(), id, "resumed", subscribers)?;
    if let Some(answer) = answer {
        let known = owned(opened.for_task(&checkout, &journal.task().started)?, &mut journal)?;
        let paths = agent::answered::changed_since_asked(journal.task(), &known).map_err(|source| Error::Cut {
            task: id,
            source: Box::new(source),
            offered: None,
        })?;
        if !paths.is_empty() {
            return Err(Error::ChangedSinceAsked { task: id, paths });
        }
        journal.push(EventKind::GateAnswered { answer })?;
        // the decision stands before anything follows from it
        journal.commit()?;
        crash::point("answer.recorded");
    }
    let passed = &journal.task().started.pass_env;
    let mask = secrets::mask(&opened.environment, Some(&checkout), Some(proxy.token()), passed);
    match run(opened, &checkout, &proxy, mask, journal, watch).await {
        Err(error) => Err(proxy::with_offers(&proxy, error).await),
        done => done,
    }
}

/// What is in the task's worktree beyond its last checkpoint; none if that is nothing. Nothing is recorded.
pub fn found(opened: &Opened, id: TaskId) -> Result<Option<TaskDiff>, Error> {
    // nobody works in it meanwhile
    let mut journal = Journal::resume(opened.log()?, opened.clock(), id, "looked at", Vec::new())?;
    let checkout = opened.checkout_of(&journal.task().started)?;
    let checkout = owned(opened.for_task(&checkout, &journal.task().started)?, &mut journal)?;
    let beyond = agent::answered::beyond(journal.task(), &checkout, opened.clock().civil_ms());
    let Some((from, to)) = beyond.map_err(|source| Error::Cut { task: id, source: Box::new(source), offered: None })?
    else {
        return Ok(None);
    };
    let diff = checkout.diff(&from, &to)?;
    Ok(Some(TaskDiff { task: id, from, to, diff }))
}
