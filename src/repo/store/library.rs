//! The store by the library, libgit2: with `agreement` and `conversion` the only files that name it.
//!
//! A repository is opened for each question (a tenth of a millisecond), so that nothing stale is held. A worktree's index
//! alone is kept, since parsing a large one costs more than all the rest; libgit2 knows by its checksum whether it is
//! still the file's.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
};

use git2::{Delta, Index, IndexEntry, IndexTime, ObjectType, Oid, Repository, RepositoryOpenFlags};

use super::{
    Head, Store, Submodule, TrackState,
    conversion::{is_odd_file_system, keeps_bytes},
    kept_index::KeptIndex,
    loose::{RefLock, sync_objects},
    read_error,
    trees::{collect_submodules, trees_of},
};
use crate::{
    domain::{filters::filter_of, id::CommitId},
    repo::{
        Error,
        commit::{Author, commit_text},
        git::Git,
        io_error,
        staging::{MANY, Staging},
    },
};

/// Set by `update-index --assume-unchanged`.
const ASSUME_UNCHANGED: u16 = 0x8000;
/// Set by `update-index --skip-worktree`.
const SKIP_WORKTREE: u16 = 1 << 14;
/// The bits that tell the sides of a conflict.
const STAGE: u16 = 0x3000;
/// The mode of a submodule's entry.
const GITLINK: u32 = 0o160_000;
/// Files over this many bytes are left to the program, which streams them.
const LARGE: u64 = 32 << 20;

/// A repository read in process.
#[derive(Clone, Debug)]
pub(in crate::repo) struct Library {
    git_dir: PathBuf,
    kept: KeptIndex,
}

impl Library {
    pub(in crate::repo) fn new(git_dir: &Path, kept: KeptIndex) -> Self {
        Self { git_dir: git_dir.to_owned(), kept }
    }

    /// Works with the index as it is in its file.
    fn with_index<T>(&self, work: impl FnOnce(&mut Index) -> Result<T, Error>) -> Result<T, Error> {
        self.kept.with(&self.git_dir, || self.open(), work)
    }

    pub(super) fn open(&self) -> Result<Repository, Error> {
        let flags = RepositoryOpenFlags::NO_SEARCH | RepositoryOpenFlags::NO_DOTGIT;
        Repository::open_ext(&self.git_dir, flags, std::iter::empty::<&Path>())
            .map_err(read_error(format!("open {}", self.git_dir.display())))
    }

    /// Whether libgit2 reads this repository and its index at all; its words if not.
    pub(in crate::repo) fn readable(&self) -> Result<(), String> {
        let repository = self.open().map_err(|error| error.to_string())?;
        let index = repository.index().map_err(|error| error.message().to_owned());
        index.map(drop)
    }

    /// Stages what lies at one path. False: its bytes are to be converted, or it is large, and the program must do it.
    fn stage_one(
        repository: &Repository,
        index: &mut Index,
        root: &Path,
        path: &Path,
        written: &mut BTreeSet<String>,
    ) -> Result<bool, Error> {
        let what = || format!("stage {}", path.display());
        let place = root.join(path);
        let found = match place.symlink_metadata() {
            Ok(found) if found.is_file() || found.is_symlink() => found,
            Ok(_) | Err(_) => return Ok(false),
        };
        let (mode, bytes) = if found.is_symlink() {
            let target = fs::read_link(&place).map_err(io_error("read", &place))?;
            (0o120_000, target.as_os_str().as_bytes().to_vec())
        } else if found.len() > LARGE {
            return Ok(false);
        } else {
            let executable = found.permissions().mode() & 0o100 != 0;
            let bytes = fs::read(&place).map_err(io_error("read", &place))?;
            if !keeps_bytes(repository, path, &bytes).map_err(read_error(what()))? {
                return Ok(false);
            }
            (if executable { 0o100_755 } else { 0o100_644 }, bytes)
        };
        let id = repository.odb().and_then(|odb| odb.write(ObjectType::Blob, &bytes)).map_err(read_error(what()))?;
        written.insert(id.to_string());
        index.add(&entry(path, &found, mode, id)).map_err(read_error(what()))?;
        Ok(true)
    }

    /// Stages into an index, none for the repository's own, and gives its tree.
    fn stage_into(
        &self,
        git: &Git,
        root: &Path,
        own: Option<&Path>,
        changed: &[PathBuf],
        gone: &[PathBuf],
    ) -> Result<String, Error> {
        match own {
            Some(own) => {
                let mut index = Index::open(own).map_err(read_error("read the index"))?;
                self.stage_in(&mut index, &Staging { git, root, index: Some(own) }, changed, gone)
            }
            None => self.with_index(|index| self.stage_in(index, &Staging { git, root, index: None }, changed, gone)),
        }
    }

    fn stage_in(
        &self,
        index: &mut Index,
        staging: &Staging<'_>,
        changed: &[PathBuf],
        gone: &[PathBuf],
    ) -> Result<String, Error> {
        let repository = self.open()?;
        let odd = is_odd_file_system(&repository).map_err(read_error("read the configuration"))?;
        // git syncs many objects together
        let (in_process, mut left) =
            if odd || changed.len() > MANY { (&[][..], changed.to_vec()) } else { (changed, Vec::new()) };
        let mut written = BTreeSet::new();
        for path in gone {
            index.remove_path(path).map_err(read_error(format!("stage {}", path.display())))?;
        }
        for path in in_process {
            if !Self::stage_one(&repository, index, staging.root, path, &mut written)? {
                left.push(path.clone());
            }
        }
        if !left.is_empty() {
            // git compares whole seconds, and trusts an entry that is older than the index: a change of the same size in
            // the second of the last one would be lost
            for path in &left {
                if let Some(mut known) = index.get_path(path, 0) {
                    (known.mtime, known.ctime) = (IndexTime::new(0, 0), IndexTime::new(0, 0));
                    index.add(&known).map_err(read_error(format!("stage {}", path.display())))?;
                }
            }
            index.write().map_err(read_error("write the index"))?;
            staging.add(&left)?;
            if left.len() > MANY {
                return staging.write_tree();
            }
            index.read(true).map_err(read_error("read the index"))?;
        }
        let tree = index.write_tree_to(&repository).map_err(read_error("write the index's tree"))?;
        if !(changed.is_empty() && gone.is_empty()) {
            index.write().map_err(read_error("write the index"))?;
        }
        // what HEAD holds is on disk already
        if repository.head().and_then(|head| head.peel_to_tree()).is_ok_and(|of_head| of_head.id() == tree) {
            return Ok(tree.to_string());
        }
        let paths: Vec<_> = changed.iter().chain(gone).cloned().collect();
        written.extend(trees_of(&repository, tree, &paths).map_err(read_error("read the index's tree"))?);
        sync_objects(repository.commondir(), &written)?;
        Ok(tree.to_string())
    }
}

impl Store for Library {
    fn head(&self) -> Result<Head, Error> {
        let repository = self.open()?;
        let head = repository.find_reference("HEAD").map_err(read_error("read HEAD"))?;
        let branch = match head.symbolic_target() {
            Ok(target) => target.and_then(|name| name.strip_prefix("refs/heads/")).map(str::to_owned),
            Err(_) => None,
        };
        let commit = match repository.head() {
            Ok(reference) => Some(id(reference.peel_to_commit().map_err(read_error("read HEAD's commit"))?.id())),
            Err(error) if error.code() == git2::ErrorCode::UnbornBranch => None,
            Err(error) => return Err(read_error("read HEAD")(error)),
        };
        Ok(Head { commit, branch })
    }

    fn reference(&self, name: &str) -> Result<Option<CommitId>, Error> {
        match self.open()?.refname_to_id(name) {
            Ok(oid) => Ok(Some(id(oid))),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(read_error(format!("read {name}"))(error)),
        }
    }

    fn references(&self, prefixes: &[&str]) -> Result<Vec<(String, CommitId)>, Error> {
        let repository = self.open()?;
        let mut found = Vec::new();
        for prefix in prefixes {
            let listed = repository.references_glob(&format!("{prefix}*")).map_err(read_error("list refs"))?;
            for reference in listed {
                let reference = reference.map_err(read_error("list refs"))?;
                let target = reference.resolve().ok().and_then(|end| end.target());
                // a name that is no text is none of ours
                if let (Ok(name), Some(target)) = (reference.name(), target) {
                    found.push((name.to_owned(), id(target)));
                }
            }
        }
        found.sort();
        Ok(found)
    }

    fn resolve(&self, rev: &str) -> Result<CommitId, Error> {
        let repository = self.open()?;
        let missing = |_| Error::NoSuchCommit { rev: rev.to_owned() };
        let object = repository.revparse_single(rev).map_err(missing)?;
        Ok(id(object.peel_to_commit().map_err(missing)?.id()))
    }

    fn tree(&self, commit: &CommitId) -> Result<String, Error> {
        let repository = self.open()?;
        Ok(find(&repository, commit)?.tree_id().to_string())
    }

    fn message(&self, commit: &CommitId) -> Result<Option<String>, Error> {
        let repository = self.open()?;
        match repository.find_commit(oid(commit)?) {
            Ok(found) => Ok(Some(String::from_utf8_lossy(found.message_bytes()).into_owned())),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(read_error(format!("read commit {commit}"))(error)),
        }
    }

    fn reaches(&self, tip: &CommitId, commit: &CommitId) -> Result<bool, Error> {
        if tip == commit {
            return Ok(true);
        }
        let what = format!("compare {tip} with {commit}");
        self.open()?.graph_descendant_of(oid(tip)?, oid(commit)?).map_err(read_error(what))
    }

    fn picking(&self) -> Result<Option<&'static str>, Error> {
        let told = [("CHERRY_PICK_HEAD", "a cherry-pick"), ("REVERT_HEAD", "a revert")];
        Ok(told.into_iter().find(|(name, _)| self.git_dir.join(name).exists()).map(|(_, what)| what))
    }

    fn symbolic_head(&self) -> Result<Option<String>, Error> {
        let head = self.git_dir.join("HEAD");
        let text = fs::read_to_string(&head).map_err(io_error("read", &head))?;
        Ok(text.strip_prefix("ref:").map(|name| name.trim().to_owned()))
    }

    fn conflicts(&self) -> Result<Vec<String>, Error> {
        let repository = self.open()?;
        let index = repository.index().map_err(read_error("read the index"))?;
        let stages = index.iter().filter(|entry| entry.flags & STAGE != 0);
        let mut paths: Vec<_> = stages.map(|entry| String::from_utf8_lossy(&entry.path).into_owned()).collect();
        paths.dedup();
        Ok(paths)
    }

    fn tracked(&self) -> Result<Vec<Vec<u8>>, Error> {
        let index = self.open()?.index().map_err(read_error("read the index"))?;
        Ok(index.iter().map(|entry| entry.path).collect())
    }

    fn named(&self, name: &str) -> Result<Vec<Vec<u8>>, Error> {
        let is = |path: &Vec<u8>| path.rsplit(|byte| *byte == b'/').next() == Some(name.as_bytes());
        Ok(self.tracked()?.into_iter().filter(is).collect())
    }

    fn unwatched(&self) -> Result<Vec<(Vec<u8>, String)>, Error> {
        let repository = self.open()?;
        let index = repository.index().map_err(read_error("read the index"))?;
        let flagged =
            |entry: &git2::IndexEntry| entry.flags & ASSUME_UNCHANGED != 0 || entry.flags_extended & SKIP_WORKTREE != 0;
        Ok(index.iter().filter(flagged).map(|entry| (entry.path, entry.id.to_string())).collect())
    }

    fn index_is_plain(&self) -> Result<bool, Error> {
        let odd = |entry: git2::IndexEntry| {
            entry.flags & (ASSUME_UNCHANGED | STAGE) != 0 || entry.flags_extended & SKIP_WORKTREE != 0
        };
        // one that cannot be read is none
        Ok(self.with_index(|index| Ok(!index.iter().any(odd))).unwrap_or(false))
    }

    fn track_states(&self, paths: &[String]) -> Result<Vec<TrackState>, Error> {
        let repository = self.open()?;
        self.with_index(|index| {
            let look = |path: &String| {
                let mode = |path: &Path| index.get_path(path, 0).map(|entry| entry.mode);
                let path = Path::new(path);
                if mode(path).is_some() {
                    return Ok(TrackState::Tracked);
                }
                let mut above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
                if above.any(|above| mode(above) == Some(GITLINK)) {
                    return Ok(TrackState::Ignored);
                }
                let ignored = repository
                    .is_path_ignored(path)
                    .map_err(read_error(format!("look up whether {} is ignored", path.display())))?;
                Ok(if ignored { TrackState::Ignored } else { TrackState::Untracked })
            };
            paths.iter().map(look).collect()
        })
    }

    fn filters(&self) -> Result<Vec<(String, String)>, Error> {
        let repository = self.open()?;
        let config = repository
            .config()
            .and_then(|mut config| config.snapshot())
            .map_err(read_error("read the configuration"))?;
        let mut found = Vec::new();
        let entries = config.entries(Some("^filter\\..*")).map_err(read_error("read the configuration"))?;
        entries
            .for_each(|entry| {
                let key = String::from_utf8_lossy(entry.name_bytes());
                found.extend(filter_of(&key).map(|(name, part)| (name.to_owned(), part.to_owned())));
            })
            .map_err(read_error("read the configuration"))?;
        Ok(found)
    }

    fn submodules(&self, commit: &CommitId) -> Result<Vec<Submodule>, Error> {
        let repository = self.open()?;
        let what = || format!("walk the tree of {commit}");
        let tree = find(&repository, commit)?.tree().map_err(read_error(what()))?;
        let mut submodules = Vec::new();
        collect_submodules(&repository, &tree, &[], &mut submodules).map_err(read_error(what()))?;
        Ok(submodules)
    }

    fn stage(&self, git: &Git, root: &Path, changed: &[PathBuf], gone: &[PathBuf]) -> Result<String, Error> {
        git.writing_index(|index| self.stage_into(git, root, index, changed, gone))
    }

    fn commit(
        &self,
        _git: &Git,
        tree: &str,
        parent: &CommitId,
        message: &str,
        author: &Author<'_>,
    ) -> Result<CommitId, Error> {
        let repository = self.open()?;
        let text = commit_text(tree, parent, message, author);
        let written = repository.odb().and_then(|odb| odb.write(ObjectType::Commit, text.as_bytes()));
        let commit = written.map_err(read_error("write a commit"))?.to_string();
        sync_objects(repository.commondir(), &BTreeSet::from([commit.clone()]))?;
        Ok(CommitId(commit))
    }

    fn added(&self, commit: &CommitId, tree: &str) -> Result<Vec<PathBuf>, Error> {
        let repository = self.open()?;
        let what = || format!("compare {tree} with {commit}");
        let old = find(&repository, commit)?.tree().map_err(read_error(what()))?;
        let new = Oid::from_str(tree).and_then(|id| repository.find_tree(id)).map_err(read_error(what()))?;
        let diff = repository.diff_tree_to_tree(Some(&old), Some(&new), None).map_err(read_error(what()))?;
        let added = diff.deltas().filter(|delta| delta.status() == Delta::Added);
        let path =
            |delta: git2::DiffDelta<'_>| delta.new_file().path_bytes().map(|path| OsStr::from_bytes(path).into());
        Ok(added.filter_map(path).collect())
    }

    fn contains(&self, commit: &CommitId, path: &Path) -> Result<bool, Error> {
        let repository = self.open()?;
        let tree = find(&repository, commit)?.tree().map_err(read_error(format!("read the tree of {commit}")))?;
        match tree.get_path(path) {
            Ok(entry) => Ok(entry.kind() != Some(ObjectType::Tree)),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(false),
            Err(error) => Err(read_error(format!("look for {} in {commit}", path.display()))(error)),
        }
    }

    fn move_ref(&self, _git: &Git, name: &str, from: &CommitId, to: &CommitId) -> Result<(), Error> {
        let lock = RefLock::take(self.open()?.commondir(), name)?;
        let found = self.reference(name)?;
        if found.as_ref() != Some(from) {
            let branch = name.strip_prefix("refs/heads/").unwrap_or(name).to_owned();
            return Err(Error::BranchMoved { branch, expected: from.clone(), found });
        }
        lock.put(to)
    }
}

fn id(oid: Oid) -> CommitId {
    CommitId(oid.to_string())
}

fn oid(commit: &CommitId) -> Result<Oid, Error> {
    Oid::from_str(&commit.0).map_err(|_| Error::NoSuchCommit { rev: commit.0.clone() })
}

fn find<'a>(repository: &'a Repository, commit: &CommitId) -> Result<git2::Commit<'a>, Error> {
    repository.find_commit(oid(commit)?).map_err(read_error(format!("read commit {commit}")))
}

/// An index entry for a file as it was found, whose times git compares with the file's.
fn entry(path: &Path, found: &fs::Metadata, mode: u32, id: Oid) -> IndexEntry {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "git keeps the lower 32 bits")]
    let (time, low) = (|s: i64, ns: i64| IndexTime::new(s as i32, ns as u32), |number: u64| number as u32);
    IndexEntry {
        ctime: time(found.ctime(), found.ctime_nsec()),
        mtime: time(found.mtime(), found.mtime_nsec()),
        dev: low(found.dev()),
        ino: low(found.ino()),
        mode,
        uid: found.uid(),
        gid: found.gid(),
        file_size: low(found.len()),
        id,
        flags: 0,
        flags_extended: 0,
        path: path.as_os_str().as_bytes().to_vec(),
    }
}
