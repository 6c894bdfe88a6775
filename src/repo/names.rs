//! The names that are a task's own: of its branch, of its refs below `refs/nisse`, and the words that its worktree is locked
//! with.

use crate::domain::id::{CommitId, TaskId};

/// The longest branch name, in bytes.
const LONGEST: usize = 60;

/// The branch of a task: `nisse/<short id>-<words of the brief>`; a legal ref in ASCII, at most 60 bytes.
#[must_use]
pub fn branch_name(task: TaskId, brief: &str) -> String {
    let mut name = format!("nisse/{}", task.short());
    let words = brief.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut any = false;
    for word in words {
        let room = LONGEST - name.len() - 1;
        if word.len() > room {
            if !any {
                name.push('-');
                name.push_str(&word[..room].to_ascii_lowercase());
                any = true;
            }
            break;
        }
        name.push('-');
        name.push_str(&word.to_ascii_lowercase());
        any = true;
        if name.len() + 2 > LONGEST {
            break;
        }
    }
    if !any {
        name.push_str("-task");
    }
    name
}

/// Where a discarded task's commits are kept until they are pruned.
#[must_use]
pub fn discarded_ref(task: TaskId) -> String {
    format!("refs/nisse/discarded/{task}")
}

/// Where what a worktree held is kept; `number` tells the times apart.
#[must_use]
pub fn found_ref(task: TaskId, number: u64) -> String {
    format!("refs/nisse/found/{task}/{number}")
}

/// The same for what is kept without a person's decision, by what it is: `setup`, and `setup-2` where that holds
/// something else already.
pub(super) fn found_as(task: TaskId, what: &str, number: usize) -> String {
    let more = if number == 1 { String::new() } else { format!("-{number}") };
    format!("refs/nisse/found/{task}/{what}{more}")
}

/// Where is kept what a worktree held when a person was asked about it.
pub(super) fn asked_ref(task: TaskId) -> String {
    format!("refs/nisse/found/{task}/asked")
}

/// Where the checkout's snapshot is kept.
#[must_use]
pub fn before_apply_ref(task: TaskId) -> String {
    format!("refs/nisse/before-apply/{task}")
}

/// The ref that keeps a checkout as it was before an earlier `nisse apply` of the same task.
pub(super) fn earlier_before_apply(task: TaskId, kept: &CommitId) -> String {
    format!("refs/nisse/found/{task}/before-apply-{}", kept.short())
}

/// Where the plan of `nisse apply` is pinned.
pub(super) fn plan_ref(task: TaskId) -> String {
    format!("refs/nisse/plan/{task}")
}

/// The words that a task's worktree is locked with.
pub(super) fn lock_reason(task: TaskId) -> String {
    format!("nisse {task}")
}

/// The same while it is made again: a killed attempt leaves half the files, and they are not somebody's deletions.
pub(super) fn unfinished_lock_reason(task: TaskId) -> String {
    format!("{} (being made again)", lock_reason(task))
}

/// Whether a worktree's entry is locked with these words in the task's name.
pub(super) fn is_lock_reason_of(task: TaskId, lock: &str) -> bool {
    lock == lock_reason(task) || lock == unfinished_lock_reason(task)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> TaskId {
        "01993c5e-7b1a-7000-8000-0123456789ab".parse().unwrap()
    }

    #[test]
    fn a_branch_is_named_after_the_brief() {
        assert_eq!(branch_name(task(), "Fix the  off-by-one!"), "nisse/0123456789ab-fix-the-off-by-one");
        assert_eq!(branch_name(task(), "исправь"), "nisse/0123456789ab-task");
        assert_eq!(branch_name(task(), ""), "nisse/0123456789ab-task");
    }

    #[test]
    fn a_branch_name_is_bounded_whatever_the_brief() {
        for length in 0..120 {
            for brief in ["a".repeat(length), "ab ".repeat(length), format!("{} b c", "x".repeat(length))] {
                let name = branch_name(task(), &brief);
                assert!(name.len() <= LONGEST, "{name}");
                assert!(!name.ends_with('-') && !name.contains("--"), "{name}");
            }
        }
    }
}
