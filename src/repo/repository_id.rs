//! By what a repository is known wherever it is moved to: the file `nisse-id` in the git directory that all of its
//! worktrees share. Its first line is an id, each further one a checkout of it and where that was when a task began.
//!
//! A copy carries the file along. As long as a repository with this file is at the place where a task began, the task
//! belongs there; the copy gets an id of its own with its first task.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Error,
    small_files::{read_file, read_line, replace_file},
};

const FILE: &str = "nisse-id";

/// Where a checkout was before.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct FormerPlaces {
    /// Places at which it is no more.
    pub(super) moved_from: Arc<[PathBuf]>,
    /// The checkout that it is a copy of.
    pub(super) copy_of: Option<PathBuf>,
}

/// What the file says.
pub(super) struct RepositoryId {
    pub(super) id: String,
    /// The git directories of checkouts, relative to the one that holds the file, and where the checkouts were.
    pub(super) places: Vec<(String, PathBuf)>,
}

impl RepositoryId {
    pub(super) fn read(common: &Path) -> Option<Self> {
        let text = read_file(&common.join(FILE))?;
        let mut lines = text.lines();
        let id = lines.next().filter(|id| !id.is_empty())?.to_owned();
        let place = |line: &str| line.split_once('\t').map(|(of, at)| (of.to_owned(), PathBuf::from(at)));
        Some(Self { id, places: lines.filter_map(place).collect() })
    }

    pub(super) fn write(&self, common: &Path) -> Result<(), Error> {
        let places = self.places.iter().map(|(of, at)| format!("{of}\t{}\n", at.display()));
        replace_file(&common.join(FILE), &format!("{}\n{}", self.id, places.collect::<String>()))
    }

    /// Whether another repository with this id is at the place.
    fn is_also_at(&self, place: &Path, own: &Path) -> bool {
        let Some(common) = common_dir_at(place) else { return false };
        let same = |a: fs::Metadata, b: fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
        let own = own.join(FILE).metadata();
        let itself = own.is_ok_and(|own| common.join(FILE).metadata().is_ok_and(|there| same(own, there)));
        !itself && Self::read(&common).is_some_and(|there| there.id == self.id)
    }
}

impl FormerPlaces {
    /// The past of the checkout at `root`. Nothing but small files is read.
    pub(super) fn of(root: &Path, git_dir: &Path, common: &Path) -> Self {
        let (Some(known), of) = (RepositoryId::read(common), relative(git_dir, common)) else { return Self::default() };
        let others = known.places.iter().filter(|(whose, at)| *whose == of && at != root).map(|(_, at)| at);
        let (there, gone): (Vec<_>, Vec<_>) = others.cloned().partition(|at| known.is_also_at(at, common));
        // reached by another path, it is where it was
        let gone = gone.into_iter().filter(|at| !is_one(at, root));
        Self { moved_from: gone.collect(), copy_of: there.into_iter().next() }
    }
}

/// A git directory as it is named in the file.
pub(super) fn relative(git_dir: &Path, common: &Path) -> String {
    match git_dir.strip_prefix(common) {
        Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
        Ok(below) => below.display().to_string(),
        Err(_) => git_dir.display().to_string(),
    }
}

/// The shared git directory of the checkout at a path, if one is there.
fn common_dir_at(root: &Path) -> Option<PathBuf> {
    let dot_git = root.join(".git");
    let git_dir = if dot_git.is_dir() { dot_git } else { root.join(read_line(&dot_git)?.strip_prefix("gitdir: ")?) };
    Some(read_line(&git_dir.join("commondir")).map_or_else(|| git_dir.clone(), |common| git_dir.join(common)))
}

/// Whether both paths lead to one directory.
pub(super) fn is_one(a: &Path, b: &Path) -> bool {
    a.metadata().is_ok_and(|a| b.metadata().is_ok_and(|b| (a.dev(), a.ino()) == (b.dev(), b.ino())))
}
