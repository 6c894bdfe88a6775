//! What a command of a task did to the repository other than to files, and how nisse handled it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::CommitId;

/// A change in the repository during a command of the task, or something that is not as the task needs it. The user may
/// have made it, not the command.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RepositoryChange {
    /// The task's branch was moved or deleted, and was restored.
    BranchMoved {
        /// The branch.
        branch: String,
        /// Where it was; none if it was gone.
        found: Option<CommitId>,
        /// The ref under which that is kept; none if the branch was gone.
        kept: Option<String>,
    },
    /// HEAD of the task's worktree was not on the task's branch, and was moved back.
    HeadMoved {
        /// The commit that it was at; none if that could not be read.
        found: Option<CommitId>,
        /// The branch that it was on; none if it was detached.
        branch: Option<String>,
        /// The ref under which the commit is kept; none if the task's branch holds it anyway.
        kept: Option<String>,
    },
    /// An unfinished git operation in the task's worktree was ended: its state files are gone, the files are unchanged.
    OperationEnded {
        /// `a rebase`, `a merge`.
        operation: String,
        /// The ref that keeps changes which git had stashed for its end; none if there were none.
        kept: Option<String>,
    },
    /// A commit that was found this way is kept, which no other event says.
    Kept {
        /// The commit.
        found: CommitId,
        /// The ref.
        kept: String,
    },
    /// A branch, a tag, or another ref of the user's was gone, and was restored.
    RefRestored {
        /// Its full name.
        name: String,
        /// Where it was.
        at: CommitId,
    },
    /// A ref of the user's was gone, and could not be restored.
    RefGone {
        /// Its full name.
        name: String,
        /// Where it was.
        at: CommitId,
        /// The ref under which that is kept.
        kept: String,
    },
    /// A ref of the user's was moved, and was left there.
    RefMoved {
        /// Its full name.
        name: String,
        /// Where it was.
        from: CommitId,
        /// Where it is.
        to: CommitId,
        /// The ref under which the old place is kept; none if the new one holds it.
        kept: Option<String>,
    },
    /// HEAD of the user's checkout followed a renamed branch, and was left there; the branch was restored.
    CheckoutHeadMoved {
        /// The branch that it was on.
        from: String,
        /// The branch that it is on.
        to: String,
    },
    /// New refs, which were left.
    RefsAdded {
        /// Their full names.
        names: Vec<String>,
    },
    /// Remote-tracking refs were added, moved or removed, and were left so.
    RemoteRefsChanged {
        /// Their full names.
        names: Vec<String>,
    },
    /// Entries of the stash were gone, and were restored.
    StashRestored {
        /// Their messages, newest first.
        entries: Vec<String>,
    },
    /// New entries of the stash, which were left.
    StashAdded {
        /// Their messages, newest first.
        entries: Vec<String>,
    },
    /// Special files that could not be moved to another file system were lost with the tree.
    NotKept {
        /// Their paths.
        paths: Vec<String>,
    },
    /// A configuration file of the repository changed, and was left so.
    ConfigurationChanged {
        /// Its path.
        file: String,
    },
}

/// The most names in one sentence.
const NAMED: usize = 10;

impl RepositoryChange {
    /// Whether the branch or HEAD of the worktree was changed, which is nisse's to do.
    #[must_use]
    pub fn is_of_branch(&self) -> bool {
        match self {
            Self::BranchMoved { .. } | Self::HeadMoved { .. } | Self::OperationEnded { .. } | Self::Kept { .. } => true,
            Self::RefRestored { .. }
            | Self::RefGone { .. }
            | Self::RefMoved { .. }
            | Self::CheckoutHeadMoved { .. }
            | Self::RefsAdded { .. }
            | Self::RemoteRefsChanged { .. }
            | Self::StashRestored { .. }
            | Self::StashAdded { .. }
            | Self::NotKept { .. }
            | Self::ConfigurationChanged { .. } => false,
        }
    }

    /// Whether something of the user's was restored, which the model must know.
    #[must_use]
    pub fn is_put_back(&self) -> bool {
        match self {
            Self::RefRestored { .. } | Self::RefGone { .. } | Self::StashRestored { .. } => true,
            Self::BranchMoved { .. }
            | Self::HeadMoved { .. }
            | Self::OperationEnded { .. }
            | Self::Kept { .. }
            | Self::RefMoved { .. }
            | Self::CheckoutHeadMoved { .. }
            | Self::RefsAdded { .. }
            | Self::RemoteRefsChanged { .. }
            | Self::StashAdded { .. }
            | Self::NotKept { .. }
            | Self::ConfigurationChanged { .. } => false,
        }
    }

    /// The ref under which something is kept.
    #[must_use]
    pub fn kept(&self) -> Option<&str> {
        match self {
            Self::BranchMoved { kept, .. } | Self::HeadMoved { kept, .. } | Self::OperationEnded { kept, .. } => {
                kept.as_deref()
            }
            Self::RefMoved { kept, .. } => kept.as_deref(),
            Self::Kept { kept, .. } | Self::RefGone { kept, .. } => Some(kept),
            Self::RefRestored { .. }
            | Self::CheckoutHeadMoved { .. }
            | Self::RefsAdded { .. }
            | Self::RemoteRefsChanged { .. }
            | Self::StashRestored { .. }
            | Self::StashAdded { .. }
            | Self::NotKept { .. }
            | Self::ConfigurationChanged { .. } => None,
        }
    }
}

impl fmt::Display for RepositoryChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BranchMoved { branch, found, kept } => {
                match found {
                    Some(found) => write!(f, "the branch {branch} was moved to {}", found.short())?,
                    None => write!(f, "the branch {branch} was deleted")?,
                }
                f.write_str("; nisse restored it")?;
                kept_at(f, kept.as_deref())
            }
            Self::HeadMoved { found, branch, kept } => {
                f.write_str("HEAD of the worktree was moved")?;
                match (branch, found) {
                    (Some(branch), _) => write!(f, " to {branch}")?,
                    (None, Some(found)) => write!(f, " to {}", found.short())?,
                    (None, None) => {}
                }
                f.write_str("; nisse moved it back to the task's branch")?;
                kept_at(f, kept.as_deref())
            }
            Self::OperationEnded { operation, kept } => {
                write!(
                    f,
                    "{operation} was left unfinished in the worktree; nisse ended it and left the files as they are"
                )?;
                kept_at(f, kept.as_deref())
            }
            Self::Kept { found, kept } => {
                write!(f, "the branch or HEAD of the worktree was moved to {}, which is kept at {kept}", found.short())
            }
            Self::RefRestored { name, at } => {
                write!(f, "{} was gone after a command, and is back at {}", plain(name), at.short())
            }
            Self::RefGone { name, at, kept } => {
                write!(
                    f,
                    "{} was gone after a command, and could not be put back; {} is kept at {kept}",
                    plain(name),
                    at.short()
                )
            }
            Self::RefMoved { name, from, to, kept } => {
                write!(
                    f,
                    "{} moved from {} to {} while a command ran; nisse left it there; to move it back: {}",
                    plain(name),
                    from.short(),
                    to.short(),
                    way_back(name, from)
                )?;
                kept_at(f, kept.as_deref())
            }
            Self::CheckoutHeadMoved { from, to } => {
                write!(
                    f,
                    "the branch {from}, on which your checkout is, was renamed to {to} while a command ran; nisse left it so; to \
                     move HEAD back: `git symbolic-ref HEAD refs/heads/{from}`"
                )
            }
            Self::RefsAdded { names } => write!(f, "new since a command ran: {}", first_refs(names)),
            Self::RemoteRefsChanged { names } => {
                write!(f, "remote-tracking branches changed while a command ran: {}", first_refs(names))
            }
            Self::StashRestored { entries } => {
                write!(
                    f,
                    "entries of the stash were gone after a command, and are back: {}; the command may have brought what they \
                     hold into the task's files",
                    entries.join(", ")
                )
            }
            Self::StashAdded { entries } => {
                write!(f, "new entries of the stash since a command ran: {}", entries.join(", "))
            }
            Self::NotKept { paths } => {
                write!(f, "special files were lost, because no commit can hold them: {}", paths.join(", "))
            }
            Self::ConfigurationChanged { file } => write!(f, "{file} changed while a command ran; nisse left it so"),
        }
    }
}

/// The command that moves a ref. For a branch, one that leaves the files and the index of a checkout on it alone.
fn way_back(name: &str, to: &CommitId) -> String {
    match name.strip_prefix("refs/heads/") {
        Some(branch) => format!("`git branch -f {branch} {to}` (on that branch `git reset --keep {to}`)"),
        None => format!("`git update-ref {name} {to}`"),
    }
}

/// A ref's name for people.
fn plain(name: &str) -> String {
    match name.strip_prefix("refs/heads/") {
        Some(branch) => format!("the branch {branch}"),
        None => name.strip_prefix("refs/tags/").map_or_else(|| name.to_owned(), |tag| format!("the tag {tag}")),
    }
}

/// The first of these refs, and how many more there are.
fn first_refs(names: &[String]) -> String {
    let more = if names.len() > NAMED { format!(" and {} more", names.len() - NAMED) } else { String::new() };
    format!("{}{more}", names.iter().take(NAMED).map(|name| plain(name)).collect::<Vec<_>>().join(", "))
}

fn kept_at(f: &mut fmt::Formatter<'_>, kept: Option<&str>) -> fmt::Result {
    kept.map_or(Ok(()), |kept| write!(f, "; a copy of what was there is kept at {kept}"))
}
