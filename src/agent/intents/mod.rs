//! The durable effects, one per file: how it is done, and how it is recovered after a crash. What may follow what is in
//! [`crate::domain::intent`] and `domain/legal`.

pub mod apply;
pub(super) mod check;
pub(super) mod clean_up;
pub(super) mod command;
pub(super) mod discard;
pub(super) mod edit;
pub(super) mod in_place;
mod removal;
pub(super) mod squash;

use super::{Error, after_command, decisions, outside::Outside, record, workplace::Workplace};
use crate::{
    domain::intent::{Intent, IntentKind},
    log::Journal,
};

/// Recovers an effect that a dead process began.
pub(super) async fn recover(
    journal: &mut Journal,
    place: &mut Workplace<'_>,
    outside: &Outside<'_>,
    intent: &Intent,
) -> Result<(), Error> {
    let id = intent.id;
    if matches!(intent.kind, IntentKind::Command { .. } | IntentKind::Check { .. }) {
        after_command::see_to_again(journal, place.checkout)?;
    }
    if let Some(call) = intent.kind.call() {
        if journal.task().unanswered().is_none_or(|open| open.id != *call) {
            return record::settled(journal, id, "its call was already answered");
        }
        if journal.task().is_given_up() {
            return decisions::give_call_up(journal, place, id);
        }
    }
    match &intent.kind {
        IntentKind::Task => record::settled(journal, id, "the task's end was already in the log"),
        IntentKind::FileEdit { call, path, before, after, answer } => {
            let left = edit::Left { call, path, before: before.as_ref(), after, answer };
            edit::recover(journal, place, outside, id, &left).await
        }
        IntentKind::Command { call, command } => command::recover(journal, place, outside, id, call, command).await,
        IntentKind::Check { .. } => check::recover(journal, place, outside, id).await,
        IntentKind::Squash { from, to } => squash::recover(journal, place, outside, id, (from, to)).await,
        IntentKind::Discard { tip, .. } => discard::carry_out(journal, place, id, Some("the branch is discarded"), tip),
        IntentKind::CleanUp => clean_up::carry_out(journal, place, id, Some("the worktree is gone")),
        IntentKind::CheckoutSwitch { way, snapshot } => in_place::recover(journal, place, id, way, snapshot),
        IntentKind::Apply { .. } | IntentKind::UserCommit(_) | IntentKind::PutBack { .. } => {
            apply::recover(journal, place.checkout, id)
        }
    }
}
