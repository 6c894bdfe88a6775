//! Bringing the work of a task that was handed back into the person's checkout, and taking it back.
//!
//! Each step is an intent in the task's log, opened before anything is touched; a step that a dead process left is gone
//! on with by whoever comes next. What is brought is the task's part: never the snapshot of unfinished work.

use super::{Error, act, settle};
use crate::{
    domain::{
        apply::{Advance, Landing, Manner, Standing},
        event::EventKind,
        id::{CommitId, IntentId},
        intent::{IntentKind, Status},
        task::{Ready, Task},
    },
    log::{Journal, crash},
    repo::{self, Checkout, Plan, PlanRequest, Way},
};

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
    /// It is in the checkout already.
    Already,
}

/// Brings the work home, or goes on with it.
pub fn apply(journal: &mut Journal, checkout: &Checkout, manner: Manner) -> Result<Brought, Error> {
    let mut any = false;
    loop {
        let next = match journal.task().standing() {
            Standing::Begun(id) | Standing::PuttingBack(id) => Some(id),
            Standing::Apart | Standing::Uncommitted { .. } | Standing::Committed { .. } | Standing::Applied { .. } => {
                next_step(journal, checkout, manner)?.map(|step| act::open(journal, step)).transpose()?
            }
        };
        let Some(id) = next else { return Ok(brought(journal.task(), any)) };
        any = true;
        crash::point("apply.opened");
        go_on(journal, checkout, id)?;
    }
}

/// What has been reached; `any` tells whether anything was done for it now.
fn brought(task: &Task, any: bool) -> Brought {
    match task.standing() {
        _ if !any => Brought::Already,
        Standing::Applied { advanced: true, .. } => Brought::FastForward,
        Standing::Committed { commits, .. } => Brought::Commits(commits),
        Standing::Apart
        | Standing::Begun(_)
        | Standing::PuttingBack(_)
        | Standing::Uncommitted { .. }
        | Standing::Applied { .. } => Brought::Files,
    }
}

/// What is still to be done, where nothing is half done; none if the checkout has it all.
fn next_step(journal: &Journal, checkout: &Checkout, manner: Manner) -> Result<Option<IntentKind>, Error> {
    let (ready, head) = part(journal.task())?;
    match journal.task().standing() {
        Standing::Apart if checkout.holds(&head)? => Ok(None),
        Standing::Apart => first_step(journal, checkout, manner, &ready, &head),
        // committed by hand in the meantime
        Standing::Uncommitted { plan, .. } if checkout.committed(&plan)? => Ok(None),
        Standing::Uncommitted { plan, of, manner } => {
            landing(journal.task(), checkout, plan, of, manner).map(|landing| Some(IntentKind::Land(landing)))
        }
        Standing::Committed { of, manner: Manner::Each, .. } => {
            let chain = checkout.chain(&of, &head)?;
            planned(journal, checkout, Manner::Each, &chain, None)
        }
        Standing::Begun(_) | Standing::PuttingBack(_) | Standing::Committed { .. } | Standing::Applied { .. } => {
            Ok(None)
        }
    }
}

/// Takes back what was brought and is not committed. Gives the paths that were left alone, because they are no longer as
/// they were brought; none if nothing can be taken back.
pub fn put_back(journal: &mut Journal, checkout: &Checkout) -> Result<Option<Vec<String>>, Error> {
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
                return Ok(None);
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
                    return Ok(None);
                }
                crash::point("put_back.unlanded");
                let Some(plan) = plan else { return Ok(Some(Vec::new())) };
                plan
            }
            Some(_) | None => return Err(Error::Bug("what was begun cannot be taken back")),
        },
        Standing::Uncommitted { plan, .. } | Standing::Applied { plan, advanced: false } => plan,
        Standing::Apart | Standing::Committed { .. } | Standing::Applied { .. } => return Ok(None),
    };
    let id = match journal.task().standing() {
        Standing::PuttingBack(id) => id,
        Standing::Apart
        | Standing::Begun(_)
        | Standing::Uncommitted { .. }
        | Standing::Committed { .. }
        | Standing::Applied { .. } => act::open(journal, IntentKind::PutBack { plan: plan.clone() })?,
    };
    crash::point("put_back.opened");
    take_back(journal, checkout, id, &plan).map(Some)
}

/// Does what an intent stands for; done already, or by half, it does the rest.
pub(super) fn go_on(journal: &mut Journal, checkout: &Checkout, id: IntentId) -> Result<(), Error> {
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
    match task.intent(id).map(|intent| intent.kind.clone()) {
        Some(IntentKind::Apply { plan, before, advance, .. }) => {
            checkout.hold_plan(task_id, &plan, first.then_some(&before))?;
            crash::point("apply.held");
            checkout.carry(task_id, &plan, Way::Forth)?;
            if let Some(advance) = advance {
                checkout.advance(&advance)?;
            }
        }
        Some(IntentKind::Land(landing)) => {
            match checkout.land(task_id, &landing) {
                Ok(_) => {}
                // the person has committed something else meanwhile: it is made on top of that
                Err(repo::Error::HeadMoved { .. }) => {
                    return abandon(journal, id, "HEAD is elsewhere by now, and the commit was not made");
                }
                Err(error @ repo::Error::NotCommitted { .. }) => {
                    abandon(journal, id, &error.to_string())?;
                    return Err(error.into());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Some(IntentKind::PutBack { plan }) => {
            return take_back(journal, checkout, id, &plan).map(drop);
        }
        Some(_) | None => return Err(Error::Bug("an intent was to be gone on with that brings nothing home")),
    }
    crash::point("apply.done");
    journal.push(EventKind::IntentSettled { intent: id, cause: None })?;
    journal.commit()?;
    Ok(())
}

/// What comes first; none if the checkout has it all.
fn first_step(
    journal: &Journal,
    checkout: &Checkout,
    manner: Manner,
    ready: &Ready,
    head: &CommitId,
) -> Result<Option<IntentKind>, Error> {
    let chain = match manner {
        Manner::Each => checkout.chain(&ready.snapshot, head)?,
        Manner::Files | Manner::Squash | Manner::Merge => vec![ready.snapshot.clone(), head.clone()],
    };
    if manner == Manner::Merge {
        return merge(journal, checkout, ready, head, &chain).map(Some);
    }
    let advance = if manner == Manner::Files { fast_forward(checkout, ready, head)? } else { None };
    planned(journal, checkout, manner, &chain, advance)
}

/// The intent that brings the first commit of a chain.
fn planned(
    journal: &Journal,
    checkout: &Checkout,
    manner: Manner,
    chain: &[CommitId],
    advance: Option<Advance>,
) -> Result<Option<IntentKind>, Error> {
    let to_commit = manner != Manner::Files;
    // a commit that changes nothing here is passed over
    for at in 0..chain.len() {
        let plan = checkout.plan(&request(journal, chain.get(at..).unwrap_or_default(), to_commit))?;
        if let (Some(Plan { commit: plan, before, .. }), Some(of)) = (plan, chain.get(at + 1)) {
            return Ok(Some(IntentKind::Apply { plan, of: of.clone(), before, manner, advance }));
        }
    }
    Ok(None)
}

fn request<'a>(journal: &Journal, commits: &'a [CommitId], to_commit: bool) -> PlanRequest<'a> {
    let task = journal.task();
    let (at_ms, max_untracked) = (journal.clock().civil_ms(), task.started.max_untracked);
    PlanRequest { task: task.id, commits, to_commit, at_ms, max_untracked }
}

/// A branch that can simply go on to the task's head: it is where the task began, and nothing of the person's is in
/// between.
fn fast_forward(checkout: &Checkout, ready: &Ready, head: &CommitId) -> Result<Option<Advance>, Error> {
    let here = checkout.base()?;
    let at_start = !ready.dirty && here.commit.as_ref() == Some(&ready.snapshot);
    Ok(match (here.branch, here.commit) {
        (Some(branch), Some(from)) if at_start && checkout.own_paths()?.is_empty() => {
            Some(Advance { branch, from, to: head.clone() })
        }
        (Some(_) | None, Some(_) | None) => None,
    })
}

/// A merge is git's; that nothing stands against it is seen before.
fn merge(
    journal: &Journal,
    checkout: &Checkout,
    ready: &Ready,
    head: &CommitId,
    chain: &[CommitId],
) -> Result<IntentKind, Error> {
    let refused = |why: &str| repo::Error::Refused { checkout: checkout.root().to_owned(), why: why.to_owned() };
    if ready.dirty {
        let why = "the task's branch holds your unfinished work as a commit, which a merge would bring in; \
                   --squash and --commit bring the task's part alone";
        return Err(refused(why).into());
    }
    if checkout.base()?.commit.is_none() {
        return Err(refused("there is no commit yet that could be merged with").into());
    }
    if !checkout.own_paths()?.is_empty() {
        let own = checkout.own_paths()?.into_iter();
        let conflicts = own.map(|path| repo::Conflict { path, why: "a merge wants everything committed" }).collect();
        return Err(repo::Error::Conflicts { conflicts }.into());
    }
    checkout.plan(&request(journal, chain, true))?;
    Ok(IntentKind::Land(Landing {
        parent: checkout.base()?.commit,
        of: head.clone(),
        plan: None,
        merge: Some(head.clone()),
        message: format!("Merge branch '{}'\n", journal.task().started.branch),
        manner: Manner::Merge,
    }))
}

/// The person's commit of a plan's files.
fn landing(task: &Task, checkout: &Checkout, plan: CommitId, of: CommitId, manner: Manner) -> Result<Landing, Error> {
    let message = match (manner, &task.handback) {
        (Manner::Each, _) => checkout.message(&of)?,
        (Manner::Files | Manner::Squash | Manner::Merge, Some(note)) => settle::message(task, note),
        (Manner::Files | Manner::Squash | Manner::Merge, None) => {
            return Err(Error::Bug("a task without a note was to be applied"));
        }
    };
    Ok(Landing { parent: checkout.base()?.commit, of, plan: Some(plan), merge: None, message, manner })
}

/// Whether nothing of the task was brought before, since it was last put back.
fn is_first(task: &Task) -> bool {
    let since = task.intents.iter().rev().take_while(|one| !matches!(one.kind, IntentKind::PutBack { .. }));
    !since.into_iter().any(|one| matches!(one.kind, IntentKind::Land(_)) && one.status == Status::Settled)
}

/// Takes a plan back, and with it the application that was begun. Gives the paths that were left alone.
fn take_back(journal: &mut Journal, checkout: &Checkout, id: IntentId, plan: &CommitId) -> Result<Vec<String>, Error> {
    let begun = journal.task().pending_intents().find_map(|one| {
        let IntentKind::Apply { plan: of, advance, .. } = &one.kind else { return None };
        (of == plan).then(|| (one.id, advance.clone()))
    });
    let left = checkout.carry(journal.task().id, plan, Way::Back)?;
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
    Ok(left)
}

fn abandon(journal: &mut Journal, intent: IntentId, cause: &str) -> Result<(), Error> {
    journal.push(EventKind::IntentAbandoned { intent, cause: cause.to_owned() })?;
    journal.commit()?;
    Ok(())
}

/// The task's part: from its snapshot to its head.
fn part(task: &Task) -> Result<(Ready, CommitId), Error> {
    match (&task.ready, &task.head) {
        (Some(ready), Some(head)) => Ok((ready.clone(), head.clone())),
        (Some(_) | None, Some(_) | None) => Err(Error::Bug("a task was to be applied that has no tree")),
    }
}
