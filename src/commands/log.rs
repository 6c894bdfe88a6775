//! `nisse log`: the tasks of this checkout, or one task's events.

use std::time::Duration;

use serde::Serialize;

use super::{Error, open::Opened};
use crate::{
    domain::{
        apply::ApplyState,
        event::Event,
        id::{CommitId, TaskId},
        task::Task,
    },
    log::{self, Access, Log},
    repo::Diff,
};

/// How often a followed task is polled.
const POLL: Duration = Duration::from_millis(200);

/// A task in the list.
#[derive(Clone, Debug, Serialize)]
pub struct Listed {
    /// Its id.
    pub task: TaskId,
    /// When it began, in milliseconds since 1970 UTC.
    pub begun_ms: u64,
    /// `pending`, or how it ended or why it is paused.
    pub outcome: &'static str,
    /// Whether a process is working on it.
    pub running: bool,
    /// Whether it has checks, so that not only the model says that it is done.
    pub checked: bool,
    /// How its work was applied, if it was and was not undone.
    pub applied: Option<Applied>,
    /// The role.
    pub role: &'static str,
    /// The alias of its model.
    pub model: String,
    /// Replies.
    pub turns: u32,
    /// All tokens.
    pub tokens: u64,
    /// Dollars; null if a part of it is not known.
    pub cost_usd: Option<f64>,
    /// Its branch.
    pub branch: String,
    /// What to do.
    pub brief: String,
}

/// How work was applied, according to the log; later changes are not checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Applied {
    /// As changed files.
    Files,
    /// As commits.
    Commits,
}

/// The tasks of this checkout.
#[derive(Debug, Default)]
pub struct Listing {
    /// Newest last.
    pub tasks: Vec<Listed>,
    /// Why tasks cannot be read: corrupt, or written by a newer nisse. Whose they are is not always known.
    pub unreadable: Vec<Error>,
}

/// The newest `most` tasks of this checkout. An unreadable one does not hide the others.
pub fn list(opened: &Opened, most: Option<usize>) -> Result<Listing, Error> {
    let mut listing = Listing { unreadable: forgotten(opened)?.into_iter().collect(), ..Listing::default() };
    let Some(log) = open_for(opened, !listing.unreadable.is_empty())? else { return Ok(listing) };
    opened.checkout()?;
    for id in log.tasks()? {
        if most.is_some_and(|most| listing.tasks.len() >= most) {
            break;
        }
        let task = match log.started(id) {
            Ok(started) if !opened.is_here(&started)? => continue,
            Ok(_) => log.task(id),
            Err(error) => Err(error),
        };
        match task {
            Ok(task) => listing.tasks.push(summary(&task, log.is_held(id))),
            Err(error) if error.concerns_one_task() => listing.unreadable.push(error.into()),
            Err(error) => return Err(error.into()),
        }
    }
    listing.tasks.reverse();
    listing.unreadable.reverse();
    Ok(listing)
}

/// A task of this state directory whose worktree exists in this repository, but which is not in the log: a part of the log
/// is lost. None if there is no such task.
///
/// # Errors
/// The log or the repository cannot be read.
pub fn forgotten(opened: &Opened) -> Result<Option<Error>, Error> {
    // first, since a task that begins meanwhile is in the log before its worktree stands
    let Ok(checkout) = opened.checkout() else { return Ok(None) };
    let worktrees = checkout.task_worktrees()?;
    let ours = opened.state_dir().join("worktrees");
    let ours = crate::repo::real_path(&ours).unwrap_or(ours);
    let known = open_for(opened, true)?.map_or_else(|| Ok(Vec::new()), |log| log.tasks())?;
    let lost = worktrees.into_iter().find_map(|worktree| {
        let stands = worktree.path.starts_with(&ours) && worktree.path.exists();
        (stands && !known.contains(&worktree.task)).then_some((worktree.task, worktree.path))
    });
    Ok(lost.map(|(task, worktree)| Error::Forgotten { task, worktree, path: opened.state_dir().to_owned() }))
}

/// The log; none where there is none. One that was emptied is none too, where more is known than that it was.
pub(super) fn open_for(opened: &Opened, more_is_known: bool) -> Result<Option<Log>, Error> {
    match Log::open(opened.state_dir(), Access::Read) {
        Err(log::Error::Emptied { .. }) if more_is_known => Ok(None),
        log => Ok(log?),
    }
}

/// One task: its events and what they come to.
pub fn one(opened: &Opened, id: TaskId) -> Result<(Task, Vec<Event>), Error> {
    let log = existing(opened, id)?;
    Ok((log.task(id)?, log.events(id, 0)?))
}

/// Whether a process is working on the task.
pub fn is_held(opened: &Opened, id: TaskId) -> Result<bool, Error> {
    Ok(Log::open(opened.state_dir(), Access::Read)?.is_some_and(|log| log.is_held(id)))
}

/// What a task changed so far: from where it started to its last commit, even if its branch was discarded.
pub fn diff(opened: &Opened, id: TaskId) -> Result<TaskDiff, Error> {
    let (task, _) = one(opened, id)?;
    let checkout = opened.checkout_of(&task.started)?;
    let (Some(ready), Some(head)) = (&task.ready, &task.head) else { return Err(Error::NoDiff { task: task.id }) };
    let diff = checkout.diff(&ready.snapshot, head)?;
    Ok(TaskDiff { task: task.id, from: ready.snapshot.clone(), to: head.clone(), diff })
}

/// What a task changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskDiff {
    /// The task.
    pub task: TaskId,
    /// Where it started.
    pub from: CommitId,
    /// Its last commit.
    pub to: CommitId,
    /// The difference.
    pub diff: Diff,
}

/// Passes a task's events to `tell`, present and future ones, until no process works on it or `tell` returns false. Returns
/// the task as it is then.
///
/// # Errors
/// There is no such task, or the log cannot be read.
pub async fn follow(opened: &Opened, id: TaskId, mut tell: impl FnMut(&Event) -> bool) -> Result<Task, Error> {
    let log = existing(opened, id)?;
    let mut seen = 0;
    loop {
        // looked at before the events are read: whoever holds it has then written all of them
        let held = log.is_held(id);
        for event in log.events(id, seen)? {
            seen = event.seq;
            if !tell(&event) {
                return Ok(log.task(id)?);
            }
        }
        if !held {
            return Ok(log.task(id)?);
        }
        tokio::time::sleep(POLL).await;
    }
}

/// The log that holds a task.
fn existing(opened: &Opened, id: TaskId) -> Result<Log, Error> {
    let missing = || log::Error::NoSuchTask { name: id.to_string() };
    Ok(Log::open(opened.state_dir(), Access::Read)?.ok_or_else(missing)?)
}

fn summary(task: &Task, running: bool) -> Listed {
    let applied = match task.apply_state() {
        ApplyState::NotApplied | ApplyState::Applying(_) | ApplyState::PuttingBack(_) => None,
        ApplyState::Applied { advanced: true, .. } | ApplyState::Committed { .. } => Some(Applied::Commits),
        ApplyState::Applied { advanced: false, .. } | ApplyState::Uncommitted { .. } => Some(Applied::Files),
    };
    Listed {
        running,
        checked: !task.started.checks.is_empty(),
        applied,
        task: task.id,
        begun_ms: task.intents.first().map_or(0, |own| own.at_ms),
        outcome: task.outcome().map_or("pending", |outcome| outcome.word()),
        role: task.started.role.name.as_str(),
        model: task.started.models.own.alias.clone(),
        turns: task.spend.turns,
        tokens: task.spend.usage.total(),
        cost_usd: (!task.spend.cost_unknown).then(|| task.spend.cost.usd()),
        branch: task.started.workplace.branch.clone(),
        brief: task.started.brief().to_owned(),
    }
}
