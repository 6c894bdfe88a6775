//! What somebody else changed in a checkout while a task worked in it: kept, never thrown away.

use std::path::PathBuf;

use super::{
    Error, Worktree,
    checkpoint::{Author, commit_tree},
    git::LONG,
    roll_back::found_as,
    staging::{Staging, paths, scratch, shown},
};
use crate::domain::id::CommitId;

/// What somebody else changed in a checkout while a task worked in it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ByOthers {
    /// The paths.
    pub paths: Vec<String>,
    /// The refs under which their state is kept.
    pub kept: Vec<String>,
    /// The ref that keeps the unfinished work of before the task, where it could not be put back.
    pub unfinished: Option<String>,
}

impl Worktree {
    /// The files that the checkout is to have again: those of the snapshot, save where somebody else changed what the
    /// task did not touch; and what somebody else changed, which is kept under refs.
    pub(super) fn files_to_give_back(&self, snapshot: &CommitId) -> Result<(CommitId, ByOthers), Error> {
        let nothing = || Ok((snapshot.clone(), ByOthers::default()));
        let Some(tip) = self.tip()? else { return nothing() };
        let Some(found) = self.hold(&tip, 0)? else { return nothing() };
        let git = self.git()?;
        let between = |from: &CommitId, to: &CommitId| {
            let call = git.call(["diff-tree", "-r", "-z", "--name-only", "--no-renames", &from.0, &to.0]);
            Ok::<_, Error>(paths(call.limit(LONG).parts()?))
        };
        let of_task = between(&tip, snapshot)?;
        // what is as the snapshot has it was given back by an attempt that was cut off
        let differs = between(snapshot, &found)?;
        let mut of_others = between(&tip, &found)?;
        of_others.retain(|path| differs.contains(path));
        let (at_risk, left): (Vec<_>, Vec<_>) = of_others.iter().cloned().partition(|path| of_task.contains(path));

        let mut kept = Vec::new();
        let mut new = of_others.clone();
        for number in 1.. {
            // one that was cut off, with more changed after it, keeps that too
            let name = found_as(self.branch().task, "by-others", number);
            let Some(earlier) = self.checkout().store().reference(&name)? else {
                if !new.is_empty() {
                    self.checkout().git().call(["update-ref", &name, &found.0]).run()?;
                    kept.push(name);
                }
                break;
            };
            // what stays in the checkout is safe there
            let since = between(&earlier, &found)?;
            new.retain(|path| at_risk.contains(path) && since.contains(path));
            let differs = between(snapshot, &earlier)?;
            of_others.extend(between(&tip, &earlier)?.into_iter().filter(|path| differs.contains(path)));
            kept.push(name);
        }
        of_others.sort_unstable();
        of_others.dedup();
        let by_others = ByOthers { paths: of_others.iter().map(|path| shown(path)).collect(), kept, unfinished: None };
        if left.is_empty() {
            return Ok((snapshot.clone(), by_others));
        }

        let scratch = scratch()?;
        let index = scratch.path().join("index");
        let staging = Staging { git: &git, root: self.path(), index: Some(&index) };
        git.call(["read-tree", &snapshot.0]).index(Some(&index)).limit(LONG).run()?;
        staging.add(&left)?;
        let tree = staging.write_tree()?;
        let author = Author { name: "nisse", email: "nisse@localhost", at_ms: 0 };
        let files = commit_tree(&git, &tree, &[snapshot], "nisse: the files as they are given back\n", &author)?;
        Ok((files, by_others))
    }

    /// A commit of the files as they are now, on top of `head`, where they differ from it; no ref and no index moves. What
    /// a commit cannot hold (a pipe) is left out.
    pub fn hold(&self, head: &CommitId, at_ms: u64) -> Result<Option<CommitId>, Error> {
        self.verify()?;
        let git = self.git()?;
        self.plain_index(&git, head)?;
        let scratch = scratch()?;
        let index = scratch.path().join("index");
        git.call(["read-tree", &head.0]).index(Some(&index)).limit(LONG).run()?;
        git.call(["update-index", "-q", "--refresh"]).index(Some(&index)).limit(LONG).also_fine(1).run()?;
        let staging = Staging { git: &git, root: self.path(), index: Some(&index) };
        let changes = self.changes(&git, Some(&index))?;
        let fits = |path: &PathBuf| {
            let found = self.path().join(path).symlink_metadata();
            // a directory in the place of a tracked file: that is gone
            found.map_or(true, |found| found.is_file() || found.is_symlink() || found.is_dir())
        };
        staging.add(&changes.tracked.into_iter().chain(changes.untracked).filter(fits).collect::<Vec<_>>())?;
        let tree = staging.write_tree()?;
        if self.store().tree(head)? == tree {
            return Ok(None);
        }
        let author = Author { name: "nisse", email: "nisse@localhost", at_ms };
        let message = format!("nisse: files as they were found\n\nNisse-Task: {}\n", self.branch().task);
        commit_tree(&git, &tree, &[head], &message, &author).map(Some)
    }

    /// Makes the files those that were held, and the index that of `head`.
    pub fn restore_held(&self, files: &CommitId, head: &CommitId) -> Result<(), Error> {
        self.restore(files)?;
        let git = self.git()?;
        git.call(["read-tree", "--reset", &head.0]).limit(LONG).run()?;
        git.call(["update-index", "-q", "--refresh"]).limit(LONG).also_fine(1).run().map(drop)
    }
}
