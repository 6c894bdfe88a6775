//! Submodules in a task's worktree: their files, from what the checkout has of them, without a network.
//!
//! They are there to be read and built with. They are not part of the branch, and no pointer to them moves.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    Error, Worktree,
    git::LONG,
    io_error,
    paths::{names_notice, path_text},
    staging::scratch,
    store::{Program, Store as _},
};
use crate::domain::{filters::Filters, id::CommitId};

impl Worktree {
    /// Fills the submodules that `commit` names, as far as the checkout holds their commits; says which are filled and
    /// which stay empty.
    pub fn fill_submodules(&self, commit: &CommitId) -> Result<Vec<String>, Error> {
        let (mut filled, mut empty) = (Vec::new(), Vec::new());
        for submodule in self.store().submodules(commit)? {
            let path = Path::new(OsStr::from_bytes(&submodule.path));
            let is_filled = self.fill(path, &submodule.commit)?;
            if is_filled { &mut filled } else { &mut empty }.push(path_text(path));
        }
        let notices = [
            names_notice("submodules are for reading, and changes in them are not part of the branch", &filled),
            names_notice("submodules are empty in the task's worktree", &empty),
        ];
        Ok(notices.into_iter().flatten().collect())
    }

    /// Writes the files of one submodule's commit; false if the checkout does not hold it.
    fn fill(&self, path: &Path, commit: &str) -> Result<bool, Error> {
        let place = self.path().join(path);
        // a sparse checkout leaves it out altogether
        if !place.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            return Ok(false);
        }
        let Some(git_dir) = git_dir_of(&self.checkout().root().join(path)) else { return Ok(false) };
        let git = self.checkout().git().at(&git_dir, &place).without_fetching();
        let configured = Program::new(git.clone(), false).filters()?;
        let git = git.with_filters(Filters::default().and_no_other(configured).unwrap_or_default());
        let scratch = scratch()?;
        let index = scratch.path().join("index");
        let written = git.call(["read-tree", commit]).index(Some(&index)).limit(LONG).run().and_then(|_| {
            git.call(["checkout-index", "--all", "--quiet", "--force"]).index(Some(&index)).limit(LONG).run()
        });
        match written {
            Ok(_) => Ok(true),
            // not there, or not to be read: as empty as it was
            Err(Error::Git { .. }) => {
                super::removal::remove_tree(&place)?;
                fs::create_dir(&place).map_err(io_error("make", &place))?;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

/// The git directory of a submodule that is checked out at `path`.
pub(super) fn git_dir_of(path: &Path) -> Option<PathBuf> {
    let dot_git = path.join(".git");
    let found = dot_git.symlink_metadata().ok()?;
    let place = if found.is_dir() {
        dot_git
    } else if found.is_file() {
        let text = fs::read_to_string(&dot_git).ok()?;
        path.join(text.lines().next()?.strip_prefix("gitdir: ")?)
    } else {
        return None;
    };
    place.canonicalize().ok().filter(|place| place.is_dir())
}
