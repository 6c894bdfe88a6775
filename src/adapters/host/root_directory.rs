//! Paths that stay beneath a root.
//!
//! Two steps. [`RootDirectory::resolve`] follows links by name and refuses what leaves the root or meets `.git`; its answer
//! holds no link. [`RootDirectory::parent`] then opens that answer part by part, each relative to the directory before and
//! never through a link. So a part that becomes a link in between is refused, not followed, on every Unix alike.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{fd::OwnedFd, unix::ffi::OsStringExt},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, openat},
    io::Errno,
};

use crate::{
    domain::git_names,
    ports::host::{Error, FileKind, Resolved},
    repo::directory,
};

/// Links followed for one path before it is called a circle; Linux's own limit.
const MOST_LINKS: u32 = 40;

/// How directories are opened on the way.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// An open root directory.
#[derive(Debug)]
pub(super) struct RootDirectory {
    path: PathBuf,
    directory: OwnedFd,
}

impl RootDirectory {
    /// Opens the directory at `path`, an absolute one without links.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let opened = || -> io::Result<Self> {
            // no part of it may be a link: a command may have put one there
            let passed = directory::open(path)?;
            let directory = openat(&passed, ".", DIRECTORY, Mode::empty())?;
            Ok(Self { path: path.to_owned(), directory })
        };
        opened().map_err(|source| Error::Io { what: format!("cannot open the directory {}", path.display()), source })
    }

    /// The open directory.
    pub(super) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// Its absolute path, without links.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where `asked` really is; see [`crate::ports::host::Host::resolve`]. An absolute path is taken if it is inside.
    pub(super) fn resolve(&self, asked: &str) -> Result<Resolved, Error> {
        let leaves = || Error::Refused(format!("{asked} is outside of the working directory; use a path inside it"));
        if asked.contains('\0') {
            return Err(Error::Refused("a path cannot hold a NUL character".to_owned()));
        }
        let mut rest = self.parts(Path::new(asked)).ok_or_else(leaves)?;
        let mut done = PathBuf::new();
        let mut links = 0;
        while let Some(part) = rest.pop() {
            if part == ".." {
                if !done.pop() {
                    return Err(leaves());
                }
                continue;
            }
            refuse_git(asked, &part)?;
            let here = done.join(&part);
            let found = match self.kind(&here) {
                Ok(found) => found,
                Err(Errno::NOENT) => {
                    done.push(part);
                    continue;
                }
                Err(error) => return Err(failure(asked, "cannot look at", error.into())),
            };
            if found == FileType::Symlink {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Error::Refused(format!("{asked} is a circle of links")));
                }
                let target = rustix::fs::readlinkat(&self.directory, &here, Vec::new())
                    .map_err(|error| failure(asked, "cannot read the link", error.into()))?;
                let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                if target.is_absolute() {
                    done.clear();
                }
                let outside =
                    || Error::Refused(format!("{asked} is a link that leads outside of the working directory"));
                rest.extend(self.parts(&target).ok_or_else(outside)?);
                // `a/..` of a link's target may step over the root's edge
                if escapes(&done, &rest) {
                    return Err(outside());
                }
                continue;
            }
            done.push(part);
        }
        let kind = match self.kind(&done) {
            Ok(FileType::Directory) => FileKind::Directory,
            Ok(FileType::RegularFile) => FileKind::File,
            Ok(_) => FileKind::Other,
            Err(Errno::NOENT) => FileKind::Absent,
            Err(error) => return Err(failure(asked, "cannot look at", error.into())),
        };
        let path = done
            .into_os_string()
            .into_string()
            .map_err(|_| Error::Refused(format!("{asked} leads to a name that is not UTF-8")))?;
        Ok(Resolved { path, kind })
    }

    /// What is at a path beneath the root, a link itself.
    fn kind(&self, path: &Path) -> Result<FileType, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let found = rustix::fs::statat(&self.directory, path, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FileType::from_raw_mode(found.st_mode))
    }

    /// The open directory that holds the resolved `path`, and the last part of it. With `make`, missing directories
    /// are made, each made durable in the one above.
    pub(super) fn parent<'p>(&self, path: &'p str, make: bool) -> Result<(OwnedFd, &'p OsStr), Error> {
        let path_of = Path::new(path);
        let mut parts: Vec<&OsStr> = Vec::new();
        for component in path_of.components() {
            match component {
                Component::Normal(part) if !path.contains('\0') => {
                    refuse_git(path, part)?;
                    parts.push(part);
                }
                Component::CurDir => {}
                Component::Normal(_) | Component::Prefix(_) | Component::RootDir | Component::ParentDir => {
                    return Err(Error::Refused(format!("{path} is not a path inside the working directory")));
                }
            }
        }
        let Some(name) = parts.pop() else {
            return Err(Error::Refused("this is the working directory itself, not a file".to_owned()));
        };
        let walked = || -> io::Result<OwnedFd> {
            let mut directory = self.directory.try_clone()?;
            for part in parts {
                let next = match rustix::fs::openat(&directory, part, DIRECTORY, Mode::empty()) {
                    Err(rustix::io::Errno::NOENT) if make => {
                        match rustix::fs::mkdirat(&directory, part, Mode::from_raw_mode(0o777)) {
                            Ok(()) => rustix::fs::fsync(&directory)?,
                            Err(rustix::io::Errno::EXIST) => {}
                            Err(error) => return Err(error.into()),
                        }
                        rustix::fs::openat(&directory, part, DIRECTORY, Mode::empty())?
                    }
                    opened => opened?,
                };
                directory = next;
            }
            Ok(directory)
        };
        walked()
            .map(|directory| (directory, name))
            .map_err(|error| failure(path, "cannot open the directory of", error))
    }

    /// The parts of a path, last first; `.` left out. None if it is absolute and not under the root.
    fn parts(&self, path: &Path) -> Option<Vec<OsString>> {
        let relative = if path.is_absolute() { path.strip_prefix(&self.path).ok()? } else { path };
        Some(
            relative
                .components()
                .rev()
                .filter_map(|component| match component {
                    Component::Normal(part) => Some(part.to_owned()),
                    Component::ParentDir => Some("..".into()),
                    Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
                })
                .collect(),
        )
    }
}

/// Whether the parts that are left begin with more steps up than `done` is deep.
fn escapes(done: &Path, rest: &[OsString]) -> bool {
    rest.iter().rev().take_while(|part| *part == "..").count() > done.components().count()
}

/// `.git` is never touched, at any depth and in any case of letters (some file systems do not tell them apart).
fn refuse_git(path: &str, part: &OsStr) -> Result<(), Error> {
    if part.eq_ignore_ascii_case(".git") {
        return Err(Error::Refused(format!("{path} is git's own data, which no file tool reads or writes")));
    }
    if git_names::is_reserved(&part.to_string_lossy()) {
        return Err(Error::Refused(format!(
            "{path}: git takes no file of this name, since some systems take it for git's own directory; choose another"
        )));
    }
    Ok(())
}

/// The error for what the system said about `path`: what the asker can mend is refused, the rest is the machine's.
pub(super) fn failure(path: &str, what: &str, source: io::Error) -> Error {
    use rustix::io::Errno;
    let reason = match Errno::from_io_error(&source) {
        Some(Errno::NOENT) => "there is no such file",
        Some(Errno::NOTDIR) => "a part of this path is a file, not a directory",
        Some(Errno::ISDIR) => "this is a directory",
        Some(Errno::LOOP) => "this is a link now; ask for the path again",
        Some(Errno::ACCESS | Errno::PERM) => "the system does not permit it",
        Some(Errno::NAMETOOLONG) => "the name is too long",
        Some(Errno::TXTBSY) => "this program is running",
        _ => return Error::Io { what: format!("{what} {path}"), source },
    };
    Error::Refused(format!("{path}: {reason}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn refusal(root: &RootDirectory, path: &str) -> String {
        match root.resolve(path) {
            Err(Error::Refused(reason)) => reason,
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn links_inside_are_followed_and_what_leaves_is_refused() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("root");
        std::fs::create_dir_all(inner.join("real/deep")).unwrap();
        std::fs::create_dir_all(inner.join(".git")).unwrap();
        std::fs::File::create(inner.join("real/t.txt")).unwrap();
        std::fs::File::create(outer.path().join("secret")).unwrap();
        symlink("real/t.txt", inner.join("link.txt")).unwrap();
        symlink("real", inner.join("dirlink")).unwrap();
        symlink("nowhere.txt", inner.join("dangling.txt")).unwrap();
        symlink(inner.canonicalize().unwrap().join("real"), inner.join("absolute")).unwrap();
        symlink(outer.path().join("secret"), inner.join("out")).unwrap();
        symlink("out", inner.join("chain")).unwrap();
        symlink("../..", inner.join("real/up")).unwrap();
        symlink("../missing.txt", inner.join("outdangling")).unwrap();
        symlink(".git", inner.join("gitlink")).unwrap();
        symlink("circle", inner.join("circle")).unwrap();
        let root = RootDirectory::open(&inner.canonicalize().unwrap()).unwrap();

        for (asked, path, kind) in [
            ("link.txt", "real/t.txt", FileKind::File),
            ("dirlink/t.txt", "real/t.txt", FileKind::File),
            ("dirlink/deep/../t.txt", "real/t.txt", FileKind::File),
            ("absolute/t.txt", "real/t.txt", FileKind::File),
            ("dangling.txt", "nowhere.txt", FileKind::Absent),
            ("./real//deep/", "real/deep", FileKind::Directory),
            ("new/dir/file", "new/dir/file", FileKind::Absent),
            ("", "", FileKind::Directory),
        ] {
            assert_eq!(root.resolve(asked).unwrap(), Resolved { path: path.to_owned(), kind }, "{asked}");
        }
        let inside = root.path().join("link.txt");
        assert_eq!(root.resolve(inside.to_str().unwrap()).unwrap().path, "real/t.txt");

        for asked in ["out", "chain", "real/up/secret", "outdangling", "../secret", "real/../../secret", "/etc/passwd"]
        {
            assert!(refusal(&root, asked).contains("outside"), "{asked}");
        }
        for asked in [".git", ".git/config", "sub/.git/config", ".GIT/HEAD", "gitlink", "gitlink/config"] {
            assert!(refusal(&root, asked).contains("git's own data"), "{asked}");
        }
        for asked in ["git~1", "sub/.git /x", ".git:x"] {
            assert!(refusal(&root, asked).contains("git takes no file of this name"), "{asked}");
        }
        assert!(refusal(&root, "circle").contains("circle"));
        assert!(refusal(&root, "a\0b").contains("NUL"));
        assert!(refusal(&root, "real/t.txt/x").contains("not a directory"));
    }

    #[test]
    fn a_directory_that_became_a_link_is_not_followed() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("root");
        std::fs::create_dir_all(&inner).unwrap();
        symlink(outer.path(), inner.join("sub")).unwrap();
        let root = RootDirectory::open(&inner.canonicalize().unwrap()).unwrap();
        assert!(matches!(root.parent("sub/file", true), Err(Error::Refused(_))));
        assert!(matches!(root.parent("../file", true), Err(Error::Refused(_))));
        assert!(matches!(root.parent(".git/config", true), Err(Error::Refused(_))));
    }
}
