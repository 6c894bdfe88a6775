//! The snapshot: a commit of the checkout as it is, unfinished work included, made beside the caller's index.

use std::{
    fs::{File, FileTimes},
    io::{Read, Write},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    Checkout, Error,
    commit::{Author, SUBJECT, commit_tree},
    git::LONG,
    io_error, never_staged,
    paths::{names_notice, path_text, paths},
    staging::{Staging, scratch},
};
use crate::domain::{
    checkout::Base,
    id::{CommitId, TaskId},
};

/// The tree without entries, by SHA-1 and by SHA-256.
const EMPTY_TREES: [&str; 2] =
    ["4b825dc642cb6eb9a060e54bf8d69288fbee4904", "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"];

/// How often a checkout that changes meanwhile is read.
const READS: usize = 3;

/// What a snapshot is made for.
#[derive(Clone, Debug)]
pub struct SnapshotRequest<'a> {
    /// The task.
    pub task: TaskId,
    /// Where it starts from, as recorded.
    pub base: &'a Base,
    /// The date of the commit, in milliseconds since 1970 UTC.
    pub at_ms: u64,
    /// Untracked files over this many bytes are not carried.
    pub max_untracked: u64,
}

/// Where the task starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// The base itself where the checkout is clean or the base explicit, else a commit on top of it.
    pub commit: CommitId,
    /// It holds unfinished work.
    pub dirty: bool,
    /// What was not carried, in sentences.
    pub notices: Vec<String>,
}

/// The caller's index at one moment, and HEAD.
#[derive(PartialEq, Eq)]
pub(super) struct Seen {
    head: Option<CommitId>,
    index: Option<Vec<u8>>,
}

impl Checkout {
    /// Makes the snapshot. The caller's index, HEAD, branch, stash and files are only read; the same files, base, task
    /// and date give the same commit. It is reachable from the task's branch once that stands.
    pub fn snapshot(&self, request: &SnapshotRequest<'_>) -> Result<Snapshot, Error> {
        self.ready()?;
        let snapshot = match (&request.base.commit, request.base.explicit) {
            (Some(commit), true) => Snapshot { commit: commit.clone(), dirty: false, notices: Vec::new() },
            (Some(_), false) | (None, _) => self.snapshot_of_files(request)?,
        };
        let mut notices = snapshot.notices;
        notices.extend(self.unknown_filters()?);
        Ok(Snapshot { notices, ..snapshot })
    }

    /// A notice of filters that are asked for and not configured.
    pub(super) fn unknown_filters(&self) -> Result<Option<String>, Error> {
        let unknown: Vec<_> =
            self.filters_asked_for()?.into_iter().filter(|name| !self.filters().knows(name)).collect();
        Ok(names_notice("not set up here, so files are taken as they are: the filters", &unknown))
    }

    fn snapshot_of_files(&self, request: &SnapshotRequest<'_>) -> Result<Snapshot, Error> {
        for _ in 0..READS {
            let scratch = scratch()?;
            let index = scratch.path().join("index");
            let before = self.see(Some(&index))?;
            if before.head != request.base.commit {
                return Err(Error::HeadMoved { base: request.base.commit.clone(), head: before.head });
            }
            let snapshot = self.commit_files(request, &index);
            if self.see(None)? == before {
                return snapshot;
            }
        }
        Err(Error::Unsteady { checkout: self.root().to_owned() })
    }

    fn commit_files(&self, request: &SnapshotRequest<'_>, index: &Path) -> Result<Snapshot, Error> {
        let staging = Staging { git: self.git(), root: self.root(), index: Some(index) };
        let mut notices = Vec::new();
        let mut changes = staging.changes()?;
        self.rules().take_out(&mut changes, &staging, &*self.store())?;
        let mut paths = changes.tracked;
        let size = |path: &PathBuf| self.root().join(path).symlink_metadata().map_or(0, |found| found.len());
        let (large, carried): (Vec<_>, Vec<_>) =
            changes.untracked.into_iter().partition(|path| size(path) > request.max_untracked);
        paths.extend(carried);
        let large = large.iter().map(|path| path_text(path)).collect::<Vec<_>>();
        let repositories = changes.repositories.iter().map(|path| path_text(path)).collect::<Vec<_>>();
        notices.extend(names_notice("not carried over, because they are too large and untracked", &large));
        notices.extend(names_notice("not carried over, because they are repositories of their own", &repositories));
        notices
            .extend(names_notice("not carried over, because git is told not to look at them", &self.hidden_edits()?));
        notices.extend(never_staged::notices(&changes.left_out, self.rules(), self.root()));
        notices.extend(names_notice(
            "not carried over, because they lie in submodules: changes in",
            &self.submodule_changes()?,
        ));

        staging.add(&paths)?;
        let tree = staging.write_tree()?;
        if let Some(base) = &request.base.commit
            && self.store().tree(base)? == tree
        {
            return Ok(Snapshot { commit: base.clone(), dirty: false, notices });
        }
        let dirty = request.base.commit.is_some() || !EMPTY_TREES.contains(&&*tree);
        let author = Author { name: "nisse", email: "nisse@localhost", at_ms: request.at_ms };
        let message = format!("{SUBJECT}\n\nNisse-Task: {}\n", request.task);
        let parents: Vec<_> = request.base.commit.iter().collect();
        let commit = commit_tree(self.git(), &tree, &parents, &message, &author)?;
        Ok(Snapshot { commit, dirty, notices })
    }

    /// Reads HEAD and the index; the index is copied with its time, because git compares that with the files' times to
    /// find edits made within the moment of staging.
    pub(super) fn see(&self, copy: Option<&Path>) -> Result<Seen, Error> {
        let head = self.store().head()?.commit;
        let path = self.git_dir().join("index");
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Seen { head, index: None }),
            Err(error) => return Err(io_error("read", &path)(error)),
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io_error("read", &path))?;
        if let Some(copy) = copy {
            let modified = file.metadata().and_then(|found| found.modified()).map_err(io_error("read", &path))?;
            let write = || {
                let mut file = File::create(copy)?;
                file.write_all(&bytes)?;
                file.set_times(FileTimes::new().set_modified(modified))
            };
            write().map_err(io_error("write", copy))?;
        }
        Ok(Seen { head, index: Some(bytes) })
    }

    /// Paths under assume-unchanged or skip-worktree whose files differ from the index all the same.
    pub(super) fn hidden_edits(&self) -> Result<Vec<String>, Error> {
        let unwatched = self.store().unwatched()?;
        let mut edited = Vec::new();
        let mut present = Vec::new();
        let mut input = Vec::new();
        for (path, id) in unwatched {
            let path = PathBuf::from(std::ffi::OsStr::from_bytes(&path));
            // hash-object reads names line by line
            if self.root().join(&path).is_file() && !path.as_os_str().as_bytes().contains(&b'\n') {
                input.extend_from_slice(path.as_os_str().as_bytes());
                input.push(b'\n');
                present.push((path, id));
            } else {
                edited.push(path_text(&path));
            }
        }
        if !present.is_empty() {
            let ids = self.git().call(["hash-object", "--stdin-paths"]).limit(LONG).input(input).line()?;
            let changed = present.iter().zip(ids.lines()).filter(|((_, id), now)| id != now);
            edited.extend(changed.map(|((path, _), _)| path_text(path)));
        }
        Ok(edited)
    }

    /// Submodules that hold another commit than the index says. What is changed inside them is not looked at: that
    /// would enter them, and run what their configuration names.
    fn submodule_changes(&self) -> Result<Vec<String>, Error> {
        if !self.root().join(".gitmodules").exists() {
            return Ok(Vec::new());
        }
        let call = self.git().call(["diff-files", "-z", "--name-only", "--ignore-submodules=dirty", "--diff-filter=M"]);
        let changed = paths(call.limit(LONG).parts()?);
        Ok(changed
            .iter()
            .filter(|path| self.root().join(path).join(".git").exists())
            .map(|path| path_text(path))
            .collect())
    }
}
