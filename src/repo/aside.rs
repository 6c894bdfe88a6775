//! Ignored files that are there when a task begins: they are no part of its work, also where it changes the rules by
//! which they were ignored. Else a checkpoint would take them, and giving the checkout back would take them away.

use std::{
    collections::HashSet,
    fs,
    io::Write,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use super::{
    Error, Worktree, excludes,
    git::{Git, LONG},
    io_error,
    staging::{Changes, Staging, paths, scratch, shown},
};
use crate::domain::{checkout::Isolation, id::CommitId};

/// The file that names them, in a worktree's own git directory or beside what a task in place keeps.
const FILE: &str = "nisse-ignored";

impl Worktree {
    /// Notes what is untracked now and ignored; in a checkout all that is untracked: nothing of the task's is there yet.
    pub fn set_aside(&self) -> Result<(), Error> {
        let (path, git) = (self.noted(), self.git()?);
        let mut noted = ignored_files(&git)?;
        if self.branch().isolation == Isolation::InPlace {
            let changes = Staging { git: &git, root: self.path(), index: None }.changes()?.without(self.kept_out());
            let there = changes.untracked.iter().chain(&changes.artefacts);
            noted.extend(there.flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat()));
        }
        // not there after a crash, there is no worktree that stands either
        fs::File::create(&path).and_then(|mut file| file.write_all(&noted)).map_err(io_error("write", &path))
    }

    /// What the task made that git ignores, and that is no build artefact: files, and directories that hold nothing else,
    /// with a slash behind.
    pub fn ignored_work(&self) -> Result<Vec<String>, Error> {
        let noted = ignored_files(&self.git()?)?;
        let aside = self.aside()?;
        let of_task = |path: &PathBuf| {
            // of a directory, whatever is in it
            let within =
                if path.as_os_str().as_encoded_bytes().ends_with(b"/") { path.join("x") } else { path.clone() };
            !aside.holds(path) && !excludes::artefact(self.path(), &within)
        };
        let noted = paths(noted.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect());
        let mut work: Vec<&PathBuf> = noted.iter().filter(|path| of_task(path)).collect();
        work.sort_unstable();
        // git names what lies in such a directory too
        work.dedup_by(|path, above| path.starts_with(above));
        Ok(work.into_iter().map(|path| shown(path)).collect())
    }

    /// What is set aside.
    pub(super) fn aside(&self) -> Result<Aside, Error> {
        let path = self.noted();
        let noted = match fs::read(&path) {
            // one that was not furnished yet has none
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            read => read.map_err(io_error("read", &path))?,
        };
        let noted = noted.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec);
        Ok(Aside(paths(noted.collect()).into_iter().collect()))
    }

    /// The file that names what is set aside.
    fn noted(&self) -> PathBuf {
        match self.branch().isolation {
            Isolation::Worktree => self.git_dir().join(FILE),
            Isolation::InPlace => self.checkout().in_place_directory().join(FILE),
        }
    }

    /// What is never part of the task, relative to its directory.
    pub(super) fn kept_out(&self) -> Option<&Path> {
        match self.branch().isolation {
            Isolation::Worktree => None,
            Isolation::InPlace => self.checkout().kept_out(),
        }
    }

    /// Takes what is set aside out of an index above `commit`, where a command staged it; the files stay.
    pub(super) fn unstage_aside(&self, git: &Git, commit: &CommitId) -> Result<(), Error> {
        let aside = self.aside()?;
        if aside.0.is_empty() {
            return Ok(());
        }
        let call = git.call(["diff-index", "-z", "--cached", "--name-only", "--diff-filter=A", "--no-renames"]);
        let mut staged = paths(call.args([commit.0.as_str(), "--"]).limit(LONG).parts()?);
        staged.retain(|path| aside.holds(path));
        Staging { git, root: self.path(), index: None }.remove(&staged)
    }

    /// What differs from an index, without what is set aside and what is kept out.
    pub(super) fn changes(&self, git: &Git, index: Option<&Path>) -> Result<Changes, Error> {
        let mut changes = Staging { git, root: self.path(), index }.changes()?.without(self.kept_out());
        let aside = self.aside()?;
        changes.untracked.retain(|path| !aside.holds(path));
        changes.repositories.retain(|path| !aside.holds(path));
        Ok(changes)
    }
}

/// Files, and directories with all that is in them.
pub(super) struct Aside(HashSet<PathBuf>);

impl Aside {
    /// Whether a path is one of them, or lies below one.
    pub(super) fn holds(&self, path: &Path) -> bool {
        !self.0.is_empty() && path.ancestors().any(|above| self.0.contains(above))
    }

    /// Each of them.
    pub(super) fn places(&self) -> impl Iterator<Item = &PathBuf> {
        self.0.iter()
    }
}

/// Ignored files and artefacts, and the directories that hold nothing else, each ended by NUL.
fn ignored_files(git: &Git) -> Result<Vec<u8>, Error> {
    let scratch = scratch()?;
    let call = git.call(["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"]);
    call.args([excludes::option(scratch.path())?]).limit(LONG).run()
}
