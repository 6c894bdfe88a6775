//! How far the work of a finished task has been applied to the checkout.

use super::{
    id::{CommitId, IntentId},
    intent::{Intent, IntentKind, Manner, Status, UserCommit},
    task::Task,
};

/// How far a task's work has been applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ApplyState {
    /// Not applied, or undone.
    NotApplied,
    /// This intent began to apply it; whether it finished is unknown.
    Applying(IntentId),
    /// This intent began to undo it; whether it finished is unknown.
    PuttingBack(IntentId),
    /// The files of `plan` are in the checkout; the user's commit is still to be made.
    Uncommitted {
        /// The plan.
        plan: CommitId,
        /// The task's commit that was applied.
        of: CommitId,
        /// As the user asked for it.
        manner: Manner,
    },
    /// The work is in commits of the user's.
    Committed {
        /// The last commit of the task that they hold.
        of: CommitId,
        /// As the user asked for it.
        manner: Manner,
    },
    /// The files of `plan` are in the checkout, and no commit was asked for.
    Applied {
        /// The plan.
        plan: CommitId,
        /// Whether the branch was fast-forwarded.
        advanced: bool,
    },
}

impl Task {
    /// How far its work has been applied, by the intents since it was last undone.
    #[must_use]
    pub fn apply_state(&self) -> ApplyState {
        let put_back = |intent: &Intent| matches!(intent.kind, IntentKind::PutBack { .. });
        if let Some(open) = self.pending_intents().find(|intent| put_back(intent)) {
            return ApplyState::PuttingBack(open.id);
        }
        let since = self.intents.iter().rposition(|one| put_back(one) && one.status == Status::Settled);
        let current = self.intents.get(since.map_or(0, |at| at + 1)..).unwrap_or_default();
        let mut state = ApplyState::NotApplied;
        for intent in current {
            match intent.status {
                Status::Pending if intent.kind.applies() => return ApplyState::Applying(intent.id),
                Status::Settled => state = after(&intent.kind).unwrap_or(state),
                Status::Pending | Status::Abandoned => {}
            }
        }
        state
    }
}

/// What the state is after a step that was done; none for what does not change it.
fn after(kind: &IntentKind) -> Option<ApplyState> {
    if let IntentKind::UserCommit(UserCommit { of, manner, .. }) = kind {
        return Some(ApplyState::Committed { of: of.clone(), manner: *manner });
    }
    let IntentKind::Apply { plan, of, manner, advance, .. } = kind else { return None };
    let (plan, of, manner) = (plan.clone(), of.clone(), *manner);
    Some(match manner {
        Manner::Files => ApplyState::Applied { plan, advanced: advance.is_some() },
        Manner::Each | Manner::Squash | Manner::Merge => ApplyState::Uncommitted { plan, of, manner },
    })
}
