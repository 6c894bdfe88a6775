//! Sets up a worktree: files of submodules, copies of ignored files, the setup command.

use super::{Error, after_command, command, outside::Outside, workplace::Workplace};
use crate::{
    domain::{checkout::Isolation, event::EventKind, globs::PathGlobs, id::CommitId, task::Task},
    log::{Journal, crash},
    ports::host::Host,
    repo::Worktree,
};

/// The result of setting up a worktree.
pub(super) enum SetUp {
    /// It is ready; with what the user should know.
    Ready(Vec<String>),
    /// The user asked to stop while the setup ran.
    Stopped,
    /// The setup used up the task's time cap.
    OutOfTime,
}

/// Adds to a worktree what its commit does not contain: files of submodules, copies of ignored files, and what the setup
/// command makes. Other changes by the setup are undone: they are no one's work.
pub(super) async fn set_up(
    journal: &mut Journal,
    place: &Workplace<'_>,
    outside: &Outside<'_>,
    worktree: &Worktree,
    at: &CommitId,
) -> Result<SetUp, Error> {
    let started = &journal.task().started;
    let mut notices = Vec::new();
    let mut fresh = started.workplace.setup.is_none();
    if started.workplace.isolation == Isolation::Worktree {
        notices.extend(worktree.fill_submodules(at)?);
        crash::point("prepare.submodules");
        let globs =
            started.workplace.copy.iter().map(|glob| PathGlobs::picking(glob)).collect::<Result<Vec<_>, _>>()?;
        let copied = worktree.copy_ignored(&globs)?;
        crash::point("prepare.copied");
        fresh &= copied.is_empty();
        if !copied.is_empty() {
            notices.push(format!("copied into the worktree, but not part of the branch: {}", copied.join(", ")));
        } else if !globs.is_empty() {
            notices.push(format!("no ignored file matches worktree.copy ({})", started.workplace.copy.join(", ")));
        }
    }
    if let Some(line) = started.workplace.setup.clone() {
        worktree.note_persons()?;
        let ran = setup(journal, place.host, outside, &line).await;
        after_command::see_to(journal, worktree, at)?;
        match ran? {
            SetupEnd::Done => {}
            SetupEnd::Stopped => return Ok(SetUp::Stopped),
            SetupEnd::OutOfTime => return Ok(SetUp::OutOfTime),
        }
        crash::point("setup.ran");
        notices.extend(clear_up(journal.task(), journal.clock().civil_ms(), worktree, at)?);
        crash::point("prepare.setup");
    }
    worktree.note_ignored(fresh)?;
    Ok(SetUp::Ready(notices))
}

/// Removes what a setup left other than ignored files, and says where a copy is kept, for a checkout.
pub(super) fn clear_up(task: &Task, at_ms: u64, worktree: &Worktree, at: &CommitId) -> Result<Option<String>, Error> {
    let changed = worktree.changed_since(at)?;
    if changed.is_empty() {
        return Ok(None);
    }
    let kept = after_command::taken_back(task, at_ms, worktree, at, "setup", false)?;
    let names = changed.iter().take(10).cloned().collect::<Vec<_>>().join(", ");
    Ok(kept.map(|kept| format!("the setup, or someone else, changed {names} while it ran; {kept}")))
}

/// How a setup command ended, if it did not fail.
enum SetupEnd {
    Done,
    Stopped,
    OutOfTime,
}

/// Runs the setup command and records the result. A failure is an error: the task stays where it is, and a resume tries
/// again.
async fn setup(journal: &mut Journal, host: &dyn Host, outside: &Outside<'_>, line: &str) -> Result<SetupEnd, Error> {
    let command = command::of_project(journal, line);
    journal.commit()?;
    let Some(ran) = command::run(host, outside, &command).await? else { return Ok(SetupEnd::Stopped) };
    let output_tail = ran.tail();
    journal.push(EventKind::SetupRan {
        command: line.to_owned(),
        status: ran.status(),
        output_tail: output_tail.clone(),
        duration_ms: ran.duration_ms(),
    })?;
    journal.commit()?;
    if ran.status() == Some(0) {
        return Ok(SetupEnd::Done);
    }
    if ran.met_time_cap(journal) {
        return Ok(SetupEnd::OutOfTime);
    }
    Err(Error::Setup { command: line.to_owned(), how: ran.how(), output_tail })
}
