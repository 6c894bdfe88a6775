//! Reads in process, through libgit2: the only file that names it.
//!
//! A repository is opened for each read (a tenth of a millisecond), so that nothing stale is held.

use std::path::{Path, PathBuf};

use git2::{ObjectType, Oid, Repository, RepositoryOpenFlags, RepositoryState, TreeWalkMode, TreeWalkResult};

use super::Error;
use crate::domain::id::CommitId;

/// Set by `update-index --assume-unchanged`.
const ASSUME_UNCHANGED: u16 = 0x8000;
/// Set by `update-index --skip-worktree`.
const SKIP_WORKTREE: u16 = 1 << 14;

/// The bits that tell the sides of a conflict.
const STAGE: u16 = 0x3000;

/// How git stands to a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// It is in the index.
    Tracked,
    /// It is not, and could be.
    Untracked,
    /// It is not, and git's rules leave it out.
    Ignored,
}

/// A repository as seen from one git directory: the main one, or a worktree's entry.
#[derive(Clone, Debug)]
pub(super) struct Store {
    git_dir: PathBuf,
}

/// Where HEAD is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Head {
    /// The commit; none before the first.
    pub(super) commit: Option<CommitId>,
    /// The branch (`main`); none where HEAD is detached.
    pub(super) branch: Option<String>,
}

/// What a tree holds that needs attention.
#[derive(Default, Debug)]
pub(super) struct Oddities {
    /// The contents of its `.gitattributes` files.
    pub(super) attributes: Vec<Vec<u8>>,
    /// The paths of its submodules.
    pub(super) submodules: Vec<String>,
}

fn read(what: impl Into<String>) -> impl FnOnce(git2::Error) -> Error {
    let what = what.into();
    move |source| Error::Read { what, source }
}

impl Store {
    pub(super) fn new(git_dir: &Path) -> Self {
        Self { git_dir: git_dir.to_owned() }
    }

    fn open(&self) -> Result<Repository, Error> {
        let flags = RepositoryOpenFlags::NO_SEARCH | RepositoryOpenFlags::NO_DOTGIT;
        Repository::open_ext(&self.git_dir, flags, std::iter::empty::<&Path>())
            .map_err(read(format!("open {}", self.git_dir.display())))
    }

    /// Whether libgit2 reads this repository and its index at all; its words if not.
    pub(super) fn readable(&self) -> Result<(), String> {
        let repository = self.open().map_err(|error| error.to_string())?;
        let index = repository.index().map_err(|error| error.message().to_owned());
        index.map(drop)
    }

    /// Where HEAD is.
    pub(super) fn head(&self) -> Result<Head, Error> {
        let repository = self.open()?;
        let head = repository.find_reference("HEAD").map_err(read("read HEAD"))?;
        let branch = match head.symbolic_target() {
            Ok(target) => target.and_then(|name| name.strip_prefix("refs/heads/")).map(str::to_owned),
            Err(_) => None,
        };
        let commit = match repository.head() {
            Ok(reference) => Some(id(reference.peel_to_commit().map_err(read("read HEAD's commit"))?.id())),
            Err(error) if error.code() == git2::ErrorCode::UnbornBranch => None,
            Err(error) => return Err(read("read HEAD")(error)),
        };
        Ok(Head { commit, branch })
    }

    /// The commit that a ref (`refs/heads/main`) is at; none if there is no such ref.
    pub(super) fn reference(&self, name: &str) -> Result<Option<CommitId>, Error> {
        match self.open()?.refname_to_id(name) {
            Ok(oid) => Ok(Some(id(oid))),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(read(format!("read {name}"))(error)),
        }
    }

    /// The commit that a person's expression (`HEAD~2`, `v1.0`) names.
    pub(super) fn resolve(&self, rev: &str) -> Result<CommitId, Error> {
        let repository = self.open()?;
        let missing = |_| Error::NoSuchCommit { rev: rev.to_owned() };
        let object = repository.revparse_single(rev).map_err(missing)?;
        Ok(id(object.peel_to_commit().map_err(missing)?.id()))
    }

    /// The id of a commit's tree.
    pub(super) fn tree(&self, commit: &CommitId) -> Result<String, Error> {
        let repository = self.open()?;
        Ok(find(&repository, commit)?.tree_id().to_string())
    }

    /// Whether both commits hold the same files.
    pub(super) fn same_tree(&self, a: &CommitId, b: &CommitId) -> Result<bool, Error> {
        let repository = self.open()?;
        Ok(find(&repository, a)?.tree_id() == find(&repository, b)?.tree_id())
    }

    /// A commit's message, lossily decoded; none if there is no such commit.
    pub(super) fn message(&self, commit: &CommitId) -> Result<Option<String>, Error> {
        let repository = self.open()?;
        match repository.find_commit(oid(commit)?) {
            Ok(found) => Ok(Some(String::from_utf8_lossy(found.message_bytes()).into_owned())),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(read(format!("read commit {commit}"))(error)),
        }
    }

    /// Whether `commit` is `tip` or one of its ancestors.
    pub(super) fn reaches(&self, tip: &CommitId, commit: &CommitId) -> Result<bool, Error> {
        if tip == commit {
            return Ok(true);
        }
        let what = format!("compare {tip} with {commit}");
        self.open()?.graph_descendant_of(oid(tip)?, oid(commit)?).map_err(read(what))
    }

    /// What is going on in the checkout (`a merge`), if anything is that leaves its files half done.
    pub(super) fn in_progress(&self) -> Result<Option<&'static str>, Error> {
        Ok(match self.open()?.state() {
            RepositoryState::Clean | RepositoryState::Bisect => None,
            RepositoryState::Merge => Some("a merge"),
            RepositoryState::Revert | RepositoryState::RevertSequence => Some("a revert"),
            RepositoryState::CherryPick | RepositoryState::CherryPickSequence => Some("a cherry-pick"),
            RepositoryState::Rebase | RepositoryState::RebaseInteractive | RepositoryState::RebaseMerge => {
                Some("a rebase")
            }
            RepositoryState::ApplyMailbox | RepositoryState::ApplyMailboxOrRebase => Some("`git am`"),
        })
    }

    /// Paths of the index with unresolved conflicts.
    pub(super) fn conflicts(&self) -> Result<Vec<String>, Error> {
        let repository = self.open()?;
        let index = repository.index().map_err(read("read the index"))?;
        let stages = index.iter().filter(|entry| entry.flags & STAGE != 0);
        let mut paths: Vec<_> = stages.map(|entry| String::from_utf8_lossy(&entry.path).into_owned()).collect();
        paths.dedup();
        Ok(paths)
    }

    /// Paths of the index that git is told not to look at (assume-unchanged, skip-worktree), with their blobs' ids.
    pub(super) fn unwatched(&self) -> Result<Vec<(Vec<u8>, String)>, Error> {
        let repository = self.open()?;
        let index = repository.index().map_err(read("read the index"))?;
        let flagged =
            |entry: &git2::IndexEntry| entry.flags & ASSUME_UNCHANGED != 0 || entry.flags_extended & SKIP_WORKTREE != 0;
        Ok(index.iter().filter(flagged).map(|entry| (entry.path, entry.id.to_string())).collect())
    }

    /// Whether the index can be read and hides nothing: no marks, no conflicts.
    pub(super) fn index_is_plain(&self) -> Result<bool, Error> {
        let repository = self.open()?;
        let Ok(index) = repository.index() else { return Ok(false) };
        let odd = |entry: git2::IndexEntry| {
            entry.flags & (ASSUME_UNCHANGED | STAGE) != 0 || entry.flags_extended & SKIP_WORKTREE != 0
        };
        Ok(!index.iter().any(odd))
    }

    /// Those of `paths` (relative to the working tree) that are tracked, and those that git's rules ignore.
    pub(super) fn standing(&self, paths: &[String]) -> Result<Vec<Standing>, Error> {
        let repository = self.open()?;
        let index = repository.index().map_err(read("read the index"))?;
        let look = |path: &String| {
            if index.get_path(Path::new(path), 0).is_some() {
                return Ok(Standing::Tracked);
            }
            let ignored =
                repository.is_path_ignored(path).map_err(read(format!("look up whether {path} is ignored")))?;
            Ok(if ignored { Standing::Ignored } else { Standing::Untracked })
        };
        paths.iter().map(look).collect()
    }

    /// Names of the content filters that the configuration defines now.
    pub(super) fn filters(&self) -> Result<Vec<String>, Error> {
        let repository = self.open()?;
        let config =
            repository.config().and_then(|mut config| config.snapshot()).map_err(read("read the configuration"))?;
        let mut names = Vec::new();
        let entries = config.entries(Some("^filter\\..*")).map_err(read("read the configuration"))?;
        entries
            .for_each(|entry| {
                let key = String::from_utf8_lossy(entry.name_bytes());
                names.extend(super::attributes::filter_of(&key).map(str::to_owned));
            })
            .map_err(read("read the configuration"))?;
        Ok(names)
    }

    /// What a commit's tree holds that needs attention.
    pub(super) fn oddities(&self, commit: &CommitId) -> Result<Oddities, Error> {
        let repository = self.open()?;
        let tree = find(&repository, commit)?.tree().map_err(read(format!("read the tree of {commit}")))?;
        let mut oddities = Oddities::default();
        let mut failed = None;
        let walked = tree.walk(TreeWalkMode::PreOrder, |parent, entry| {
            if entry.kind() == Some(ObjectType::Commit) {
                let name = String::from_utf8_lossy(entry.name_bytes());
                oddities.submodules.push(format!("{parent}{name}"));
            } else if entry.name_bytes() == b".gitattributes" && entry.kind() == Some(ObjectType::Blob) {
                match repository.find_blob(entry.id()) {
                    Ok(blob) => oddities.attributes.push(blob.content().to_vec()),
                    Err(error) => {
                        failed = Some(error);
                        return TreeWalkResult::Abort;
                    }
                }
            }
            TreeWalkResult::Ok
        });
        let what = format!("walk the tree of {commit}");
        match failed {
            Some(error) => Err(read(what)(error)),
            None => walked.map(|()| oddities).map_err(read(what)),
        }
    }
}

fn id(oid: Oid) -> CommitId {
    CommitId(oid.to_string())
}

fn oid(commit: &CommitId) -> Result<Oid, Error> {
    Oid::from_str(&commit.0).map_err(|_| Error::NoSuchCommit { rev: commit.0.clone() })
}

fn find<'a>(repository: &'a Repository, commit: &CommitId) -> Result<git2::Commit<'a>, Error> {
    repository.find_commit(oid(commit)?).map_err(read(format!("read commit {commit}")))
}
