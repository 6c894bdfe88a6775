//! The state directory: the log, the worktrees, the locks. No one else may write there, and only the
//! owner can read what nisse creates there.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

/// Why the state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be made or looked at.
    #[error("cannot create the state directory {}", .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is something else.
    #[error("the state directory {} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// Others could plant a log or a worktree there.
    #[error("others may write to the state directory {}", .0.display())]
    Open(PathBuf),
}

/// Creates the state directory if it is missing, with mode 0700. An existing one is left as it is.
///
/// # Errors
/// See [`Error`]; nothing was changed then, except that parents may have been made.
pub fn prepare(path: &Path) -> Result<(), Error> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_dir() => Err(Error::NotADirectory(path.to_owned())),
        Ok(metadata) if metadata.mode() & 0o002 != 0 => Err(Error::Open(path.to_owned())),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io)
        }
        Err(source) => Err(io(source)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn it_is_made_for_its_owner_alone() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a/b/state");
        for _ in 0..2 {
            prepare(&path).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn a_file_or_an_open_directory_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("file");
        fs::File::create(&file).unwrap();
        assert!(matches!(prepare(&file), Err(Error::NotADirectory(_))));
        assert!(matches!(prepare(&file.join("below")), Err(Error::Io { .. })));
        let open = temp.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(prepare(&open), Err(Error::Open(_))));
    }
}
