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
    time::Duration,
};

use uuid::Uuid;

use super::{
    Checkout, Error,
    tie::replace_file,
    worktree::{read_file, read_line},
};

const FILE: &str = "nisse-id";
/// How often, and after what pause, it is written again where another process is at it.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(20);

/// Where a checkout was before.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Past {
    /// Places at which it is no more.
    moved_from: Arc<[PathBuf]>,
    /// The checkout that it is a copy of.
    copy_of: Option<PathBuf>,
}

/// What the file says.
struct Mark {
    id: String,
    /// The git directories of checkouts, relative to the one that holds the file, and where the checkouts were.
    places: Vec<(String, PathBuf)>,
}

impl Mark {
    fn read(common: &Path) -> Option<Self> {
        let text = read_file(&common.join(FILE))?;
        let mut lines = text.lines();
        let id = lines.next().filter(|id| !id.is_empty())?.to_owned();
        let place = |line: &str| line.split_once('\t').map(|(of, at)| (of.to_owned(), PathBuf::from(at)));
        Some(Self { id, places: lines.filter_map(place).collect() })
    }

    fn write(&self, common: &Path) -> Result<(), Error> {
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

impl Past {
    /// The past of the checkout at `root`. Nothing but small files is read.
    pub(super) fn of(root: &Path, git_dir: &Path, common: &Path) -> Self {
        let (Some(mark), of) = (Mark::read(common), relative(git_dir, common)) else { return Self::default() };
        let others = mark.places.iter().filter(|(whose, at)| *whose == of && at != root).map(|(_, at)| at);
        let (there, gone): (Vec<_>, Vec<_>) = others.cloned().partition(|at| mark.is_also_at(at, common));
        // reached by another path, it is where it was
        let gone = gone.into_iter().filter(|at| !is_one(at, root));
        Self { moved_from: gone.collect(), copy_of: there.into_iter().next() }
    }
}

impl Checkout {
    /// Whether what began at `place` began in this checkout: it is there, or was before it was moved.
    #[must_use]
    pub fn is_or_was_at(&self, place: &Path) -> bool {
        // one that was moved may have left a link
        self.root() == place || is_one(place, self.root()) || self.past().moved_from.iter().any(|past| past == place)
    }

    /// The checkout that this one is a copy of: its tasks are there.
    #[must_use]
    pub fn copy_of(&self) -> Option<&Path> {
        self.past().copy_of.as_deref()
    }

    /// Sees to it that this checkout is known again after it was moved. To be done when a task is in the log, so that what a
    /// killed process leaves of it is cleared by whoever goes on with that.
    pub fn leave_mark(&self) -> Result<(), Error> {
        let (common, own) = (self.common_dir(), relative(self.git_dir(), self.common_dir()));
        let here = (own, self.root().to_owned());
        let new = || Mark { id: Uuid::now_v7().to_string(), places: Vec::new() };
        let mut mark = match Mark::read(common) {
            Some(mark) if mark.places.contains(&here) => return Ok(()),
            Some(mark) if self.copy_of().is_none() => mark,
            Some(_) | None => new(),
        };
        mark.places.push(here.clone());
        let mut written = mark.write(common);
        // tasks that begin at once write the same, each in the way of the other for a moment
        for _ in 0..TRIES {
            let there = Mark::read(common).is_some_and(|mark| mark.places.contains(&here));
            if written.is_ok() || there {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
            written = mark.write(common);
        }
        written
    }
}

/// A git directory as it is named in the file.
fn relative(git_dir: &Path, common: &Path) -> String {
    match git_dir.strip_prefix(common) {
        Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
        Ok(below) => below.display().to_string(),
        Err(_) => git_dir.display().to_string(),
    }
}

fn is_one(a: &Path, b: &Path) -> bool {
    a.metadata().is_ok_and(|a| b.metadata().is_ok_and(|b| (a.dev(), a.ino()) == (b.dev(), b.ino())))
}

/// The shared git directory of the checkout at a path, if one is there.
fn common_dir_at(root: &Path) -> Option<PathBuf> {
    let dot_git = root.join(".git");
    let git_dir = if dot_git.is_dir() { dot_git } else { root.join(read_line(&dot_git)?.strip_prefix("gitdir: ")?) };
    Some(read_line(&git_dir.join("commondir")).map_or_else(|| git_dir.clone(), |common| git_dir.join(common)))
}
