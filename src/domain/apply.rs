//! How the work of a task that was handed back comes into the checkout.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    id::{CommitId, IntentId},
    intent::{Intent, IntentKind, Status},
    task::Task,
};

/// What becomes of the work in the checkout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Manner {
    /// Changed files, uncommitted; or the branch fast-forwarded, where that is all there is to do.
    Files,
    /// Each commit of the task becomes one of the person's.
    Each,
    /// One commit of the person's.
    Squash,
    /// A merge commit of the person's.
    Merge,
}

/// A branch of the person's that is fast-forwarded once its files are there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Advance {
    /// The branch, checked out.
    pub branch: String,
    /// Where it is.
    pub from: CommitId,
    /// Where it goes.
    pub to: CommitId,
}

/// A commit that is to be the person's, with their hooks and signature.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Landing {
    /// Where HEAD is; none before the first commit.
    pub parent: Option<CommitId>,
    /// The task's commit that it brings.
    pub of: CommitId,
    /// The files of this plan are committed; none for a merge.
    pub plan: Option<CommitId>,
    /// The second parent of a merge.
    pub merge: Option<CommitId>,
    /// The message.
    pub message: String,
    /// As the person asked for it.
    pub manner: Manner,
}

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
