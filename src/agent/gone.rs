//! Ends a task whose repository is gone or has lost its commits: abandons what is open, without looking for anything.

use super::{Error, act::GIVEN_UP, record};
use crate::{
    domain::{
        event::{EventKind, ResultStatus, ToolResult},
        id::IntentId,
        intent::{Intent, Status},
        outcome::{End, Outcome},
        task::Task,
    },
    log::Journal,
    repo::{self, Checkout},
};

/// Whether the repository has the task's commits; a task without any lacks none.
pub fn has_commits(task: &Task, checkout: &Checkout) -> Result<bool, repo::Error> {
    task.head.as_ref().map_or(Ok(true), |head| checkout.has_commit(head))
}

/// Ends a task that the user gave up. `why` says what is gone.
pub fn give_up(journal: &mut Journal, why: &str) -> Result<Outcome, Error> {
    // intents that outlive the completion would wait for the repository forever
    let open = |intent: &&Intent| intent.id != IntentId::TASK && intent.status == Status::Pending;
    let open: Vec<IntentId> = journal.task().intents.iter().filter(open).map(|intent| intent.id).collect();
    for intent in open {
        record::abandoned(journal, intent, why)?;
    }
    if journal.task().ended.is_none() {
        while let Some(call) = journal.task().unanswered().map(|call| call.id.clone()) {
            journal.push(EventKind::ToolResult(ToolResult {
                call,
                status: ResultStatus::NotRun,
                content: GIVEN_UP.to_owned(),
                checkpoint: None,
                seen: None,
            }))?;
        }
        if let Some(turn) = journal.task().last_turn().filter(|turn| !turn.closed).map(|turn| turn.number) {
            journal.push(EventKind::TurnEnded { turn })?;
        }
        journal.push(EventKind::TaskEnded { end: End::Dropped, cause: format!("given up: {why}") })?;
    }
    if journal.task().intent(IntentId::TASK).is_some_and(|own| own.status == Status::Pending) {
        record::done(journal, IntentId::TASK)?;
    }
    journal.commit()?;
    journal.task().outcome().ok_or(Error::Bug("a task was given up that has no outcome"))
}
