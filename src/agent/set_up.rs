//! What makes a worktree fit for work: files of submodules, copies of ignored files, the setup command.

use super::{Error, after_command, command, outside::Outside, workplace::Workplace};
use crate::{
    domain::{checkout::Isolation, event::EventKind, globs::PathGlobs, id::CommitId, task::Task},
    log::{Journal, crash},
    ports::host::Host,
    repo::Worktree,
};

/// Whether the worktree could be made fit.
pub(super) enum SetUp {
    /// It is, and this is what the user should know.
    Ready(Vec<String>),
    /// The user asked to stop while the setup ran.
    Stopped,
    /// The setup took what was left of the task's time cap.
    OutOfTime,
}

/// Brings into a worktree that stands what its commit does not hold: files of submodules, copies of ignored files,
/// what the setup command makes. What that leaves beside ignored files is taken away again: it is no one's work.
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

/// Takes away what a setup left beside ignored files, and says what came of it in a checkout.
pub(super) fn clear_up(task: &Task, at_ms: u64, worktree: &Worktree, at: &CommitId) -> Result<Option<String>, Error> {
    let changed = worktree.changed_since(at)?;
    if changed.is_empty() {
        return Ok(None);
    }
    let kept = after_command::taken_back(task, at_ms, worktree, at, "setup", false)?;
    let names = changed.iter().take(10).cloned().collect::<Vec<_>>().join(", ");
    Ok(kept.map(|kept| format!("the setup, or someone else, changed {names} while it ran; {kept}")))
}

/// How a setup command ended that did not fail.
enum SetupEnd {
    Done,
    Stopped,
    OutOfTime,
}

/// Runs the setup command and records how it went. A failure is an error: the task rests where it is, and a resume tries
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
