//! The person's repository directory: found, checked, never written to.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    Environment, Error, attributes,
    git::Git,
    io_error,
    store::{Head, Store},
};
use crate::domain::{checkout::Base, id::CommitId};

/// A checkout that tasks can work with.
#[derive(Clone, Debug)]
pub struct Checkout {
    root: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    identity: (String, String),
    filters: BTreeSet<String>,
    git: Git,
}

impl Checkout {
    /// Finds the repository that `path` (a directory) lies in, and refuses kinds of repositories that would be read
    /// wrongly or damaged. Nothing is written. Whether its state allows a task to begin *now* is another question:
    /// [`Checkout::ready`].
    pub fn open(path: &Path, environment: &Environment) -> Result<Self, Error> {
        let git = Git::new(environment.clone());
        refuse_old(&git)?;
        if !path.is_dir() {
            return Err(Error::NotARepository { path: path.to_owned() });
        }
        let place = Place::find(&git, path)?;
        let git = git.at(&place.git_dir, &place.root);
        let settings = Settings::read(&git)?;
        let refused = |why: String| Error::Refused { checkout: place.root.clone(), why };
        if let Some(why) = settings.refusal() {
            return Err(refused(why));
        }
        Store::new(&place.git_dir).readable().map_err(|words| refused(unreadable(&words)))?;

        let filters = settings.filters();
        let checkout = Self {
            identity: settings.identity(),
            git: git.without_filters(filters.iter().cloned()),
            filters,
            root: place.root,
            git_dir: place.git_dir,
            common_dir: place.common_dir,
        };
        checkout.refuse_filters(settings.last("core.attributesfile"))?;
        Ok(checkout)
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

    /// Whether there is a local branch of that name.
    pub fn branch_exists(&self, name: &str) -> Result<bool, Error> {
        Ok(self.store().reference(&format!("refs/heads/{name}"))?.is_some())
    }

    /// Refuses a checkout in whose present state no task can begin: another git is at work, a merge or rebase is in
    /// progress, conflicts are unresolved. Each sentence says the way on.
    pub fn ready(&self) -> Result<(), Error> {
        let refused = |why: String| Err(Error::Refused { checkout: self.root.clone(), why });
        let lock = self.git_dir.join("index.lock");
        if let Ok(found) = lock.symlink_metadata() {
            let age = found.modified().ok().and_then(|time| time.elapsed().ok()).map_or(0, |age| age.as_secs());
            return refused(format!(
                "{} is there, {age} s old: another git is at work, or died; if none is, remove the file",
                lock.display()
            ));
        }
        if let Some(what) = self.store().in_progress()? {
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
        Ok(())
    }

    pub(super) fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    pub(super) fn git(&self) -> &Git {
        &self.git
    }

    pub(super) fn store(&self) -> Store {
        Store::new(&self.git_dir)
    }

    /// Refuses a tree whose attributes ask for a content filter.
    pub(super) fn refuse_filters_of(&self, attributes: &[Vec<u8>]) -> Result<(), Error> {
        match attributes.iter().find_map(|text| attributes::filter_in(text, &self.filters)) {
            Some(filter) => Err(Error::Refused { checkout: self.root.clone(), why: attributes::refusal(&filter) }),
            None => Ok(()),
        }
    }

    /// The same for the attributes that hold in the checkout itself.
    fn refuse_filters(&self, configured: Option<&str>) -> Result<(), Error> {
        let tracked = self.git.call(["ls-files", "-z", "--", ":(glob)**/.gitattributes"]).parts()?;
        let mut paths: Vec<_> = tracked.iter().map(|path| self.root.join(OsStr::from_bytes(path))).collect();
        paths.push(self.common_dir.join("info/attributes"));
        // `~` and relative paths are left: such a filter would still be switched off, only not refused
        paths.extend(configured.map(PathBuf::from).filter(|path| path.is_absolute()));
        // a file that cannot be read holds for git as little as for us
        let regular = paths.iter().filter(|path| path.symlink_metadata().is_ok_and(|found| found.is_file()));
        let texts: Vec<_> = regular.filter_map(|path| std::fs::read(path).ok()).collect();
        self.refuse_filters_of(&texts)
    }
}

/// Where a repository's parts lie.
struct Place {
    root: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
}

impl Place {
    fn find(git: &Git, path: &Path) -> Result<Self, Error> {
        let refused = |why: &str| Error::Refused { checkout: path.to_owned(), why: why.to_owned() };
        let ask = |questions: &[&str]| {
            let call = git.call([OsStr::new("-C"), path.as_os_str(), OsStr::new("rev-parse")]);
            call.args(["--path-format=absolute"]).args(questions).line()
        };
        let answer = match ask(&["--show-toplevel", "--git-dir", "--git-common-dir"]) {
            Ok(answer) => answer,
            Err(Error::Git { stderr, .. }) if stderr.contains("dubious ownership") => {
                return Err(refused(
                    "it belongs to somebody else, and git does not trust it (dubious ownership); if you do: \
                     `git config --global --add safe.directory <its path>`",
                ));
            }
            Err(Error::Git { stderr, .. }) if stderr.contains("not a git repository") => {
                return Err(Error::NotARepository { path: path.to_owned() });
            }
            Err(Error::Git { stderr, .. }) if stderr.contains("must be run in a work tree") => {
                return Err(refused(if ask(&["--is-bare-repository"])? == "true" {
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

/// The configuration as git sees it, in order.
struct Settings(Vec<(String, String)>);

impl Settings {
    fn read(git: &Git) -> Result<Self, Error> {
        let entries = git.call(["config", "--list", "-z"]).parts()?;
        let split = |entry: Vec<u8>| {
            let text = String::from_utf8_lossy(&entry).into_owned();
            match text.split_once('\n') {
                Some((key, value)) => (key.to_owned(), value.to_owned()),
                // a key alone stands for true
                None => (text, "true".to_owned()),
            }
        };
        Ok(Self(entries.into_iter().map(split).collect()))
    }

    fn last(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    fn is_on(&self, key: &str) -> bool {
        let off = |value: &str| ["", "false", "no", "off", "0"].contains(&value.to_ascii_lowercase().as_str());
        self.last(key).is_some_and(|value| !off(value))
    }

    /// Why such a repository is refused, if it is.
    fn refusal(&self) -> Option<String> {
        let promisor = |(key, _): &(String, String)| {
            key == "extensions.partialclone" || key.starts_with("remote.") && key.ends_with(".promisor")
        };
        let what = if self.is_on("core.sparsecheckout") {
            "it is a sparse checkout; `git sparse-checkout disable` makes it whole"
        } else if self.0.iter().any(promisor) {
            "it is a partial clone, whose missing objects cannot be read here; a full clone can be worked on"
        } else if self.last("extensions.objectformat").is_some_and(|format| format != "sha1") {
            "its objects are not named by SHA-1 (extensions.objectFormat), which tasks cannot yet work with"
        } else if self.last("extensions.refstorage").is_some_and(|storage| storage != "files") {
            "its refs are not stored in files (reftable), which tasks cannot yet work with"
        } else if self.last("extensions.compatobjectformat").is_some() {
            "it has two object formats (extensions.compatObjectFormat), which tasks cannot yet work with"
        } else {
            return None;
        };
        Some(what.to_owned())
    }

    fn filters(&self) -> BTreeSet<String> {
        self.0.iter().filter_map(|(key, _)| attributes::filter_of(key)).map(str::to_owned).collect()
    }

    /// The person's name and address where both are usable, else nisse's own.
    fn identity(&self) -> (String, String) {
        // what git strips from a name's ends, and what it leaves out of its middle
        let usable = |value: &str| {
            let kept: String = value.chars().filter(|c| !matches!(c, '<' | '>' | '\n' | '\0')).collect();
            let crud = |c: char| c <= ' ' || matches!(c, '.' | ',' | ':' | ';' | '"' | '\\' | '\'');
            let trimmed = kept.trim_matches(crud).to_owned();
            (!trimmed.is_empty()).then_some(trimmed)
        };
        let name = self.last("user.name").and_then(usable);
        let email = self.last("user.email").and_then(usable);
        match (name, email) {
            (Some(name), Some(email)) => (name, email),
            (Some(_) | None, None) | (None, Some(_)) => ("nisse".to_owned(), "nisse@localhost".to_owned()),
        }
    }
}

/// Refuses a git program without `worktree add --lock --reason`.
/// The git program's version, if it is one that tasks can work with.
pub fn git_version(environment: &Environment) -> Result<String, Error> {
    refuse_old(&Git::new(environment.clone()))
}

fn refuse_old(git: &Git) -> Result<String, Error> {
    let found = git.call(["--version"]).line()?;
    let number = found.split_whitespace().nth(2).unwrap_or_default();
    let mut parts = number.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if version < (2, 34) { Err(Error::OldGit { found: number.to_owned() }) } else { Ok(number.to_owned()) }
}

/// The sentence for what libgit2 does not read.
fn unreadable(words: &str) -> String {
    if words.contains("mandatory extension") {
        return "its index is split or sparse, which tasks cannot yet work with; \
                `git update-index --no-split-index` or `git sparse-checkout disable` makes it plain"
            .to_owned();
    }
    format!("it cannot be read: {words}")
}

impl Checkout {
    /// The commit at the tip of a local branch.
    pub(super) fn branch_tip(&self, name: &str) -> Result<Option<CommitId>, Error> {
        self.store().reference(&format!("refs/heads/{name}"))
    }
}
