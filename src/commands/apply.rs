//! `nisse apply`: applies the work of a finished task to the checkout in which it began.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Error, open::Opened, owned::owned};
use crate::{
    agent::{
        self,
        intents::apply::{Brought, Present, PutBack, Report, Seen},
    },
    domain::{
        apply::ApplyState,
        id::TaskId,
        intent::Manner,
        outcome::{End, Outcome},
        task::Task,
    },
    log::Journal,
    repo::{self, Checkout},
};

/// What the user asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    /// Apply the work, in this manner.
    Apply(Manner),
    /// Undo what was applied.
    PutBack,
}

/// The result of `nisse apply`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Applied {
    /// Version of this object's form.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// `apply`.
    #[schemars(extend("const" = "apply"))]
    pub r#type: &'static str,
    /// The task.
    pub task: TaskId,
    /// `files`, `fast_forward`, `commits`, `already`, `put_back`.
    #[schemars(extend("enum" = ["files", "fast_forward", "commits", "already", "put_back"]))]
    pub how: &'static str,
    /// The process's exit status: 0, or 6 if something was left.
    pub exit: u8,
    /// The checkout.
    pub checkout: String,
    /// Its branch; null where HEAD is detached.
    pub branch: Option<String>,
    /// Its commit now.
    pub head: Option<String>,
    /// The number of commits made as the user.
    pub commits: usize,
    /// The task's paths.
    pub files: Vec<String>,
    /// For `already`, where the work is. `head`: HEAD contains it; `committed`: the files are committed; `uncommitted`: the
    /// files are there, uncommitted. Otherwise null.
    #[schemars(extend("enum" = ["head", "committed", "uncommitted", null]))]
    pub seen: Option<&'static str>,
    /// Paths that differ from what the task left; they were not changed.
    pub left: Vec<String>,
    /// Paths that were not restored, because they are committed.
    pub committed: Vec<String>,
    /// What the user should know, in sentences.
    pub notices: Vec<String>,
    /// The ref that keeps the checkout as it was before.
    pub before: Option<String>,
}

/// Applies the work, or undoes it.
pub fn apply(opened: &Opened, id: TaskId, wish: Wish) -> Result<Applied, Error> {
    let log = opened.log()?;
    let task = log.task(id)?;
    let checkout = opened.checkout_of(&task.started)?;
    match task.outcome() {
        Some(Outcome::Ended { end: End::Handback, .. }) => {}
        other => {
            let outcome = other.map_or("pending", |outcome| outcome.word());
            return Err(Error::NotHandedBack { task: id, outcome });
        }
    }
    let plainly = |error| plain(id, error);
    // if it is already applied, neither the lock nor the log is needed
    if let (Wish::Apply(manner), Some(head)) = (wish, &task.head)
        && (task.apply_state() != ApplyState::NotApplied || checkout.head_contains(head)?)
        && let Some(there) =
            agent::intents::apply::already(&task, &checkout, manner, opened.clock().civil_ms()).map_err(plainly)?
    {
        let notices = there.notices.clone();
        let report = Report { brought: Brought::Already(there), incomplete: false, left: Vec::new(), notices };
        return summary(&task, &checkout, report);
    }
    let mut journal = Journal::resume(log, opened.clock(), id, "apply", Vec::new())?;
    journal.hold_checkout(checkout.git_dir())?;
    // whoever works there now holds it; this one rests
    checkout.refuse_branch_of_another(id)?;
    let checkout = owned(checkout, &mut journal)?;
    match wish {
        Wish::Apply(manner) => {
            let report = agent::intents::apply::apply(&mut journal, &checkout, manner).map_err(plainly)?;
            summary(journal.task(), &checkout, report)
        }
        Wish::PutBack => match agent::intents::apply::put_back(&mut journal, &checkout).map_err(plainly)? {
            PutBack::Nothing(why) => Err(Error::NothingToPutBack { task: id, why: why.to_owned(), left: Vec::new() }),
            PutBack::Left(left) => {
                let why = format!(
                    "an earlier --abort left these files, which are not as they were before: {}",
                    left.join(", ")
                );
                Err(Error::NothingToPutBack { task: id, why, left })
            }
            PutBack::Done { carried, committed, earlier } => {
                let exit = if carried.left.is_empty() && committed.is_empty() && earlier.is_empty() { 0 } else { 6 };
                let mut notices = carried.notices;
                if !earlier.is_empty() {
                    notices.push(format!(
                        "files of an earlier `nisse apply` are still here: {}; their content before it is kept below \
                         refs/nisse/found/{id}",
                        earlier.join(", ")
                    ));
                }
                let report = Report { brought: Brought::Files, incomplete: false, left: Vec::new(), notices };
                let applied = summary(journal.task(), &checkout, report)?;
                Ok(Applied { how: "put_back", files: carried.moved, left: carried.left, committed, exit, ..applied })
            }
        },
    }
}

fn summary(task: &Task, checkout: &Checkout, report: Report) -> Result<Applied, Error> {
    let files = match (&task.ready, &task.head) {
        (Some(ready), Some(head)) => checkout.diff(&ready.snapshot, head)?.files,
        (Some(_) | None, Some(_) | None) => Vec::new(),
    };
    let here = checkout.base()?;
    let before = repo::before_apply_ref(task.id);
    let (how, commits, present) = match report.brought {
        Brought::Files => ("files", 0, None),
        Brought::FastForward => ("fast_forward", 0, None),
        Brought::Commits(commits) => ("commits", commits, None),
        Brought::Already(present) => ("already", 0, Some(present)),
    };
    let seen = present.as_ref().map(|Present { seen, .. }| match seen {
        Seen::Head => "head",
        Seen::Committed => "committed",
        Seen::Uncommitted => "uncommitted",
    });
    Ok(Applied {
        v: 1,
        r#type: "apply",
        task: task.id,
        how,
        exit: if report.incomplete { 6 } else { 0 },
        checkout: checkout.root().display().to_string(),
        branch: here.branch,
        head: here.commit.map(|commit| commit.0),
        commits,
        files: files.into_iter().map(|file| file.path).collect(),
        seen,
        left: present.map_or(report.left, |present| present.changed),
        committed: Vec::new(),
        notices: [report.notices, locks_in_the_way(checkout)].concat(),
        before: checkout.has_ref(&before)?.then_some(before),
    })
}

/// Lock files that block the user's next git, such as one that a killed git left.
fn locks_in_the_way(checkout: &Checkout) -> Vec<String> {
    let told = |lock: repo::ForeignLock| {
        let (path, age) = (lock.path.display(), lock.age_s);
        format!("{path} is there, {age} s old, and blocks git; if no git is running here, remove it")
    };
    checkout.foreign_locks().into_iter().map(told).collect()
}

/// The plain error: nothing was interrupted.
fn plain(task: TaskId, error: agent::Error) -> Error {
    match error {
        agent::Error::Repo(source) => Error::Applying { task, source },
        agent::Error::Log(error) => Error::Log(error),
        other @ (agent::Error::Globs(_)
        | agent::Error::Host(_)
        | agent::Error::Upstream { .. }
        | agent::Error::Setup { .. }
        | agent::Error::Unmade { .. }
        | agent::Error::Bug(_)) => Error::Cut { task, source: Box::new(other), offered: None },
    }
}
