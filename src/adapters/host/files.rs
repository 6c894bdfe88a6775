//! Reading and writing single files, durably.
//!
//! A file is either as it was or as it shall be: the new bytes are made durable under a temporary name beside it, then
//! exchanged with what is there, which is compared before it goes ([`crate::repo::Spot`]). The temporary names follow from
//! the file's, so that doing a write again after a crash clears up after the first. Only a file with several names is written in place, since a rename would tear the names apart; a crash in
//! its middle leaves bytes that are neither, and their hash says so.

use std::{
    ffi::OsStr,
    fmt::Write as _,
    fs::File,
    io::{self, Read, Seek, Write},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::fs::MetadataExt,
    },
};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};
use sha2::{Digest, Sha256};

use super::root_directory::{RootDirectory, failure};
use crate::{
    domain::id::Hash,
    log::crash,
    ports::host::{Error, FileBytes},
    repo::{Is, Like, Outcome, Spot, write_draft},
};

/// Opening never waits for the other end of a pipe and never follows a link.
const PLAIN: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// See [`crate::ports::host::Host::read`].
pub(super) fn read(root: &RootDirectory, path: &str, limit: u64) -> Result<FileBytes, Error> {
    digest(&mut open(root, path)?, limit).map_err(|error| failure(path, "cannot read", error))
}

/// Opens the regular file at a resolved path for reading.
pub(super) fn open(root: &RootDirectory, path: &str) -> Result<File, Error> {
    let (directory, name) = root.parent(path, false)?;
    let opening = || -> io::Result<Option<File>> {
        let file = File::from(rustix::fs::openat(&directory, name, PLAIN | OFlags::RDONLY, Mode::empty())?);
        Ok(file.metadata()?.is_file().then_some(file))
    };
    opening().map_err(|error| failure(path, "cannot read", error))?.ok_or_else(|| not_a_file(path))
}

/// See [`crate::ports::host::Host::write`].
pub(super) fn write(root: &RootDirectory, path: &str, expected: Option<&Hash>, bytes: &[u8]) -> Result<(), Error> {
    let (directory, name) = root.parent(path, expected.is_none())?;
    let failed = |error| failure(path, "cannot write", error);
    let changed = || Error::Changed { path: path.to_owned() };
    let old = match rustix::fs::openat(&directory, name, PLAIN | OFlags::RDONLY, Mode::empty()) {
        Ok(old) => Some(File::from(old)),
        Err(Errno::NOENT) => None,
        Err(error) => return Err(failed(error.into())),
    };
    let Some(mut old) = old else {
        if expected.is_some() {
            return Err(changed());
        }
        return match put(&directory, name, None, bytes).map_err(failed)? {
            Outcome::Done => Ok(()),
            Outcome::Changed | Outcome::Kept => Err(changed()),
        };
    };
    let found = old.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(not_a_file(path));
    }
    let Some(expected) = expected.filter(|expected| digest(&mut old, 0).is_ok_and(|old| old.hash == **expected)) else {
        return Err(changed());
    };
    if found.nlink() > 1 {
        return overwrite(&directory, name, bytes).map_err(failed);
    }
    match put(&directory, name, Some((&old, expected)), bytes).map_err(failed)? {
        Outcome::Done => Ok(()),
        Outcome::Changed | Outcome::Kept => Err(changed()),
    }
}

/// See [`crate::ports::host::Host::settle`].
pub(super) fn settle(root: &RootDirectory, path: &str, before: Option<&Hash>, after: &Hash) -> Result<(), Error> {
    let (directory, name) = match root.parent(path, false) {
        Ok(opened) => opened,
        // where there is no directory nothing was begun
        Err(Error::Refused(_)) => return Ok(()),
        Err(error) => return Err(error),
    };
    let own = temporary_name(name);
    let judge = |name: &OsStr| judge(&directory, name, before, after);
    match Spot::new(directory.as_fd(), name, &own).settle(&judge) {
        Ok(Outcome::Done | Outcome::Changed | Outcome::Kept) => Ok(()),
        Err(error) => Err(failure(path, "cannot clear up beside", error)),
    }
}

/// What is at a name, told by its hash.
fn judge(directory: &OwnedFd, name: &OsStr, before: Option<&Hash>, after: &Hash) -> io::Result<Is> {
    let mut file = match rustix::fs::openat(directory, name, PLAIN | OFlags::RDONLY, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(Is::Absent),
        Err(Errno::LOOP) => return Ok(Is::Other),
        Err(error) => return Err(error.into()),
    };
    if !file.metadata()?.is_file() {
        return Ok(Is::Other);
    }
    let hash = digest(&mut file, 0)?.hash;
    Ok(if hash == *after {
        Is::Ours
    } else if before == Some(&hash) {
        Is::Expected
    } else {
        Is::Other
    })
}

fn not_a_file(path: &str) -> Error {
    Error::Refused(format!("{path} is not a regular file"))
}

/// Reads all of `file`, keeping at most `limit` bytes.
fn digest(file: &mut File, limit: u64) -> io::Result<FileBytes> {
    let (mut hasher, mut kept, mut size) = (Sha256::new(), Vec::new(), 0_u64);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(&buffer[..count]);
        let room = usize::try_from(limit.saturating_sub(size)).unwrap_or(usize::MAX);
        kept.extend_from_slice(&buffer[..count.min(room)]);
        size += count as u64;
    }
    let mut hash = String::with_capacity(64);
    for byte in hasher.finalize() {
        let _ = write!(hash, "{byte:02x}");
    }
    Ok(FileBytes { bytes: kept, size, hash: Hash(hash) })
}

/// Writes into the file itself, so that all its names go on meaning one file.
fn overwrite(directory: &OwnedFd, name: &OsStr, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::from(rustix::fs::openat(directory, name, PLAIN | OFlags::WRONLY, Mode::empty())?);
    file.rewind()?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)?;
    file.sync_all()
}

/// Puts a file with `bytes` at `name`: a new one, or in the place of the `old` one with its mode and, where possible, its
/// owner.
fn put(directory: &OwnedFd, name: &OsStr, old: Option<(&File, &Hash)>, bytes: &[u8]) -> io::Result<Outcome> {
    let own = temporary_name(name);
    let spot = Spot::new(directory.as_fd(), name, &own);
    let after = Hash::of(bytes);
    let judge = |name: &OsStr| judge(directory, name, old.map(|(_, hash)| hash), &after);
    spot.settle(&judge)?;
    let like = old.map_or(Like::Umask, |(old, _)| Like::File(old));
    write_draft(directory.as_fd(), &spot.draft(), bytes, like, None)?;
    crash::point("file.written");
    if old.is_some() { spot.replace(&judge) } else { spot.put_new() }
}

fn temporary_name(name: &OsStr) -> String {
    let Hash(hash) = Hash::of(name.as_encoded_bytes());
    format!(".nisse-writes-{}", hash.get(..16).unwrap_or(&hash))
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
    };

    use super::*;

    fn root() -> (tempfile::TempDir, RootDirectory) {
        let directory = tempfile::tempdir().unwrap();
        let root = RootDirectory::open(&directory.path().canonicalize().unwrap()).unwrap();
        (directory, root)
    }

    fn put(directory: &tempfile::TempDir, name: &str, bytes: &[u8], mode: u32) -> std::path::PathBuf {
        let path = directory.path().join(name);
        File::create(&path).unwrap().write_all(bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn reading_keeps_the_limit_and_hashes_everything() {
        let (directory, root) = root();
        let bytes: Vec<u8> = (0..200_000_u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
        put(&directory, "big", &bytes, 0o644);
        let read = read(&root, "big", 100_000).unwrap();
        assert_eq!((read.size, &read.hash), (200_000, &Hash::of(&bytes)));
        assert_eq!(read.bytes, bytes[..100_000]);
    }

    #[test]
    fn what_is_no_file_is_refused_without_waiting_for_it() {
        let (directory, root) = root();
        fs::create_dir(directory.path().join("dir")).unwrap();
        symlink("dir", directory.path().join("link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, directory.path().join("pipe"), Mode::from_raw_mode(0o600)).unwrap();
        for path in ["dir", "link", "pipe", "none", ".git/config"] {
            assert!(matches!(super::read(&root, path, 9), Err(Error::Refused(_))), "{path}");
        }
        assert!(matches!(write(&root, "pipe", None, b"x"), Err(Error::Refused(_))));
    }

    #[test]
    fn modes_are_kept_exactly_and_no_temporary_file_stays() {
        let (directory, root) = root();
        for mode in [0o755, 0o700, 0o600, 0o640, 0o444, 0o4755] {
            let path = put(&directory, "script", b"OLD", mode);
            write(&root, "script", Some(&Hash::of(b"OLD")), b"NEW").unwrap();
            assert_eq!(path.metadata().unwrap().mode() & 0o7777, mode);
            assert_eq!(fs::read(&path).unwrap(), b"NEW");
            fs::remove_file(&path).unwrap();
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_with_two_names_stays_one_file() {
        let (directory, root) = root();
        let path = put(&directory, "a.sh", b"a longer OLD text", 0o755);
        fs::hard_link(&path, directory.path().join("hard.sh")).unwrap();
        let inode = path.metadata().unwrap().ino();
        write(&root, "a.sh", Some(&Hash::of(b"a longer OLD text")), b"NEW").unwrap();
        assert_eq!(fs::read(directory.path().join("hard.sh")).unwrap(), b"NEW");
        assert_eq!(path.metadata().unwrap().ino(), inode);
    }

    #[test]
    fn nothing_is_written_over_other_bytes_than_those_expected() {
        let (directory, root) = root();
        let path = put(&directory, "a", b"the person's", 0o644);
        for expected in [None, Some(Hash::of(b"other"))] {
            assert!(matches!(write(&root, "a", expected.as_ref(), b"x"), Err(Error::Changed { .. })));
        }
        assert!(matches!(write(&root, "gone", Some(&Hash::of(b"")), b"x"), Err(Error::Changed { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"the person's");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn directories_are_made_and_a_crashed_write_is_cleared_up() {
        let (directory, root) = root();
        put(&directory, &(temporary_name(OsStr::new("new.txt")) + ".new"), b"half", 0o600);
        write(&root, "new.txt", None, b"whole").unwrap();
        write(&root, "a/b/c.txt", None, b"deep").unwrap();
        assert_eq!(fs::read(directory.path().join("a/b/c.txt")).unwrap(), b"deep");
        let mut names: Vec<_> =
            fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["a", "new.txt"]);
    }
}
