//! What is there of a plan: seen by the files and by HEAD, never remembered.

use std::{collections::BTreeSet, path::PathBuf};

use super::{
    Checkout, Error,
    commit::is_snapshot_of,
    disk::{self, Content, Found},
    paths::path_text,
};
use crate::domain::id::{CommitId, TaskId};

/// How many files are held at once.
const BATCH: usize = 64;

/// The paths of a plan, by how they are on the disk.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct PlanFiles {
    /// As they were to be.
    pub brought: BTreeSet<PathBuf>,
    /// As they were before.
    pub undone: BTreeSet<PathBuf>,
    /// Neither.
    pub changed: BTreeSet<PathBuf>,
}

impl PlanFiles {
    /// Those that are neither, in words.
    #[must_use]
    pub fn changed(&self) -> Vec<String> {
        self.changed.iter().map(|path| path_text(path)).collect()
    }
}

impl Checkout {
    /// How the paths of a plan are on the disk. A submodule tells nothing: only its directory is there.
    pub fn plan_files(&self, plan: &CommitId) -> Result<PlanFiles, Error> {
        let planned = self.read_plan(plan)?;
        let paths: Vec<&PathBuf> =
            planned.iter().filter(|(_, one)| !one.is_submodule()).map(|(path, _)| path).collect();
        let mut files = PlanFiles::default();
        for batch in paths.chunks(BATCH) {
            for (path, (before, after)) in batch.iter().zip(self.plan_contents(&planned, batch)?) {
                let found = disk::read(self.root(), path)?;
                let is = |wanted: Option<&Content>| match (&found, wanted) {
                    (Found::Absent | Found::Directory | Found::Behind(_), None) => true,
                    (Found::File(content), Some(wanted)) => content == wanted,
                    (Found::Directory, Some(wanted)) => wanted.is_submodule(),
                    (Found::Absent | Found::File(_) | Found::Behind(_) | Found::Other, _) => false,
                };
                let list = if is(after.as_ref()) {
                    &mut files.brought
                } else if is(before.as_ref()) {
                    &mut files.undone
                } else {
                    &mut files.changed
                };
                list.insert((*path).clone());
            }
        }
        Ok(files)
    }

    /// Whether HEAD goes on from where it was when the snapshot `before` was made.
    pub fn goes_on_from(&self, task: TaskId, before: &CommitId) -> Result<bool, Error> {
        Ok(match (self.store().head()?.commit, self.base_of(task, before)?) {
            (Some(head), Some(base)) => self.store().reaches(&head, &base)?,
            (Some(_) | None, None) => true,
            (None, Some(_)) => false,
        })
    }

    /// The paths of a plan that the person has committed since the snapshot `before` was made of the checkout: HEAD has
    /// them otherwise than then, and as they are on the disk.
    pub fn committed_since(
        &self,
        task: TaskId,
        plan: &CommitId,
        before: &CommitId,
    ) -> Result<BTreeSet<PathBuf>, Error> {
        let Some(head) = self.store().head()?.commit else { return Ok(BTreeSet::new()) };
        let base = match self.base_of(task, before)? {
            Some(base) if base == head => return Ok(BTreeSet::new()),
            Some(base) => base,
            None => CommitId(self.empty_tree()?),
        };
        let moved: BTreeSet<PathBuf> = self.changes(&base, &head)?.into_iter().map(|change| change.path).collect();
        let own = self.own_changes()?;
        let mut committed: BTreeSet<PathBuf> = self.plan_paths(plan)?.into_iter().collect();
        committed.retain(|path| moved.contains(path) && !own.contains(path));
        Ok(committed)
    }

    /// Whether the files of a plan are committed as they are.
    pub fn is_plan_committed(&self, plan: &CommitId) -> Result<bool, Error> {
        let own = self.own_changes()?;
        let untracked = self.untracked()?;
        Ok(!self.plan_paths(plan)?.iter().any(|path| own.contains(path) || untracked.contains(path)))
    }

    /// Whether nothing of these commits' paths differs from HEAD.
    pub fn is_committed(&self, from: &CommitId, to: &CommitId) -> Result<bool, Error> {
        let mut own = self.own_changes()?;
        own.extend(self.untracked()?);
        Ok(!self.changes(from, to)?.iter().any(|change| own.contains(&change.path)))
    }

    /// Where HEAD was when a snapshot was made of the checkout; none if there was no commit yet.
    fn base_of(&self, task: TaskId, snapshot: &CommitId) -> Result<Option<CommitId>, Error> {
        let message = self.store().message(snapshot)?.unwrap_or_default();
        if !is_snapshot_of(&message, task) {
            return Ok(Some(snapshot.clone()));
        }
        let line = self.git().call(["rev-list", "--parents", "--max-count=1", &snapshot.0]).line()?;
        Ok(line.split(' ').nth(1).map(|id| CommitId(id.to_owned())))
    }
}
