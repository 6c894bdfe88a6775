//! Where a task works: the names of its worktree, and what makes one fit for work.

use std::{path::PathBuf, time::Duration};

use super::{
    Error,
    env::{Env, time_left},
    repository, switch,
};
use crate::{
    domain::{
        checkout::Isolation,
        event::{EventKind, TaskStarted},
        globs::PathGlobs,
        id::{CommitId, TaskId},
        task::Task,
    },
    log::{Journal, crash},
    ports::host::{self, CommandEnd},
    repo::{TaskBranch, Worktree, WorktreeSpec},
};

/// Bytes of the setup's output kept from its start and from its end.
const KEEP: usize = 8 * 1024;
/// Characters of its end that are recorded.
const TAIL: usize = 4000;

/// The worktree's names, begun at `start`.
#[must_use]
pub fn spec(task: &Task, start: &CommitId) -> WorktreeSpec {
    names(task.id, &task.started, start)
}

/// The same from the task's first event alone.
#[must_use]
pub fn names(task: TaskId, started: &TaskStarted, start: &CommitId) -> WorktreeSpec {
    WorktreeSpec {
        task,
        path: PathBuf::from(&started.worktree),
        branch: started.branch.clone(),
        start: start.clone(),
        isolation: started.isolation,
    }
}

/// The task's branch, whether its worktree stands or not.
pub(super) fn branch(task: &Task, env: &Env<'_>, tip: &CommitId) -> Result<TaskBranch, Error> {
    Ok(TaskBranch::new(env.checkout, &spec(task, tip))?)
}

/// Whether the worktree could be made fit.
pub(super) enum Furnished {
    /// It is, and this is what the person should know.
    Ready(Vec<String>),
    /// The person asked to stop while the setup ran.
    Stopped,
    /// The setup took what was left of the task's time cap.
    OutOfTime,
}

/// Brings into a worktree that stands what its commit does not hold: files of submodules, copies of ignored files,
/// what the setup command makes. What that leaves beside ignored files is taken away again: it is nobody's work.
pub(super) async fn furnish(
    journal: &mut Journal,
    env: &Env<'_>,
    worktree: &Worktree,
    at: &CommitId,
) -> Result<Furnished, Error> {
    let started = &journal.task().started;
    let mut notices = Vec::new();
    let mut fresh = started.setup.is_none();
    if started.isolation == Isolation::Worktree {
        notices.extend(worktree.fill_submodules(at)?);
        crash::point("prepare.submodules");
        let globs = started.copy.iter().map(|glob| PathGlobs::picking(glob)).collect::<Result<Vec<_>, _>>()?;
        let copied = worktree.copy_ignored(&globs)?;
        crash::point("prepare.copied");
        fresh &= copied.is_empty();
        if !copied.is_empty() {
            notices.push(format!("copied, and not part of the branch: {}", copied.join(", ")));
        } else if !globs.is_empty() {
            notices.push(format!("nothing that git ignores matches worktree.copy ({})", started.copy.join(", ")));
        }
    }
    if let Some(line) = started.setup.clone() {
        worktree.note_persons()?;
        let ran = setup(journal, env, &line).await;
        repository::see_to(journal, worktree, at)?;
        match ran? {
            SetUp::Done => {}
            SetUp::Stopped => return Ok(Furnished::Stopped),
            SetUp::OutOfTime => return Ok(Furnished::OutOfTime),
        }
        crash::point("setup.ran");
        notices.extend(clear_up(journal.task(), journal.clock().civil_ms(), worktree, at)?);
        crash::point("prepare.setup");
    }
    worktree.set_aside(fresh)?;
    Ok(Furnished::Ready(notices))
}

/// Takes away what a setup left beside ignored files, and says what came of it in a checkout.
pub(super) fn clear_up(task: &Task, at_ms: u64, worktree: &Worktree, at: &CommitId) -> Result<Option<String>, Error> {
    let changed = worktree.changed_since(at)?;
    if changed.is_empty() {
        return Ok(None);
    }
    let kept = taken_back(task, at_ms, worktree, at, "setup", false)?;
    let names = changed.iter().take(10).cloned().collect::<Vec<_>>().join(", ");
    Ok(kept.map(|kept| format!("while the setup ran, it or somebody else changed {names}; {kept}")))
}

/// Makes the files of a worktree those of `at` again, after `what` ran. In a checkout nobody can tell what that left from
/// what its person did meanwhile, nor anywhere where its end went `unseen`: all of it is kept, and this says where.
pub(super) fn taken_back(
    task: &Task,
    at_ms: u64,
    worktree: &Worktree,
    at: &CommitId,
    what: &str,
    unseen: bool,
) -> Result<Option<String>, Error> {
    let kept = match task.started.isolation {
        Isolation::Worktree if !unseen => None,
        Isolation::InPlace | Isolation::Worktree => worktree.keep_as(what, at, at_ms)?,
    };
    let torn = switch::torn(&worktree.restore(at)?);
    let kept = kept.map(|kept| format!("that was taken back, and what was there is kept at {kept}"));
    let told: Vec<_> = kept.into_iter().chain(torn).collect();
    Ok((!told.is_empty()).then(|| told.join("; ")))
}

/// How a setup command ended that did not fail.
enum SetUp {
    Done,
    Stopped,
    OutOfTime,
}

/// Runs the setup command and records how it went. A failure is an error: the task rests where it is, and a resume tries
/// again.
async fn setup(journal: &mut Journal, env: &Env<'_>, line: &str) -> Result<SetUp, Error> {
    let started = &journal.task().started;
    let command = host::Command {
        line: line.to_owned(),
        limit: Duration::from_millis(started.command_time_ms).min(time_left(journal)),
        keep: KEEP,
        pass_env: started.pass_env.clone(),
    };
    journal.commit()?;
    let ran = tokio::select! {
        ran = env.run(&command) => ran?,
        () = env.stop.wait() => return Ok(SetUp::Stopped),
    };
    let (status, how) = match ran.end {
        CommandEnd::Exited(status) => (Some(status), format!("exited with status {status}")),
        CommandEnd::Signalled(signal) => (None, format!("was ended by signal {signal}")),
        CommandEnd::TimedOut => (None, format!("did not end within {} s", ran.duration.as_secs())),
    };
    // the host masked it before it was cut
    let skip = ran.text.chars().count().saturating_sub(TAIL);
    let output_tail = ran.text.chars().skip(skip).collect::<String>();
    journal.push(EventKind::SetupRan {
        command: line.to_owned(),
        status,
        output_tail: output_tail.clone(),
        duration_ms: u64::try_from(ran.duration.as_millis()).unwrap_or(u64::MAX),
    })?;
    journal.commit()?;
    if status == Some(0) {
        return Ok(SetUp::Done);
    }
    if ran.end == CommandEnd::TimedOut && time_left(journal).is_zero() {
        return Ok(SetUp::OutOfTime);
    }
    Err(Error::Setup { command: line.to_owned(), how, output_tail })
}
