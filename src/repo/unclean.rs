//! Whether a checkout holds unfinished work: what `git status` shows, in its submodules too.
//!
//! Not counted are untracked paths of `[files] deny`, the state directory and build artefacts: no checkpoint takes them.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    Checkout, Error, excludes,
    git::{Git, LONG},
    paths::path_text,
    store::{Program, Store as _},
    submodules::git_dir_of,
};

impl Checkout {
    /// Refuses a checkout with unfinished work, and names it.
    pub(super) fn refuse_unclean(&self) -> Result<(), Error> {
        let mut paths = self.unclean()?;
        // git status does not tell them; a checkpoint would take them
        paths.extend(self.hidden_edits()?);
        paths.sort_unstable();
        paths.dedup();
        if paths.is_empty() { Ok(()) } else { Err(Error::Unclean { checkout: self.root().to_owned(), paths }) }
    }

    fn unclean(&self) -> Result<Vec<String>, Error> {
        let found = status(self.git())?;
        let untracked: Vec<_> = found.iter().filter(|one| one.untracked).map(|one| one.path.clone()).collect();
        let never = self.rules().sort(self.git(), self.root(), &*self.store(), &untracked)?;
        let counts = |one: &StatusEntry| {
            let is_spared =
                || excludes::artefact(self.root(), &one.path) || never.iter().any(|left| left.path == one.path);
            !(one.untracked && is_spared())
        };
        let mut paths: Vec<_> = found.iter().filter(|one| counts(one)).map(|one| path_text(&one.path)).collect();
        self.unclean_submodules(self.git(), self.root(), Path::new(""), &mut paths)?;
        Ok(paths)
    }

    /// Looks into the submodules below `root`, which lies at `above` in the checkout.
    fn unclean_submodules(&self, git: &Git, root: &Path, above: &Path, paths: &mut Vec<String>) -> Result<(), Error> {
        for entry in git.call(["ls-files", "-z", "--stage"]).limit(LONG).parts()? {
            // mode, id and stage, a tab, a path
            let Some(path) =
                entry.strip_prefix(b"160000 ").and_then(|rest| rest.splitn(2, |byte| *byte == b'\t').nth(1))
            else {
                continue;
            };
            let path = Path::new(OsStr::from_bytes(path));
            let place = root.join(path);
            let Some(git_dir) = git_dir_of(&place) else { continue };
            let inner = git.at(&git_dir, &place).without_fetching();
            let configured = Program::new(inner.clone(), false).filters()?;
            // of the filters, those that the checkout has too: others are the submodule's own, and need not be trusted
            let inner = inner.with_filters(self.filters().and_no_other(configured).unwrap_or_default());
            let at = above.join(path);
            // another commit than the index names is told by the status above it
            paths.extend(status(&inner)?.iter().map(|one| path_text(&at.join(&one.path))));
            self.unclean_submodules(&inner, &place, &at, paths)?;
        }
        Ok(())
    }
}

/// A line of `git status`.
struct StatusEntry {
    path: PathBuf,
    untracked: bool,
}

fn status(git: &Git) -> Result<Vec<StatusEntry>, Error> {
    let call = git.call(["status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=dirty"]);
    let parts = call.args(["--untracked-files=all"]).limit(LONG).parts()?;
    // two letters, a blank, a path
    let line = |part: Vec<u8>| {
        let (mark, path) = part.split_first_chunk::<3>()?;
        Some(StatusEntry { path: OsStr::from_bytes(path).into(), untracked: mark == b"?? " })
    };
    Ok(parts.into_iter().filter_map(line).collect())
}
