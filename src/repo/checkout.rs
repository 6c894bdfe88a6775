//! The person's repository directory: found, checked, never written to.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs::File,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

use secrecy::SecretString;

use super::{
    Environment, Error, SameSecond,
    configuration::{Configuration, Formats, PersonalFile},
    git::Git,
    io_error,
    lock_files::in_the_way,
    never_staged::NeverStaged,
    operation::operation,
    process::EndableGit,
    repository_id::FormerPlaces,
    store::{Head, KeptIndex, Library, Program, Store},
};
use crate::domain::{
    checkout::Base,
    filters::{Filters, asked_for},
    id::{CommitId, TaskId},
};

/// A checkout that tasks can work with.
#[derive(Clone, Debug)]
pub struct Checkout {
    root: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    former_places: FormerPlaces,
    identity: (String, String),
    credentials: Arc<[SecretString]>,
    filters: Filters,
    formats: Formats,
    attributes: Option<PathBuf>,
    never_staged: NeverStaged,
    git: Git,
    same_second: SameSecond,
}

impl Checkout {
    /// Finds the repository that `path` (a directory) lies in, and refuses what tasks cannot work with. Nothing is
    /// written. Whether its state allows a task to begin *now* is another question: [`Checkout::ready`].
    pub fn open(path: &Path, environment: &Environment) -> Result<Self, Error> {
        let git = Git::new(environment.clone());
        if !path.is_dir() {
            refuse_old(&git)?;
            return Err(Error::NoDirectory { path: path.to_owned() });
        }
        // an old git is said first, but asked at the same time
        let (version, place) = std::thread::scope(|scope| {
            let version = scope.spawn(|| refuse_old(&git));
            let place = Place::find(&git, path);
            (version.join(), place)
        });
        version.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let place = place?;
        let git = git.at(&place.git_dir, &place.root);
        let configuration = Configuration::read(&git)?;
        let mut formats = configuration.formats();
        if !formats.by_program {
            let library = Library::new(&place.git_dir, KeptIndex::default());
            formats.by_program = library.readable().is_err() || !library.agrees(&configuration, environment)?;
        }
        let filters = configuration.filters();
        Ok(Self {
            identity: configuration.identity(),
            credentials: configuration.credentials().into(),
            git: git.with_filters(filters.clone()),
            filters,
            formats,
            attributes: configuration.personal_file(PersonalFile::Attributes, environment),
            never_staged: NeverStaged::default(),
            former_places: FormerPlaces::of(&place.root, &place.git_dir, &place.common_dir),
            root: place.root,
            git_dir: place.git_dir,
            common_dir: place.common_dir,
            same_second: SameSecond::default(),
        })
    }

    /// The same checkout with these content filters, those of the task's beginning: one that was configured since may
    /// be a command's work.
    #[must_use]
    pub fn with_filters(self, filters: &Filters) -> Self {
        Self { git: self.git.with_filters(filters.clone()), filters: filters.clone(), ..self }
    }

    /// The same checkout with these rules for what no snapshot and no checkpoint of a task takes.
    #[must_use]
    pub fn never_staging(self, rules: NeverStaged) -> Self {
        Self { never_staged: rules, ..self }
    }

    /// The same checkout with git processes that hold the locks of a task, so that one that outlives a killed nisse keeps
    /// the task.
    #[must_use]
    pub fn with_task_locks(self, task: TaskId, locks: Vec<Weak<File>>) -> Self {
        Self { git: self.git.with_task_locks(task, locks), ..self }
    }

    /// The same checkout, whose git processes that may be ended are known there.
    #[must_use]
    pub fn endable_by(self, endable: &EndableGit) -> Self {
        Self { git: self.git.endable_by(endable.clone()), ..self }
    }

    /// The same checkout with everything done by the git program, as where the library would be wrong.
    #[must_use]
    pub fn by_program(mut self) -> Self {
        self.formats.by_program = true;
        self
    }

    /// What has run in the current second; of this checkout and of all that were cloned from it.
    #[must_use]
    pub fn same_second(&self) -> &SameSecond {
        &self.same_second
    }

    /// The content filters that are configured.
    #[must_use]
    pub fn filters(&self) -> &Filters {
        &self.filters
    }

    /// The top of the checkout, an absolute path.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Its git directory: `.git`, or its entry where it is itself a linked worktree.
    #[must_use]
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Name and address for the commits of a task: the person's where both are set, else nisse's own. Never written to
    /// a configuration.
    #[must_use]
    pub fn identity(&self) -> (&str, &str) {
        (&self.identity.0, &self.identity.1)
    }

    /// The credentials that its configuration held when it was opened.
    #[must_use]
    pub fn credentials(&self) -> &[SecretString] {
        &self.credentials
    }

    /// Where HEAD is.
    pub fn base(&self) -> Result<Base, Error> {
        let Head { commit, branch } = self.store().head()?;
        Ok(Base { commit, branch, explicit: false })
    }

    /// The commit that `rev` (`main`, `v1.0`, `HEAD~2`, an id) names, as a base: the task starts there, without the
    /// checkout's unfinished work.
    pub fn resolve_base(&self, rev: &str) -> Result<Base, Error> {
        let commit = self.store().resolve(rev)?;
        Ok(Base { commit: Some(commit), branch: self.store().head()?.branch, explicit: true })
    }

    /// Whether the repository holds a commit.
    pub fn has_commit(&self, commit: &CommitId) -> Result<bool, Error> {
        Ok(self.store().message(commit)?.is_some())
    }

    /// Whether there is a local branch of that name.
    pub fn branch_exists(&self, name: &str) -> Result<bool, Error> {
        Ok(self.store().reference(&format!("refs/heads/{name}"))?.is_some())
    }

    /// A local branch because of which there can be none of that name: itself, one above it, one below it.
    pub fn branch_in_the_way(&self, name: &str) -> Result<Option<String>, Error> {
        let parts: Vec<_> = name.split('/').collect();
        for length in 1..=parts.len() {
            let above = parts[..length].join("/");
            if self.branch_exists(&above)? {
                return Ok(Some(above));
            }
        }
        let below = self.git.call(["for-each-ref", "--count=1", "--format=%(refname)", &format!("refs/heads/{name}/")]);
        let found = String::from_utf8_lossy(&below.run()?).trim_end().to_owned();
        Ok(found.strip_prefix("refs/heads/").map(str::to_owned))
    }

    /// Whether a branch can have that name at all.
    pub fn is_branch_name(&self, name: &str) -> Result<bool, Error> {
        // `@`, `-` and `@{-1}` are short for other names
        let legal = self.git.call(["check-ref-format", &format!("refs/heads/{name}")]).status()? == 0;
        // and below a branch `nisse` there could be no `nisse/…`
        Ok(legal && !name.starts_with('-') && !matches!(name, "@" | "HEAD" | "nisse"))
    }

    /// Refuses a checkout in whose present state no task can begin: its repository cannot be written to, another git is
    /// at work, a merge or rebase is in progress, conflicts are unresolved. Each sentence says the way on.
    pub fn ready(&self) -> Result<(), Error> {
        let refused = |why: String| Err(Error::Refused { checkout: self.root.clone(), why });
        self.refuse_read_only(&self.common_dir)?;
        self.refuse_read_only(&self.common_dir.join("objects"))?;
        self.refuse_index_lock()?;
        if let Some(what) = self.in_progress()? {
            return refused(format!("{what} is in progress; finish or abort it, then try again"));
        }
        let conflicts = self.store().conflicts()?;
        if let Some(first) = conflicts.first() {
            let more = if conflicts.len() > 1 { format!(" and {} more", conflicts.len() - 1) } else { String::new() };
            return refused(format!("unresolved conflicts in {first}{more}; resolve and stage them, then try again"));
        }
        if self.store().reference("refs/heads/nisse")?.is_some() {
            return refused("a branch is called `nisse`, so none can be called `nisse/…`; rename it".to_owned());
        }
        if let Some((filter, program)) = self.missing_filter()? {
            return refused(format!(
                "its .gitattributes ask for the filter `{filter}`, and its program {program} is not installed; without it \
                 files would be committed with the wrong bytes"
            ));
        }
        Ok(())
    }

    /// Refuses a checkout in which something is at the place of a tracked file that no commit can hold: whoever reads a
    /// pipe waits for ever. To be asked once, before a task begins, since it looks at every tracked path.
    pub fn refuse_special_files(&self) -> Result<(), Error> {
        let special = |path: &&Vec<u8>| {
            let found = self.root.join(OsStr::from_bytes(path)).symlink_metadata();
            found.is_ok_and(|found| !(found.is_file() || found.is_dir() || found.is_symlink()))
        };
        let tracked = self.store().tracked()?;
        let Some(path) = tracked.iter().find(special) else { return Ok(()) };
        let why = format!(
            "{} is tracked as a file, and is a pipe, a socket or a device now; put the file back, or `git rm --cached` it",
            String::from_utf8_lossy(path)
        );
        Err(Error::Refused { checkout: self.root.clone(), why })
    }

    /// Refuses a checkout where nothing can be written into `directory`.
    pub(super) fn refuse_read_only(&self, directory: &Path) -> Result<(), Error> {
        let Err(error) = rustix::fs::access(directory, rustix::fs::Access::WRITE_OK) else { return Ok(()) };
        let why = format!("nothing can be written to {}: {}", directory.display(), std::io::Error::from(error));
        Err(Error::Refused { checkout: self.root.clone(), why })
    }

    /// Refuses a checkout whose index another git holds, or held when it died: it is not ours to remove.
    pub(super) fn refuse_index_lock(&self) -> Result<(), Error> {
        let lock = self.git_dir.join("index.lock");
        if lock.symlink_metadata().is_ok() { Err(in_the_way(&lock)) } else { Ok(()) }
    }

    /// What is going on in the checkout (`a merge`), if anything is that leaves its files half done.
    fn in_progress(&self) -> Result<Option<&'static str>, Error> {
        operation(&self.git_dir, &*self.store(), self.formats.refs_in_files)
    }

    /// The git directory that all worktrees of the repository share.
    #[must_use]
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    pub(super) fn former_places(&self) -> &FormerPlaces {
        &self.former_places
    }

    pub(super) fn git(&self) -> &Git {
        &self.git
    }

    /// What no snapshot and no checkpoint takes.
    pub(super) fn rules(&self) -> &NeverStaged {
        &self.never_staged
    }

    pub(super) fn formats(&self) -> Formats {
        self.formats
    }

    pub(super) fn store(&self) -> Box<dyn Store> {
        self.store_at(&self.git_dir, &self.git, KeptIndex::default())
    }

    /// The store as seen from another git directory of the same repository, with git set up for it.
    pub(super) fn store_at(&self, git_dir: &Path, git: &Git, index: KeptIndex) -> Box<dyn Store> {
        if self.formats.by_program {
            Box::new(Program::new(git.clone(), self.formats.sparse))
        } else {
            Box::new(Library::new(git_dir, index))
        }
    }

    /// A filter that the attributes ask for and that must not be left out, with a program of it that is not there.
    fn missing_filter(&self) -> Result<Option<(String, String)>, Error> {
        let environment = self.git.environment();
        let missing = |filter: &String| {
            self.filters
                .needed(filter)
                .into_iter()
                .find(|program| environment.program(program).is_none())
                .map(str::to_owned)
        };
        let asked = self.filters_asked_for()?;
        Ok(asked.into_iter().find_map(|filter| missing(&filter).map(|program| (filter, program))))
    }

    /// The filters that the checkout's attributes ask for, tracked or not.
    pub(super) fn filters_asked_for(&self) -> Result<BTreeSet<String>, Error> {
        let tracked = self.store().named(".gitattributes")?;
        let mut paths: Vec<_> = tracked.iter().map(|path| self.root.join(OsStr::from_bytes(path))).collect();
        paths.push(self.root.join(".gitattributes"));
        paths.push(self.common_dir.join("info/attributes"));
        paths.extend(self.attributes.clone());
        // a file that cannot be read holds for git as little as for us
        let regular = paths.iter().filter(|path| path.symlink_metadata().is_ok_and(|found| found.is_file()));
        Ok(regular.filter_map(|path| std::fs::read(path).ok()).flat_map(|text| asked_for(&text)).collect())
    }
}

/// How git begins the command by which a person trusts a repository of somebody else's.
const TRUST: &str = "git config --global --add safe.directory";

/// Where a repository's parts lie.
struct Place {
    root: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
}

impl Place {
    fn find(git: &Git, path: &Path) -> Result<Self, Error> {
        let named = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let refused = |why: &str| Error::Refused { checkout: named.clone(), why: why.to_owned() };
        let ask = |questions: &[&str]| {
            let call = git.call([OsStr::new("-C"), path.as_os_str(), OsStr::new("rev-parse")]);
            call.args(["--path-format=absolute"]).args(questions).line()
        };
        let answer = match ask(&["--show-toplevel", "--git-dir", "--git-common-dir"]) {
            Ok(answer) => answer,
            // git's own words name the path that it means, which need not be the one that was asked for
            Err(Error::Git { stderr, .. }) if stderr.contains(TRUST) => {
                let command = stderr.split_once(TRUST).map_or("", |(_, path)| path).trim();
                return Err(refused(&format!(
                    "it belongs to somebody else, and git does not trust it (dubious ownership); if you do: \
                     `{TRUST} {command}`"
                )));
            }
            Err(Error::Git { stderr, .. }) if stderr.contains("not a git repository (or any") => {
                return Err(Error::NotARepository { path: path.to_owned() });
            }
            Err(Error::Git { stderr, .. }) if stderr.contains("not a git repository: ") => {
                let gone = stderr.split_once("not a git repository: ").map_or("", |(_, gone)| gone);
                return Err(refused(&format!(
                    "its `.git` file says that its repository is at {gone}, and there is none; bring that back, or run \
                     `git worktree repair` where it is now"
                )));
            }
            Err(Error::Git { stderr, .. }) if stderr.contains("must be run in a work tree") => {
                return Err(refused(if path.join(".git").is_dir() {
                    "its configuration says `core.bare = true`, though it has files; `git config core.bare false` says that \
                     they are to be worked on"
                } else if ask(&["--is-bare-repository"])? == "true" {
                    "it is a bare repository, without files to work on; clone it and work there"
                } else {
                    "it is a git directory; name the checkout that it belongs to"
                }));
            }
            Err(error) => return Err(error),
        };
        let real = |line: &str| std::fs::canonicalize(line).map_err(io_error("find", Path::new(line)));
        match answer.lines().collect::<Vec<_>>()[..] {
            [root, git_dir, common_dir] => {
                Ok(Self { root: real(root)?, git_dir: real(git_dir)?, common_dir: real(common_dir)? })
            }
            _ => Err(refused("its path holds a line break, which git's answers cannot be read with")),
        }
    }
}

/// The git program's version, if it is one that tasks can work with.
pub fn git_version(environment: &Environment) -> Result<String, Error> {
    refuse_old(&Git::new(environment.clone()))
}

/// Refuses a git program without `worktree add --lock --reason`.
fn refuse_old(git: &Git) -> Result<String, Error> {
    let found = git.call(["--version"]).line()?;
    let number = found.split_whitespace().nth(2).unwrap_or_default();
    let mut parts = number.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if version < (2, 34) { Err(Error::OldGit { found: number.to_owned() }) } else { Ok(number.to_owned()) }
}

impl Checkout {
    /// The commit at the tip of a local branch.
    pub(super) fn branch_tip(&self, name: &str) -> Result<Option<CommitId>, Error> {
        self.store().reference(&format!("refs/heads/{name}"))
    }
}
