//! What no snapshot and no checkpoint takes, beside what git ignores and build artefacts: untracked paths that
//! `[files] deny` names, since a branch may be pushed; nisse's own state directory, wherever it lies; a link in the place
//! of a directory that the rules leave out, since a rule for directories does not match a link.
//!
//! A tracked path is never left out for its name, nor is one that the commit tracks which the task started from.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{
    Error, excludes,
    git::{Git, LONG},
    paths::{names_notice, path_text, paths},
    staging::{Changes, LeftOut, Staging, Why, scratch},
    store::Store,
};
use crate::domain::{globs::PathGlobs, id::CommitId};

/// A name that stands for whatever is in a directory.
const WITHIN: &str = "nisse-within";

/// The rules of one task.
#[derive(Clone, Debug, Default)]
pub struct NeverStaged {
    denied: Option<PathGlobs>,
    /// Without links.
    state_dir: Option<PathBuf>,
    base: Option<CommitId>,
}

impl NeverStaged {
    /// Rules by the globs of `[files] deny`, the state directory, and the commit that the task starts from: what that
    /// tracks is the repository's.
    pub fn new(deny: &[String], state_dir: &Path, base: Option<&CommitId>) -> Result<Self, Error> {
        let denied = PathGlobs::denying(deny)
            .map_err(|error| Error::Refused { checkout: state_dir.to_owned(), why: error.to_string() })?;
        let state_dir = state_dir.canonicalize().unwrap_or_else(|_| state_dir.to_owned());
        Ok(Self { denied: Some(denied), state_dir: Some(state_dir), base: base.cloned() })
    }

    /// Where the state directory lies below `root`, if it does.
    pub(super) fn state_below<'a>(&'a self, root: &Path) -> Option<&'a Path> {
        let below = self.state_dir.as_ref()?.strip_prefix(root).ok()?;
        (!below.as_os_str().is_empty()).then_some(below)
    }

    /// Why each of these untracked paths is never staged, of those that are not.
    pub(super) fn sort(
        &self,
        git: &Git,
        root: &Path,
        store: &dyn Store,
        untracked: &[PathBuf],
    ) -> Result<Vec<LeftOut>, Error> {
        let mut left = Vec::new();
        let mut links = Vec::new();
        for path in untracked {
            if self.state_below(root).is_some_and(|state| path.starts_with(state)) {
                left.push(LeftOut { path: path.clone(), why: Why::State });
            } else if self.denies(store, path)? {
                left.push(LeftOut { path: path.clone(), why: Why::Denied });
            } else if root.join(path).is_symlink() {
                links.push(path);
            }
        }
        let excluded = excluded_directories(git, root, &links)?;
        left.extend(excluded.into_iter().map(|path| LeftOut { path, why: Why::Link }));
        Ok(left)
    }

    fn denies(&self, store: &dyn Store, path: &Path) -> Result<bool, Error> {
        if !self.denied.as_ref().is_some_and(|denied| denied.matches(&path.to_string_lossy())) {
            return Ok(false);
        }
        match &self.base {
            Some(base) => Ok(!store.contains(base, path)?),
            None => Ok(true),
        }
    }

    /// Takes what is never staged out of what changed.
    pub(super) fn take_out(
        &self,
        changes: &mut Changes,
        staging: &Staging<'_>,
        store: &dyn Store,
    ) -> Result<(), Error> {
        let left = self.sort(staging.git, staging.root, store, &changes.untracked)?;
        let names: BTreeSet<_> = left.iter().map(|left| left.path.clone()).collect();
        changes.untracked.retain(|path| !names.contains(path));
        changes.left_out.extend(left);
        if let Some(state) = self.state_below(staging.root) {
            // it may be tracked by mistake, or hold the worktrees of tasks
            let mut found = false;
            let mut outside = |path: &PathBuf| {
                found |= path.starts_with(state);
                !path.starts_with(state)
            };
            changes.tracked.retain(&mut outside);
            changes.repositories.retain(&mut outside);
            if found {
                changes.left_out.push(LeftOut { path: state.to_owned(), why: Why::State });
            }
        }
        Ok(())
    }
}

/// What is never staged, told to a person: a sentence for each reason.
pub(super) fn notices(left: &[LeftOut], rules: &NeverStaged, root: &Path) -> Vec<String> {
    let mut notices = Vec::new();
    for why in [Why::Denied, Why::State, Why::Link] {
        let mut names: Vec<_> = left.iter().filter(|left| left.why == why).map(|left| path_text(&left.path)).collect();
        names.sort_unstable();
        let what = match why {
            Why::Denied => "not carried over, because [files] deny names them and a branch may be pushed",
            Why::State => {
                if !names.is_empty() {
                    names = rules.state_below(root).map(path_text).into_iter().collect();
                }
                "not carried over, because it is the state directory of nisse"
            }
            Why::Link => "not carried over, because they are links in the place of directories that git ignores",
        };
        notices.extend(names_notice(what, &names));
    }
    notices
}

/// Those of these links that would be ignored, or be artefacts, if they were directories. Asked of git by an index that
/// holds a file below each: it refuses to look behind a link by name.
fn excluded_directories(git: &Git, root: &Path, links: &[&PathBuf]) -> Result<Vec<PathBuf>, Error> {
    if links.is_empty() {
        return Ok(Vec::new());
    }
    let scratch = scratch()?;
    let index = scratch.path().join("index");
    let blob = git.call(["hash-object", "--stdin"]).input(Vec::new()).line()?;
    let mut entries = Vec::new();
    for link in links {
        entries.extend_from_slice(format!("100644 {blob}\t").as_bytes());
        entries.extend_from_slice(link.join(WITHIN).as_os_str().as_encoded_bytes());
        entries.push(0);
    }
    git.call(["update-index", "-z", "--index-info"]).index(Some(&index)).input(entries).run()?;
    let call = git
        .call(["ls-files", "-z", "--cached", "--ignored", "--exclude-standard"])
        .args([excludes::option(scratch.path())?]);
    let ignored = paths(call.index(Some(&index)).limit(LONG).parts()?);
    let excluded = |link: &PathBuf| {
        let within = link.join(WITHIN);
        ignored.contains(&within) || excludes::beside(root, &within).is_some()
    };
    Ok(links.iter().filter(|link| excluded(link)).map(|link| (*link).clone()).collect())
}
