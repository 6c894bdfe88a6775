//! Packing what a task left in the object store: every turn that touches a large file leaves the file whole, compressed on
//! its own, where a pack would hold what differs.
//!
//! Only the task's own objects are packed: those that its refs reach and its base does not. Nothing else of the person's
//! store is looked at, and no gc runs. The pack is made aside and stands, synced, before a loose object goes; killed in
//! between, an object is there twice, or a directory is left that the next time removes.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::ErrorKind,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
};

use super::{
    Checkout, Error,
    git::{Call, LONG},
    io_error,
};
use crate::{
    domain::id::{CommitId, TaskId},
    log::crash,
};

/// From this many bytes on disk on, it is worth while.
const WORTH: u64 = 16 << 20;
/// What a directory is called in which a pack is made: git's own clean-up takes such ones away after a time.
const PREFIX: &str = "tmp_nisse-";
/// The file in it that is locked by whoever makes the pack.
const LOCK: &str = "lock";

/// What packing came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packed {
    /// Bytes on disk before.
    pub before: u64,
    /// Bytes on disk after.
    pub after: u64,
}

/// What only nisse's refs below one directory keep in a repository.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptRefs {
    /// The refs.
    pub refs: Vec<String>,
    /// Bytes on disk of the objects that no branch, tag or remote's branch reaches.
    pub bytes: u64,
}

/// Objects of a task that are files of their own.
#[derive(Debug)]
pub struct Loose {
    task: TaskId,
    /// Each with its path, by which like is put beside like.
    listed: Vec<u8>,
    files: Vec<PathBuf>,
    /// Bytes on disk.
    pub bytes: u64,
}

impl Checkout {
    /// The objects that only this task made, where it is worth while to pack them.
    pub fn worth_packing(&self, task: TaskId, branch: &str, base: Option<&CommitId>) -> Result<Option<Loose>, Error> {
        let own = format!("refs/heads/{branch}");
        let mut tips: Vec<_> = self.store().references(&["refs/nisse/", &own])?;
        tips.retain(|(name, _)| *name == own || name.split('/').nth(3) == Some(&*task.to_string()));
        if tips.is_empty() {
            return Ok(None);
        }
        let mut call = self.reading(&["rev-list", "--objects"]).args(tips.iter().map(|(_, tip)| &*tip.0));
        if let Some(base) = base {
            call = call.args(["--not", &base.0]);
        }
        let all = call.limit(LONG).endable().run()?;
        let mut loose = Loose { task, listed: Vec::new(), files: Vec::new(), bytes: 0 };
        for line in all.split_inclusive(|byte| *byte == b'\n') {
            let id = line.split(|byte| matches!(byte, b' ' | b'\n')).next().unwrap_or_default();
            let Some((directory, name)) = std::str::from_utf8(id).ok().and_then(|id| id.split_at_checked(2)) else {
                continue;
            };
            let place = self.objects().join(directory).join(name);
            if let Ok(found) = place.symlink_metadata() {
                loose.listed.extend_from_slice(line);
                loose.bytes += found.blocks() * 512;
                loose.files.push(place);
            }
        }
        Ok((loose.bytes >= WORTH).then_some(loose))
    }

    /// Packs them. Done again, or after it was cut off, it does the rest.
    pub fn pack(&self, loose: &Loose) -> Result<Packed, Error> {
        let directory = PackDirectory::make(&self.objects(), loose.task)?;
        // as git reads it: what stands in quotes may hold a colon
        let mut alternates = vec![b'"'];
        for byte in self.objects().as_os_str().as_bytes() {
            if matches!(byte, b'"' | b'\\') {
                alternates.push(b'\\');
            }
            alternates.push(*byte);
        }
        alternates.push(b'"');
        let mut call = self.git().call([OsString::from("pack-objects"), "-q".into(), directory.0.join("pack").into()]);
        // memory is bounded, and one chain of differences is the shortest; the pack's index too must be on disk before
        // anything goes
        for (key, value) in [("pack.windowMemory", "128m"), ("pack.threads", "1"), ("core.fsync", "all")] {
            call = call.setting(key, value);
        }
        call.variable("GIT_OBJECT_DIRECTORY", &directory.0)
            .variable("GIT_ALTERNATE_OBJECT_DIRECTORIES", std::ffi::OsStr::from_bytes(&alternates))
            .input(loose.listed.clone())
            .limit(LONG)
            .endable()
            .run()?;
        crash::point("pack.made");
        let after = directory.place(&self.objects().join("pack"))?;
        crash::point("pack.placed");
        for file in &loose.files {
            match fs::remove_file(file) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(io_error("remove", file)(error)),
                Ok(()) | Err(_) => {}
            }
        }
        crash::point("pack.cleared");
        directory.remove()?;
        Ok(Packed { before: loose.bytes, after })
    }

    /// What the refs below `refs/nisse/<what>/` keep, of those that `counts` lets in.
    pub fn kept_by_refs(&self, what: &str, counts: impl Fn(&str) -> bool) -> Result<KeptRefs, Error> {
        let mut tips = self.store().references(&[&format!("refs/nisse/{what}/")])?;
        tips.retain(|(name, _)| counts(name));
        if tips.is_empty() {
            return Ok(KeptRefs { refs: Vec::new(), bytes: 0 });
        }
        let call = self.reading(&["rev-list", "--disk-usage", "--objects"]);
        let call = call.args(tips.iter().map(|(_, tip)| &*tip.0)).args(["--not", "--branches", "--tags", "--remotes"]);
        let told = call.limit(LONG).line()?;
        let bytes = told.parse().map_err(|_| Error::Unreadable { action: "rev-list".to_owned(), answer: told })?;
        Ok(KeptRefs { refs: tips.into_iter().map(|(name, _)| name).collect(), bytes })
    }

    /// A call that goes through objects; those that a partial clone lacks are nobody's here, and are not fetched.
    fn reading(&self, args: &[&str]) -> Call<'_> {
        self.git().call(args).args(["--missing=allow-any"]).variable("GIT_NO_LAZY_FETCH", "1")
    }

    fn objects(&self) -> PathBuf {
        self.common_dir().join("objects")
    }
}

/// A directory beside the objects in which a pack is made; its lock is held while this lives.
struct PackDirectory(PathBuf, #[expect(dead_code, reason = "held, not read")] File);

impl PackDirectory {
    fn make(objects: &Path, task: TaskId) -> Result<Self, Error> {
        clear(objects)?;
        let path = objects.join(format!("{PREFIX}{task}"));
        fs::create_dir_all(&path).map_err(io_error("make", &path))?;
        let lock = path.join(LOCK);
        let file = File::create(&lock).map_err(io_error("make", &lock))?;
        // taken: another one packs the same
        file.try_lock().map_err(|error| io_error("lock", &lock)(error.into()))?;
        // git writes into it before it has a name
        let pack = path.join("pack");
        fs::create_dir_all(&pack).map_err(io_error("make", &pack))?;
        Ok(Self(path, file))
    }

    /// Moves the pack to where git finds it, its index last: with that it is there. Gives its size.
    fn place(&self, to: &Path) -> Result<u64, Error> {
        fs::create_dir_all(to).map_err(io_error("make", to))?;
        let listing = fs::read_dir(&self.0).map_err(io_error("list", &self.0))?;
        let mut files: Vec<_> = listing.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
        files.retain(|path| path.file_name().is_some_and(|name| name != LOCK));
        files.sort_by_key(|path| path.extension().is_some_and(|extension| extension == "idx"));
        let mut bytes = 0;
        for file in &files {
            bytes += file.metadata().map_err(io_error("look at", file))?.blocks() * 512;
            let place = to.join(file.file_name().unwrap_or_default());
            fs::rename(file, &place).map_err(io_error("move", file))?;
        }
        File::open(to).and_then(|directory| directory.sync_all()).map_err(io_error("sync", to))?;
        Ok(bytes)
    }

    fn remove(self) -> Result<(), Error> {
        super::removal::remove_tree(&self.0)
    }
}

/// Takes away what killed ones have left.
fn clear(objects: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(objects).map_err(io_error("list", objects))?.flatten() {
        if !entry.file_name().as_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let free = match File::open(entry.path().join(LOCK)) {
            Ok(file) => file.try_lock().is_ok(),
            Err(error) => error.kind() == ErrorKind::NotFound,
        };
        if free {
            super::removal::remove_tree(&entry.path())?;
        }
    }
    Ok(())
}
