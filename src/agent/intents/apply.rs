//! Applies the work of a finished task to the user's checkout, and undoes that.
//!
//! Each step is an intent in the task's log, opened before anything is touched; the next process finishes a step that a
//! dead one left. Only the task's own commits are applied, never the snapshot of uncommitted work.

mod step;

use std::collections::BTreeSet;

use super::super::{Error, record};
use crate::{
    domain::{
        amount::counted,
        apply::ApplyState,
        event::EventKind,
        id::{CommitId, IntentId},
        intent::{IntentKind, Manner, Status, UserCommit},
        task::Task,
    },
    log::{Journal, crash},
    repo::{self, Checkout, Direction, Written},
};

pub use step::{Present, Seen};
use step::{Step, next_step};

const TAKEN_BACK: &str = "undone, as you decided";

/// How the work was applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Brought {
    /// The files are in the checkout, uncommitted.
    Files,
    /// The user's branch was fast-forwarded to the task's head.
    FastForward,
    /// In this number of commits.
    Commits(usize),
    /// It was already in the checkout.
    Already(Present),
}

/// The result of applying, and what the user should know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// How the work was applied.
    pub brought: Brought,
    /// Part of it is missing: someone changed the checkout meanwhile.
    pub incomplete: bool,
    /// Paths that differ from what was applied.
    pub left: Vec<String>,
    /// In sentences.
    pub notices: Vec<String>,
}

/// Applies the work, or finishes applying it.
pub fn apply(journal: &mut Journal, checkout: &Checkout, manner: Manner) -> Result<Report, Error> {
    let (mut any, before) = (false, journal.task().intents.len());
    let mut notices = Vec::new();
    loop {
        let state = journal.task().apply_state();
        let next = match state {
            ApplyState::Applying(id) | ApplyState::PuttingBack(id) => id,
            // just done by this process
            ApplyState::Applied { advanced, .. } if any => {
                let brought = if advanced { Brought::FastForward } else { Brought::Files };
                return looked_again(journal.task(), checkout, brought, before, notices);
            }
            ApplyState::NotApplied
            | ApplyState::Uncommitted { .. }
            | ApplyState::Committed { .. }
            | ApplyState::Applied { .. } => {
                match next_step(journal.task(), checkout, manner, journal.clock().civil_ms(), any)? {
                    Step::Do(kind, more) => {
                        notices.extend(more);
                        record::open(journal, *kind)?
                    }
                    Step::Present(present) => {
                        notices.extend(present.notices.iter().cloned());
                        let brought = match (journal.task().apply_state(), any) {
                            (ApplyState::Committed { .. }, true) => {
                                Brought::Commits(step::committed_by_user(journal.task(), checkout)?)
                            }
                            (
                                ApplyState::NotApplied
                                | ApplyState::Applying(_)
                                | ApplyState::PuttingBack(_)
                                | ApplyState::Uncommitted { .. }
                                | ApplyState::Committed { .. }
                                | ApplyState::Applied { .. },
                                _,
                            ) => Brought::Already(present),
                        };
                        return looked_again(journal.task(), checkout, brought, before, notices);
                    }
                }
            }
        };
        any = true;
        crash::point("apply.opened");
        notices.extend(go_on(journal, checkout, next)?);
    }
}

/// The report, after checking that the work is still there: the user may have saved, stashed or reset meanwhile. Only
/// commits that this process made count: the intents from `since` on.
fn looked_again(
    task: &Task,
    checkout: &Checkout,
    brought: Brought,
    since: usize,
    mut notices: Vec<String>,
) -> Result<Report, Error> {
    let (mut left, mut incomplete) = (Vec::new(), false);
    match (&brought, task.apply_state()) {
        (Brought::Files | Brought::FastForward, ApplyState::Applied { plan, advanced }) => {
            let files = checkout.plan_files(&plan)?;
            left = files.undone.union(&files.changed).map(|path| path.to_string_lossy().into_owned()).collect();
            let held = task.head.as_ref().map_or(Ok(true), |head| checkout.head_contains(head))?;
            incomplete = !left.is_empty() || advanced && !held;
            if advanced && !held {
                notices.push("something other than nisse moved the branch meanwhile".to_owned());
            }
        }
        (Brought::Commits(_), _) => {
            let made = task.intents.iter().skip(since).filter_map(|one| {
                let IntentKind::UserCommit(commit) = &one.kind else { return None };
                (one.status == Status::Settled).then_some(commit)
            });
            let mut gone = 0;
            for commit in made {
                gone += usize::from(!checkout.has_user_commit(commit)?);
            }
            incomplete = gone > 0;
            if incomplete {
                notices.push(format!(
                    "{} missing from HEAD: something moved it meanwhile",
                    counted(gone as u64, "commit")
                ));
            }
        }
        (Brought::Files | Brought::FastForward | Brought::Already(_), _) => {}
    }
    if incomplete {
        notices.push(format!("to apply what is missing: nisse apply {:#}", task.id));
    }
    Ok(Report { brought, incomplete, left, notices })
}

/// Where the work is, if it is already applied. Records nothing.
pub fn already(task: &Task, checkout: &Checkout, manner: Manner, at_ms: u64) -> Result<Option<Present>, Error> {
    match task.apply_state() {
        ApplyState::Applying(_) | ApplyState::PuttingBack(_) => Ok(None),
        ApplyState::NotApplied
        | ApplyState::Uncommitted { .. }
        | ApplyState::Committed { .. }
        | ApplyState::Applied { .. } => Ok(match next_step(task, checkout, manner, at_ms, false)? {
            Step::Present(present) => Some(present),
            Step::Do(..) => None,
        }),
    }
}

/// The result of undoing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PutBack {
    /// There was nothing to undo, and why.
    Nothing(&'static str),
    /// It was undone before, except for these paths, which differ from both before and after.
    Left(Vec<String>),
    /// It was undone as far as possible.
    Done {
        /// What was restored, and what was left.
        carried: Written,
        /// The paths that stay because the user has committed them.
        committed: Vec<String>,
        /// Paths that an earlier `nisse apply` changed and that are still here, uncommitted.
        earlier: Vec<String>,
    },
}

const COMMITTED: &str = "its work is committed here";
const NOT_HERE: &str = "it is not applied here";
const TOO_LATE: &str = "the files from before it are no longer kept";

/// Undoes what was applied and is not committed.
pub fn put_back(journal: &mut Journal, checkout: &Checkout) -> Result<PutBack, Error> {
    let plan = match journal.task().apply_state() {
        ApplyState::PuttingBack(id) => match journal.task().intent(id).map(|intent| &intent.kind) {
            Some(IntentKind::PutBack { plan }) => plan.clone(),
            Some(_) | None => return Err(Error::Bug("what is put back has no plan")),
        },
        ApplyState::Applying(id) => match journal.task().intent(id).map(|intent| intent.kind.clone()) {
            Some(IntentKind::Apply { advance: Some(advance), .. })
                if checkout.base()?.commit.as_ref() == Some(&advance.to) =>
            {
                // it had finished after all
                go_on(journal, checkout, id)?;
                return Ok(PutBack::Nothing(COMMITTED));
            }
            Some(IntentKind::Apply { plan, .. }) => plan,
            Some(IntentKind::UserCommit(UserCommit { plan, merge, parent, .. })) => {
                if checkout.base()?.commit == parent {
                    if let Some(other) = merge {
                        checkout.abort_merge(&other)?;
                    }
                    abandon(journal, id, TAKEN_BACK)?;
                } else {
                    go_on(journal, checkout, id)?;
                }
                if journal.task().intent(id).is_some_and(|commit| commit.status == Status::Settled) {
                    // the commit was made after all
                    return Ok(PutBack::Nothing(COMMITTED));
                }
                crash::point("put_back.unlanded");
                let Some(plan) = plan else {
                    return Ok(PutBack::Done {
                        carried: Written::default(),
                        committed: Vec::new(),
                        earlier: Vec::new(),
                    });
                };
                plan
            }
            Some(_) | None => return Err(Error::Bug("what was begun cannot be taken back")),
        },
        ApplyState::Uncommitted { plan, .. } | ApplyState::Applied { plan, advanced: false } => {
            if !checkout.has_commit(&plan)? {
                return Ok(PutBack::Nothing(TOO_LATE));
            }
            let files = checkout.plan_files(&plan)?;
            let committed = committed(journal.task(), checkout, &plan)?;
            if files.brought.iter().chain(&files.changed).all(|path| committed.contains(path)) {
                return Ok(PutBack::Nothing(if committed.is_empty() { NOT_HERE } else { COMMITTED }));
            }
            plan
        }
        ApplyState::Committed { .. } | ApplyState::Applied { advanced: true, .. } => {
            return Ok(PutBack::Nothing(COMMITTED));
        }
        ApplyState::NotApplied => {
            let left = left_before(journal.task(), checkout)?;
            return Ok(if left.is_empty() { PutBack::Nothing(NOT_HERE) } else { PutBack::Left(left) });
        }
    };
    let id = match journal.task().apply_state() {
        ApplyState::PuttingBack(id) => id,
        ApplyState::NotApplied
        | ApplyState::Applying(_)
        | ApplyState::Uncommitted { .. }
        | ApplyState::Committed { .. }
        | ApplyState::Applied { .. } => record::open(journal, IntentKind::PutBack { plan: plan.clone() })?,
    };
    crash::point("put_back.opened");
    take_back(journal, checkout, id, &plan)
}

/// The paths that the last undo left, if they are still not as they were before, nor committed: changed since, or made the
/// task's again by the undo of another task.
fn left_before(task: &Task, checkout: &Checkout) -> Result<Vec<String>, Error> {
    let plan = task.intents.iter().rev().find_map(|one| {
        let IntentKind::PutBack { plan } = &one.kind else { return None };
        (one.status == Status::Settled).then_some(plan)
    });
    match plan {
        Some(plan) if checkout.has_commit(plan)? => {
            let files = checkout.plan_files(plan)?;
            let committed = committed(task, checkout, plan)?;
            let left = files.changed.iter().chain(files.brought.difference(&committed));
            Ok(left.map(|path| path.to_string_lossy().into_owned()).collect())
        }
        Some(_) | None => Ok(Vec::new()),
    }
}

/// Does what an intent says, or the rest of it. Returns what the user should know.
fn go_on(journal: &mut Journal, checkout: &Checkout, id: IntentId) -> Result<Vec<String>, Error> {
    // an undo comes first
    let id = match journal.task().apply_state() {
        ApplyState::PuttingBack(back) => back,
        ApplyState::NotApplied
        | ApplyState::Applying(_)
        | ApplyState::Uncommitted { .. }
        | ApplyState::Committed { .. }
        | ApplyState::Applied { .. } => id,
    };
    let task = journal.task();
    let (task_id, first) = (task.id, is_first(task));
    let mut notices = Vec::new();
    match task.intent(id).map(|intent| intent.kind.clone()) {
        Some(IntentKind::Apply { plan, before, advance, .. }) => {
            checkout.pin_plan(task_id, &plan, first.then_some(&before))?;
            crash::point("apply.held");
            notices = checkout.write_plan(task_id, &plan, Direction::Apply, &BTreeSet::new())?.notices;
            if let Some(advance) = advance {
                checkout.advance(&advance)?;
            }
        }
        Some(IntentKind::UserCommit(commit)) => {
            match checkout.make_user_commit(task_id, &commit) {
                Ok(_) => {}
                // the user committed something else meanwhile: the commit goes on top of that
                Err(repo::Error::HeadMoved { .. }) => {
                    abandon(journal, id, "HEAD has moved, so the commit was not made")?;
                    return Ok(notices);
                }
                Err(error @ repo::Error::NotCommitted { .. }) => {
                    abandon(journal, id, &error.to_string())?;
                    return Err(error.into());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Some(IntentKind::PutBack { plan }) => {
            take_back(journal, checkout, id, &plan)?;
            return Ok(notices);
        }
        Some(_) | None => return Err(Error::Bug("an intent was to be gone on with that brings nothing home")),
    }
    crash::point("apply.done");
    journal.push(EventKind::IntentSettled { intent: id, cause: None })?;
    journal.commit()?;
    Ok(notices)
}

/// Finishes what a dead process began. What the repository refuses is recorded, and stays pending.
pub(super) fn recover(journal: &mut Journal, checkout: &Checkout, intent: IntentId) -> Result<(), Error> {
    match go_on(journal, checkout, intent) {
        Err(Error::Repo(error)) => record::recovered(journal, format!("could not apply the work: {error}")),
        other => other.map(drop),
    }
}

/// Whether nothing of the task was applied since it was last undone.
fn is_first(task: &Task) -> bool {
    let since = task.intents.iter().rev().take_while(|one| !matches!(one.kind, IntentKind::PutBack { .. }));
    !since.into_iter().any(|one| matches!(one.kind, IntentKind::UserCommit(_)) && one.status == Status::Settled)
}

/// The paths of a plan that the user has committed since it was made.
fn committed(task: &Task, checkout: &Checkout, plan: &CommitId) -> Result<BTreeSet<std::path::PathBuf>, Error> {
    let Some(before) = step::snapshot_of(task, plan) else {
        return Err(Error::Bug("a plan was to be taken back that nobody made"));
    };
    Ok(checkout.committed_since(task.id, plan, &before)?)
}

/// Undoes a plan, and the apply that had begun. What the user has committed stays.
fn take_back(journal: &mut Journal, checkout: &Checkout, id: IntentId, plan: &CommitId) -> Result<PutBack, Error> {
    let begun = journal.task().pending_intents().find_map(|one| {
        let IntentKind::Apply { plan: of, advance, .. } = &one.kind else { return None };
        (of == plan).then(|| (one.id, advance.clone()))
    });
    let committed = committed(journal.task(), checkout, plan)?;
    let carried = checkout.write_plan(journal.task().id, plan, Direction::Revert, &committed)?;
    if let Some((_, Some(advance))) = &begun {
        checkout.retreat(advance)?;
        crash::point("put_back.index");
    }
    crash::point("put_back.done");
    if let Some((intent, _)) = begun {
        journal.push(EventKind::IntentAbandoned { intent, cause: TAKEN_BACK.to_owned() })?;
    }
    journal.push(EventKind::IntentSettled { intent: id, cause: None })?;
    journal.commit()?;
    let committed = committed.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let earlier = step::still_here(journal.task(), checkout, journal.clock().civil_ms(), &carried)?;
    Ok(PutBack::Done { carried, committed, earlier })
}

fn abandon(journal: &mut Journal, intent: IntentId, cause: &str) -> Result<(), Error> {
    journal.push(EventKind::IntentAbandoned { intent, cause: cause.to_owned() })?;
    journal.commit()?;
    Ok(())
}
