//! A new file before it takes its name: durable, and with the owner, the attributes and the rights that it is to have.

use std::{
    fs::{File, Metadata, Permissions},
    io::{self, Write as _},
    os::{
        fd::BorrowedFd,
        unix::fs::{MetadataExt, PermissionsExt, fchown},
    },
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, XattrFlags, openat, unlinkat},
    io::Errno,
};

/// What a new file is to be like, its bytes aside.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Like<'a> {
    /// The file that it is to replace.
    File(&'a File),
    /// One with these rights.
    Rights(u32),
    /// As any new file of this process is.
    Umask,
}

/// Writes it under a name that nobody has, durably. `executable` adds the right to execute, for whoever may read, or takes
/// it away; none leaves it.
pub(crate) fn write(
    directory: BorrowedFd<'_>,
    name: &str,
    bytes: &[u8],
    like: Like<'_>,
    executable: Option<bool>,
) -> io::Result<()> {
    let written = || -> io::Result<()> {
        let mode = match like {
            Like::Umask => 0o666 | if executable == Some(true) { 0o111 } else { 0 },
            // nobody reads what only its owner may, not even for a moment
            Like::File(_) | Like::Rights(_) => 0o600,
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(directory, name, flags, Mode::from_raw_mode(mode))?);
        file.write_all(bytes)?;
        let was = match like {
            Like::File(there) => {
                let meta = there.metadata()?;
                copy_owner(&file, &meta)?;
                copy_attributes(&file, there)?;
                Some(meta.permissions().mode() & 0o7777)
            }
            Like::Rights(rights) => Some(rights),
            Like::Umask => None,
        };
        if let Some(was) = was {
            let rights = match executable {
                Some(true) => was | ((was & 0o444) >> 2),
                Some(false) => was & !0o111,
                None => was,
            };
            file.set_permissions(Permissions::from_mode(rights))?;
        }
        file.sync_all()
    };
    written().inspect_err(|_| {
        let _ = unlinkat(directory, name, AtFlags::empty());
    })
}

/// Gives `file` the owner of the one that it is to replace, where that can be. Rights are to be set after it, since it
/// takes set-id bits away.
pub(in crate::repo) fn copy_owner(file: &File, old: &Metadata) -> io::Result<()> {
    let fresh = file.metadata()?;
    if (fresh.uid(), fresh.gid()) != (old.uid(), old.gid()) {
        // only root may give files away; the content matters more than the owner
        let _ = fchown(file, Some(old.uid()), Some(old.gid()));
    }
    Ok(())
}

/// Gives `file` the extended attributes that are a person's own, and the access list, of the one that it is to replace.
/// What is the system's is the system's to give.
fn copy_attributes(file: &File, old: &File) -> io::Result<()> {
    use rustix::fs::{fgetxattr, flistxattr, fsetxattr};
    let mut names = vec![0_u8; 64 * 1024];
    let length = match flistxattr(old, &mut names[..]) {
        Ok(length) => length,
        Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let mut value = vec![0_u8; 64 * 1024];
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        if !name.starts_with(b"user.") && name != b"system.posix_acl_access" {
            continue;
        }
        let length = match fgetxattr(old, name, &mut value[..]) {
            Ok(length) => length,
            // removed meanwhile
            Err(Errno::NODATA) => continue,
            Err(error) => return Err(error.into()),
        };
        fsetxattr(file, name, &value[..length], XattrFlags::empty())?;
    }
    Ok(())
}
