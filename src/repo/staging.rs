//! Bringing an index up to what the files are, and writing its tree: shared by snapshot and checkpoint.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    Error, excludes,
    git::{Git, LONG},
    io_error,
};

/// Above this many paths, new objects are synced together instead of one by one.
const MANY: usize = 64;

/// An index to be brought up to date with the files under `root`.
pub(super) struct Staging<'a> {
    /// Git, set up for the repository and the working tree.
    pub(super) git: &'a Git,
    /// The working tree.
    pub(super) root: &'a Path,
    /// The index; none for the working tree's own.
    pub(super) index: Option<&'a Path>,
}

/// Untracked paths, artefacts and ignored ones left out.
#[derive(Default, Debug)]
pub(super) struct Untracked {
    /// Files and links.
    pub(super) files: Vec<PathBuf>,
    /// Directories that are repositories themselves.
    pub(super) repositories: Vec<PathBuf>,
    /// Directories by which paths were left out as artefacts of a tool with a project file beside them.
    pub(super) artefacts: Vec<PathBuf>,
}

impl Staging<'_> {
    /// Tracked paths that differ from the index, or look as if they did.
    pub(super) fn tracked_changes(&self) -> Result<Vec<PathBuf>, Error> {
        let call = self.git.call(["diff-files", "-z", "--name-only", "--ignore-submodules=all", "--no-ext-diff"]);
        Ok(paths(call.index(self.index).limit(LONG).parts()?))
    }

    /// Untracked paths.
    pub(super) fn untracked(&self) -> Result<Untracked, Error> {
        let scratch = scratch()?;
        let mut from = std::ffi::OsString::from("--exclude-from=");
        from.push(excludes::write(scratch.path())?);
        let call = self.git.call(["ls-files", "-z", "--others", "--exclude-standard"]).args([from]);
        let mut found = Untracked::default();
        for path in paths(call.index(self.index).limit(LONG).parts()?) {
            if path.as_os_str().as_bytes().ends_with(b"/") {
                found.repositories.push(path);
            } else if let Some(directory) = excludes::beside(self.root, &path) {
                if found.artefacts.last() != Some(&directory) {
                    found.artefacts.push(directory);
                }
            } else {
                found.files.push(path);
            }
        }
        Ok(found)
    }

    /// Makes the index hold what is at these paths now: new bytes, a new mode, or nothing.
    pub(super) fn add(&self, paths: &[PathBuf]) -> Result<(), Error> {
        let mut input = Vec::new();
        let mut gone = Vec::new();
        for path in paths {
            let bytes = path.as_os_str().as_bytes();
            if self.behind_a_link(path) {
                // update-index refuses to look there; what was tracked is gone
                gone.extend_from_slice(b"0 0000000000000000000000000000000000000000\t");
                gone.extend_from_slice(bytes);
                gone.push(0);
            } else {
                input.extend_from_slice(bytes);
                input.push(0);
            }
        }
        if !gone.is_empty() {
            self.git.call(["update-index", "-z", "--index-info"]).index(self.index).input(gone).run()?;
        }
        if !input.is_empty() {
            let mut call = self.git.call(["update-index", "-z", "--add", "--remove", "--replace", "--stdin"]);
            if paths.len() > MANY {
                call = call.setting("core.fsyncMethod", "batch");
            }
            call.index(self.index).limit(LONG).input(input).run()?;
        }
        Ok(())
    }

    /// Writes the index's tree and gives its id.
    pub(super) fn write_tree(&self) -> Result<String, Error> {
        self.git.call(["write-tree"]).index(self.index).limit(LONG).line()
    }

    /// Whether one of the directories that lead to a path is a link.
    fn behind_a_link(&self, path: &Path) -> bool {
        let above = path.ancestors().skip(1).filter(|part| !part.as_os_str().is_empty());
        above.into_iter().any(|part| self.root.join(part).is_symlink())
    }
}

/// A directory for files that live as long as one step.
pub(super) fn scratch() -> Result<tempfile::TempDir, Error> {
    tempfile::tempdir().map_err(io_error("make a directory under", &std::env::temp_dir()))
}

/// Paths as git gives them: bytes, whatever their encoding.
pub(super) fn paths(parts: Vec<Vec<u8>>) -> Vec<PathBuf> {
    parts.into_iter().map(|bytes| PathBuf::from(OsStr::from_bytes(&bytes))).collect()
}

/// A path in words.
pub(super) fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
