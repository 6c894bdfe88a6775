//! Directories that are reached without a link on the way. Where a task works no path leads over a link when it begins;
//! a link that stands there later was put there by somebody, and what it points to is not the task's.

use std::{
    fs::File,
    io,
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::{Component, Path, PathBuf},
};

use rustix::fs::{CWD, Mode, OFlags, openat};

/// How directories are opened on the way.
pub(crate) const STEP: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(PASSING);
/// One that may be passed need not be readable.
#[cfg(target_os = "linux")]
const PASSING: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PASSING: OFlags = OFlags::RDONLY;

/// Opens the directory at an absolute path, part by part, never through a link.
pub(crate) fn open(path: &Path) -> io::Result<OwnedFd> {
    let mut directory = openat(CWD, "/", STEP, Mode::empty())?;
    for part in path.components() {
        match part {
            Component::RootDir => {}
            Component::Normal(name) => directory = openat(&directory, name, STEP, Mode::empty())?,
            Component::Prefix(_) | Component::CurDir | Component::ParentDir => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path is not an absolute one"));
            }
        }
    }
    Ok(directory)
}

/// The first link on the way to a path, itself included.
pub(crate) fn link_on_the_way(path: &Path) -> Option<PathBuf> {
    let mut parts: Vec<_> = path.ancestors().collect();
    parts.reverse();
    parts.into_iter().find(|part| part.is_symlink()).map(Path::to_owned)
}

/// The same path without links, as far as it is there.
pub(crate) fn real(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            match (path.parent(), path.file_name()) {
                (Some(parent), Some(name)) => Ok(real(parent)?.join(name)),
                (Some(_) | None, Some(_) | None) => Err(error),
            }
        }
        found => found,
    }
}

/// Whether two handles are of one directory.
pub(crate) fn is_same(one: &OwnedFd, other: &OwnedFd) -> io::Result<bool> {
    let of = |handle: &OwnedFd| -> io::Result<(u64, u64)> {
        let found = File::from(handle.try_clone()?).metadata()?;
        Ok((found.dev(), found.ino()))
    };
    Ok(of(one)? == of(other)?)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn no_link_is_followed_at_any_part() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        symlink("a", root.join("link")).unwrap();
        symlink("b", root.join("a/inner")).unwrap();
        let opened = open(&root.join("a/b/c")).unwrap();
        assert!(is_same(&opened, &open(&root.join("a/b/c")).unwrap()).unwrap());
        assert!(!is_same(&opened, &open(&root.join("a/b")).unwrap()).unwrap());
        for (path, link) in [("link/b/c", "link"), ("a/inner/c", "a/inner"), ("a/inner", "a/inner")] {
            assert!(open(&root.join(path)).is_err(), "{path}");
            assert_eq!(link_on_the_way(&root.join(path)), Some(root.join(link)));
        }
        assert_eq!(link_on_the_way(&root.join("a/b/c")), None);
        assert_eq!(real(&root.join("link/inner/c/new/er")).unwrap(), root.join("a/b/c/new/er"));
    }
}
