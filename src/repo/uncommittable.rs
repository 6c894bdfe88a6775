//! What no commit can hold: repositories within the tree, special files (pipes, sockets), empty directories.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
};

use super::{
    Error, Worktree, copy_ignored::copy_all, excludes, io_error, paths::path_text, removal::remove_tree,
    tree_walk::Unholdable,
};
use crate::domain::git_names;

/// What came of moving something out of the tree.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MovedOut {
    /// What was moved.
    pub kept: Vec<String>,
    /// What could not be taken to another file system (a socket), and is left.
    pub left: Vec<String>,
}

impl Worktree {
    /// Repositories within the tree, with a slash behind, and special files; what git ignores and build artefacts aside.
    pub fn uncommittable(&self) -> Result<Vec<String>, Error> {
        self.of_these(walk(self.path(), |path| excludes::artefact(self.path(), &path.join("x"))))
    }

    /// The same as the last look at the tree met it, so that a tree that was just gone through is not gone through again.
    pub fn uncommittable_as_walked(&self) -> Result<Vec<String>, Error> {
        match self.take_unholdable() {
            Some(met) => self.of_these(met.outermost(|path| excludes::artefact(self.path(), &path.join("x")))),
            None => self.uncommittable(),
        }
    }

    fn of_these(&self, met: Unholdable) -> Result<Vec<String>, Error> {
        let Unholdable { repositories, special } = met;
        let mut found = if repositories.is_empty() { Vec::new() } else { self.nested(&repositories)? };
        if !special.is_empty() {
            let ignored = self.ignored(&special)?;
            found.extend(special.into_iter().filter(|path| !ignored.contains(path)));
        }
        found.sort();
        Ok(found)
    }

    /// Of directories that hold a `.git`, those that are no submodules. Where files of one are tracked, only its `.git` is
    /// in no commit.
    fn nested(&self, candidates: &[PathBuf]) -> Result<Vec<String>, Error> {
        let whole = self.changes(&self.git()?, None)?.repositories;
        let mut found = Vec::new();
        for path in candidates {
            let inside = path_text(&path.join("x"));
            if whole.iter().any(|one| one == path) {
                found.push(format!("{}/", path_text(path)));
            } else if self.ignored(&[inside])?.is_empty() {
                found.push(path_text(&path.join(".git")));
            }
        }
        Ok(found)
    }

    /// Removes directories that hold nothing, and those that hold nothing else; git ignores some, and these stay.
    pub fn remove_empty_directories(&self) -> Result<(), Error> {
        self.remove_empty_below(Path::new("")).map(drop)
    }

    /// Whether the directory is empty afterwards.
    fn remove_empty_below(&self, directory: &Path) -> Result<bool, Error> {
        let place = self.path().join(directory);
        let mut is_empty = true;
        let Ok(listing) = fs::read_dir(&place) else { return Ok(false) };
        for entry in listing.flatten() {
            let path = directory.join(entry.file_name());
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let gone = is_directory
                && entry.file_name() != ".git"
                && !excludes::artefact(self.path(), &path.join("x"))
                && !self.path().join(&path).join(".git").exists()
                && self.remove_empty_below(&path)?
                && self.ignored(&[path_text(&path.join("x"))])?.is_empty()
                && fs::remove_dir(self.path().join(&path)).is_ok();
            is_empty &= gone;
        }
        Ok(is_empty)
    }

    /// Moves these out of the tree, to the same paths below `place`. Done again after it was half done, it moves the rest.
    pub fn move_out(&self, paths: &[String], place: &Path) -> Result<MovedOut, Error> {
        let mut moved = MovedOut::default();
        for path in paths {
            let (from, to) = (self.path().join(path.trim_end_matches('/')), place.join(path.trim_end_matches('/')));
            if from.symlink_metadata().is_err() {
                continue;
            }
            let above = to.parent().unwrap_or(place);
            fs::create_dir_all(above).map_err(io_error("make", above))?;
            let done = match fs::rename(&from, &to) {
                Err(error) if error.kind() == io::ErrorKind::CrossesDevices => take_across(&from, &to),
                done => done.and_then(|()| sync_above(&to)).map(|()| true),
            };
            if done.map_err(io_error("move", &from))? {
                moved.kept.push(path.clone());
            } else {
                moved.left.push(path.clone());
            }
        }
        Ok(moved)
    }
}

/// Moves a directory to a place that is not there yet.
pub fn move_whole(from: &Path, to: &Path) -> Result<(), Error> {
    let above = to.parent().unwrap_or(to);
    fs::create_dir_all(above).map_err(io_error("make", above))?;
    let done = match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => take_across(from, &to.to_owned()).map(drop),
        done => done.and_then(|()| sync_above(to)),
    };
    done.map_err(io_error("move", from))
}

/// What was moved out of a tree to this place.
#[must_use]
pub fn kept_in(place: &Path) -> Vec<String> {
    let Unholdable { repositories, special } = walk(place, |_| false);
    let mut found: Vec<_> = repositories.iter().map(|path| format!("{}/", path_text(path))).chain(special).collect();
    found.sort();
    found
}

/// Directories below `root` that hold a `.git`, and special files; not what lies in a directory that is left out.
fn walk(root: &Path, left_out: impl Fn(&Path) -> bool) -> Unholdable {
    let (mut repositories, mut special) = (Vec::new(), Vec::new());
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        // gone by now, or closed to us: git cannot look there either
        let Ok(listing) = fs::read_dir(root.join(&directory)) else { continue };
        let (mut below, mut is_repository) = (Vec::new(), false);
        for entry in listing.flatten() {
            let (path, Ok(kind)) = (directory.join(entry.file_name()), entry.file_type()) else { continue };
            if entry.file_name() == ".git" {
                is_repository = !directory.as_os_str().is_empty();
            } else if git_names::is_reserved(&entry.file_name().to_string_lossy()) {
                special.push(path_text(&path));
            } else if kind.is_dir() {
                if !left_out(&path) {
                    below.push(path);
                }
            } else if kind.is_fifo() || kind.is_socket() || kind.is_block_device() || kind.is_char_device() {
                special.push(path_text(&path));
            }
        }
        if is_repository { repositories.push(directory) } else { directories.append(&mut below) }
    }
    Unholdable { repositories, special }
}

/// Takes a tree to another file system: copied whole under another name, then named as it is to be, then removed.
fn take_across(from: &Path, to: &PathBuf) -> io::Result<bool> {
    let half = to.with_file_name(format!(".{}.half", to.file_name().unwrap_or_default().to_string_lossy()));
    let clear = |path: &Path| remove_tree(path).map_err(|error| io::Error::other(error.to_string()));
    clear(&half)?;
    if !copy_all(from, &half)? {
        return Ok(false);
    }
    sync_all(&half)?;
    fs::rename(&half, to)?;
    sync_above(to)?;
    clear(from)?;
    Ok(true)
}

/// Makes a tree durable: what it was copied from is about to go.
fn sync_all(path: &Path) -> io::Result<()> {
    let found = path.symlink_metadata()?;
    if found.is_dir() {
        for entry in fs::read_dir(path)? {
            sync_all(&entry?.path())?;
        }
    }
    // a pipe would wait for its writer
    if found.is_dir() || found.is_file() { File::open(path)?.sync_all() } else { Ok(()) }
}

/// Makes a name durable.
fn sync_above(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |above| File::open(above)?.sync_all())
}
