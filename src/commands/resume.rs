//! `nisse resume`: entering the loop again.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Error,
    log::{self, TaskDiff},
    open::Opened,
    owned::owned,
    proxy,
    result::TaskResult,
    run::{Watch, run},
    secrets,
};
use crate::{
    agent,
    domain::{command_line, event::EventKind, gate::Answer, id::TaskId, intent::IntentKind, task::Phase, task::Task},
    log::{Access, Journal, Log, crash},
};

/// The task to resume if none is named: the only pending one of this checkout that no process works on.
pub fn choose(opened: &Opened) -> Result<Choice, Error> {
    let forgotten = log::forgotten(opened)?;
    let Some(log) = log::open_for(opened, forgotten.is_some())? else {
        return forgotten.map_or(Ok(Choice::Nothing), Err);
    };
    opened.checkout()?;
    let (mut pending, mut held, mut unreadable) = (Vec::new(), None, forgotten);
    for id in log.tasks()? {
        let task = match log.started(id) {
            Ok(started) if !opened.is_here(&started)? => continue,
            Ok(_) => log.task(id),
            Err(error) => Err(error),
        };
        match task {
            // whoever works on it goes on with it
            Ok(_) if log.is_held(id) => held = Some(id),
            Ok(task) => pending.extend(Some(task).filter(is_pending)),
            Err(error) if error.concerns_one_task() => unreadable = Some(error.into()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(match (pending.as_slice(), unreadable) {
        // whether it could go on is not known
        ([], Some(error)) => return Err(error),
        // entering it says who works on it
        ([], None) => held.map_or(Choice::Nothing, Choice::Task),
        ([one], _) => Choice::Task(one.id),
        _ => Choice::Several(pending),
    })
}

/// The one line of `nisse resume --json` if nothing is pending.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Nothing {
    /// Version of this object's form.
    #[schemars(extend("const" = 1))]
    v: u32,
    /// `nothing_pending`.
    #[schemars(extend("const" = "nothing_pending"))]
    r#type: &'static str,
    /// The process's exit status.
    #[schemars(extend("const" = 0))]
    exit: u8,
    /// The checkout that this one is a copy of, if it is known to be: tasks that began before the copy belong there.
    pub copy_of: Option<String>,
}

impl Nothing {
    /// Nothing is pending in a checkout, which may be a copy of another.
    #[must_use]
    pub fn new(copy_of: Option<&Path>) -> Self {
        let copy_of = copy_of.map(|first| first.display().to_string());
        Self { v: 1, r#type: "nothing_pending", exit: 0, copy_of }
    }
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

/// What the user is told of a task before it continues; none while another process works on it.
pub fn notice(opened: &Opened, id: TaskId) -> Result<Option<Notice>, Error> {
    let Some(log) = Log::open(opened.state_dir(), Access::Read)? else { return Ok(None) };
    let task = log.task(id)?;
    if log.is_held(id) || !is_pending(&task) {
        return Ok(None);
    }
    let found = stopped_at(&task);
    Ok(Some(Notice {
        task: id,
        branch: task.started.workplace.branch.clone(),
        brief: task.started.brief().to_owned(),
        found,
    }))
}

/// What is said of a task before it continues.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice {
    /// Its id.
    pub task: TaskId,
    /// Its branch.
    pub branch: String,
    /// What is to be done.
    pub brief: String,
    /// Where it stopped, in a sentence.
    pub found: String,
}

/// Where a task stopped, according to its log.
fn stopped_at(task: &Task) -> String {
    let turn = task.last_turn().map_or(0, |turn| turn.number);
    if let Some(outcome) = task.outcome() {
        let owes = if task.ended.is_some() { ", with its cleanup pending" } else { "" };
        return format!("{}{owes}: {}", outcome.word(), outcome.cause());
    }
    let doing = task.pending_intents().find_map(|intent| match &intent.kind {
        IntentKind::Command { command, .. } => Some(format!("while `{}` ran", command_line::one_line(command))),
        IntentKind::FileEdit { path, .. } => Some(format!("while it wrote {path}")),
        IntentKind::Check { .. } => Some("while the checks ran".to_owned()),
        IntentKind::Squash { .. } => Some("while it squashed its commits".to_owned()),
        IntentKind::Discard { .. } => Some("while it discarded its branch".to_owned()),
        IntentKind::CheckoutSwitch { .. } => Some("while it switched the checkout".to_owned()),
        IntentKind::Task
        | IntentKind::CleanUp
        | IntentKind::Apply { .. }
        | IntentKind::UserCommit(_)
        | IntentKind::PutBack { .. } => None,
    });
    let doing = doing.unwrap_or_else(|| match task.phase() {
        Phase::Preparing => "before its worktree was ready".to_owned(),
        Phase::Asking => format!("while it waited for turn {}", turn + 1),
        Phase::Acting => format!("in the middle of turn {turn}"),
        Phase::Idle | Phase::Paused | Phase::Ended => format!("after turn {turn}"),
    });
    format!("cut off {doing}")
}

/// Whether a task can continue, or has a pending discard or clean-up.
#[must_use]
pub fn is_pending(task: &Task) -> bool {
    task.ended.is_none() || task.pending_intents().next().is_some()
}

/// Continues the task; for one that is over, only returns its result again. Brief, base, caps, role and model come from its
/// first event, whatever the settings are now. An answer is only for a task that waits for one.
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
    let Some(checkout) = opened.checkout_of_any(&task.started)? else {
        return Err(Error::RepositoryGone { task: id, checkout: task.started.workplace.checkout.clone() });
    };
    if task.ended.is_none() && !agent::gone::has_commits(&task, &checkout)? {
        return Err(Error::RepositoryGone { task: id, checkout: task.started.workplace.checkout.clone() });
    }
    if answer.is_some() && (!task.asks_about_files() || task.is_given_up()) {
        return Err(Error::NoQuestion { task: id });
    }
    if let Some(outcome) = task.outcome().filter(|_| !is_pending(&task)) {
        let mask = secrets::mask(&opened.environment, Some(&checkout), None, &task.started.commands.pass_env);
        return TaskResult::new(&task, &outcome, Some(&checkout), &mask);
    }
    let proxy = proxy::connect(&opened.settings, &opened.environment)?;
    let subscribers = std::mem::take(&mut watch.subscribers);
    let mut journal = Journal::resume(log, opened.clock(), id, "resumed", subscribers)?;
    if let Some(answer) = answer {
        let known = owned(opened.for_task(&checkout, &journal.task().started)?, &mut journal)?;
        let paths = agent::decisions::changed_since_asked(journal.task(), &known).map_err(|source| Error::Cut {
            task: id,
            source: Box::new(source),
            offered: None,
        })?;
        if !paths.is_empty() {
            return Err(Error::ChangedSinceAsked { task: id, paths });
        }
        journal.push(EventKind::GateAnswered { answer })?;
        // the decision is durable before it has effects
        journal.commit()?;
        crash::point("answer.recorded");
    }
    let passed = &journal.task().started.commands.pass_env;
    let mask = secrets::mask(&opened.environment, Some(&checkout), Some(proxy.token()), passed);
    match run(opened, &checkout, Some(&proxy), mask, journal, watch).await {
        Err(error) => Err(proxy::with_offers(&proxy, error).await),
        done => done,
    }
}

/// The changes in the task's worktree since its last checkpoint, if any. Records nothing.
pub fn found(opened: &Opened, id: TaskId) -> Result<Option<TaskDiff>, Error> {
    // no one works in it meanwhile
    let mut journal = Journal::resume(opened.log()?, opened.clock(), id, "looked at", Vec::new())?;
    let checkout = opened.checkout_of(&journal.task().started)?;
    let checkout = owned(opened.for_task(&checkout, &journal.task().started)?, &mut journal)?;
    let beyond = agent::decisions::beyond(journal.task(), &checkout, opened.clock().civil_ms());
    let Some((from, to)) = beyond.map_err(|source| Error::Cut { task: id, source: Box::new(source), offered: None })?
    else {
        return Ok(None);
    };
    let diff = checkout.diff(&from, &to)?;
    Ok(Some(TaskDiff { task: id, from, to, diff }))
}
