//! Bringing the work of a task that was handed back into the person's checkout, and taking it back.
//!
//! Each step is an intent in the task's log, opened before anything is touched; a step that a dead process left is gone
//! on with by whoever comes next. What is brought is the task's part: never the snapshot of unfinished work.

mod step;

use std::collections::BTreeSet;

use super::super::{Error, record};
use crate::{
    domain::{
        amount::counted,
        apply::Standing,
        event::EventKind,
        id::{CommitId, IntentId},
        intent::{IntentKind, Landing, Manner, Status},
        task::Task,
    },
    log::{Journal, crash},
    repo::{self, Checkout, Direction, Written},
};

pub use step::{Seen, There};
use step::{Step, next_step};

const TAKEN_BACK: &str = "taken back, as the person decided";

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Brought {
    /// The files are in the checkout, uncommitted.
    Files,
    /// The branch of the person's stands at the task's head.
    FastForward,
    /// So many commits of the person's hold it.
    Commits(usize),
    /// It is in the checkout already, as was seen.
    Already(There),
}

/// What came of it, and what the person should know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// What came of it.
    pub brought: Brought,
    /// Not all of it is there: somebody was at work in the checkout meanwhile.
    pub incomplete: bool,
    /// Paths of it that are not as they were brought.
    pub left: Vec<String>,
    /// In sentences.
    pub notices: Vec<String>,
}

/// Brings the work home, or goes on with it.
pub fn apply(journal: &mut Journal, checkout: &Checkout, manner: Manner) -> Result<Report, Error> {
    let (mut any, before) = (false, journal.task().intents.len());
    let mut notices = Vec::new();
    loop {
        let standing = journal.task().standing();
        let next = match standing {
            Standing::Begun(id) | Standing::PuttingBack(id) => id,
            // done a moment ago
            Standing::Applied { advanced, .. } if any => {
                let brought = if advanced { Brought::FastForward } else { Brought::Files };
                return looked_again(journal.task(), checkout, brought, before, notices);
            }
            Standing::Apart | Standing::Uncommitted { .. } | Standing::Committed { .. } | Standing::Applied { .. } => {
                match next_step(journal.task(), checkout, manner, journal.clock().civil_ms(), any)? {
                    Step::Do(kind, more) => {
                        notices.extend(more);
                        record::open(journal, *kind)?
                    }
                    Step::There(there) => {
                        notices.extend(there.notices.iter().cloned());
                        let brought = match (journal.task().standing(), any) {
                            (Standing::Committed { .. }, true) => {
                                Brought::Commits(step::landed(journal.task(), checkout)?)
                            }
                            (
                                Standing::Apart
                                | Standing::Begun(_)
                                | Standing::PuttingBack(_)
                                | Standing::Uncommitted { .. }
                                | Standing::Committed { .. }
                                | Standing::Applied { .. },
                                _,
                            ) => Brought::Already(there),
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

/// The report of what was brought, after a look at whether it is there: a person may have saved, stashed or reset
/// meanwhile. Of the commits those count that this process made: the intents from `since` on.
fn looked_again(
    task: &Task,
    checkout: &Checkout,
    brought: Brought,
    since: usize,
    mut notices: Vec<String>,
) -> Result<Report, Error> {
    let (mut left, mut incomplete) = (Vec::new(), false);
    match (&brought, task.standing()) {
        (Brought::Files | Brought::FastForward, Standing::Applied { plan, advanced }) => {
            let files = checkout.plan_files(&plan)?;
            left = files.undone.union(&files.changed).map(|path| path.to_string_lossy().into_owned()).collect();
            let held = task.head.as_ref().map_or(Ok(true), |head| checkout.head_contains(head))?;
            incomplete = !left.is_empty() || advanced && !held;
            if advanced && !held {
                notices.push("the branch was moved away again meanwhile, and not by nisse".to_owned());
            }
        }
        (Brought::Commits(_), _) => {
            let made = task.intents.iter().skip(since).filter_map(|one| {
                let IntentKind::Land(landing) = &one.kind else { return None };
                (one.status == Status::Settled).then_some(landing)
            });
            let mut gone = 0;
            for landing in made {
                gone += usize::from(!checkout.has_user_commit(landing)?);
            }
            incomplete = gone > 0;
            if incomplete {
                notices
                    .push(format!("{} not in HEAD any more: it was moved meanwhile", counted(gone as u64, "commit")));
            }
        }
        (Brought::Files | Brought::FastForward | Brought::Already(_), _) => {}
    }
    if incomplete {
        notices.push(format!("run `nisse apply {:#}` again for what is missing", task.id));
    }
    Ok(Report { brought, incomplete, left, notices })
}

/// Where the work is, if nothing is to be done for it; looked at without a word in the log.
pub fn already(task: &Task, checkout: &Checkout, manner: Manner, at_ms: u64) -> Result<Option<There>, Error> {
    match task.standing() {
        Standing::Begun(_) | Standing::PuttingBack(_) => Ok(None),
        Standing::Apart | Standing::Uncommitted { .. } | Standing::Committed { .. } | Standing::Applied { .. } => {
            Ok(match next_step(task, checkout, manner, at_ms, false)? {
                Step::There(there) => Some(there),
                Step::Do(..) => None,
            })
        }
    }
}

/// What came of taking back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PutBack {
    /// Nothing of the task's is in the checkout that could be taken back: why.
    Nothing(&'static str),
    /// It was taken back before, and these paths were left: they are neither as they were nor as they were brought.
    Left(Vec<String>),
    /// It was taken back, as far as it could be.
    Done {
        /// What was moved, and what was left.
        carried: Written,
        /// The paths that stay, because the person has committed them.
        committed: Vec<String>,
        /// Paths of the task's that an earlier application brought, and that are still here, uncommitted.
        earlier: Vec<String>,
    },
}

const COMMITTED: &str = "its work is committed here";
const NOT_HERE: &str = "it is not applied here";
const TOO_LATE: &str = "what its files were before is no longer kept";

/// Takes back what was brought and is not committed.
pub fn put_back(journal: &mut Journal, checkout: &Checkout) -> Result<PutBack, Error> {
    let plan = match journal.task().standing() {
        Standing::PuttingBack(id) => match journal.task().intent(id).map(|intent| &intent.kind) {
            Some(IntentKind::PutBack { plan }) => plan.clone(),
            Some(_) | None => return Err(Error::Bug("what is put back has no plan")),
        },
        Standing::Begun(id) => match journal.task().intent(id).map(|intent| intent.kind.clone()) {
            Some(IntentKind::Apply { advance: Some(advance), .. })
                if checkout.base()?.commit.as_ref() == Some(&advance.to) =>
            {
                // it came to its end after all
                go_on(journal, checkout, id)?;
                return Ok(PutBack::Nothing(COMMITTED));
            }
            Some(IntentKind::Apply { plan, .. }) => plan,
            Some(IntentKind::Land(Landing { plan, merge, parent, .. })) => {
                if checkout.base()?.commit == parent {
                    if let Some(other) = merge {
                        checkout.abort_merge(&other)?;
                    }
                    abandon(journal, id, TAKEN_BACK)?;
                } else {
                    go_on(journal, checkout, id)?;
                }
                if journal.task().intent(id).is_some_and(|landing| landing.status == Status::Settled) {
                    // it was made after all
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
        Standing::Uncommitted { plan, .. } | Standing::Applied { plan, advanced: false } => {
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
        Standing::Committed { .. } | Standing::Applied { advanced: true, .. } => {
            return Ok(PutBack::Nothing(COMMITTED));
        }
        Standing::Apart => {
            let left = left_before(journal.task(), checkout)?;
            return Ok(if left.is_empty() { PutBack::Nothing(NOT_HERE) } else { PutBack::Left(left) });
        }
    };
    let id = match journal.task().standing() {
        Standing::PuttingBack(id) => id,
        Standing::Apart
        | Standing::Begun(_)
        | Standing::Uncommitted { .. }
        | Standing::Committed { .. }
        | Standing::Applied { .. } => record::open(journal, IntentKind::PutBack { plan: plan.clone() })?,
    };
    crash::point("put_back.opened");
    take_back(journal, checkout, id, &plan)
}

/// What taking back the last time had to leave, so far as it is still so.
fn left_before(task: &Task, checkout: &Checkout) -> Result<Vec<String>, Error> {
    let plan = task.intents.iter().rev().find_map(|one| {
        let IntentKind::PutBack { plan } = &one.kind else { return None };
        (one.status == Status::Settled).then_some(plan)
    });
    match plan {
        Some(plan) if checkout.has_commit(plan)? => Ok(checkout.plan_files(plan)?.changed()),
        Some(_) | None => Ok(Vec::new()),
    }
}

/// Does what an intent stands for; done already, or by half, it does the rest.
/// Gives what the person should know.
fn go_on(journal: &mut Journal, checkout: &Checkout, id: IntentId) -> Result<Vec<String>, Error> {
    // the taking back of what was begun comes first
    let id = match journal.task().standing() {
        Standing::PuttingBack(back) => back,
        Standing::Apart
        | Standing::Begun(_)
        | Standing::Uncommitted { .. }
        | Standing::Committed { .. }
        | Standing::Applied { .. } => id,
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
        Some(IntentKind::Land(landing)) => {
            match checkout.make_user_commit(task_id, &landing) {
                Ok(_) => {}
                // the person has committed something else meanwhile: it is made on top of that
                Err(repo::Error::HeadMoved { .. }) => {
                    abandon(journal, id, "HEAD is elsewhere by now, and the commit was not made")?;
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

/// Goes on with what a dead process had begun. What the repository refuses is told, and stays pending.
pub(super) fn recover(journal: &mut Journal, checkout: &Checkout, intent: IntentId) -> Result<(), Error> {
    match go_on(journal, checkout, intent) {
        Err(Error::Repo(error)) => record::recovered(journal, format!("the work could not be applied: {error}")),
        other => other.map(drop),
    }
}

/// Whether nothing of the task was brought before, since it was last put back.
fn is_first(task: &Task) -> bool {
    let since = task.intents.iter().rev().take_while(|one| !matches!(one.kind, IntentKind::PutBack { .. }));
    !since.into_iter().any(|one| matches!(one.kind, IntentKind::Land(_)) && one.status == Status::Settled)
}

/// The paths of a plan that the person has committed since it was made.
fn committed(task: &Task, checkout: &Checkout, plan: &CommitId) -> Result<BTreeSet<std::path::PathBuf>, Error> {
    let Some(before) = step::snapshot_of(task, plan) else {
        return Err(Error::Bug("a plan was to be taken back that nobody made"));
    };
    Ok(checkout.committed_since(task.id, plan, &before)?)
}

/// Takes a plan back, and with it the application that was begun. What the person has committed stays.
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
