//! Lists what settled tasks have left behind, and removes what is provably dead.
//!
//! Leftovers of tasks that are not in this log belong to another nisse (a host and its container share a repository, but
//! not a state directory): they are listed and never removed. A leftover with unique content stays, and is named.

mod kept;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::Duration,
};

use schemars::JsonSchema;
use serde::Serialize;

use super::{Error, open::began_in, owned::names, settings::KeepTurns};
use crate::{
    agent::workplace::spec,
    domain::{apply::ApplyState, event::EventKind, id::TaskId, outcome::End, task::Task},
    log::{Log, crash},
    repo::{Checkout, TaskBranch, TaskRef, WorktreeSpec},
};

/// How long refs of settled tasks are kept, other than those of their turns: 30 days, in milliseconds.
const KEPT_MS: u64 = 30 * 24 * 60 * 60 * 1000;
/// The refs of the single turns of finished tasks.
const TURNS: &str = "refs/nisse/turns/";

/// Something that was left behind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Leftover {
    /// `worktree`, `branch`, `ref`, `kept`, `lock`, `git_lock`, `task`.
    #[schemars(extend("enum" = ["worktree", "branch", "ref", "kept", "lock", "git_lock", "task"]))]
    pub kind: &'static str,
    /// A path or a ref.
    pub name: String,
    /// The task, if its id is known.
    pub task: Option<TaskId>,
    /// Its state.
    pub state: State,
    /// Why, in one line.
    pub why: String,
    #[serde(skip)]
    remove: Removal,
}

/// The state of a leftover.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing would be lost with it.
    Dead,
    /// It has unique content, or could not be removed.
    Kept,
    /// It does not belong to this log.
    Foreign,
    /// It was dead, and was removed.
    Removed,
}

/// How to remove it.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Removal {
    Never,
    Worktree(WorktreeSpec),
    Branch(WorktreeSpec),
    Ref(TaskRef),
    Kept(TaskId),
    Lock(TaskId),
    InPlace(TaskId),
    GitLock(WorktreeSpec),
    /// Resuming the task removes it.
    Owed(TaskId),
}

/// A task as clean-up sees it.
enum Owner {
    Foreign,
    Unreadable,
    InUse,
    Settled(Box<Task>, u64),
}

/// The log, with the tasks of one checkout.
struct Known<'a> {
    log: &'a Log,
    tasks: BTreeMap<TaskId, Option<Owner>>,
    branches: BTreeMap<String, TaskId>,
}

impl<'a> Known<'a> {
    fn of(log: &'a Log, checkout: &Checkout) -> Result<Self, Error> {
        let mut known = Self { log, tasks: BTreeMap::new(), branches: BTreeMap::new() };
        for id in log.tasks()? {
            // one whose beginning cannot be read has no branch that could be known
            let Ok(started) = log.started(id) else { continue };
            if began_in(checkout, &started)? {
                known.branches.insert(started.workplace.branch.clone(), id);
            }
        }
        Ok(known)
    }

    fn owner(&mut self, id: TaskId) -> &Owner {
        let log = self.log;
        self.tasks.entry(id).or_default().get_or_insert_with(|| owner(log, id))
    }
}

fn owner(log: &Log, id: TaskId) -> Owner {
    let events = match log.events(id, 0) {
        Ok(events) if events.is_empty() => return Owner::Foreign,
        Ok(events) => events,
        Err(_) => return Owner::Unreadable,
    };
    let last_ms = events.last().map_or(0, |event| event.at_ms);
    match Task::fold(&events) {
        Ok(Some(task)) if task.ended.is_some() && task.pending_intents().next().is_none() && !log.is_held(id) => {
            Owner::Settled(Box::new(task), last_ms)
        }
        Ok(Some(_)) => Owner::InUse,
        Ok(None) | Err(_) => Owner::Unreadable,
    }
}

/// Finds what tasks have left in this checkout and beside the log. Changes nothing.
pub fn find_leftovers(log: &Log, checkout: &Checkout, keep: KeepTurns, now_ms: u64) -> Result<Vec<Leftover>, Error> {
    let mut known = Known::of(log, checkout)?;
    let mut found = owed(log, checkout)?;
    for worktree in checkout.task_worktrees()? {
        found.extend(judge_worktree(&mut known, checkout, worktree.task, &worktree.path)?);
    }
    for one in checkout.task_refs()? {
        found.extend(judge_ref(&mut known, checkout, one, keep, now_ms)?);
    }
    found.extend(judge_in_place(&mut known, checkout)?);
    for id in log.kept() {
        found.extend(kept::judge(&mut known, checkout, id));
    }
    for (branch, id) in known.branches.clone() {
        found.extend(git_locks(log, checkout, id, &branch)?);
    }
    for id in log.locks() {
        let lock = |state, why: &str, remove| Leftover {
            kind: "lock",
            name: format!("{id}.lock"),
            task: Some(id),
            state,
            why: why.to_owned(),
            remove,
        };
        found.extend(match known.owner(id) {
            Owner::InUse | Owner::Unreadable => None,
            Owner::Foreign => Some(lock(State::Foreign, "its task is not in this log", Removal::Never)),
            Owner::Settled(..) => Some(lock(State::Dead, "its task has ended", Removal::Lock(id))),
        });
    }
    Ok(found)
}

/// Removes the dead ones, and says which were removed. Pending discards and clean-ups are run by resuming: see
/// [`owing`].
#[must_use]
pub fn fix(log: &Log, checkout: &Checkout, found: Vec<Leftover>) -> Vec<Leftover> {
    let remove = |mut one: Leftover| {
        let done = match &one.remove {
            Removal::Never | Removal::Owed(_) => return one,
            Removal::Worktree(spec) => {
                TaskBranch::new(checkout, spec).and_then(|own| own.remove_worktree()).map_err(Error::from)
            }
            Removal::Branch(spec) => checkout.remove_branch(spec).map_err(Error::from),
            Removal::Ref(found) => checkout.remove_ref(found).map_err(Error::from),
            Removal::Kept(id) => log.remove_kept(*id).map_err(Error::from),
            Removal::Lock(id) => log.remove_lock(*id).map_err(Error::from),
            Removal::InPlace(id) => checkout.forget_in_place(*id).map_err(Error::from),
            Removal::GitLock(spec) => log
                .while_free(spec.task, || checkout.remove_own_locks(spec))
                .map_err(Error::from)
                .and_then(|removed| removed.map(drop).map_err(Error::from)),
        };
        match done {
            Ok(()) => {
                crash::point("fix.removed");
                one.state = State::Removed;
            }
            Err(error) => {
                one.state = State::Kept;
                one.why = format!("it could not be removed: {error}");
            }
        }
        one
    };
    found.into_iter().map(remove).collect()
}

/// The tasks with a pending discard or clean-up.
#[must_use]
pub fn owing(found: &[Leftover]) -> Vec<TaskId> {
    let owed = |one: &Leftover| match one.remove {
        Removal::Owed(id) => Some(id),
        Removal::Never
        | Removal::Worktree(_)
        | Removal::Branch(_)
        | Removal::Ref(_)
        | Removal::Kept(_)
        | Removal::Lock(_)
        | Removal::InPlace(_)
        | Removal::GitLock(_) => None,
    };
    found.iter().filter_map(owed).collect()
}

/// What there is after tasks were gone on with that owed something: what they still owe stays, with the reason.
#[must_use]
pub fn carried_out(log: &Log, before: Vec<Leftover>, mut left: Vec<Leftover>) -> Vec<Leftover> {
    for one in &mut left {
        if let Removal::Owed(id) = one.remove {
            let events = log.events(id, 0).unwrap_or_default();
            let why = events.iter().rev().find_map(|event| {
                if let EventKind::Recovered { cause, .. } = &event.kind { Some(cause.as_str()) } else { None }
            });
            one.state = State::Kept;
            one.why = format!("its cleanup failed: {}", why.unwrap_or("the log does not say why"));
            one.remove = Removal::Never;
        }
    }
    let is_left = |one: &Leftover| left.iter().any(|still| (still.kind, still.task) == (one.kind, one.task));
    let done = before.into_iter().filter(|one| matches!(one.remove, Removal::Owed(_)) && !is_left(one));
    let done: Vec<_> = done.map(|one| Leftover { state: State::Removed, remove: Removal::Never, ..one }).collect();
    left.extend(done);
    left
}

/// Removes the refs of tasks that were settled long ago, and the oldest turns beyond what the user wants to keep. Cheap,
/// because the id of most tasks says their age.
pub fn prune(log: &Log, checkout: &Checkout, keep: KeepTurns, now_ms: u64) -> Result<usize, Error> {
    let young = |name: &str| {
        let made = task_of(name).and_then(|id| id.0.get_timestamp()).map(|at| at.to_unix().0 * 1000);
        made.is_some_and(|made| made + kept_ms(name, keep) > now_ms)
    };
    let old: Vec<_> = checkout.task_refs()?.into_iter().filter(|one| !young(&one.name)).collect();
    let mut known = Known { log, tasks: BTreeMap::new(), branches: BTreeMap::new() };
    let mut gone = 0;
    for one in old.into_iter().filter(|one| one.name.starts_with("refs/nisse/")) {
        if let Some(Leftover { remove: Removal::Ref(one), .. }) = judge_ref(&mut known, checkout, one, keep, now_ms)? {
            checkout.remove_ref(&one)?;
            gone += 1;
        }
    }
    match keep {
        KeepTurns::For(_) => Ok(gone),
        KeepTurns::UpTo(most) => Ok(gone + prune_to(&mut known, checkout, most)?),
    }
}

/// Removes the turns of the oldest tasks until the rest takes at most `most` bytes.
fn prune_to(known: &mut Known<'_>, checkout: &Checkout, most: u64) -> Result<usize, Error> {
    let mut turns: Vec<_> = checkout.task_refs()?.into_iter().filter(|one| one.name.starts_with(TURNS)).collect();
    // ids begin with the time
    turns.sort();
    let mut gone = 0;
    while let Some(oldest) = turns.first().cloned() {
        let left: BTreeSet<_> = turns.iter().map(|one| one.name.clone()).collect();
        if checkout.disk_usage_of_refs("turns", |name| left.contains(name))?.bytes <= most {
            break;
        }
        turns.remove(0);
        let settled = task_of(&oldest.name).is_some_and(|id| matches!(known.owner(id), Owner::Settled(..)));
        if settled {
            checkout.remove_ref(&oldest)?;
            gone += 1;
        }
    }
    Ok(gone)
}

/// How long a ref of a settled task is kept, in milliseconds.
fn kept_ms(name: &str, keep: KeepTurns) -> u64 {
    if !name.starts_with(TURNS) {
        return KEPT_MS;
    }
    u64::try_from(keep.at_most().as_millis()).unwrap_or(u64::MAX)
}

fn owed(log: &Log, checkout: &Checkout) -> Result<Vec<Leftover>, Error> {
    let mut found = Vec::new();
    for id in log.tasks()? {
        let Ok(task) = log.task(id) else { continue };
        let here = began_in(checkout, &task.started)?;
        if !here || task.ended.is_none() || log.is_held(id) || task.pending_intents().next().is_none() {
            continue;
        }
        // what comes into the user's checkout is theirs to say
        let applying = matches!(task.apply_state(), ApplyState::Applying(_) | ApplyState::PuttingBack(_));
        let (state, why, remove) = if applying {
            let why = format!("nisse apply {id:#} was interrupted; run it again to finish, or with --abort to undo it");
            (State::Kept, why, Removal::Never)
        } else {
            (State::Dead, "its cleanup is pending".to_owned(), Removal::Owed(id))
        };
        found.push(Leftover {
            kind: "task",
            name: task.started.workplace.branch.clone(),
            task: Some(id),
            state,
            why,
            remove,
        });
    }
    Ok(found)
}

/// Git lock files that killed processes of a task have left.
fn git_locks(log: &Log, checkout: &Checkout, id: TaskId, branch: &str) -> Result<Vec<Leftover>, Error> {
    // one that is worked on holds its locks itself
    if log.is_held(id) {
        return Ok(Vec::new());
    }
    let spec = names(id, &*log.started(id)?);
    let leftover = |lock: PathBuf| Leftover {
        kind: "git_lock",
        name: lock.display().to_string(),
        task: Some(id),
        state: State::Dead,
        why: format!("a killed process of the task on {branch} left it"),
        remove: Removal::GitLock(spec.clone()),
    };
    Ok(checkout.own_locks(&spec)?.into_iter().map(leftover).collect())
}

fn judge_worktree(
    known: &mut Known<'_>,
    checkout: &Checkout,
    id: TaskId,
    path: &Path,
) -> Result<Option<Leftover>, Error> {
    let leftover = |state, why: String, remove| {
        Ok(Some(Leftover { kind: "worktree", name: path.display().to_string(), task: Some(id), state, why, remove }))
    };
    let task = match known.owner(id) {
        Owner::Foreign => {
            return leftover(State::Foreign, "its task is not in this log".to_owned(), Removal::Never);
        }
        Owner::Unreadable => {
            return leftover(State::Kept, "its task cannot be read".to_owned(), Removal::Never);
        }
        Owner::InUse => return Ok(None),
        Owner::Settled(task, _) => task,
    };
    let Some(head) = &task.head else {
        return leftover(State::Kept, "its task never began".to_owned(), Removal::Never);
    };
    let spec = spec(task, head);
    match TaskBranch::worth_keeping(checkout, &spec, head) {
        Ok(None) => leftover(State::Dead, "its task has ended".to_owned(), Removal::Worktree(spec)),
        Ok(Some(why)) => leftover(State::Kept, why, Removal::Never),
        Err(error) => leftover(State::Kept, error.to_string(), Removal::Never),
    }
}

/// The marks of tasks that work in the checkout itself.
fn judge_in_place(known: &mut Known<'_>, checkout: &Checkout) -> Result<Option<Leftover>, Error> {
    let Some(named) = checkout.task_in_place()? else { return Ok(None) };
    let id = named.parse().ok();
    let leftover = |state, why: &str, remove| {
        let name = "the mark of a task in place".to_owned();
        Ok(Some(Leftover { kind: "lock", name, task: id, state, why: why.to_owned(), remove }))
    };
    let foreign = || leftover(State::Foreign, "its task is not in this log", Removal::Never);
    let Some(id) = id else { return foreign() };
    match known.owner(id) {
        Owner::Foreign => foreign(),
        Owner::Unreadable | Owner::InUse => Ok(None),
        Owner::Settled(..) => leftover(State::Dead, "the task that worked in place has ended", Removal::InPlace(id)),
    }
}

fn judge_ref(
    known: &mut Known<'_>,
    checkout: &Checkout,
    found: TaskRef,
    keep: KeepTurns,
    now_ms: u64,
) -> Result<Option<Leftover>, Error> {
    let branch = found.name.strip_prefix("refs/heads/").map(str::to_owned);
    let id = match &branch {
        Some(branch) => known.branches.get(branch).copied(),
        None => task_of(&found.name),
    };
    let kind = if branch.is_some() { "branch" } else { "ref" };
    let name = branch.clone().unwrap_or_else(|| found.name.clone());
    let leftover =
        |state, why: String, remove| Ok(Some(Leftover { kind, name: name.clone(), task: id, state, why, remove }));
    let foreign = || leftover(State::Foreign, "its task is not in this log".to_owned(), Removal::Never);
    let Some(id) = id else { return foreign() };
    let (task, last_ms) = match known.owner(id) {
        Owner::Foreign => return foreign(),
        Owner::Unreadable | Owner::InUse => return Ok(None),
        Owner::Settled(task, last_ms) => (task, *last_ms),
    };
    if branch.is_none() {
        let kept_ms = kept_ms(&found.name, keep);
        return if now_ms.saturating_sub(last_ms) >= kept_ms {
            let why = format!("its task ended more than {} ago", KeepTurns::For(Duration::from_millis(kept_ms)));
            leftover(State::Dead, why, Removal::Ref(found))
        } else {
            Ok(None)
        };
    }
    let own = found.name.clone();
    let handed_back = matches!(task.ended, Some((End::Handback, _)));
    // what only nisse's own refs hold is not safe for long
    let except: &[&str] = if handed_back { &[&own, "refs/nisse/"] } else { &[&own] };
    match checkout.ref_containing(&found.commit, except)? {
        Some(holder) => {
            let why = format!("{} holds its commits", holder.trim_start_matches("refs/heads/"));
            leftover(State::Dead, why, Removal::Branch(spec(task, &found.commit)))
        }
        // the work itself, which no one has brought home yet
        None if handed_back => Ok(None),
        None => leftover(State::Kept, "nothing else holds its commits".to_owned(), Removal::Never),
    }
}

/// The task that a ref of nisse's is named after: `refs/nisse/<what>/<task>`, with more behind it or not.
fn task_of(name: &str) -> Option<TaskId> {
    name.strip_prefix("refs/nisse/")?.split('/').nth(1)?.parse().ok()
}
