//! The next step to apply the work, decided from HEAD and the files.
//!
//! The log says what was done; whether it is still there must be checked, because the user can reset, stash or switch.

use std::collections::BTreeSet;

use super::super::super::{Error, commit_message};
use crate::{
    domain::{
        apply::ApplyState,
        id::CommitId,
        intent::{Advance, IntentKind, Manner, Status, UserCommit},
        task::{Ready, Task},
    },
    repo::{self, Checkout, Plan, PlanRequest, Planning, Written},
};

/// The next step.
pub(super) enum Step {
    /// This intent, and what the user should know of it.
    Do(Box<IntentKind>, Vec<String>),
    /// None: the work is there.
    Present(Present),
}

/// Where the work is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Present {
    /// What shows that it is there.
    pub seen: Seen,
    /// Paths that differ from what the task left.
    pub changed: Vec<String>,
    /// What the user should know.
    pub notices: Vec<String>,
}

/// What shows that the work is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// HEAD contains the task's commit, or the user's commits of it.
    Head,
    /// The files are as the task left them, and committed.
    Committed,
    /// The files are as the task left them, and not committed.
    Uncommitted,
}

/// The question: which task, into which checkout, how, and when.
struct Asked<'a> {
    task: &'a Task,
    checkout: &'a Checkout,
    manner: Manner,
    at_ms: u64,
    ready: Ready,
    head: CommitId,
}

/// The next step, if none is pending. `just_done`: this process has just done the last one.
pub(super) fn next_step(
    task: &Task,
    checkout: &Checkout,
    manner: Manner,
    at_ms: u64,
    just_done: bool,
) -> Result<Step, Error> {
    let (ready, head) = part(task)?;
    let asked = Asked { task, checkout, manner, at_ms, ready, head };
    match task.apply_state() {
        ApplyState::Applied { plan, .. } => asked.after_files(&plan),
        ApplyState::Uncommitted { plan, of, manner } => asked.before_commit(plan, of, manner),
        ApplyState::Committed { manner, of, .. } => asked.after_commit(manner, &of, just_done),
        ApplyState::NotApplied | ApplyState::Applying(_) | ApplyState::PuttingBack(_) => asked.fresh(false),
    }
}

impl Asked<'_> {
    /// Decides from HEAD and the files; `landed`: HEAD contains the user's commits of all of it.
    fn fresh(&self, landed: bool) -> Result<Step, Error> {
        if !landed && !self.checkout.head_contains(&self.head)? {
            return self.first_step();
        }
        let whole = [self.ready.snapshot.clone(), self.head.clone()];
        let planning = self.checkout.plan(&PlanRequest { forward: true, ..self.request(&whole, false) });
        let changed = match planning {
            // it was reverted, or removed from the files
            Ok(Planning { plan: Some(plan), .. }) if plan.whole && self.manner != Manner::Merge => {
                return self.first_step();
            }
            Ok(Planning { plan, .. }) => plan.map(|plan| plan.files).unwrap_or_default(),
            Err(repo::Error::Conflicts { conflicts }) => conflicts.into_iter().map(|one| one.path).collect(),
            Err(error) => return Err(error.into()),
        };
        Ok(Step::Present(Present { seen: Seen::Head, changed, notices: Vec::new() }))
    }

    /// After the files were applied, by a fast-forward or uncommitted.
    fn after_files(&self, plan: &CommitId) -> Result<Step, Error> {
        let before = self.before(plan)?;
        if !self.checkout.has_commit(plan)? || !self.checkout.has_commit(&before)? {
            return self.fresh(false);
        }
        let files = self.checkout.plan_files(plan)?;
        let same_line = self.checkout.goes_on_from(self.task.id, &before)?;
        if !files.undone.is_empty()
            || files.brought.is_empty()
            || !same_line
            || self.checkout.head_contains(&self.head)?
        {
            return self.fresh(false);
        }
        self.present(files.changed(), Vec::new())
    }

    /// After the files were applied, before their commit.
    fn before_commit(&self, plan: CommitId, of: CommitId, manner: Manner) -> Result<Step, Error> {
        if !self.checkout.has_commit(&plan)? {
            return self.replay();
        }
        let files = self.checkout.plan_files(&plan)?;
        if files.undone.is_empty() {
            if !self.checkout.is_plan_committed(&plan)? {
                let commit = user_commit(self.task, self.checkout, plan, of, manner)?;
                return Ok(Step::Do(Box::new(IntentKind::UserCommit(commit)), Vec::new()));
            }
            // committed by hand
            return if manner == Manner::Each { self.chain_from(&of) } else { self.present(Vec::new(), Vec::new()) };
        }
        if files.brought.is_empty() && files.changed.is_empty() {
            return self.replay();
        }
        if !files.changed.is_empty() {
            return Err(repo::Error::Between { paths: files.changed() }.into());
        }
        // some were removed again: a commit of the rest would be incomplete
        let before = self.before(&plan)?;
        Ok(Step::Do(Box::new(IntentKind::Apply { plan, of, before, manner, advance: None }), Vec::new()))
    }

    /// After a commit of the user's was made.
    fn after_commit(&self, manner: Manner, of: &CommitId, just_done: bool) -> Result<Step, Error> {
        if !just_done {
            return self.replay();
        }
        if manner == Manner::Each { self.chain_from(of) } else { self.present(Vec::new(), Vec::new()) }
    }

    /// Continues after the last commit of the user's that HEAD still contains.
    fn replay(&self) -> Result<Step, Error> {
        let mut last = None;
        for commit in user_commits(self.task) {
            if !self.checkout.has_user_commit(commit)? {
                break;
            }
            last = Some(commit);
        }
        match last {
            None => self.fresh(false),
            Some(commit) if commit.of == self.head => self.fresh(true),
            Some(commit) => self.chain_from(&commit.of.clone()),
        }
    }

    /// The commits of the task after `of`, one by one.
    fn chain_from(&self, of: &CommitId) -> Result<Step, Error> {
        let chain = self.checkout.chain(of, &self.head)?;
        self.planned(Manner::Each, &chain, None)
    }

    /// The work is there, judging by the files.
    fn present(&self, changed: Vec<String>, notices: Vec<String>) -> Result<Step, Error> {
        let committed = self.checkout.is_committed(&self.ready.snapshot, &self.head)?;
        let seen = if committed { Seen::Committed } else { Seen::Uncommitted };
        Ok(Step::Present(Present { seen, changed, notices }))
    }

    /// The first step.
    fn first_step(&self) -> Result<Step, Error> {
        let chain = match self.manner {
            Manner::Each => self.checkout.chain(&self.ready.snapshot, &self.head)?,
            Manner::Files | Manner::Squash | Manner::Merge => vec![self.ready.snapshot.clone(), self.head.clone()],
        };
        if self.manner == Manner::Merge {
            return self.merge(&chain);
        }
        let advance = if self.manner == Manner::Files { self.fast_forward()? } else { None };
        self.planned(self.manner, &chain, advance)
    }

    /// The step that applies the first commit of a chain.
    fn planned(&self, manner: Manner, chain: &[CommitId], advance: Option<Advance>) -> Result<Step, Error> {
        let mut told = Vec::new();
        // skips commits that change nothing here
        for at in 0..chain.len() {
            let request = self.request(chain.get(at..).unwrap_or_default(), manner != Manner::Files);
            let Planning { plan, notices } =
                self.checkout.plan(&PlanRequest { forward: advance.is_some(), ..request })?;
            told.extend(notices);
            if let (Some(Plan { commit: plan, before, .. }), Some(of)) = (plan, chain.get(at + 1)) {
                let kind = IntentKind::Apply { plan, of: of.clone(), before, manner, advance };
                return Ok(Step::Do(Box::new(kind), told));
            }
        }
        self.present(Vec::new(), told)
    }

    fn request<'b>(&self, commits: &'b [CommitId], to_commit: bool) -> PlanRequest<'b> {
        PlanRequest {
            task: self.task.id,
            commits,
            to_commit,
            forward: false,
            at_ms: self.at_ms,
            max_untracked: self.task.started.files.max_untracked,
        }
    }

    /// The fast-forward of the user's branch, if it is where the task began and the checkout has no changes.
    fn fast_forward(&self) -> Result<Option<Advance>, Error> {
        let here = self.checkout.base()?;
        let at_start = !self.ready.dirty && here.commit.as_ref() == Some(&self.ready.snapshot);
        Ok(match (here.branch, here.commit) {
            (Some(branch), Some(from)) if at_start && self.checkout.own_paths()?.is_empty() => {
                Some(Advance { branch, from, to: self.head.clone() })
            }
            (Some(_) | None, Some(_) | None) => None,
        })
    }

    /// A merge, which git makes; conflicts are found before.
    fn merge(&self, chain: &[CommitId]) -> Result<Step, Error> {
        let checkout = self.checkout;
        let refused = |why| repo::Error::MergeRefused { why };
        if self.ready.dirty {
            let why = "the task's branch begins with a commit of the uncommitted work in your checkout at that time, which a \
                       merge would include";
            return Err(refused(why).into());
        }
        if checkout.base()?.commit.is_none() {
            return Err(refused("your branch has no commit to merge with").into());
        }
        if !checkout.own_paths()?.is_empty() {
            let own = checkout.own_paths()?.into_iter();
            let conflicts = own.map(|path| repo::Conflict { path, why: "a merge needs everything committed" });
            return Err(repo::Error::Conflicts { conflicts: conflicts.collect() }.into());
        }
        checkout.plan(&self.request(chain, true))?;
        let commit = UserCommit {
            parent: checkout.base()?.commit,
            of: self.head.clone(),
            plan: None,
            merge: Some(self.head.clone()),
            message: format!("Merge branch '{}'\n", self.task.started.workplace.branch),
            manner: Manner::Merge,
        };
        Ok(Step::Do(Box::new(IntentKind::UserCommit(commit)), Vec::new()))
    }

    /// The snapshot of the checkout that a plan is based on.
    fn before(&self, plan: &CommitId) -> Result<CommitId, Error> {
        snapshot_of(self.task, plan).ok_or(Error::Bug("a plan that nobody made"))
    }
}

/// The snapshot of the checkout that a plan of the task is based on.
pub(super) fn snapshot_of(task: &Task, plan: &CommitId) -> Option<CommitId> {
    task.intents.iter().rev().find_map(|one| {
        let IntentKind::Apply { plan: of, before, .. } = &one.kind else { return None };
        (of == plan).then(|| before.clone())
    })
}

/// The paths that are still in the checkout as the task left them, uncommitted, after an undo: those of an earlier apply.
pub(super) fn still_here(
    task: &Task,
    checkout: &Checkout,
    at_ms: u64,
    carried: &Written,
) -> Result<Vec<String>, Error> {
    let (ready, head) = part(task)?;
    let own = checkout.unfinished_paths()?;
    let asked = Asked { task, checkout, manner: Manner::Files, at_ms, ready, head };
    let whole = [asked.ready.snapshot.clone(), asked.head.clone()];
    let missing: BTreeSet<String> = match checkout.plan(&asked.request(&whole, false)) {
        Ok(Planning { plan, .. }) => plan.map(|plan| plan.files).unwrap_or_default().into_iter().collect(),
        Err(repo::Error::Conflicts { conflicts }) => conflicts.into_iter().map(|one| one.path).collect(),
        // the undo is done, so a failure to look is no error
        Err(_) => return Ok(Vec::new()),
    };
    let diff = checkout.diff(&asked.ready.snapshot, &asked.head)?;
    let stays =
        |path: &&str| own.contains(*path) && !missing.contains(*path) && !carried.left.iter().any(|left| left == path);
    Ok(diff.paths().filter(stays).map(str::to_owned).collect())
}

/// How many commits of the task HEAD contains as the user's. One that was undone and made again counts once.
pub(super) fn committed_by_user(task: &Task, checkout: &Checkout) -> Result<usize, Error> {
    let mut commits = BTreeSet::new();
    for commit in user_commits(task) {
        if checkout.has_user_commit(commit)? {
            commits.insert(commit.of.0.as_str());
        }
    }
    Ok(commits.len())
}

/// The user's commits that were made of the task, in order, since it was last undone.
fn user_commits(task: &Task) -> impl Iterator<Item = &UserCommit> {
    let put_back = |kind: &IntentKind| matches!(kind, IntentKind::PutBack { .. });
    let since = task.intents.iter().rposition(|one| put_back(&one.kind) && one.status == Status::Settled);
    task.intents.iter().skip(since.map_or(0, |at| at + 1)).filter_map(|one| {
        let IntentKind::UserCommit(commit) = &one.kind else { return None };
        (one.status == Status::Settled).then_some(commit)
    })
}

/// The user's commit of a plan's files.
fn user_commit(
    task: &Task,
    checkout: &Checkout,
    plan: CommitId,
    of: CommitId,
    manner: Manner,
) -> Result<UserCommit, Error> {
    let message = match (manner, &task.note) {
        (Manner::Each, _) => checkout.message(&of)?,
        (Manner::Files | Manner::Squash | Manner::Merge, Some(note)) => commit_message::of_note(task, note),
        (Manner::Files | Manner::Squash | Manner::Merge, None) => {
            return Err(Error::Bug("a task without a note was to be applied"));
        }
    };
    Ok(UserCommit { parent: checkout.base()?.commit, of, plan: Some(plan), merge: None, message, manner })
}

/// The task's own part: from its snapshot to its head.
fn part(task: &Task) -> Result<(Ready, CommitId), Error> {
    match (&task.ready, &task.head) {
        (Some(ready), Some(head)) => Ok((ready.clone(), head.clone())),
        (Some(_) | None, Some(_) | None) => Err(Error::Bug("a task was to be applied that has no tree")),
    }
}
