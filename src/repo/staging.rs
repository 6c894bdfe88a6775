//! Bringing an index up to what the files are, and writing its tree: shared by snapshot and checkpoint.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    Error, excludes,
    git::{Git, LONG},
    io_error,
};
use crate::domain::git_names;

/// Above this many paths, new objects are synced together instead of one by one.
pub(super) const MANY: usize = 64;

/// An index to be brought up to date with the files under `root`.
pub(super) struct Staging<'a> {
    /// Git, set up for the repository and the working tree.
    pub(super) git: &'a Git,
    /// The working tree.
    pub(super) root: &'a Path,
    /// The index; none for the working tree's own.
    pub(super) index: Option<&'a Path>,
}

/// What differs from an index; untracked paths without artefacts and ignored ones.
#[derive(Default, Debug)]
pub(super) struct Changes {
    /// Tracked paths.
    pub(super) tracked: Vec<PathBuf>,
    /// Untracked files and links.
    pub(super) untracked: Vec<PathBuf>,
    /// Untracked directories that are repositories themselves.
    pub(super) repositories: Vec<PathBuf>,
    /// Directories by which paths were left out as artefacts of a tool with a project file beside them.
    pub(super) artefacts: Vec<PathBuf>,
    /// Paths that are never staged, which are in none of the others.
    pub(super) left_out: Vec<LeftOut>,
}

/// Why a path is never staged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Why {
    /// `[files] deny` names it.
    Denied,
    /// It is nisse's own.
    State,
    /// It is a link in the place of a directory that the rules leave out.
    Link,
}

/// A path that is never staged.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct LeftOut {
    pub(super) path: PathBuf,
    pub(super) why: Why,
}

impl Staging<'_> {
    /// Paths whose files differ from the index, or look as if they did, and untracked ones; one look at all files.
    pub(super) fn changes(&self) -> Result<Changes, Error> {
        let scratch = scratch()?;
        let call = self.git.call(["ls-files", "-z", "-t", "--modified", "--deleted", "--others", "--exclude-standard"]);
        let mut changes = Changes::default();
        for part in call.args([excludes::option(scratch.path())?]).index(self.index).limit(LONG).parts()? {
            // a letter, a blank, a path; what is deleted is told as modified too
            let Some((mark, path)) = part.split_first_chunk::<2>() else { continue };
            let path = PathBuf::from(OsStr::from_bytes(path));
            if mark != b"? " {
                if changes.tracked.last() != Some(&path) {
                    changes.tracked.push(path);
                }
            } else if path.as_os_str().as_bytes().ends_with(b"/") {
                changes.repositories.push(path);
            } else if let Some(directory) = excludes::beside(self.root, &path) {
                if changes.artefacts.last() != Some(&directory) {
                    changes.artefacts.push(directory);
                }
            } else if !git_names::in_path(&path) {
                // git would refuse the other ones
                changes.untracked.push(path);
            }
        }
        let submodules = self.submodules_among(&changes.tracked)?;
        changes.tracked.retain(|path| !submodules.contains(path));
        Ok(changes)
    }

    /// Those of these tracked paths that are submodules: where one points is not a task's to change, and it is told as
    /// modified when its commit moved. A file in whose place there is a directory now is told so too.
    fn submodules_among(&self, tracked: &[PathBuf]) -> Result<BTreeSet<PathBuf>, Error> {
        let is_directory = |path: &&PathBuf| self.root.join(path).symlink_metadata().is_ok_and(|found| found.is_dir());
        let directories: Vec<_> = tracked.iter().filter(is_directory).collect();
        if directories.is_empty() {
            return Ok(BTreeSet::new());
        }
        let call = self.git.call(["ls-files", "-z", "--stage", "--"]).args(directories);
        let entries = call.variable("GIT_LITERAL_PATHSPECS", "1").index(self.index).limit(LONG).parts()?;
        let submodule = |entry: &Vec<u8>| {
            let tab = entry.iter().position(|byte| *byte == b'\t')?;
            entry.starts_with(b"160000 ").then(|| PathBuf::from(OsStr::from_bytes(&entry[tab + 1..])))
        };
        Ok(entries.iter().filter_map(submodule).collect())
    }

    /// Makes the index hold what is at these paths now: new bytes, a new mode, or nothing.
    pub(super) fn add(&self, paths: &[PathBuf]) -> Result<(), Error> {
        // update-index refuses to look behind a link; what was tracked there is gone
        let (gone, changed): (Vec<_>, Vec<_>) = paths.iter().cloned().partition(|path| self.behind_a_link(path));
        self.remove(&gone)?;
        if !changed.is_empty() {
            let mut call = self.git.call(["update-index", "-z", "--add", "--remove", "--replace", "--stdin"]);
            if paths.len() > MANY {
                call = call.setting("core.fsyncMethod", "batch");
            }
            let input = changed.iter().flat_map(|path| path.as_os_str().as_bytes().iter().copied().chain([0]));
            call.index(self.index).limit(LONG).input(input.collect()).run()?;
        }
        Ok(())
    }

    /// Makes the index hold nothing at these paths, whatever is there now.
    pub(super) fn remove(&self, paths: &[PathBuf]) -> Result<(), Error> {
        if paths.is_empty() {
            return Ok(());
        }
        let input = paths.iter().flat_map(|path| path.as_os_str().as_bytes().iter().copied().chain([0]));
        let call = self.git.call(["update-index", "-z", "--force-remove", "--stdin"]);
        call.index(self.index).input(input.collect()).run().map(drop)
    }

    /// Writes the index's tree and gives its id.
    pub(super) fn write_tree(&self) -> Result<String, Error> {
        self.git.call(["write-tree"]).index(self.index).limit(LONG).line()
    }

    /// Whether one of the directories that lead to a path is a link.
    pub(super) fn behind_a_link(&self, path: &Path) -> bool {
        let above = path.ancestors().skip(1).filter(|part| !part.as_os_str().is_empty());
        above.into_iter().any(|part| self.root.join(part).is_symlink())
    }
}

/// A directory for files that live as long as one step.
pub(super) fn scratch() -> Result<tempfile::TempDir, Error> {
    tempfile::tempdir().map_err(io_error("make a directory under", &std::env::temp_dir()))
}
