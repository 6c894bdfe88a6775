//! Files of the person's checkout as they are, byte for byte, and putting one there by rename.

use std::{
    fs::{self, File, Metadata, OpenOptions, Permissions},
    io::{ErrorKind, Write},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown},
    },
    path::{Path, PathBuf},
};

use super::{Error, io_error};
use crate::log::crash;

/// A file as git tells files apart: kind, the owner's right to execute, and bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Content {
    /// `100644`, `100755` or `120000`.
    pub(super) mode: String,
    /// The bytes, or a link's target.
    pub(super) bytes: Vec<u8>,
}

/// What is at a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// Nothing.
    Absent,
    /// A file or a link.
    File(Content),
    /// A directory.
    Directory,
    /// Something that is left alone: no file, or reached through a link or a repository of its own.
    Other,
}

impl Found {
    /// The content, where a file is wanted or nothing.
    pub(super) fn content(self) -> Option<Content> {
        match self {
            Self::File(content) => Some(content),
            Self::Absent | Self::Directory | Self::Other => None,
        }
    }
}

/// What is at `path` below `root`.
pub(super) fn look(root: &Path, path: &Path) -> Result<Found, Error> {
    let above = path.ancestors().skip(1).filter(|part| !part.as_os_str().is_empty());
    for part in above {
        let directory = root.join(part);
        if directory.is_symlink() || directory.join(".git").symlink_metadata().is_ok() {
            return Ok(Found::Other);
        }
    }
    let full = root.join(path);
    let meta = match full.symlink_metadata() {
        Ok(meta) => meta,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Found::Absent);
        }
        Err(error) => return Err(io_error("look at", &full)(error)),
    };
    if meta.is_symlink() {
        let target = fs::read_link(&full).map_err(io_error("read", &full))?;
        let bytes = target.into_os_string().into_vec();
        return Ok(Found::File(Content { mode: "120000".to_owned(), bytes }));
    }
    if meta.is_dir() {
        return Ok(Found::Directory);
    }
    if !meta.is_file() {
        return Ok(Found::Other);
    }
    let bytes = fs::read(&full).map_err(io_error("read", &full))?;
    let mode = if meta.permissions().mode() & 0o100 == 0 { "100644" } else { "100755" };
    Ok(Found::File(Content { mode: mode.to_owned(), bytes }))
}

/// Puts a file at `path` by way of `temporary`, a name in the same directory that is nobody else's. A file that was
/// there keeps its owner and its rights, but for that to execute.
pub(super) fn put(root: &Path, path: &Path, content: &Content, temporary: &str) -> Result<(), Error> {
    let full = root.join(path);
    let directory = full.parent().unwrap_or(root);
    fs::create_dir_all(directory).map_err(io_error("make", directory))?;
    let temporary = directory.join(temporary);
    let write = || -> std::io::Result<()> {
        let there = full.symlink_metadata().ok();
        if content.mode == "120000" {
            std::os::unix::fs::symlink(Path::new(std::ffi::OsStr::from_bytes(&content.bytes)), &temporary)?;
        } else {
            let executable = content.mode == "100755";
            let mode = if executable { 0o777 } else { 0o666 };
            let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
            file.write_all(&content.bytes)?;
            if let Some(there) = there.as_ref().filter(|there| there.is_file()) {
                keep_owner(&file, there)?;
                let was = there.permissions().mode() & 0o7777;
                let may = if executable { was | ((was & 0o444) >> 2) } else { was & !0o111 };
                file.set_permissions(Permissions::from_mode(may))?;
            }
            file.sync_all()?;
        }
        crash::point("file.written");
        // only an empty one goes: what was in it is gone by now, or stays
        if there.is_some_and(|there| there.is_dir()) {
            fs::remove_dir(&full)?;
        }
        fs::rename(&temporary, &full)?;
        File::open(directory)?.sync_all()
    };
    write().map_err(io_error("write", &full))
}

/// Gives `file` the owner of the one that it is to replace, where that can be. Rights are to be set after it, since it
/// takes set-id bits away.
pub(crate) fn keep_owner(file: &File, old: &Metadata) -> std::io::Result<()> {
    let fresh = file.metadata()?;
    if (fresh.uid(), fresh.gid()) != (old.uid(), old.gid()) {
        // only root may give files away; the content matters more than the owner
        let _ = fchown(file, Some(old.uid()), Some(old.gid()));
    }
    Ok(())
}

/// Takes a file away, and the directories that are empty without it.
pub(super) fn take(root: &Path, path: &Path) -> Result<(), Error> {
    let full = root.join(path);
    fs::remove_file(&full).map_err(io_error("remove", &full))?;
    for directory in path.ancestors().skip(1).filter(|part| !part.as_os_str().is_empty()) {
        if fs::remove_dir(root.join(directory)).is_err() {
            break;
        }
    }
    Ok(())
}

/// Takes away what a killed write left under its temporary name.
pub(super) fn clear(root: &Path, path: &Path, temporary: &str) -> Result<(), Error> {
    let beside = root.join(path).with_file_name(temporary);
    match fs::remove_file(&beside) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(io_error("remove", &beside)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The names above a path, nearest first.
pub(super) fn above(path: &Path) -> impl Iterator<Item = PathBuf> {
    path.ancestors().skip(1).filter(|part| !part.as_os_str().is_empty()).map(Path::to_owned)
}
