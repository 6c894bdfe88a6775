//! Ignored files of the checkout that a task needs (`.env`, `node_modules`), copied into its worktree.
//!
//! What is not ignored there is never copied, since it would be committed; nothing is overwritten, no link is followed,
//! in neither direction. Where the file system can, a copy shares its blocks with what it was made of.

use std::{
    fs, io,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::Mode;

use super::{Error, Worktree, io_error, paths::path_text};
use crate::domain::globs::PathGlobs;

impl Worktree {
    /// Copies what matches one of `globs` and is ignored in the worktree; a directory with all that is in it. Gives the
    /// paths that were copied.
    pub fn copy_ignored(&self, globs: &[PathGlobs]) -> Result<Vec<String>, Error> {
        let mut copied = Vec::new();
        if !globs.is_empty() {
            self.copy_below(Path::new(""), false, globs, &mut copied)?;
        }
        copied.sort_unstable();
        Ok(copied)
    }

    /// Looks through one directory of the checkout; `meant`: a glob named a directory above.
    fn copy_below(
        &self,
        directory: &Path,
        meant: bool,
        globs: &[PathGlobs],
        copied: &mut Vec<String>,
    ) -> Result<(), Error> {
        let place = self.checkout().root().join(directory);
        for entry in fs::read_dir(&place).map_err(io_error("list", &place))? {
            let entry = entry.map_err(io_error("list", &place))?;
            let kind = entry.file_type().map_err(io_error("look at", &entry.path()))?;
            let path = directory.join(entry.file_name());
            if entry.file_name() == ".git" {
                continue;
            }
            let meant = meant || globs.iter().any(|globs| globs.matches(&path_text(&path)));
            // of a directory, git is asked about what would be in it: it need not be there yet; a link may stand for one
            let mut asked = Vec::new();
            if !kind.is_dir() {
                asked.push(path_text(&path));
            }
            if !kind.is_file() {
                asked.push(path_text(&path.join("any")));
            }
            if meant && !self.ignored(&asked)?.is_empty() {
                if self.copy_one(&path).map_err(io_error("copy", &entry.path()))? {
                    copied.push(path_text(&path));
                }
            } else if kind.is_dir() && !entry.path().join(".git").exists() {
                self.copy_below(&path, meant, globs, copied)?;
            }
        }
        Ok(())
    }

    /// Copies a path with all that is below it; false if nothing of it was to be copied.
    fn copy_one(&self, path: &Path) -> io::Result<bool> {
        let mut above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).collect::<Vec<_>>();
        above.reverse();
        for directory in above {
            let place = self.path().join(directory);
            match place.symlink_metadata() {
                Ok(found) if found.is_dir() => {}
                // a link or a file: what is behind it is not the worktree's
                Ok(_) => return Ok(false),
                Err(_) => fs::create_dir(&place)?,
            }
        }
        copy_all(&self.checkout().root().join(path), &self.path().join(path))
    }
}

/// Copies files, links as links, and directories; false where something else stood there already.
pub(super) fn copy_all(from: &Path, to: &PathBuf) -> io::Result<bool> {
    let found = from.symlink_metadata()?;
    let taken = to.symlink_metadata().ok();
    if found.is_dir() {
        match taken {
            Some(taken) if !taken.is_dir() => return Ok(false),
            Some(_) => {}
            None => fs::create_dir(to)?,
        }
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            copy_all(&from.join(&name), &to.join(&name))?;
        }
        fs::set_permissions(to, found.permissions())?;
        return Ok(true);
    }
    if taken.is_some() {
        return Ok(false);
    }
    if found.is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(from)?, to)?;
    } else if found.is_file() {
        // copy_file_range and clonefile share blocks where the file system can
        fs::copy(from, to)?;
    } else if found.file_type().is_fifo() {
        let mode = Mode::from_raw_mode(found.mode() & 0o7777);
        rustix::fs::mkfifoat(rustix::fs::CWD, to, mode)?;
    } else {
        return Ok(false);
    }
    Ok(true)
}
