//! Rolling the worktree back to a commit: what came since goes, save what the commit's own rules ignore.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use super::{
    Error, Worktree, excludes,
    git::{Git, LONG},
    io_error,
    paths::paths,
    removal::remove_tree,
    stat_cache::TreeState,
};
use crate::domain::{checkout::Isolation, id::CommitId};

impl Worktree {
    /// Makes index and files those of `commit`; untracked files go, and repositories inside. Ignored files and
    /// artefacts stay. The branch is not moved. Gives the files of a checkout whose hard links that tears apart.
    pub fn restore(&self, commit: &CommitId) -> Result<Vec<String>, Error> {
        self.verify()?;
        let changing = match self.compare_with(commit) {
            TreeState::Unchanged => Vec::new(),
            TreeState::Changed(_) | TreeState::Unknown => self.changed_paths(commit)?,
        };
        let changing: Vec<_> = changing.iter().map(|path| self.path().join(path)).collect();
        self.checkout().same_second().before_change(self.path(), &changing);
        self.clear_stat_cache();
        let git = self.git()?;
        self.plain_index(&git, commit)?;
        self.unstage_excluded(&git, commit)?;
        let torn = match self.branch().isolation {
            Isolation::InPlace => self.linked(&self.changed_paths(commit)?),
            Isolation::Worktree => Vec::new(),
        };
        let reset = || git.call(["read-tree", "--reset", "-u", commit.0.as_str()]).limit(LONG).run();
        reset()?;
        self.remove_new_rules(&git)?;

        if self.branch().isolation == Isolation::InPlace {
            self.remove_untracked(&git)?;
            reset()?;
            return Ok(torn);
        }
        let changes = self.changes(&git, None)?;
        let mut call = git.call(["clean", "-ffdq"]);
        for pattern in excludes::patterns() {
            call = call.args(["-e", &pattern]);
        }
        let ignored_at_start = self.ignored_at_start()?;
        let left = changes.left_out.iter().map(|left| &left.path);
        for place in changes.artefacts.iter().chain(ignored_at_start.places()).chain(left) {
            call = call.args([OsStr::new("-e"), &pattern_of(place)]);
        }
        call.limit(LONG).run()?;
        // where a directory had become a link, the first time looked through it and found its files in order
        reset()?;
        Ok(torn)
    }

    /// Removes what is untracked in a checkout: the files, and the directories that they leave empty. Directories that
    /// were empty before are the person's, and so may be a repository inside.
    fn remove_untracked(&self, git: &Git) -> Result<(), Error> {
        let changes = self.changes(git, None)?;
        for path in &changes.untracked {
            remove_tree(&self.path().join(path))?;
            for above in path.ancestors().skip(1).take_while(|above| !above.as_os_str().is_empty()) {
                if std::fs::remove_dir(self.path().join(above)).is_err() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Removes untracked `.gitignore` files: one that holds `*` would hide what came with it. Those in places that the
    /// commit's own rules ignore (`node_modules` is full of them) stay.
    fn remove_new_rules(&self, git: &Git) -> Result<(), Error> {
        let call = git.call(["ls-files", "-z", "--others", "--", ":(glob)**/.gitignore"]);
        let mut found = paths(call.limit(LONG).parts()?);
        let ignored_at_start = self.ignored_at_start()?;
        found.retain(|path| !excludes::artefact(self.path(), path) && !ignored_at_start.contains(path));
        found.retain(|path| !self.kept_out().is_some_and(|kept_out| path.starts_with(kept_out)));
        // the upper ones first: with them goes what they say about the lower ones
        found.sort_by_key(|path| path.components().count());
        let mut rest = found.as_slice();
        while let Some(first) = rest.first() {
            let depth = first.components().count();
            let level = rest.iter().take_while(|path| path.components().count() == depth).count();
            let (now, later) = rest.split_at(level);
            let kept = ignored_from_above(git, now)?;
            for path in now.iter().filter(|path| !kept.contains(path)) {
                let path = self.path().join(path);
                std::fs::remove_file(&path).map_err(io_error("remove", &path))?;
            }
            rest = later;
        }
        Ok(())
    }
}

/// Those of these untracked `.gitignore` files that another file's rule ignores.
fn ignored_from_above(git: &Git, found: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let input = found.iter().flat_map(|path| path.as_os_str().as_bytes().iter().copied().chain([0])).collect();
    let call = git.call(["check-ignore", "-z", "--stdin", "--verbose"]).input(input).also_fine(1);
    let answer = call.run()?;
    let fields: Vec<_> = answer.split(|byte| *byte == 0).collect();
    // source, line, pattern, path
    let matches = fields.chunks_exact(4).filter_map(|fields| match fields {
        [source, _, pattern, path] => Some((*source, *pattern, *path)),
        _ => None,
    });
    let from_above = matches.filter(|(source, pattern, path)| source != path && !pattern.starts_with(b"!"));
    Ok(from_above.map(|(_, _, path)| Path::new(OsStr::from_bytes(path)).to_owned()).collect())
}

/// The ignore pattern for exactly this path.
fn pattern_of(path: &Path) -> OsString {
    let mut pattern = vec![b'/'];
    for byte in path.as_os_str().as_bytes() {
        if matches!(byte, b'*' | b'?' | b'[' | b'\\' | b' ' | b'!' | b'#') {
            pattern.push(b'\\');
        }
        pattern.push(*byte);
    }
    OsString::from_vec(pattern)
}
