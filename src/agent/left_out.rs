//! Names the files that are removed with a worktree and are in no commit.

use super::{
    Error, record,
    workplace::{Workplace, existing_worktree},
};
use crate::{
    domain::{checkout::Isolation, event::EventKind, line::one_line},
    log::Journal,
};

/// The most ignored files that are named.
const NAMED: usize = 20;

/// Records the files that are removed with the worktree and are in no commit. A failure to list them does not change the
/// outcome.
pub(super) fn name(journal: &mut Journal, place: &Workplace<'_>) -> Result<(), Error> {
    let task = journal.task();
    let told = task.left_out.is_some() || task.pending_intents().next().is_some();
    if told || task.started.workplace.isolation != Isolation::Worktree {
        return Ok(());
    }
    let listed = match &place.worktree {
        Some(worktree) => worktree.ignored_work().map_err(Error::from),
        // given up, it was not opened; gone, nothing is in it
        None => existing_worktree(task, place.checkout)
            .and_then(|found| Ok(found.map(|worktree| worktree.ignored_work()).transpose()?.unwrap_or_default())),
    };
    match listed {
        Ok(paths) if paths.is_empty() => {}
        Ok(mut paths) => {
            paths.truncate(NAMED);
            journal.push(EventKind::LeftOut { paths })?;
        }
        Err(error) => {
            let cause = one_line(&format!("could not list the ignored files that go with the worktree: {error}"));
            record::recovered(journal, cause)?;
        }
    }
    Ok(())
}
