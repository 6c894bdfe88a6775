//! Checkpoints: a commit on the task's branch for each call that changed the tree.
//!
//! Content-addressed: parent, message, author and date come from the log, the tree from the worktree, so the same
//! inputs give the same id. Order: index, objects (synced), branch by compare-and-swap; a crash between leaves the
//! branch at most one commit ahead of the log, and [`Worktree::commit_is_ours`] knows that commit.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
};

use super::{
    Error, Worktree,
    commit::Author,
    excludes,
    git::{Git, LONG},
    staging::Staging,
    stat_cache::TreeState,
    store::TrackState,
};
use crate::{
    domain::{
        git_names,
        id::{CallId, CommitId, TaskId},
    },
    log::crash,
};

/// What a checkpoint is made of.
#[derive(Clone, Debug)]
pub struct CheckpointRequest<'a> {
    /// The task.
    pub task: TaskId,
    /// The turn.
    pub turn: u32,
    /// The call that changed the tree.
    pub call: &'a CallId,
    /// The checkpoint before, or the snapshot; the branch must be there.
    pub parent: &'a CommitId,
    /// What was done; its first line is used.
    pub subject: &'a str,
    /// The date, in milliseconds since 1970 UTC.
    pub at_ms: u64,
    /// The paths that may have changed, relative to the worktree; none for any.
    pub paths: Option<&'a [String]>,
}

impl Worktree {
    /// Commits what changed onto the branch; none where nothing did. Ignored paths and artefacts are not part of it,
    /// also where they are named. Done again, it gives the same commit.
    pub fn checkpoint(&self, request: &CheckpointRequest<'_>) -> Result<Option<CommitId>, Error> {
        crash::point("checkpoint.begun");
        self.refuse_replaced()?;
        if let Some(paths) = request.paths {
            return self.commit_paths(request, paths);
        }
        match self.compare_with(request.parent) {
            TreeState::Unchanged => Ok(None),
            TreeState::Changed(paths) => {
                self.commit_paths(&CheckpointRequest { paths: Some(&paths), ..request.clone() }, &paths)
            }
            TreeState::Unknown => {
                // before git looks: what changes meanwhile is seen to differ next time
                let seen = self.stat_tree();
                self.clear_stat_cache();
                let made = self.commit_changes(request)?;
                self.cache_tree(seen, made.as_ref().unwrap_or(request.parent));
                Ok(made)
            }
        }
    }

    fn commit_paths(&self, request: &CheckpointRequest<'_>, paths: &[String]) -> Result<Option<CommitId>, Error> {
        let looked = self.stat_paths(paths);
        let made = self.commit_changes(request)?;
        self.cache_paths(looked, request.parent, made.as_ref().unwrap_or(request.parent));
        Ok(made)
    }

    fn commit_changes(&self, request: &CheckpointRequest<'_>) -> Result<Option<CommitId>, Error> {
        self.verify()?;
        let git = self.git()?;
        self.plain_index(&git, request.parent)?;
        let staging = Staging { git: &git, root: self.path(), index: None };
        let paths: Vec<_> = if let Some(named) = request.paths {
            let ignored = self.ignored(named)?;
            let wanted = |path: &&String| !ignored.contains(path) && !git_names::in_path(Path::new(path));
            let mut paths: Vec<_> = named.iter().filter(wanted).map(PathBuf::from).collect();
            paths.extend(self.other_names(named, &git)?);
            paths
        } else {
            let changes = self.changes(&git, None)?;
            changes.tracked.into_iter().chain(changes.untracked).collect()
        };
        if paths.is_empty() && request.paths.is_some() {
            return Ok(None);
        }
        // what a commit cannot hold (a pipe) is as good as gone, and so is what lies behind a link
        let fits = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_file() || found.is_symlink());
        let (changed, gone): (Vec<_>, Vec<_>) =
            paths.into_iter().partition(|path| fits(&self.path().join(path)) && !staging.behind_a_link(path));
        let store = self.store();
        let mut tree = store.stage(&git, self.path(), &changed, &gone)?;
        // a command may have staged what is to be in no commit
        let staged = self.wrongly_staged(&git, store.added(request.parent, &tree)?)?;
        if !staged.is_empty() {
            tree = store.stage(&git, self.path(), &[], &staged)?;
        }
        // files were read by their paths
        self.refuse_replaced()?;
        crash::point("checkpoint.staged");
        if store.tree(request.parent)? == tree {
            return Ok(None);
        }
        let (name, email) = self.checkout().identity();
        let author = Author { name, email, at_ms: request.at_ms };
        let commit = store.commit(&git, &tree, request.parent, &message(request), &author)?;
        crash::point("checkpoint.commit");
        self.move_branch(request.parent, &commit)?;
        crash::point("checkpoint.branch");
        Ok(Some(commit))
    }

    /// Further names (hard links) of the files at `named` that changed with them.
    fn other_names(&self, named: &[String], git: &Git) -> Result<Vec<PathBuf>, Error> {
        let file = |path: &Path| {
            let found = self.path().join(path).symlink_metadata().ok()?;
            (found.is_file() && found.nlink() > 1).then(|| (found.dev(), found.ino()))
        };
        let files: Vec<_> = named.iter().filter_map(|path| file(Path::new(path))).collect();
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let changes = self.changes(git, None)?;
        let same = |path: &PathBuf| file(path).is_some_and(|found| files.contains(&found));
        Ok(changes.tracked.into_iter().chain(changes.untracked).filter(same).collect())
    }

    /// The call whose checkpoint `commit` is, if it is one of `task`'s.
    pub fn commit_is_ours(&self, commit: &CommitId, task: TaskId) -> Result<Option<CallId>, Error> {
        let Some(message) = self.store().message(commit)? else { return Ok(None) };
        // trailers are the last paragraph; the first is the subject
        let Some((_, trailers)) = message.trim_end().rsplit_once("\n\n") else { return Ok(None) };
        let value = |key: &str| trailers.lines().find_map(|line| line.strip_prefix(key)).map(str::to_owned);
        let ours = value("Nisse-Task: ") == Some(task.to_string());
        Ok(value("Nisse-Call: ").filter(|_| ours).map(CallId))
    }

    /// Those of `named` (relative to the worktree) that are not part of the branch: ignored by git's rules, build
    /// artefacts, or never staged. Tracked paths never are.
    pub fn ignored(&self, named: &[String]) -> Result<Vec<String>, Error> {
        if named.is_empty() {
            return Ok(Vec::new());
        }
        let states = self.store().track_states(named)?;
        let ignored_at_start = self.ignored_at_start()?;
        let untracked: Vec<_> =
            named.iter().zip(&states).filter(|(_, state)| **state == TrackState::Untracked).collect();
        let never = if untracked.is_empty() {
            BTreeSet::new()
        } else {
            self.never_staged(&self.git()?, &untracked.iter().map(|(path, _)| PathBuf::from(path)).collect::<Vec<_>>())?
        };
        let is_ignored = |(path, state): &(&String, TrackState)| match state {
            TrackState::Tracked => false,
            TrackState::Ignored => true,
            TrackState::Untracked => {
                let path = Path::new(path);
                excludes::artefact(self.path(), path) || ignored_at_start.contains(path) || never.contains(path)
            }
        };
        Ok(named.iter().zip(states).filter(is_ignored).map(|(path, _)| path.clone()).collect())
    }

    /// Makes sure that the index can be trusted: there, readable, and without marks that hide paths from git.
    pub(super) fn plain_index(&self, git: &Git, commit: &CommitId) -> Result<(), Error> {
        let index = self.git_dir().join("index");
        if index.is_file() && self.store().index_is_plain()? {
            return Ok(());
        }
        if let Err(error) = std::fs::remove_file(&index)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(super::io_error("remove", &index)(error));
        }
        self.index_of(git, commit, None)
    }

    /// Makes an index what `commit` holds; none for the worktree's own.
    pub(super) fn index_of(&self, git: &Git, commit: &CommitId, index: Option<&Path>) -> Result<(), Error> {
        git.call(["read-tree", commit.0.as_str()]).index(index).limit(LONG).run()?;
        self.mark_left_out(git, index)
    }

    /// The same of an index whose entries know their files: those that stay go on knowing them. No file is looked at
    /// before, and none is written.
    pub(super) fn reset_index(&self, git: &Git, commit: &CommitId) -> Result<(), Error> {
        git.call(["read-tree", "--reset", commit.0.as_str()]).limit(LONG).run()?;
        self.mark_left_out(git, None)?;
        git.call(["update-index", "-q", "--refresh"]).limit(LONG).also_fine(1).run().map(drop)
    }

    /// Marks the paths of an index that a sparse checkout leaves out, where they are not there: they would look deleted.
    fn mark_left_out(&self, git: &Git, index: Option<&Path>) -> Result<(), Error> {
        if self.checkout().formats().sparse { mark_left_out(git, self.path(), index) } else { Ok(()) }
    }
}

fn mark_left_out(git: &Git, root: &Path, index: Option<&Path>) -> Result<(), Error> {
    let all = git.call(["ls-files", "-z"]).index(index).limit(LONG).run()?;
    let within = git.call(["sparse-checkout", "check-rules", "-z"]).limit(LONG).input(all.clone()).parts()?;
    let within: std::collections::BTreeSet<_> = within.into_iter().collect();
    let is_there = |path: &[u8]| root.join(OsStr::from_bytes(path)).symlink_metadata().is_ok();
    let left_out = all.split_inclusive(|byte| *byte == 0).filter(|path| {
        let path = &path[..path.len() - 1];
        !within.contains(path) && !is_there(path)
    });
    let input = left_out.flatten().copied().collect();
    let call = git.call(["update-index", "-z", "--skip-worktree", "--stdin"]).index(index);
    call.limit(LONG).input(input).run().map(drop)
}

/// A checkpoint's message: the subject on one line, and the trailers by which recovery knows it.
fn message(request: &CheckpointRequest<'_>) -> String {
    let CheckpointRequest { task, turn, call, subject, .. } = request;
    let line: String = subject.lines().next().unwrap_or_default().chars().filter(|c| !c.is_control()).collect();
    let line = line.trim();
    let line: String = if line.is_empty() { format!("call {call}") } else { line.chars().take(200).collect() };
    format!("{line}\n\nNisse-Task: {task}\nNisse-Turn: {turn}\nNisse-Call: {call}\n")
}
