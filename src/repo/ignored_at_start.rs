//! Ignored files that are there when a task begins: they are no part of its work, also where it changes the rules by
//! which they were ignored. Else a checkpoint would take them, and giving the checkout back would take them away.

use std::{
    collections::HashSet,
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use super::{
    Error, Worktree, excludes,
    git::{Git, LONG},
    io_error,
    paths::{path_text, paths},
    staging::scratch,
};
use crate::domain::checkout::Isolation;

/// The file that names them, in a worktree's own git directory or beside what a task in place keeps.
const FILE: &str = "nisse-ignored";

impl Worktree {
    /// Notes what is no part of the branch now; `fresh`: only git has put files there, so that nothing is.
    pub fn note_ignored(&self, fresh: bool) -> Result<(), Error> {
        let path = self.ignored_at_start_file();
        let mut noted = Vec::new();
        if !fresh || self.branch().isolation == Isolation::InPlace {
            let git = self.git()?;
            noted = ignored_files(&git)?;
            let artefacts = self.changes(&git, None)?.artefacts;
            for path in self.left_out()?.iter().chain(&artefacts) {
                noted.extend_from_slice(path.as_os_str().as_encoded_bytes());
                noted.push(0);
            }
        }
        // not there after a crash, there is no worktree that stands either
        fs::File::create(&path).and_then(|mut file| file.write_all(&noted)).map_err(io_error("write", &path))
    }

    /// What the task made that is no part of its branch, since git ignores it or it is never staged, and that is no build
    /// artefact: files, and directories that hold nothing else, with a slash behind.
    pub fn ignored_work(&self) -> Result<Vec<String>, Error> {
        let noted = ignored_files(&self.git()?)?;
        let ignored_at_start = self.ignored_at_start()?;
        let left = self.left_out()?;
        // a repository that has some of them in its commits means the others too
        let tracked = self.tracked_artefacts()?;
        let of_task = |path: &PathBuf| {
            // of a directory, whatever is in it
            let within =
                if path.as_os_str().as_encoded_bytes().ends_with(b"/") { path.join("x") } else { path.clone() };
            let is_artefact = excludes::artefact(self.path(), &within);
            !ignored_at_start.contains(path)
                && (!is_artefact || within.ancestors().any(|above| tracked.contains(above)))
        };
        let noted = paths(noted.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect());
        let mut work: Vec<&PathBuf> = noted.iter().filter(|path| of_task(path)).chain(&left).collect();
        work.sort_unstable();
        // git names what lies in such a directory too
        work.dedup_by(|path, above| path.starts_with(above));
        Ok(work.into_iter().map(|path| path_text(path)).collect())
    }

    /// Directories with a name of build artefacts that hold tracked files.
    fn tracked_artefacts(&self) -> Result<HashSet<PathBuf>, Error> {
        let git = self.git()?;
        let call = git
            .call(["ls-files", "-z", "--"])
            .args(excludes::DIRECTORIES.iter().map(|name| format!(":(glob)**/{name}/**")));
        let named =
            |path: &Path| path.file_name().is_some_and(|name| excludes::DIRECTORIES.iter().any(|one| name == *one));
        let tracked = paths(call.limit(LONG).parts()?);
        Ok(tracked
            .iter()
            .flat_map(|path| path.ancestors().skip(1))
            .filter(|above| named(above))
            .map(Path::to_owned)
            .collect())
    }

    /// What is set aside.
    pub(super) fn ignored_at_start(&self) -> Result<IgnoredAtStart, Error> {
        let path = self.ignored_at_start_file();
        let noted = match fs::read(&path) {
            // one that was not furnished yet has none
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            read => read.map_err(io_error("read", &path))?,
        };
        let noted = noted.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec);
        Ok(IgnoredAtStart(paths(noted.collect()).into_iter().collect()))
    }

    /// The file that names what is set aside.
    fn ignored_at_start_file(&self) -> PathBuf {
        match self.branch().isolation {
            Isolation::Worktree => self.git_dir().join(FILE),
            Isolation::InPlace => self.checkout().in_place_directory().join(FILE),
        }
    }
}

/// Files, and directories with all that is in them.
pub(super) struct IgnoredAtStart(HashSet<PathBuf>);

impl IgnoredAtStart {
    /// Whether a path is one of them, or lies below one.
    pub(super) fn contains(&self, path: &Path) -> bool {
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
