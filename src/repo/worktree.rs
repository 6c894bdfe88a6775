//! The task's own directory: made, found again, looked after, taken away.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    io::ErrorKind,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock},
    thread,
    time::Duration,
};

use super::{
    Checkout, Error,
    branch::TaskBranch,
    directory,
    git::{Git, LONG},
    io_error,
    persons::Notes,
    removal::remove_tree,
    seen::Memory,
    snapshot::is_snapshot_of,
    staging::{paths, shown},
    store::{KeptIndex, Store},
    tie::{lost_entry, replace_file, tied_to},
};
use crate::{
    domain::{
        checkout::Isolation,
        id::{CommitId, TaskId},
        repository::RepositoryChange,
    },
    log::crash,
};

/// From this many bytes on (about a thousand entries) an index tells of a tree that is checked out in parallel.
const BIG_INDEX: u64 = 100_000;

/// How often a worktree is tried to be made beside others that are being made.
const TRIES: usize = 10;
/// The pause in between.
const PAUSE: Duration = Duration::from_millis(50);

/// What a worktree is called and where it starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorktreeSpec {
    /// The task.
    pub task: TaskId,
    /// The directory, absolute.
    pub path: PathBuf,
    /// The branch.
    pub branch: String,
    /// The snapshot that it starts from.
    pub start: CommitId,
    /// Whether the directory is the task's own, or the checkout itself.
    pub isolation: Isolation,
}

/// A worktree that stands.
#[derive(Clone, Debug)]
pub struct Worktree {
    branch: TaskBranch,
    git_dir: PathBuf,
    pub(super) memory: Memory,
    pub(super) repairs: Arc<Mutex<BTreeSet<&'static str>>>,
    pub(super) notes: Notes,
    /// Its index, once it was read.
    index: KeptIndex,
    pub(super) changes: Arc<Mutex<Vec<RepositoryChange>>>,
    /// Its directory, as it was opened first.
    pub(super) opened: Arc<OnceLock<Arc<OwnedFd>>>,
}

impl Worktree {
    /// Makes branch and worktree at `spec.start`. What stands under the task's own names goes first: a killed attempt
    /// leaves half the files. What stands there and is not the task's is an [`Error::Foreign`], and is left alone.
    pub fn create(checkout: &Checkout, spec: &WorktreeSpec) -> Result<Self, Error> {
        let branch = TaskBranch::new(checkout, spec)?;
        clear_branch(&branch, &spec.start, || remove(&branch))?;
        let options = ["-b", &spec.branch, "--no-track"];
        let clear = || clear_branch(&branch, &spec.start, || remove(&branch));
        checkout.same_second().nothing_ran();
        add(&branch, &reason(branch.task), &options, &spec.start.0, clear)
    }

    /// Makes the worktree again at the tip of its branch, which must be there; a rest of the old one goes first.
    pub fn recreate(checkout: &Checkout, spec: &WorktreeSpec) -> Result<Self, Error> {
        let branch = TaskBranch::new(checkout, spec)?;
        if branch.tip()?.is_none() {
            let (branch, expected) = (spec.branch.clone(), spec.start.clone());
            return Err(Error::BranchMoved { branch, expected, found: None });
        }
        refuse_elsewhere(&branch)?;
        remove(&branch)?;
        crash::point("recreate.removed");
        checkout.same_second().before_all_change(checkout.common_dir());
        let again = add(&branch, &unfinished(branch.task), &[], &spec.branch, || remove(&branch))?;
        crash::point("recreate.added");
        Ok(again)
    }

    /// Marks a worktree that was made again as one that stands: from now on what is in it may be somebody's work.
    pub fn stands(&self) -> Result<(), Error> {
        replace_file(&self.git_dir.join("locked"), &format!("{}\n", reason(self.branch.task)))
    }

    /// Finds the worktree again; none if it is gone, or was made again by half. Its git files are put back where something
    /// changed them, and locks that a killed git left in it are removed, so nothing of this task's may be at work in it.
    pub fn open(checkout: &Checkout, spec: &WorktreeSpec) -> Result<Option<Self>, Error> {
        let branch = TaskBranch::new(checkout, spec)?;
        let Some(entry) = Entry::find(&branch)?.or_else(|| lost_entry(&branch)) else { return Ok(None) };
        let half_made = read_line(&entry.join("locked")) == Some(unfinished(branch.task));
        branch.refuse_link_above()?;
        if half_made || !branch.path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            return Ok(None);
        }
        let worktree = Self::at(branch, entry);
        checkout.remove_own_locks(spec)?;
        worktree.verify()?;
        Ok(Some(worktree))
    }

    fn at(branch: TaskBranch, git_dir: PathBuf) -> Self {
        Self {
            branch,
            git_dir,
            memory: Memory::default(),
            repairs: Arc::default(),
            notes: Notes::default(),
            index: KeptIndex::default(),
            changes: Arc::default(),
            opened: Arc::default(),
        }
    }

    /// Its directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.branch.path
    }

    /// Its branch, which is there without it too.
    #[must_use]
    pub fn branch(&self) -> &TaskBranch {
        &self.branch
    }

    /// The commit at the tip of its branch; none if the branch is gone.
    pub fn tip(&self) -> Result<Option<CommitId>, Error> {
        self.branch.tip()
    }

    /// The paths whose files differ from those of `commit`, sorted; ignored ones and artefacts don't count.
    pub fn changed_since(&self, commit: &CommitId) -> Result<Vec<String>, Error> {
        Ok(self.changed_paths(commit)?.iter().map(|path| shown(path)).collect())
    }

    /// The same as paths.
    pub(super) fn changed_paths(&self, commit: &CommitId) -> Result<Vec<PathBuf>, Error> {
        self.verify()?;
        let git = self.git()?;
        self.plain_index(&git, commit)?;
        let call = git.call(["diff", "-z", "--name-only", "--no-ext-diff", "--no-textconv", "--no-renames"]);
        let call = call.args(["--ignore-submodules=all", commit.0.as_str(), "--"]);
        let mut changed = paths(call.limit(LONG).parts()?);
        changed.retain(|path| !self.kept_out().is_some_and(|kept_out| path.starts_with(kept_out)));
        changed.extend(self.changes(&git, None)?.untracked);
        changed.sort_unstable();
        changed.dedup();
        Ok(changed)
    }

    /// The checkout itself, on the task's branch.
    pub(super) fn in_checkout(branch: TaskBranch) -> Self {
        let git_dir = branch.checkout.git_dir().to_owned();
        Self::at(branch, git_dir)
    }

    pub(super) fn checkout(&self) -> &Checkout {
        &self.branch.checkout
    }

    pub(super) fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    pub(super) fn store(&self) -> Box<dyn Store> {
        let git = self.checkout().git().at(&self.git_dir, self.path()).without_fetching();
        let git = match self.directory() {
            Ok(directory) => git.within(directory),
            // what writes is refused before it comes here
            Err(_) => git,
        };
        self.checkout().store_at(&self.git_dir, &git, self.index.clone())
    }

    /// Git for this worktree, with the filters switched off that the configuration names by now.
    pub(super) fn git(&self) -> Result<Git, Error> {
        let filters = self.checkout().filters().and_no_other(self.store().filters()?).map_err(|name| {
            let why = format!("the filter `{name}` is not what it was when the task began; put it back as it was");
            Error::Refused { checkout: self.checkout().root().to_owned(), why }
        })?;
        let git = self.checkout().git().at(&self.git_dir, self.path()).within(self.directory()?);
        Ok(git.with_filters(filters).without_fetching())
    }
}

impl TaskBranch {
    /// Refuses a path to the worktree that leads over a link.
    pub(super) fn refuse_link_above(&self) -> Result<(), Error> {
        match self.path.parent().and_then(directory::link_on_the_way) {
            Some(path) => Err(Error::Replaced { path }),
            None => Ok(()),
        }
    }

    /// The entry of the task's worktree, if there is one.
    pub(super) fn entry(&self) -> Result<Option<PathBuf>, Error> {
        Entry::find(self)
    }
}

/// A worktree's entry in the repository: `.git/worktrees/<name>`.
struct Entry;

impl Entry {
    /// The task's entry; an [`Error::Foreign`] if its directory is registered for something else.
    fn find(branch: &TaskBranch) -> Result<Option<PathBuf>, Error> {
        let all = branch.checkout.common_dir().join("worktrees");
        let listing = match fs::read_dir(&all) {
            Ok(listing) => listing,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error("list", &all)(error)),
        };
        for found in listing {
            let entry = found.map_err(io_error("list", &all))?.path();
            let lock = read_line(&entry.join("locked"));
            let ours = lock.as_ref().is_some_and(|lock| is_lock_of(branch.task, lock));
            let registered = read_line(&entry.join("gitdir")).map(PathBuf::from);
            let here = match registered.as_deref().and_then(Path::parent) {
                Some(directory) => directory == branch.path,
                // a killed `worktree add` left the lock and nothing else
                None => ours,
            };
            if here && !ours {
                let why = match lock {
                    Some(lock) => format!("its worktree is locked with the words `{lock}`"),
                    None => "its worktree is not locked by this task".to_owned(),
                };
                return Err(Error::Foreign { what: shown(&branch.path), why });
            }
            if here {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }
}

/// The words that a task's worktree is locked with.
pub(super) fn reason(task: TaskId) -> String {
    format!("nisse {task}")
}

/// The same while it is made again: a killed attempt leaves half the files, and they are not somebody's deletions.
fn unfinished(task: TaskId) -> String {
    format!("{} (being made again)", reason(task))
}

/// Whether a worktree's entry is locked with these words in the task's name.
pub(super) fn is_lock_of(task: TaskId, lock: &str) -> bool {
    lock == reason(task) || lock == unfinished(task)
}

/// Makes a worktree of a new branch or of the branch itself, locked with these words. What failed is cleared away: half of
/// a worktree is worth nothing. git looks at all worktrees' entries, and fails at one that another git has only begun:
/// then it is tried again.
fn add(
    branch: &TaskBranch,
    reason: &str,
    options: &[&str],
    start: &str,
    clear: impl Fn() -> Result<(), Error>,
) -> Result<Worktree, Error> {
    let mut tries = 1;
    loop {
        let made = add_once(branch, reason, options, start);
        if made.is_err() {
            // what cannot be removed now is removed by the next attempt
            let _ = clear();
        }
        match made {
            Err(Error::Git { stderr, .. }) if tries < TRIES && tells_of_another(&stderr) => tries += 1,
            made => return made,
        }
        thread::sleep(PAUSE);
    }
}

/// Whether git says that it could not read the entry of a worktree.
fn tells_of_another(stderr: &str) -> bool {
    stderr.contains("failed to read") && stderr.contains("/worktrees/")
}

fn add_once(branch: &TaskBranch, reason: &str, options: &[&str], start: &str) -> Result<Worktree, Error> {
    let checkout = &branch.checkout;
    branch.refuse_link_above()?;
    if let Some(parent) = branch.path.parent() {
        fs::create_dir_all(parent).map_err(io_error("make", parent))?;
    }
    let big = checkout.git_dir().join("index").metadata().is_ok_and(|found| found.len() >= BIG_INDEX);
    let mut call = checkout.git().call(["worktree", "add", "--quiet", "--lock", "--reason", reason]);
    if big {
        call = call.setting("checkout.workers", "0");
    }
    call.args(options).args([branch.path.as_os_str()]).args([start]).limit(LONG).run()?;
    match Entry::find(branch)? {
        Some(git_dir) => {
            let worktree = Worktree::at(branch.clone(), git_dir);
            worktree.verify()?;
            // as git was configured to make them
            let _ = (worktree.take_repairs(), worktree.take_changes());
            Ok(worktree)
        }
        None => Err(Error::Unreadable { action: "worktree".to_owned(), answer: "it made no entry".to_owned() }),
    }
}

/// Removes the task's branch if it holds nothing beyond `start`, after `before` freed it.
pub(super) fn clear_branch(
    branch: &TaskBranch,
    start: &CommitId,
    before: impl Fn() -> Result<(), Error>,
) -> Result<(), Error> {
    let Some(tip) = branch.tip()? else { return before() };
    refuse_elsewhere(branch)?;
    let store = branch.checkout.store();
    // the snapshot of an attempt that was killed may be another one than this attempt's
    let spare = store.reaches(start, &tip)?
        || store.message(&tip)?.is_some_and(|message| is_snapshot_of(&message, branch.task));
    if !spare {
        let why = format!("it holds commits beyond {start}");
        return Err(Error::Foreign { what: format!("branch {}", branch.name), why });
    }
    before()?;
    branch.delete(&tip)
}

/// Refuses to touch a branch that is checked out in another place than the task's worktree.
pub(super) fn refuse_elsewhere(branch: &TaskBranch) -> Result<(), Error> {
    let common = branch.checkout.common_dir();
    let own = Entry::find(branch)?;
    let wanted = format!("refs/heads/{}", branch.name);
    let place = if branch.checkout.formats().refs_in_files {
        let entries = fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten().map(|entry| entry.path());
        let others = entries.chain([common.to_owned()]).filter(|entry| Some(entry) != own.as_ref());
        let head = format!("ref: {wanted}");
        others.into_iter().find(|entry| read_line(&entry.join("HEAD")).as_ref() == Some(&head))
    } else {
        listed_at(branch, &wanted)?
    };
    match place {
        Some(place) => Err(Error::Foreign {
            what: format!("branch {}", branch.name),
            why: format!("it is checked out elsewhere, see {}", place.display()),
        }),
        None => Ok(()),
    }
}

/// Another worktree than the task's that git lists as being on the ref.
fn listed_at(branch: &TaskBranch, wanted: &str) -> Result<Option<PathBuf>, Error> {
    let listing = branch.checkout.git().call(["worktree", "list", "--porcelain"]).run()?;
    let mut place = PathBuf::new();
    for line in listing.split(|byte| *byte == b'\n') {
        if let Some(path) = line.strip_prefix(b"worktree ") {
            place = PathBuf::from(OsStr::from_bytes(path));
        } else if line.strip_prefix(b"branch ") == Some(wanted.as_bytes()) && place != branch.path {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

/// Removes directory and entry of the task's worktree, whatever is left of them. The entry goes last: it says whose the
/// directory is.
pub(super) fn remove(branch: &TaskBranch) -> Result<(), Error> {
    if branch.isolation == Isolation::InPlace {
        return Ok(());
    }
    // half of an entry would look like somebody else's: it goes by one rename, and what a killed process left of it here
    let aside = branch.checkout.common_dir().join(format!("nisse-{}.entry", branch.task));
    remove_tree(&aside)?;
    let entry = Entry::find(branch)?;
    let path = &branch.path;
    if entry.is_none() && path.symlink_metadata().is_ok() && !is_left_over(branch) {
        let why = "it is no worktree of this repository".to_owned();
        return Err(Error::Foreign { what: shown(path), why });
    }
    // behind a link is somebody else's
    if branch.refuse_link_above().is_ok() {
        remove_tree(path)?;
    }
    crash::point("remove.directory");
    if let Some(entry) = entry {
        fs::rename(&entry, &aside).map_err(io_error("remove", &entry))?;
        remove_tree(&aside)?;
        crash::point("remove.entry");
        // as git does; others may still have theirs
        let _ = fs::remove_dir(branch.checkout.common_dir().join("worktrees"));
    }
    Ok(())
}

/// Whether a directory without an entry is empty, or was a worktree of this repository.
fn is_left_over(branch: &TaskBranch) -> bool {
    let empty = fs::read_dir(&branch.path).is_ok_and(|mut listing| listing.next().is_none());
    empty || tied_to(branch).is_some_and(|to| to.starts_with(branch.checkout.common_dir().join("worktrees")))
}

/// A small file's text; none if there is no such regular file (to read a pipe would take for ever).
pub(super) fn read_file(path: &Path) -> Option<String> {
    path.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
    fs::read_to_string(path).ok()
}

/// The first line of a small file; none if there is no such file.
pub(super) fn read_line(path: &Path) -> Option<String> {
    read_file(path)?.lines().next().map(str::to_owned)
}
