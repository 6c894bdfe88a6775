//! A repository's settings file that the user has read and trusts, remembered by its place and its content.
//!
//! A mark is a file of the state directory whose name is the hash of both: once the file changes, and for the same file
//! elsewhere, there is none.

use std::{
    fmt::Write as _,
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

/// Where the marks are, in the state directory.
const MARKS: &str = "trusted";

/// A repository's `nisse.toml` as it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProjectFile {
    path: PathBuf,
    hash: String,
}

impl ProjectFile {
    pub(super) fn new(path: &Path, text: &str) -> Self {
        // no path holds a NUL, so that it ends the path
        let hash = Sha256::new().chain_update(path.as_os_str().as_encoded_bytes()).chain_update([0]).chain_update(text);
        let hash = hash.finalize().iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        Self { path: path.to_owned(), hash }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The mark that says that it is trusted, whether it is there or not.
    #[must_use]
    pub fn mark(&self, state_dir: &Path) -> PathBuf {
        state_dir.join(MARKS).join(&self.hash)
    }

    /// Whether the user trusts it as it is.
    #[must_use]
    pub fn is_trusted(&self, state_dir: &Path) -> bool {
        self.mark(state_dir).symlink_metadata().is_ok_and(|mark| mark.is_file())
    }

    /// Remembers that the user trusts it as it is; the state directory is there.
    ///
    /// # Errors
    /// The mark cannot be written.
    pub fn trust(&self, state_dir: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(state_dir.join(MARKS))?;
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.mark(state_dir)) {
            // for people: the file that it marks
            Ok(mut mark) => writeln!(mark, "{}", self.path.display()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Forgets it.
    ///
    /// # Errors
    /// The mark cannot be removed.
    pub fn revoke(&self, state_dir: &Path) -> io::Result<()> {
        match fs::remove_file(self.mark(state_dir)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_is_in_this_file_with_this_content_until_it_is_revoked() {
        let temp = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| ProjectFile::new(Path::new(path), text);
        let trusted = file("/r/nisse.toml", "a");
        for _ in 0..2 {
            trusted.trust(temp.path()).unwrap();
            assert!(trusted.is_trusted(temp.path()));
        }
        for other in [file("/r/nisse.toml", "b"), file("/s/nisse.toml", "a"), file("/r/nisse.toml\0", "")] {
            assert!(!other.is_trusted(temp.path()), "{other:?}");
        }
        for _ in 0..2 {
            trusted.revoke(temp.path()).unwrap();
            assert!(!trusted.is_trusted(temp.path()));
        }
    }
}
