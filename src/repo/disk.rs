//! Files of the person's checkout as they are, byte for byte; putting one there, and taking one away.
//!
//! Directories are opened part by part and never through a link, so that nothing is written where a link leads to.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, ErrorKind, Read as _},
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::PermissionsExt},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, openat, statat},
    io::Errno,
};

use super::{
    Error,
    draft::{self, Like},
    exchange::{Is, Outcome, Spot},
    io_error,
};
use crate::log::crash;

/// A file, a link or a submodule as git tells them apart: kind, the owner's right to execute, and bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Content {
    /// `100644`, `100755`, `120000` or `160000`.
    pub(super) mode: String,
    /// The bytes, a link's target, or a submodule's commit.
    pub(super) bytes: Vec<u8>,
}

impl Content {
    /// Whether it stands for a submodule, of which only the directory is on the disk.
    pub(super) fn is_submodule(&self) -> bool {
        self.mode == SUBMODULE
    }
}

/// Git's mode of a submodule.
pub(super) const SUBMODULE: &str = "160000";

/// What is at a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// Nothing.
    Absent,
    /// A file or a link.
    File(Content),
    /// A directory.
    Directory,
    /// Nothing of its own: a link stands where a directory of its path would be. Which.
    Behind(PathBuf),
    /// Something that is left alone: no file, or in a repository of its own.
    Other,
}

impl Found {
    /// The content, where a file is wanted or nothing.
    pub(super) fn content(self) -> Option<Content> {
        match self {
            Self::File(content) => Some(content),
            Self::Absent | Self::Directory | Self::Behind(_) | Self::Other => None,
        }
    }
}

/// How a directory is opened on the way to a file.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Opening never waits for the other end of a pipe and never follows a link.
const PLAIN: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// What is at `path` below `root`.
pub(super) fn read(root: &Path, path: &Path) -> Result<Found, Error> {
    let mut parts: Vec<_> = above(path).collect();
    parts.reverse();
    for part in parts {
        let directory = root.join(&part);
        if directory.is_symlink() {
            return Ok(Found::Behind(part));
        }
        if directory.join(".git").symlink_metadata().is_ok() {
            return Ok(Found::Other);
        }
    }
    let looked = || -> io::Result<Found> {
        match parent(root, path, false)? {
            Some((directory, name)) => at(directory.as_fd(), &name),
            None => Ok(Found::Absent),
        }
    };
    looked().map_err(io_error("look at", &root.join(path)))
}

/// What is at a name of an open directory.
fn at(directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<Found> {
    let meta = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(meta) => meta,
        Err(Errno::NOENT) => return Ok(Found::Absent),
        Err(error) => return Err(error.into()),
    };
    Ok(match FileType::from_raw_mode(meta.st_mode) {
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(directory, name, Vec::new())?;
            Found::File(Content { mode: "120000".to_owned(), bytes: target.into_bytes() })
        }
        FileType::Directory => Found::Directory,
        FileType::RegularFile => {
            let mut file = File::from(openat(directory, name, PLAIN | OFlags::RDONLY, Mode::empty())?);
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            let mode = if file.metadata()?.permissions().mode() & 0o100 == 0 { "100644" } else { "100755" };
            Found::File(Content { mode: mode.to_owned(), bytes })
        }
        FileType::Fifo | FileType::Socket | FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => {
            Found::Other
        }
    })
}

/// The open directory that holds a path, and the path's last name; none if there is none. With `make` it is made.
fn parent(root: &Path, path: &Path, make: bool) -> io::Result<Option<(OwnedFd, OsString)>> {
    let Some(name) = path.file_name() else { return Ok(None) };
    let mut directory = openat(rustix::fs::CWD, root, DIRECTORY.difference(OFlags::NOFOLLOW), Mode::empty())?;
    for part in path.parent().into_iter().flat_map(Path::components) {
        directory = match openat(&directory, part.as_os_str(), DIRECTORY, Mode::empty()) {
            Err(Errno::NOENT) if make => {
                match rustix::fs::mkdirat(&directory, part.as_os_str(), Mode::from_raw_mode(0o777)) {
                    Ok(()) => rustix::fs::fsync(&directory)?,
                    Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                openat(&directory, part.as_os_str(), DIRECTORY, Mode::empty())?
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !make => return Ok(None),
            opened => opened?,
        };
    }
    Ok(Some((directory, name.to_owned())))
}

/// A path that goes from one content to another (none for nothing).
pub(super) struct Moving<'a> {
    /// The checkout.
    pub(super) root: &'a Path,
    /// Relative to it.
    pub(super) path: &'a Path,
    /// How names beside it begin that are nobody else's.
    pub(super) own: &'a str,
    /// What is expected there.
    pub(super) from: Option<&'a Content>,
    /// What is to be there.
    pub(super) to: Option<&'a Content>,
}

/// What came of moving a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Moved {
    /// Whether it is there.
    pub(super) outcome: Outcome,
    /// The file had another name, which keeps the old content.
    pub(super) had_links: bool,
    /// The file system could not exchange two names.
    pub(super) by_steps: bool,
}

impl Moving<'_> {
    /// Clears up after a process that died while it moved this path.
    pub(super) fn settle(&self) -> Result<Outcome, Error> {
        let settled = || match parent(self.root, self.path, false)? {
            Some((directory, name)) => {
                Spot::new(directory.as_fd(), &name, self.own).settle(&|name| self.judge(directory.as_fd(), name))
            }
            None => Ok(Outcome::Done),
        };
        settled().map_err(io_error("clear up beside", &self.root.join(self.path)))
    }

    /// Takes away what was expected, and the directories that are empty without it.
    pub(super) fn take(&self) -> Result<Moved, Error> {
        let taken = || -> io::Result<Moved> {
            let done = Moved { outcome: Outcome::Done, had_links: false, by_steps: false };
            let Some((directory, name)) = parent(self.root, self.path, false)? else { return Ok(done) };
            let had_links = has_links(directory.as_fd(), &name);
            let spot = Spot::new(directory.as_fd(), &name, self.own);
            let outcome = spot.take(&|name| self.judge(directory.as_fd(), name))?;
            Ok(Moved { outcome, had_links, ..done })
        };
        let moved = taken().map_err(io_error("remove", &self.root.join(self.path)))?;
        self.remove_empty_above();
        Ok(moved)
    }

    /// Takes away the directories above that are empty: they are where only this path was.
    pub(super) fn remove_empty_above(&self) {
        for directory in above(self.path) {
            if fs::remove_dir(self.root.join(directory)).is_err() {
                break;
            }
        }
    }

    /// Puts there what is to be there. A file that was there keeps its owner, its attributes and its rights, but for that
    /// to execute; another gets `rights` if they are known, else what the umask leaves.
    pub(super) fn put(&self, content: &Content, rights: Option<u32>) -> Result<Moved, Error> {
        let put = || -> io::Result<Moved> {
            let mut moved = Moved { outcome: Outcome::Changed, had_links: false, by_steps: false };
            let Some((directory, name)) = parent(self.root, self.path, true)? else { return Ok(moved) };
            let directory = directory.as_fd();
            let spot = Spot::new(directory, &name, self.own);
            let there = match openat(directory, &*name, PLAIN | OFlags::RDONLY, Mode::empty()) {
                Ok(there) => Some(File::from(there)).filter(|there| there.metadata().is_ok_and(|meta| meta.is_file())),
                Err(_) => None,
            };
            if content.mode == "120000" {
                rustix::fs::symlinkat(OsStr::from_bytes(&content.bytes), directory, spot.draft())?;
            } else {
                let like = match (&there, rights) {
                    (Some(there), _) => Like::File(there),
                    (None, Some(rights)) => Like::Rights(rights),
                    (None, None) => Like::Umask,
                };
                draft::write(directory, &spot.draft(), &content.bytes, like, Some(content.mode == "100755"))?;
            }
            crash::point("file.written");
            moved.outcome = match self.from.filter(|from| !from.is_submodule()) {
                Some(_) => {
                    moved.had_links = has_links(directory, &name);
                    spot.replace(&|name| self.judge(directory, name))?
                }
                None => spot.put_new()?,
            };
            moved.by_steps = spot.by_steps();
            Ok(moved)
        };
        put().map_err(io_error("write", &self.root.join(self.path)))
    }

    fn judge(&self, directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<Is> {
        Ok(match at(directory, name)? {
            Found::Absent => Is::Absent,
            Found::File(content) if self.to == Some(&content) => Is::Ours,
            Found::File(content) if self.from == Some(&content) => Is::Expected,
            Found::File(_) | Found::Directory | Found::Behind(_) | Found::Other => Is::Other,
        })
    }
}

/// Makes the directory of a submodule, as git does.
pub(super) fn make_directory(root: &Path, path: &Path) -> Result<(), Error> {
    fs::create_dir_all(root.join(path)).map_err(io_error("make", &root.join(path)))
}

/// Removes a directory that holds nothing but empty ones; false if it holds something.
pub(super) fn remove_empty(root: &Path, path: &Path) -> Result<bool, Error> {
    let full = root.join(path);
    for inner in directories_in(&full)? {
        if !remove_empty(root, &path.join(inner))? {
            return Ok(false);
        }
    }
    match fs::remove_dir(&full) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(false),
        Err(error) => Err(io_error("remove", &full)(error)),
    }
}

fn directories_in(full: &Path) -> Result<Vec<OsString>, Error> {
    let entries = fs::read_dir(full).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.map_err(io_error("list", full))?;
    let directory = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    Ok(entries.iter().filter(|entry| directory(entry)).map(fs::DirEntry::file_name).collect())
}

/// The first thing in a directory, however deep, that is no directory and that `goes` does not name.
pub(super) fn first_in(root: &Path, path: &Path, goes: &dyn Fn(&Path) -> bool) -> Result<Option<PathBuf>, Error> {
    let full = root.join(path);
    let entries = fs::read_dir(&full).map_err(io_error("list", &full))?;
    for entry in entries {
        let entry = entry.map_err(io_error("list", &full))?;
        let inner = path.join(entry.file_name());
        if entry.file_type().map_err(io_error("look at", &root.join(&inner)))?.is_dir() {
            if let Some(found) = first_in(root, &inner, goes)? {
                return Ok(Some(found));
            }
        } else if !goes(&inner) {
            return Ok(Some(inner));
        }
    }
    Ok(None)
}

/// The rights of a file; none if it is none.
pub(super) fn rights(root: &Path, path: &Path) -> Option<u32> {
    let meta = root.join(path).symlink_metadata().ok()?;
    meta.is_file().then(|| meta.permissions().mode() & 0o7777)
}

/// Whether a file has more than one name.
fn has_links(directory: BorrowedFd<'_>, name: &OsStr) -> bool {
    statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|meta| FileType::from_raw_mode(meta.st_mode) == FileType::RegularFile && meta.st_nlink > 1)
}

/// The names above a path, nearest first.
pub(super) fn above(path: &Path) -> impl Iterator<Item = PathBuf> {
    path.ancestors().skip(1).filter(|part| !part.as_os_str().is_empty()).map(Path::to_owned)
}
