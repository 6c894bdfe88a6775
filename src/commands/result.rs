//! The result of a run, as data: the `result` object of `--json`, and the source of what the screen shows.

use std::{path::Path, time::Duration};

use schemars::JsonSchema;
use serde::Serialize;

use super::begin_again;
use crate::{
    domain::{
        checkout::{Base, Isolation},
        id::TaskId,
        intent::{IntentKind, Status},
        mask::Mask,
        model::Route,
        outcome::{End, Handback, Outcome},
        repository::RepositoryChange,
        task::{Task, WHOLE_WORKTREE},
    },
    repo::{self, Checkout, Diff},
};

/// The result of a run of a task.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TaskResult {
    /// Version of this object's form.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// `result`.
    #[schemars(extend("const" = "result"))]
    pub r#type: &'static str,
    /// The task.
    pub task: TaskId,
    /// `handback`, `failed`, `capped`, `dropped`, `interrupted`, `gated`, `stopped`.
    #[schemars(extend("enum" = ["handback", "failed", "capped", "dropped", "interrupted", "gated", "stopped"]))]
    pub outcome: &'static str,
    /// Why, in one line.
    pub cause: String,
    /// The process's exit status: 0 done, 3 failed, 4 capped, 5 interrupted, 6 gated, 7 stopped.
    pub exit: u8,
    /// The note, if it was accepted, even with `succeeded` false.
    pub handback: Option<Handback>,
    /// The task's branch, if it exists.
    pub branch: Option<String>,
    /// Where the commits of a discarded branch are kept.
    pub discarded_ref: Option<String>,
    /// The caller's commit.
    pub base: Option<String>,
    /// The caller's branch at the start.
    pub base_branch: Option<String>,
    /// The commit that the task started from.
    pub snapshot: Option<String>,
    /// Whether the snapshot contains uncommitted work of the caller's, as a commit below the task's own.
    pub dirty: bool,
    /// How many files of the caller's that first commit contains; a push of the branch would publish them.
    pub unfinished_files: usize,
    /// The last commit of the task.
    pub head: Option<String>,
    /// The task's worktree, while it exists.
    pub worktree: Option<String>,
    /// The paths that changed between snapshot and head; for a renamed file, both names.
    pub artifacts: Vec<String>,
    /// What changed, counted.
    pub diffstat: Option<DiffStat>,
    /// Replies.
    pub turns: u32,
    /// Tokens.
    pub tokens: Tokens,
    /// Dollars; null if a part of it is not known.
    pub cost_usd: Option<f64>,
    /// Active seconds.
    pub duration_s: f64,
    /// The model that was requested, and the one that answered last.
    pub model: Model,
    /// The last check that was run; null if none is set, or none was run.
    pub check: Option<Check>,
    /// Every check with its last result; empty means that only the model says that the work is done.
    pub checks: Vec<Check>,
    /// The possible answers if the task waits for one: `rollback`, `keep`, `drop`; otherwise empty.
    pub answers: Vec<&'static str>,
    /// What the user should know.
    pub notices: Vec<String>,
    /// The command that continues the work of a capped task.
    #[serde(skip)]
    pub begin_again: Option<String>,
}

/// Counts of a diff.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiffStat {
    /// Files.
    pub files: usize,
    /// Lines added.
    pub insertions: u64,
    /// Lines removed.
    pub deletions: u64,
}

/// Tokens by kind.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Tokens {
    /// All input.
    pub input: u64,
    /// All output.
    pub output: u64,
    /// Input read from a cache.
    pub cache_read: u64,
    /// Input written to a cache.
    pub cache_write: u64,
}

/// The model of a task.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Model {
    /// The proxy's name.
    pub alias: String,
    /// The model behind it.
    pub backing: String,
    /// Its provider.
    pub provider: String,
    /// The backing model of the last reply.
    pub answered_by: Option<String>,
}

/// A check.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Check {
    /// The command line.
    pub command: String,
    /// Whether it ran; checks after a failed one do not.
    pub ran: bool,
    /// Its exit status; null if a signal or a limit ended it, or it was not run.
    pub status: Option<i32>,
    /// The end of its output.
    pub output_tail: String,
}

impl TaskResult {
    /// The result of a task. Its files are searched for the mask's secrets. `checkout` is none if it is gone.
    pub fn new(task: &Task, outcome: &Outcome, checkout: Option<&Checkout>, mask: &Mask) -> Result<Self, super::Error> {
        let started = &task.started;
        let ready = task.ready.as_ref();
        let diff = match (ready, &task.head, checkout) {
            (Some(ready), Some(head), Some(checkout)) if ready.snapshot != *head => {
                there(checkout.diff(&ready.snapshot, head))?
            }
            _ => None,
        };
        let secret = diff.as_ref().map(|diff| diff.files_that_add(mask)).unwrap_or_default();
        let discard = discard_status(task);
        let stands = ready.is_some() && checkout.is_some() && discard != Some(Status::Settled);
        let worked = diff.as_ref().is_some_and(|diff| !diff.files.is_empty()) && discard == Some(Status::Settled);
        let begin_again = match outcome {
            Outcome::Ended { end: End::Capped(cap), .. } => Some(begin_again::command(task, *cap, worked)),
            Outcome::Ended { .. } | Outcome::Paused { .. } => None,
        };
        let Base { commit, branch, .. } = &started.workplace.base;
        let usage = task.spend.usage;
        Ok(Self {
            v: 1,
            r#type: "result",
            task: task.id,
            outcome: outcome.word(),
            cause: outcome.cause().to_owned(),
            exit: outcome.exit_code(),
            handback: task.note.as_ref().map(|note| note.handback().clone()),
            branch: stands.then(|| started.workplace.branch.clone()),
            discarded_ref: (discard == Some(Status::Settled))
                .then(|| repo::discarded_ref(task.id))
                .filter(|name| checkout.is_some_and(|checkout| checkout.has_ref(name).unwrap_or(true))),
            base: commit.as_ref().map(|commit| commit.0.clone()),
            base_branch: branch.clone(),
            snapshot: ready.map(|ready| ready.snapshot.0.clone()),
            dirty: ready.is_some_and(|ready| ready.dirty),
            unfinished_files: match (ready.filter(|ready| ready.dirty), checkout) {
                (Some(ready), Some(checkout)) => {
                    there(checkout.files_between(commit.as_ref(), &ready.snapshot))?.unwrap_or(0)
                }
                (Some(_) | None, Some(_) | None) => 0,
            },
            head: task.head.as_ref().map(|head| head.0.clone()),
            worktree: (stands && task.checkout_restored().is_none() && Path::new(&started.workplace.worktree).exists())
                .then(|| started.workplace.worktree.clone()),
            artifacts: diff.iter().flat_map(Diff::paths).map(str::to_owned).collect(),
            diffstat: diff.map(|diff| DiffStat {
                files: diff.files.len(),
                insertions: diff.insertions,
                deletions: diff.deletions,
            }),
            turns: task.spend.turns,
            tokens: Tokens {
                input: usage.input,
                output: usage.output,
                cache_read: usage.cache_read,
                cache_write: usage.cache_write,
            },
            cost_usd: (!task.spend.cost_unknown).then(|| task.spend.cost.usd()),
            duration_s: Duration::from_millis(task.spent_ms).as_secs_f64(),
            model: Model {
                alias: started.models.own.alias.clone(),
                backing: started.models.own.backing.clone(),
                provider: started.models.own.provider.clone(),
                answered_by: task.last_turn().and_then(|turn| Some(turn.reply.answered_by.as_ref()?.backing.clone())),
            },
            check: checks(task).into_iter().rfind(|check| check.ran),
            checks: checks(task),
            answers: if task.asks_about_files() { vec!["rollback", "keep", "drop"] } else { Vec::new() },
            notices: with_found(
                [holding_secrets(&secret), notices(task, outcome, discard), commits_taken_in(task, checkout)].concat(),
                task,
                checkout,
            ),
            begin_again,
        })
    }
}

/// Warns of secrets that a push would publish: nisse does not mask what a command writes.
fn holding_secrets(files: &[String]) -> Vec<String> {
    if files.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "the commits contain what looks like secrets, unmasked, and a push would publish them: {}; remove them from the files \
         and the history (plain `nisse apply` applies the files without commits), or revoke them",
        files.join(", ")
    )]
}

/// The files that were removed with the worktree, in a sentence.
#[must_use]
pub fn left_out(paths: &[String]) -> String {
    let paths = paths.join(", ");
    format!("not in the branch, because of git's ignore rules or [files] deny, and removed with the worktree: {paths}")
}

fn discard_status(task: &Task) -> Option<Status> {
    task.intents
        .iter()
        .rev()
        .find(|intent| matches!(intent.kind, IntentKind::Discard { .. }))
        .map(|intent| intent.status)
}

/// The checks of a task with their last results.
fn checks(task: &Task) -> Vec<Check> {
    let last = task.turns.iter().rev().find(|turn| !turn.checks.is_empty());
    let ran = last.map_or(&[][..], |turn| &turn.checks);
    let as_it_went = |(index, command): (usize, &String)| {
        let how = ran.get(index);
        Check {
            command: command.clone(),
            ran: how.is_some(),
            status: how.and_then(|how| how.status),
            output_tail: how.map(|how| how.output_tail.clone()).unwrap_or_default(),
        }
    };
    task.started.checks.iter().enumerate().map(as_it_went).collect()
}

/// The answer to a question about a task's commits; none if the repository no longer has them, as after a new clone.
fn there<T>(asked: Result<T, repo::Error>) -> Result<Option<T>, repo::Error> {
    match asked {
        Err(repo::Error::NoSuchCommit { .. }) => Ok(None),
        other => other.map(Some),
    }
}

/// Commits that were made in the checkout of a task in place while a command ran: nothing distinguishes the command's from
/// the user's.
fn commits_taken_in(task: &Task, checkout: Option<&Checkout>) -> Vec<String> {
    let (Some(checkout), Some(ready), Isolation::InPlace) = (checkout, &task.ready, task.started.workplace.isolation)
    else {
        return Vec::new();
    };
    let told = |change: &RepositoryChange| {
        let kept = change.kept().filter(|_| change.is_of_branch())?;
        let others: Vec<_> = std::iter::once(&ready.snapshot).chain(&task.head).collect();
        // commits that are gone by now are named, too
        let commits = checkout.commits_beyond(kept, &others).ok().filter(|commits| !commits.is_empty())?;
        Some(format!(
            "commits were made in the checkout while a command ran, so their files count as the task's: {}; restore those \
             that are yours with `git cherry-pick`",
            commits.join(", ")
        ))
    };
    task.changes.iter().filter_map(told).collect()
}

/// Adds the refs of what was found beside the task's own work, if no other notice names them.
fn with_found(mut notices: Vec<String>, task: &Task, checkout: Option<&Checkout>) -> Vec<String> {
    let place = format!("refs/nisse/found/{}/", task.id);
    let found =
        checkout.and_then(|checkout| checkout.task_refs().ok()).unwrap_or_default().into_iter().map(|one| one.name);
    let unnamed: Vec<String> = found
        .filter(|name| name.starts_with(&place) && !name.ends_with("/asked"))
        .filter(|name| !notices.iter().any(|notice| notice.contains(name.as_str())))
        .collect();
    if !unnamed.is_empty() {
        notices.push(format!("files and commits found beside the task's own work are kept: {}", unnamed.join(", ")));
    }
    notices
}

fn notices(task: &Task, outcome: &Outcome, discard: Option<Status>) -> Vec<String> {
    let mut notices = task.ready.as_ref().map(|ready| ready.notices.clone()).unwrap_or_default();
    if discard == Some(Status::Pending) {
        notices.push(format!(
            "could not discard the branch {}; to try again: nisse resume {:#}",
            task.started.workplace.branch, task.id
        ));
    }
    if matches!(outcome, Outcome::Ended { end: End::Handback, .. })
        && task.pending_intents().any(|intent| intent.kind == IntentKind::CleanUp)
    {
        notices.push(format!(
            "could not remove the worktree {}; to try again: nisse resume {:#}",
            task.started.workplace.worktree, task.id
        ));
    }
    if matches!(outcome, Outcome::Paused { .. }) && task.last_switch().is_some() && task.checkout_restored().is_none() {
        notices.push(format!(
            "the checkout stays on the task's branch {} until the task ends; to continue: nisse resume {:#}",
            task.started.workplace.branch, task.id
        ));
    }
    if task.checkout_restored().is_some() {
        notices.push("files that git ignores stay in the checkout as the task left them".to_owned());
    }
    if let Some(paths) = task.left_out.as_ref().filter(|_| task.ended.is_some()) {
        notices.push(left_out(paths));
    }
    notices.extend(task.kept_aside.iter().map(|(place, paths)| {
        let until = if *paths == [WHOLE_WORKTREE] { "" } else { " until `nisse doctor --fix`" };
        format!("{}{until}", kept_aside(place, paths))
    }));
    notices.extend(task.changes.iter().map(ToString::to_string));
    notices.extend(who_answered(task));
    notices
}

/// What was moved out of a task's tree, and where it is kept.
#[must_use]
pub fn kept_aside(place: &str, paths: &[String]) -> String {
    if *paths == [WHOLE_WORKTREE] {
        return format!("the repository no longer has the task's commits; the worktree is kept in {place}");
    }
    format!("no commit can hold {}; kept in {place}", paths.join(", "))
}

/// A number of replies.
fn replies(number: usize) -> String {
    if number == 1 { "1 reply".to_owned() } else { format!("{number} replies") }
}

/// Notices about models that answered instead of the task's own.
fn who_answered(task: &Task) -> Vec<String> {
    let asked = &task.started.models.own;
    let (mut instead, mut own) = (Vec::<String>::new(), Vec::<&str>::new());
    for who in task.turns.iter().filter_map(|turn| turn.reply.answered_by.as_ref()) {
        let told = format!("{} ({})", who.alias, who.backing);
        if who.fallback && !instead.contains(&told) {
            instead.push(told);
        } else if !who.fallback && !own.contains(&who.backing.as_str()) {
            own.push(&who.backing);
        }
    }
    let mut notices = Vec::new();
    if !instead.is_empty() {
        let times = task.turns.iter().filter(|turn| turn.reply.fallback().is_some()).count();
        let of = task.turns.len();
        notices.push(format!(
            "{} answered instead of {}: {times} of {}",
            instead.join(" and "),
            asked.alias,
            replies(of)
        ));
    }
    if own.len() > 1 {
        notices.push(format!("several models answered as {}: {}", asked.alias, own.join(", ")));
    }
    let natively = own.iter().any(|backing| backing.starts_with("anthropic/"));
    if natively && asked.route == Route::Normalized && asked.provider != "anthropic" {
        notices.push(format!(
            "a model of Anthropic answered as {}, over the normalized route; declare its provider under [models.{:?}]",
            asked.alias, asked.alias
        ));
    }
    if task.turns.iter().any(|turn| turn.reply.answered_by.is_none()) {
        notices.push(format!(
            "it is unknown which model answered as {}: something between nisse and the proxy removes its headers",
            asked.alias
        ));
    }
    notices.extend(task.cut_prompts().map(|told| told.to_string()));
    let uncounted = task.turns.iter().filter(|turn| turn.reply.usage.is_none()).count();
    if uncounted > 0 {
        notices.push(format!(
            "tokens and cost are partly estimates: {uncounted} of {} came without token counts",
            replies(task.turns.len())
        ));
    }
    notices
}
