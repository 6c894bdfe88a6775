//! What every part of the loop writes to the log: answers to calls, the fate of intents, notices and questions to the user.

use super::{
    Error,
    outside::Outside,
    workplace::{Workplace, existing_worktree},
};
use crate::{
    domain::{
        event::{EventKind, ResultStatus, Seen, ToolResult},
        id::{CallId, CommitId, IntentId},
        intent::IntentKind,
        line::one_line,
        outcome::Pause,
        repository::RepositoryChange,
        task::Task,
    },
    log::Journal,
    repo::{Checkout, Worktree},
};

/// An answer to a call, before it is masked and recorded.
pub(super) struct Answered {
    pub(super) status: ResultStatus,
    pub(super) content: String,
    pub(super) checkpoint: Option<CommitId>,
    pub(super) seen: Option<Seen>,
}

impl Answered {
    /// An answer that changed nothing.
    pub(super) fn new(status: ResultStatus, content: impl Into<String>) -> Self {
        Self { status, content: content.into(), checkpoint: None, seen: None }
    }
}

/// Records the answer to a call, masked.
pub(super) fn answer(
    journal: &mut Journal,
    place: &Workplace<'_>,
    outside: &Outside<'_>,
    call: &CallId,
    answer: Answered,
) -> Result<(), Error> {
    if let Some(worktree) = &place.worktree {
        repairs(journal, worktree)?;
    }
    let content = with_note_on_commits(journal.task(), answer.content);
    journal.push(EventKind::ToolResult(ToolResult {
        call: call.clone(),
        status: answer.status,
        content: outside.mask.apply(&content).into_owned(),
        checkpoint: answer.checkpoint,
        seen: answer.seen,
    }))?;
    Ok(())
}

/// What a model is told once after it made commits or switched branches.
const COMMITS: &str = "Note: nisse commits for you, after every call that changes files. Your branch and HEAD were put \
                       back to where nisse had them; the files are as you left them, and they are what counts. Leave \
                       committing, amending, rebasing and switching branches alone.";

/// The answer to a call, with that note if it is due.
fn with_note_on_commits(task: &Task, mut answer: String) -> String {
    let was_told = || task.turns.iter().flat_map(|turn| &turn.results).any(|result| result.content.contains(COMMITS));
    if task.changes.iter().any(RepositoryChange::is_of_branch) && !was_told() {
        answer = format!("{answer}\n{COMMITS}");
    }
    answer
}

/// Records what was restored: the link between the worktree and its branch, and what a command did to the repository.
pub(super) fn repairs(journal: &mut Journal, worktree: &Worktree) -> Result<(), Error> {
    let what = worktree.take_repairs();
    if !what.is_empty() {
        journal.push(EventKind::WorktreeRepaired { what })?;
    }
    let changes = worktree.take_changes();
    if !changes.is_empty() {
        journal.push(EventKind::RepositoryChanged { changes })?;
    }
    Ok(())
}

/// Makes an intent durable, together with everything that is staged.
pub(super) fn open(journal: &mut Journal, kind: IntentKind) -> Result<IntentId, Error> {
    let id = IntentId(u32::try_from(journal.task().intents.len()).unwrap_or(u32::MAX));
    journal.push(EventKind::IntentOpened { intent: id, kind })?;
    journal.commit()?;
    Ok(id)
}

/// The effect happened.
pub(super) fn done(journal: &mut Journal, intent: IntentId) -> Result<(), Error> {
    journal.push(EventKind::IntentSettled { intent, cause: None })?;
    Ok(())
}

/// Recovery found that the effect happened, or did the rest of it.
pub(super) fn settled(journal: &mut Journal, intent: IntentId, found: &str) -> Result<(), Error> {
    journal.push(EventKind::IntentSettled { intent, cause: Some(found.to_owned()) })?;
    Ok(())
}

/// The effect did not happen, or was undone.
pub(super) fn abandoned(journal: &mut Journal, intent: IntentId, cause: &str) -> Result<(), Error> {
    journal.push(EventKind::IntentAbandoned { intent, cause: cause.to_owned() })?;
    Ok(())
}

/// The call was refused after its intent was opened: nothing was done.
pub(super) fn refused(
    journal: &mut Journal,
    place: &Workplace<'_>,
    outside: &Outside<'_>,
    intent: IntentId,
    call: &CallId,
    text: String,
) -> Result<(), Error> {
    answer(journal, place, outside, call, Answered::new(ResultStatus::Refused, text))?;
    abandoned(journal, intent, "refused: nothing was done")
}

/// What recovery found and did, or what else the user should know.
pub(super) fn recovered(journal: &mut Journal, cause: impl Into<String>) -> Result<(), Error> {
    journal.push(EventKind::Recovered { cause: cause.into(), checkpoint: None })?;
    Ok(())
}

/// The same, if there is something to say.
pub(super) fn notice(journal: &mut Journal, cause: Option<String>) -> Result<(), Error> {
    cause.map_or(Ok(()), |cause| recovered(journal, cause))
}

/// Whether files changed that no call of the task changed. If so, records that; recovery comes next, and asks the user.
pub(super) fn found_changed(journal: &mut Journal, paths: Vec<String>) -> Result<bool, Error> {
    let any = !paths.is_empty();
    if any {
        journal.push(EventKind::FilesChanged { paths })?;
    }
    Ok(any)
}

/// Pauses with a question to the user, and notes the state of the files.
pub(super) fn gate(journal: &mut Journal, checkout: &Checkout, cause: &str) -> Result<(), Error> {
    if let Some(worktree) = existing_worktree(journal.task(), checkout)? {
        worktree.note_asked()?;
    }
    journal.push(EventKind::TaskPaused { pause: Pause::Gated, cause: one_line(cause) })?;
    Ok(())
}

/// Says which files were separated from their hard links.
pub(super) fn torn(paths: &[String]) -> Option<String> {
    (!paths.is_empty())
        .then(|| format!("rewritten, so no longer the same files as their hard links: {}", paths.join(", ")))
}

/// The most paths in a text for people.
const MOST: usize = 10;

/// The first of these paths, and how many more there are.
pub(super) fn first_of(paths: &[String]) -> String {
    let more = if paths.len() > MOST { format!(" and {} more", paths.len() - MOST) } else { String::new() };
    format!("{}{more}", paths.iter().take(MOST).cloned().collect::<Vec<_>>().join(", "))
}
