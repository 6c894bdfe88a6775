//! How the work of a task that was handed back comes into the checkout.

use super::{
    id::{CommitId, IntentId},
    intent::{Intent, IntentKind, Landing, Manner, Status},
    task::Task,
};

/// How far bringing the work home has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Nothing is in the checkout, or it was put back.
    Apart,
    /// It was begun, and its end is not known.
    Begun(IntentId),
    /// It is being put back, and the end of that is not known.
    PuttingBack(IntentId),
    /// The files of `plan` are in the checkout, and the person's commit is still to be made.
    Uncommitted {
        /// The plan.
        plan: CommitId,
        /// The task's commit that it brings.
        of: CommitId,
        /// As the person asked for it.
        manner: Manner,
    },
    /// Commits of the task have become the person's, in this manner.
    Committed {
        /// The last of them.
        of: CommitId,
        /// As the person asked for it.
        manner: Manner,
    },
    /// The files of `plan` are in the checkout, and more was not asked for.
    Applied {
        /// The plan.
        plan: CommitId,
        /// A branch was fast-forwarded.
        advanced: bool,
    },
}

impl Task {
    /// How far bringing its work home has come: told by the intents since it was last put back.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let put_back = |intent: &Intent| matches!(intent.kind, IntentKind::PutBack { .. });
        if let Some(open) = self.pending_intents().find(|intent| put_back(intent)) {
            return Standing::PuttingBack(open.id);
        }
        let since = self.intents.iter().rposition(|one| put_back(one) && one.status == Status::Settled);
        let current = self.intents.get(since.map_or(0, |at| at + 1)..).unwrap_or_default();
        let mut standing = Standing::Apart;
        for intent in current {
            match (&intent.kind, intent.status) {
                (IntentKind::Apply { .. } | IntentKind::Land(_), Status::Pending) => {
                    return Standing::Begun(intent.id);
                }
                (IntentKind::Apply { plan, manner: Manner::Files, advance, .. }, Status::Settled) => {
                    standing = Standing::Applied { plan: plan.clone(), advanced: advance.is_some() };
                }
                (IntentKind::Apply { plan, of, manner, .. }, Status::Settled) => {
                    standing = Standing::Uncommitted { plan: plan.clone(), of: of.clone(), manner: *manner };
                }
                (IntentKind::Land(Landing { of, manner, .. }), Status::Settled) => {
                    standing = Standing::Committed { of: of.clone(), manner: *manner };
                }
                (IntentKind::Apply { .. } | IntentKind::Land(_), Status::Abandoned)
                | (
                    IntentKind::Task
                    | IntentKind::FileEdit { .. }
                    | IntentKind::Command { .. }
                    | IntentKind::Check { .. }
                    | IntentKind::Squash { .. }
                    | IntentKind::Discard { .. }
                    | IntentKind::CleanUp
                    | IntentKind::CheckoutSwitch { .. }
                    | IntentKind::PutBack { .. },
                    Status::Pending | Status::Settled | Status::Abandoned,
                ) => {}
            }
        }
        standing
    }
}
