//! Judging an ending call: success is observed, never believed; failure is.
//!
//! The tree must differ from the snapshot, and every check command, run by nisse, must exit 0. What the checks leave
//! in the worktree is put back: it is not the model's work.

use std::time::Duration;

use super::{
    Error, act,
    env::{Answered, Env, head, time_left},
    place, repository, switch,
    uncommittable::{self, Which},
};
use crate::{
    domain::{
        checkout::Isolation,
        event::{EventKind, ResultStatus},
        id::{CallId, CommitId},
        intent::IntentKind,
    },
    log::Journal,
    ports::host::{self, CommandEnd, CommandOutput},
};

/// Bytes of a check's output kept from its start and from its end.
const KEEP: usize = 8 * 1024;
/// Characters of its end that are recorded.
const TAIL: usize = 4000;

/// Answers the ending call with the verdict.
pub(super) async fn check(journal: &mut Journal, env: &Env<'_>, id: &CallId) -> Result<(), Error> {
    let task = journal.task();
    let claims = task.last_turn().and_then(|turn| turn.ending.as_ref()).is_some_and(|(_, note)| note.succeeded);
    if !claims {
        return env.answer(journal, id, Answered::new(ResultStatus::Done, "The work is handed back as not done."));
    }
    let head = head(task)?;
    if act::found_changed(journal, env.worktree()?.differs_from(&head)?)? {
        return Ok(());
    }
    if let Some(refusal) = unchanged(journal, env, &head)? {
        return env.answer(journal, id, Answered::new(ResultStatus::Refused, refusal));
    }
    let task = journal.task();
    let commands = task.started.checks.clone();
    if commands.is_empty() && task.made.is_empty() {
        return env.answer(journal, id, Answered::new(ResultStatus::Done, "Accepted."));
    }
    let intent = act::open(journal, IntentKind::Check { call: id.clone() })?;
    // the checks are to see what the branch holds
    uncommittable::move_out(journal, env.worktree()?, Which::Made)?;
    if journal.task().started.isolation == Isolation::Worktree {
        env.worktree()?.remove_empty_directories()?;
    }
    journal.commit()?;
    let verdict = run_all(journal, env, id, &commands).await?;
    take_back(journal, env, &head, false)?;
    env.answer(journal, id, verdict)?;
    journal.push(EventKind::IntentSettled { intent, cause: None })?;
    Ok(())
}

/// Takes away what the checks left. `unseen`: nobody saw their end, and somebody may have changed files since.
pub(super) fn take_back(journal: &mut Journal, env: &Env<'_>, head: &CommitId, unseen: bool) -> Result<(), Error> {
    uncommittable::move_out(journal, env.worktree()?, Which::All)?;
    let at_ms = journal.clock().civil_ms();
    let told = place::taken_back(journal.task(), at_ms, env.worktree()?, head, "check", unseen)?;
    switch::record(
        journal,
        told.map(|told| format!("while the checks ran, they or somebody else changed files; {told}")),
    )
}

/// The refusal of a claim of success on an unchanged tree.
fn unchanged(journal: &Journal, env: &Env<'_>, head: &CommitId) -> Result<Option<String>, Error> {
    let task = journal.task();
    let Some(ready) = &task.ready else { return Err(Error::Bug("a task was to be judged before it stood")) };
    let worktree = env.worktree()?;
    if !worktree.tree_equal(&ready.snapshot, head)? {
        return Ok(None);
    }
    let written: Vec<String> = task.seen.keys().cloned().collect();
    let ignored = worktree.ignored(&written)?;
    let why = if ignored.is_empty() {
        "nothing has changed: every file is as it was when you started".to_owned()
    } else {
        format!(
            "the only files that you wrote are ignored by git ({}), so they are not part of the branch",
            ignored.join(", ")
        )
    };
    Ok(Some(format!(
        "Not accepted, and the task is still open: you say that it succeeded, but {why}. Do the work, or call hand_back with \
         succeeded=false and say why it cannot be done."
    )))
}

async fn run_all(journal: &mut Journal, env: &Env<'_>, id: &CallId, commands: &[String]) -> Result<Answered, Error> {
    for line in commands {
        let started = &journal.task().started;
        let left = time_left(journal);
        let command = host::Command {
            line: line.clone(),
            limit: Duration::from_millis(started.command_time_ms).min(left),
            keep: KEEP,
            pass_env: started.pass_env.clone(),
        };
        env.worktree()?.note_persons_durably()?;
        let before = env.worktree()?.uncommittable()?;
        let ran = tokio::select! {
            ran = env.run(&command) => Some(ran?),
            () = env.stop.wait() => None,
        };
        repository::see_to(journal, env.worktree()?, &head(journal.task())?)?;
        uncommittable::record(journal, &before, env.worktree()?.uncommittable()?)?;
        let Some(output) = ran else {
            return Ok(Answered::new(
                ResultStatus::NotRun,
                "Not judged: the person asked to stop while the check ran.",
            ));
        };
        let status = match output.end {
            CommandEnd::Exited(status) => Some(status),
            CommandEnd::Signalled(_) | CommandEnd::TimedOut => None,
        };
        // the host masked it before it was cut
        let output_tail = tail(&output);
        journal.push(EventKind::CheckRan {
            call: id.clone(),
            command: env.mask.apply(line).into_owned(),
            status,
            output_tail: output_tail.clone(),
            duration_ms: u64::try_from(output.duration.as_millis()).unwrap_or(u64::MAX),
        })?;
        // the next one may run for long, and who watches wants to know which it is
        journal.commit()?;
        if output.end == CommandEnd::TimedOut && time_left(journal).is_zero() {
            return Ok(Answered::new(
                ResultStatus::NotRun,
                "Not judged: the task's time cap was reached while the check ran.",
            ));
        }
        if status != Some(0) {
            return Ok(Answered::new(ResultStatus::Failed, failing(line, &output, &output_tail)));
        }
    }
    let accepted = if commands.is_empty() { "Accepted." } else { "Accepted: the checks passed." };
    Ok(Answered::new(ResultStatus::Done, accepted))
}

fn failing(line: &str, output: &CommandOutput, tail: &str) -> String {
    let how = match output.end {
        CommandEnd::Exited(status) => format!("exited with status {status}"),
        CommandEnd::Signalled(signal) => format!("was ended by signal {signal}"),
        CommandEnd::TimedOut => format!("did not end within {} s", output.duration.as_secs()),
    };
    format!(
        "Not accepted, and the task is still open: the check `{line}` {how}. Its output ends with:\n\n{tail}\n\nMend the \
         work and call hand_back again, or hand it back with succeeded=false."
    )
}

fn tail(output: &CommandOutput) -> String {
    let skip = output.text.chars().count().saturating_sub(TAIL);
    output.text.chars().skip(skip).collect()
}
