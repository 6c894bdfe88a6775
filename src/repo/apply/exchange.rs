//! Putting a file in the place of another, or taking one away, while somebody else may save it.
//!
//! Between a look at a file and a rename onto it a person can save it. So nothing is ever renamed over a file: the two
//! names are exchanged in one step, what came out is compared with what was expected, and is put back if it is something
//! else. A new file takes a name only if nobody has it; a file that goes is renamed aside and compared first. A process
//! that dies in between leaves somebody's bytes under one of our names, so [`Spot::settle`] comes before a new look.

use std::{cell::Cell, ffi::OsStr, io, os::fd::BorrowedFd};

use rustix::{
    fs::{AtFlags, linkat, renameat, statat, unlinkat},
    io::Errno,
};

use crate::log::crash;

/// What stands at a name, as the caller tells by its content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Is {
    /// Nothing.
    Absent,
    /// What is to be replaced or taken away.
    Expected,
    /// What is to be put there.
    Ours,
    /// Something else: somebody's.
    Other,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// It is as it is to be.
    Done,
    /// Somebody changed the file meanwhile: what they saved stands at its name.
    Changed,
    /// Likewise, and something else of theirs is kept beside it under a name of ours.
    Kept,
}

/// A name in an open directory, with names beside it that are nobody else's.
pub(crate) struct Spot<'a> {
    directory: BorrowedFd<'a>,
    name: &'a OsStr,
    own: &'a str,
    can_exchange: bool,
    by_steps: Cell<bool>,
}

/// How a caller tells what stands at a name of the directory.
pub(crate) type Judge<'a> = &'a dyn Fn(&OsStr) -> io::Result<Is>;

impl<'a> Spot<'a> {
    /// The place of `name`; `own` begins the names beside it.
    pub(crate) fn new(directory: BorrowedFd<'a>, name: &'a OsStr, own: &'a str) -> Self {
        Self { directory, name, own, can_exchange: true, by_steps: Cell::new(false) }
    }

    /// Where the new file is to be written: nothing there is ever worth keeping.
    pub(crate) fn draft(&self) -> String {
        format!("{}.new", self.own)
    }

    /// The new file once it is whole; after the exchange, what came out.
    fn ready(&self) -> String {
        self.own.to_owned()
    }

    /// What was at the name, renamed.
    fn old_name(&self) -> String {
        format!("{}.old", self.own)
    }

    /// Whether the file system could not exchange two names, so that the name was free for a moment.
    pub(crate) fn by_steps(&self) -> bool {
        self.by_steps.get()
    }

    /// Puts the draft, whole and durable, at a name that nobody has.
    pub(crate) fn put_new(&self) -> io::Result<Outcome> {
        let draft = self.draft();
        match no_replace(self.directory, draft.as_ref(), self.name) {
            Ok(()) => self.durable(Outcome::Done),
            Err(Errno::EXIST) => {
                self.remove(&draft)?;
                Ok(Outcome::Changed)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Puts the draft, whole and durable, in the place of what is expected at the name.
    pub(crate) fn replace(&self, judge: Judge<'_>) -> io::Result<Outcome> {
        let (draft, ready) = (self.draft(), self.ready());
        match no_replace(self.directory, draft.as_ref(), ready.as_ref()) {
            Ok(()) => {}
            Err(Errno::EXIST) => {
                self.remove(&draft)?;
                return Ok(Outcome::Kept);
            }
            Err(error) => return Err(error.into()),
        }
        match self.exchange() {
            Ok(()) => {}
            Err(Errno::NOENT) => {
                self.remove(&ready)?;
                return Ok(Outcome::Changed);
            }
            Err(error) if is_unsupported(error) => return self.replace_by_steps(judge),
            Err(error) => {
                self.remove(&ready)?;
                return Err(error.into());
            }
        }
        crash::point("file.exchanged");
        let outcome = match judge(ready.as_ref()) {
            Ok(Is::Expected | Is::Ours) => {
                self.remove(&ready)?;
                Outcome::Done
            }
            Ok(Is::Absent) => Outcome::Done,
            Ok(Is::Other) => self.give_back(judge)?,
            // what cannot be read is not ours to remove
            Err(error) => {
                self.give_back(judge)?;
                return Err(error);
            }
        };
        self.durable(outcome)
    }

    /// Takes away what is expected at the name.
    pub(crate) fn take(&self, judge: Judge<'_>) -> io::Result<Outcome> {
        let aside = self.old_name();
        match no_replace(self.directory, self.name, aside.as_ref()) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(Outcome::Done),
            Err(Errno::EXIST) => return Ok(Outcome::Kept),
            Err(error) => return Err(error.into()),
        }
        crash::point("file.aside");
        let outcome = match judge(aside.as_ref()) {
            Ok(Is::Expected) => {
                self.remove(&aside)?;
                Outcome::Done
            }
            Ok(Is::Ours | Is::Other | Is::Absent) => self.bring_back(&aside)?,
            Err(error) => {
                self.bring_back(&aside)?;
                return Err(error);
            }
        };
        self.durable(outcome)
    }

    /// Clears up after a process that died: somebody's bytes go back to the name, what is known goes away. What can do
    /// neither is [`Outcome::Kept`].
    pub(crate) fn settle(&self, judge: Judge<'_>) -> io::Result<Outcome> {
        let (ready, aside) = (self.ready(), self.old_name());
        let is_there = |own: &String| statat(self.directory, own, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        if ![&self.draft(), &ready, &aside].into_iter().any(is_there) {
            return Ok(Outcome::Done);
        }
        self.remove(&self.draft())?;
        let mut outcome = Outcome::Done;
        let free = judge(self.name)? == Is::Absent;
        match judge(aside.as_ref())? {
            Is::Absent => {}
            Is::Expected | Is::Ours | Is::Other if free => outcome = self.bring_back(&aside)?,
            Is::Expected | Is::Ours => self.remove(&aside)?,
            Is::Other => outcome = Outcome::Kept,
        }
        match (judge(ready.as_ref())?, judge(self.name)?) {
            (Is::Absent, _) => {}
            (Is::Expected | Is::Ours, _) => self.remove(&ready)?,
            (Is::Other, Is::Ours) => outcome = self.give_back(judge)?,
            (Is::Other, Is::Absent) => outcome = self.bring_back(&ready)?,
            (Is::Other, Is::Expected | Is::Other) => outcome = Outcome::Kept,
        }
        self.durable(outcome)
    }

    /// Exchanges back: ours is at the name, somebody's under the name of what was ready.
    fn give_back(&self, judge: Judge<'_>) -> io::Result<Outcome> {
        let ready = self.ready();
        match self.exchange() {
            Ok(()) => {}
            // ours was removed
            Err(Errno::NOENT) => return self.bring_back(&ready),
            Err(error) => return Err(error.into()),
        }
        match judge(ready.as_ref())? {
            Is::Ours => {
                self.remove(&ready)?;
                Ok(Outcome::Changed)
            }
            Is::Absent => Ok(Outcome::Changed),
            // they saved once more in that moment: the newest belongs at the name
            Is::Expected | Is::Other => {
                self.exchange()?;
                Ok(Outcome::Kept)
            }
        }
    }

    /// Renames something back to the name, if that is free.
    fn bring_back(&self, from: &str) -> io::Result<Outcome> {
        match no_replace(self.directory, from.as_ref(), self.name) {
            Ok(()) | Err(Errno::NOENT) => Ok(Outcome::Changed),
            Err(Errno::EXIST) => Ok(Outcome::Kept),
            Err(error) => Err(error.into()),
        }
    }

    /// Where names cannot be exchanged: what is there goes aside, and ours takes the free name.
    fn replace_by_steps(&self, judge: Judge<'_>) -> io::Result<Outcome> {
        self.by_steps.set(true);
        let (ready, aside) = (self.ready(), self.old_name());
        match no_replace(self.directory, self.name, aside.as_ref()) {
            Ok(()) => {}
            Err(Errno::NOENT) => {
                self.remove(&ready)?;
                return Ok(Outcome::Changed);
            }
            Err(Errno::EXIST) => {
                self.remove(&ready)?;
                return Ok(Outcome::Kept);
            }
            Err(error) => return Err(error.into()),
        }
        crash::point("file.aside");
        let outcome = match judge(aside.as_ref()) {
            Ok(Is::Expected | Is::Ours) => match no_replace(self.directory, ready.as_ref(), self.name) {
                Ok(()) => {
                    self.remove(&aside)?;
                    Outcome::Done
                }
                // saved anew meanwhile
                Err(Errno::EXIST) => {
                    self.remove(&ready)?;
                    self.remove(&aside)?;
                    Outcome::Changed
                }
                Err(error) => return Err(error.into()),
            },
            Ok(Is::Other | Is::Absent) => {
                self.remove(&ready)?;
                self.bring_back(&aside)?
            }
            Err(error) => {
                self.bring_back(&aside)?;
                return Err(error);
            }
        };
        self.durable(outcome)
    }

    fn exchange(&self) -> Result<(), Errno> {
        if !self.can_exchange {
            return Err(Errno::NOSYS);
        }
        #[cfg(any(target_os = "linux", target_os = "macos"))]
        {
            let flags = rustix::fs::RenameFlags::EXCHANGE;
            rustix::fs::renameat_with(self.directory, self.own, self.directory, self.name, flags)
        }
        #[cfg(not(any(target_os = "linux", target_os = "macos")))]
        Err(Errno::NOSYS)
    }

    /// Removes a name of ours; one that is not there is as good.
    fn remove(&self, own: &str) -> io::Result<()> {
        match unlinkat(self.directory, own, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn durable(&self, outcome: Outcome) -> io::Result<Outcome> {
        rustix::fs::fsync(self.directory)?;
        Ok(outcome)
    }
}

/// Renames to a name that nobody has; `EXIST` where somebody has it.
fn no_replace(directory: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    match rustix::fs::renameat_with(directory, from, directory, to, rustix::fs::RenameFlags::NOREPLACE) {
        Err(error) if is_unsupported(error) => {}
        done => return done,
    }
    link_and_unlink(directory, from, to)
}

/// The same by a second name for a moment, which no file system gives to a name that is taken.
fn link_and_unlink(directory: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    match linkat(directory, from, directory, to, AtFlags::empty()) {
        Ok(()) => return unlinkat(directory, from, AtFlags::empty()),
        // file systems without second names, and directories, which have none
        Err(Errno::PERM | Errno::NOTSUP | Errno::NOSYS | Errno::MLINK) => {}
        Err(error) => return Err(error),
    }
    match statat(directory, to, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => renameat(directory, from, directory, to),
        Ok(_) => Err(Errno::EXIST),
        Err(error) => Err(error),
    }
}

/// What a file system answers that does not know the flag.
fn is_unsupported(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::NOTSUP)
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        io::Write as _,
        os::{fd::AsFd as _, unix::fs::MetadataExt as _},
        path::Path,
        sync::atomic::{AtomicBool, Ordering},
    };

    use super::*;

    const OLD: &[u8] = b"old\n";
    const NEW: &[u8] = b"new\n";

    fn put(path: &Path, bytes: &[u8]) {
        File::create(path).unwrap().write_all(bytes).unwrap();
    }

    fn judge(root: &Path, name: &OsStr) -> io::Result<Is> {
        Ok(match fs::read(root.join(name)) {
            Ok(bytes) if bytes == OLD => Is::Expected,
            Ok(bytes) if bytes == NEW => Is::Ours,
            Ok(_) => Is::Other,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Is::Absent,
            Err(error) => return Err(error),
        })
    }

    fn names(root: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Every state that a death can leave, with what must be there after it.
    #[test]
    fn what_a_death_left_is_settled_and_nobodys_bytes_are_lost() {
        let mine: &[u8] = b"mine\n";
        for (at, draft, ready, aside, then, outcome) in [
            (Some(OLD), Some(&b"ne"[..]), None, None, OLD, Outcome::Done),
            (Some(OLD), None, Some(NEW), None, OLD, Outcome::Done),
            (Some(NEW), None, Some(OLD), None, NEW, Outcome::Done),
            (Some(NEW), None, Some(mine), None, mine, Outcome::Changed),
            (None, None, Some(mine), None, mine, Outcome::Changed),
            (None, None, None, Some(OLD), OLD, Outcome::Changed),
            (None, None, None, Some(mine), mine, Outcome::Changed),
            (None, None, Some(NEW), Some(OLD), OLD, Outcome::Changed),
            (None, None, Some(NEW), Some(mine), mine, Outcome::Changed),
            (Some(NEW), None, None, Some(OLD), NEW, Outcome::Done),
            (Some(mine), None, Some(NEW), None, mine, Outcome::Done),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let root = directory.path();
            let open = File::open(root).unwrap();
            let spot = Spot::new(open.as_fd(), "f".as_ref(), ".own");
            for (name, bytes) in
                [("f".to_owned(), at), (spot.draft(), draft), (spot.ready(), ready), (spot.old_name(), aside)]
            {
                if let Some(bytes) = bytes {
                    put(&root.join(name), bytes);
                }
            }
            assert_eq!(spot.settle(&|name| judge(root, name)).unwrap(), outcome, "{at:?} {ready:?} {aside:?}");
            assert_eq!(fs::read(root.join("f")).unwrap(), then, "{at:?} {ready:?} {aside:?}");
            assert_eq!(names(root), ["f"], "{at:?} {ready:?} {aside:?}");
        }
    }

    #[test]
    fn two_versions_of_somebodys_are_both_kept() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let open = File::open(root).unwrap();
        let spot = Spot::new(open.as_fd(), "f".as_ref(), ".own");
        put(&root.join("f"), b"second\n");
        put(&root.join(spot.ready()), b"first\n");
        let judge = |name: &OsStr| judge(root, name);
        assert_eq!(spot.settle(&judge).unwrap(), Outcome::Kept);
        put(&root.join(spot.draft()), NEW);
        assert_eq!(spot.replace(&judge).unwrap(), Outcome::Kept);
        assert_eq!(
            (fs::read(root.join("f")).unwrap(), names(root)),
            (b"second\n".to_vec(), vec![".own".into(), "f".into()])
        );
    }

    #[test]
    fn what_is_there_and_unexpected_stays() {
        for can_exchange in [true, false] {
            let directory = tempfile::tempdir().unwrap();
            let root = directory.path();
            let open = File::open(root).unwrap();
            let spot = Spot { can_exchange, ..Spot::new(open.as_fd(), "f".as_ref(), ".own") };
            let judge = |name: &OsStr| judge(root, name);
            put(&root.join("f"), b"mine\n");
            let inode = fs::metadata(root.join("f")).unwrap().ino();
            put(&root.join(spot.draft()), NEW);
            assert_eq!(spot.replace(&judge).unwrap(), Outcome::Changed);
            put(&root.join(spot.draft()), NEW);
            assert_eq!(spot.put_new().unwrap(), Outcome::Changed);
            assert_eq!(spot.take(&judge).unwrap(), Outcome::Changed);
            assert_eq!(fs::read(root.join("f")).unwrap(), b"mine\n");
            assert_eq!(fs::metadata(root.join("f")).unwrap().ino(), inode, "the very file");
            put(&root.join("f"), OLD);
            put(&root.join(spot.draft()), NEW);
            assert_eq!(spot.replace(&judge).unwrap(), Outcome::Done);
            assert_eq!((spot.by_steps(), fs::read(root.join("f")).unwrap()), (!can_exchange, NEW.to_vec()));
            assert_eq!(names(root), ["f"]);
        }
    }

    #[test]
    fn a_name_is_taken_once_also_by_a_second_link() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let open = File::open(root).unwrap();
        put(&root.join("a"), b"a");
        put(&root.join("b"), b"b");
        let link = |from: &str, to: &str| link_and_unlink(open.as_fd(), from.as_ref(), to.as_ref());
        assert_eq!(link("a", "b"), Err(Errno::EXIST));
        assert_eq!(link("a", "c"), Ok(()));
        fs::create_dir(root.join("d")).unwrap();
        assert_eq!(link("d", "c"), Err(Errno::EXIST));
        assert_eq!(link("d", "e"), Ok(()));
        assert_eq!(names(root), ["b", "c", "e"]);
    }

    /// Somebody saves in place: before anything is done, or at each look at what came out, by the file's name or into the
    /// file that they have open. What they saved is there at the end.
    ///
    /// Who has a file open and writes into it after the last look is lost: no system call tells of that.
    #[test]
    fn a_save_in_place_is_kept_whenever_it_comes() {
        let mine: &[u8] = b"mine\n";
        for (can_exchange, take, open_before) in [(true, false), (true, true), (false, false), (false, true)]
            .iter()
            .flat_map(|(a, b)| [(*a, *b, false), (*a, *b, true)])
        {
            let mut looks = 0;
            for moment in 0.. {
                let directory = tempfile::tempdir().unwrap();
                let root = directory.path();
                let open = File::open(root).unwrap();
                let spot = Spot { can_exchange, ..Spot::new(open.as_fd(), "f".as_ref(), ".own") };
                put(&root.join("f"), OLD);
                put(&root.join(spot.draft()), NEW);
                let theirs = File::options().write(true).open(root.join("f")).unwrap();
                let save = || {
                    if open_before {
                        theirs.set_len(0).unwrap();
                        (&theirs).write_all(mine).unwrap();
                    } else {
                        put(&root.join("f"), mine);
                    }
                };
                let seen = Cell::new(0);
                let judge = |name: &OsStr| {
                    seen.set(seen.get() + 1);
                    if seen.get() == moment {
                        save();
                    }
                    judge(root, name)
                };
                if moment == 0 {
                    save();
                }
                if take {
                    spot.take(&judge).unwrap()
                } else {
                    spot.replace(&judge).unwrap()
                };
                if seen.get() < moment {
                    break;
                }
                looks = moment;
                let at = format!("exchange {can_exchange}, take {take}, open {open_before}, look {moment}");
                assert_eq!(fs::read(root.join("f")).unwrap(), mine, "{at}");
            }
            assert!(looks > 0, "nothing was looked at");
        }
    }

    /// Somebody saves the file by rename over and over, while it is replaced and taken away: what they saved is there at the
    /// end, whenever it came.
    #[test]
    fn no_save_by_rename_is_lost_in_many_tries() {
        for can_exchange in [true, false] {
            let directory = tempfile::tempdir().unwrap();
            let root = directory.path();
            let open = File::open(root).unwrap();
            for number in 0..100 {
                let name = format!("f{number}");
                let own = format!(".own{number}");
                let spot = Spot { can_exchange, ..Spot::new(open.as_fd(), name.as_ref(), &own) };
                put(&root.join(&name), OLD);
                let begun = AtomicBool::new(false);
                let mine = format!("mine {number}\n").into_bytes();
                let outcome = std::thread::scope(|scope| {
                    scope.spawn(|| {
                        while !begun.load(Ordering::SeqCst) {
                            std::hint::spin_loop();
                        }
                        for _ in 0..(number % 8) * 300 {
                            std::hint::spin_loop();
                        }
                        put(&root.join("draft"), &mine);
                        fs::rename(root.join("draft"), root.join(&name)).unwrap();
                    });
                    put(&root.join(spot.draft()), NEW);
                    begun.store(true, Ordering::SeqCst);
                    let judge = |name: &OsStr| judge(root, name);
                    if number % 3 == 0 { spot.take(&judge).unwrap() } else { spot.replace(&judge).unwrap() }
                });
                assert_eq!(fs::read(root.join(&name)).unwrap(), mine, "{can_exchange} {number} {outcome:?}");
                for left in [spot.draft(), spot.ready(), spot.old_name()] {
                    let _ = fs::remove_file(root.join(left));
                }
            }
        }
    }
}
