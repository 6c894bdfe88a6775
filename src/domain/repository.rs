//! What a command of a task did to the repository beside its files, and what became of it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::CommitId;

/// Something in the repository that is not as it was before a command of the task, or as the task needs it. It need not be
/// the command's doing: its person may have been at work at the same time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RepositoryChange {
    /// The task's branch was elsewhere, and was put back.
    BranchMoved {
        /// The branch.
        branch: String,
        /// Where it was; none if it was gone.
        found: Option<CommitId>,
        /// The ref under which that is kept; none if the branch was gone.
        kept: Option<String>,
    },
    /// HEAD of the task's worktree was not on the task's branch, and was put back.
    HeadMoved {
        /// The commit that it was at; none if that could not be read.
        found: Option<CommitId>,
        /// The branch that it was on; none if it was detached.
        branch: Option<String>,
        /// The ref under which the commit is kept; none if the task's branch holds it anyway.
        kept: Option<String>,
    },
    /// What git had left half done in the task's worktree was ended: its state files are gone, the files are as they were.
    OperationEnded {
        /// `a rebase`, `a merge`.
        operation: String,
        /// The ref under which changes are kept that git had put aside for its end; none if there were none.
        kept: Option<String>,
    },
    /// A commit that was found so is kept; that it was, is not told yet.
    Kept {
        /// The commit.
        found: CommitId,
        /// The ref.
        kept: String,
    },
}

impl RepositoryChange {
    /// Whether a model made commits or moved between branches where nisse does that.
    #[must_use]
    pub fn is_of_branch(&self) -> bool {
        match self {
            Self::BranchMoved { .. } | Self::HeadMoved { .. } | Self::OperationEnded { .. } | Self::Kept { .. } => true,
        }
    }

    /// The ref under which something is kept.
    #[must_use]
    pub fn kept(&self) -> Option<&str> {
        match self {
            Self::BranchMoved { kept, .. } | Self::HeadMoved { kept, .. } | Self::OperationEnded { kept, .. } => {
                kept.as_deref()
            }
            Self::Kept { kept, .. } => Some(kept),
        }
    }
}

impl fmt::Display for RepositoryChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BranchMoved { branch, found, kept } => {
                match found {
                    Some(found) => write!(f, "the branch {branch} had been moved to {}", found.short())?,
                    None => write!(f, "the branch {branch} had been deleted")?,
                }
                f.write_str("; it is back where the task had it")?;
                kept_at(f, kept.as_deref())
            }
            Self::HeadMoved { found, branch, kept } => {
                f.write_str("HEAD of the worktree had been moved")?;
                match (branch, found) {
                    (Some(branch), _) => write!(f, " to {branch}")?,
                    (None, Some(found)) => write!(f, " to {}", found.short())?,
                    (None, None) => {}
                }
                f.write_str("; it is back on the task's branch")?;
                kept_at(f, kept.as_deref())
            }
            Self::OperationEnded { operation, kept } => {
                write!(f, "{operation} was left half done in the worktree, and was ended with the files as they are")?;
                kept_at(f, kept.as_deref())
            }
            Self::Kept { found, kept } => {
                write!(
                    f,
                    "branch or HEAD of the worktree had been moved; {} was found there, and is kept at {kept}",
                    found.short()
                )
            }
        }
    }
}

fn kept_at(f: &mut fmt::Formatter<'_>, kept: Option<&str>) -> fmt::Result {
    kept.map_or(Ok(()), |kept| write!(f, "; what was found there is kept at {kept}"))
}
