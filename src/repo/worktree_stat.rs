//! What a worktree looks like beside its cache of file status: all as it was, these paths changed, or git is to be asked.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use super::{
    Error, Worktree,
    files_clock::{Stamp, stamp},
    stat_cache::{CachedFile, CachedFiles, CachedTree, MOST, TreeState},
    tree_walk::{Unholdable, walk},
};
use crate::domain::{checkout::Isolation, id::CommitId};

impl Worktree {
    /// How the tree looks beside what it was when all of it was in `commit`.
    pub(super) fn compare_with(&self, commit: &CommitId) -> TreeState {
        let mut cached = self.stat_cache.lock();
        let now = cached.now(self.path());
        let own = self.own_stamps();
        cached.unholdable = None;
        let Some((tree, now)) = cached.tree.as_mut().filter(|tree| tree.at == *commit && tree.own == own).zip(now)
        else {
            return TreeState::Unknown;
        };
        let (looks, unholdable) = tree.compare(self.path(), self.kept_out(), now);
        cached.unholdable = unholdable;
        looks
    }

    /// What the last look met that no commit can hold, once; none if no look went through all of the tree.
    pub(super) fn take_unholdable(&self) -> Option<Unholdable> {
        self.stat_cache.lock().unholdable.take()
    }

    /// The paths whose files differ from those of `commit`, as [`Self::changed_since`] gives them, and at once where all
    /// looks as it did when all of it was in there. Of a checkout that somebody took off the task's branch, it is HEAD.
    pub fn differs_from(&self, commit: &CommitId) -> Result<Vec<String>, Error> {
        if self.compare_with(commit) == TreeState::Unchanged {
            return Ok(Vec::new());
        }
        if self.branch().isolation == Isolation::InPlace && !self.branch().is_checked_out()? {
            return Ok(vec!["HEAD".to_owned()]);
        }
        let tree = self.stat_tree();
        self.clear_stat_cache();
        let changed = self.changed_since(commit)?;
        if changed.is_empty() {
            self.cache_tree(tree, commit);
        }
        Ok(changed)
    }

    /// Whether one path looks as it did when all of the tree was in `commit`, and so does what git's answer depends on.
    #[must_use]
    pub fn is_unchanged(&self, path: &str, commit: &CommitId) -> bool {
        let (cached, own) = (self.stat_cache.lock(), self.own_stamps());
        let Some(tree) = cached.tree.as_ref().filter(|tree| tree.at == *commit && tree.own == own) else {
            return false;
        };
        match (tree.files.get(OsStr::new(path)), self.path().join(path).symlink_metadata()) {
            (Some(file), Ok(found)) => file.is(self.path(), Path::new(path), stamp(&found)),
            (None, Err(error)) => error.kind() == std::io::ErrorKind::NotFound,
            (Some(_), Err(_)) | (None, Ok(_)) => false,
        }
    }

    /// TreeState, before git does: what changes later will not look so. None if this tree is not to be judged by looks.
    pub(super) fn stat_tree(&self) -> Option<CachedTree> {
        let (root, now) = (self.path(), self.stat_cache.lock().now(self.path())?);
        let count = AtomicUsize::new(0);
        let (parts, unholdable) = walk(
            root,
            |path| Some(path) == self.kept_out(),
            |files: &mut Vec<_>, path, stamp| {
                let Some(file) = CachedFile::new(root, path, stamp, now) else { return false };
                files.push((path.as_os_str().to_owned(), file));
                count.fetch_add(1, Ordering::Relaxed) < MOST
            },
        )?;
        self.stat_cache.lock().unholdable = Some(unholdable);
        Some(CachedTree { at: CommitId(String::new()), files: parts.into_iter().flatten().collect(), own: Vec::new() })
    }

    /// The same for some paths; none for one that is not there.
    pub(super) fn stat_paths(&self, paths: &[String]) -> Option<CachedFiles> {
        let now = self.stat_cache.lock().now(self.path())?;
        let look = |path: &String| {
            let path = PathBuf::from(path);
            match self.path().join(&path).symlink_metadata() {
                Ok(found) => Some((path.clone(), Some(CachedFile::new(self.path(), &path, stamp(&found), now)?))),
                Err(_) => Some((path, None)),
            }
        };
        paths.iter().map(look).collect()
    }

    /// From now on, what was seen is what `commit` holds.
    pub(super) fn cache_tree(&self, tree: Option<CachedTree>, commit: &CommitId) {
        let own = self.own_stamps();
        self.stat_cache.lock().tree = tree.map(|tree| CachedTree { at: commit.clone(), own, ..tree });
    }

    /// What was seen at `parent` goes on at `commit`, with some paths as they were looked at.
    pub(super) fn cache_paths(&self, looked: Option<CachedFiles>, parent: &CommitId, commit: &CommitId) {
        let mut cached = self.stat_cache.lock();
        let Some((mut tree, looked)) = cached.tree.take().filter(|tree| tree.at == *parent).zip(looked) else { return };
        for (path, file) in looked {
            match file {
                Some(file) => tree.files.insert(path.into_os_string(), file),
                None => tree.files.remove(path.as_os_str()),
            };
        }
        cached.tree = Some(CachedTree { at: commit.clone(), own: self.own_stamps(), ..tree });
    }

    /// Nothing is known of the files any more.
    pub(super) fn clear_stat_cache(&self) {
        self.stat_cache.lock().tree = None;
    }

    fn own_stamps(&self) -> Vec<Option<Stamp>> {
        let common = self.checkout().common_dir();
        [
            self.git_dir().join("index"),
            self.git_dir().join("HEAD"),
            self.git_dir().join("config.worktree"),
            common.join("config"),
            common.join("info/exclude"),
            common.join("info/attributes"),
            common.join("refs/heads").join(self.branch().name()),
            self.path().join(".git"),
        ]
        .iter()
        // in place, `.git` is a directory, whose times tell nothing
        .map(|path| path.symlink_metadata().ok().filter(|found| !found.is_dir()).map(|found| stamp(&found)))
        .collect()
    }
}
