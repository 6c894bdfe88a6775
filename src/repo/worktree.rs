//! The task's own directory: made, found again, looked after, taken away.

use std::{
    collections::BTreeSet,
    fs,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock},
    thread,
    time::Duration,
};

use super::{
    Checkout, Diff, Error, TaskBranch, WorktreeSpec,
    git::{Git, LONG},
    io_error,
    names::{lock_reason, unfinished_lock_reason},
    paths::{path_text, paths},
    persons_state::Notes,
    small_files::{read_line, replace_file},
    stat_cache::StatCache,
    store::{KeptIndex, Store},
    worktree_entry::{clear_branch, find_entry, lost_entry, refuse_elsewhere, remove},
};
use crate::{
    domain::{id::CommitId, repository::RepositoryChange},
    log::crash,
};

/// From this many bytes on (about a thousand entries) an index tells of a tree that is checked out in parallel.
const BIG_INDEX: u64 = 100_000;

/// How often a worktree is tried to be made beside others that are being made.
const TRIES: usize = 10;
/// The pause in between.
const PAUSE: Duration = Duration::from_millis(50);

/// A worktree that stands.
#[derive(Clone, Debug)]
pub struct Worktree {
    branch: TaskBranch,
    git_dir: PathBuf,
    pub(super) stat_cache: StatCache,
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
        add(&branch, &lock_reason(branch.task), &options, &spec.start.0, clear)
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
        let again = add(&branch, &unfinished_lock_reason(branch.task), &[], &spec.branch, || remove(&branch))?;
        crash::point("recreate.added");
        Ok(again)
    }

    /// Marks a worktree that was made again as one that stands: from now on what is in it may be somebody's work.
    pub fn stands(&self) -> Result<(), Error> {
        replace_file(&self.git_dir.join("locked"), &format!("{}\n", lock_reason(self.branch.task)))
    }

    /// Finds the worktree again; none if it is gone, or was made again by half. Its git files are put back where something
    /// changed them, and locks that a killed git left in it are removed, so nothing of this task's may be at work in it.
    pub fn open(checkout: &Checkout, spec: &WorktreeSpec) -> Result<Option<Self>, Error> {
        let branch = TaskBranch::new(checkout, spec)?;
        let Some(entry) = find_entry(&branch)?.or_else(|| lost_entry(&branch)) else { return Ok(None) };
        let half_made = read_line(&entry.join("locked")) == Some(unfinished_lock_reason(branch.task));
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
            stat_cache: StatCache::default(),
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
        Ok(self.changed_paths(commit)?.iter().map(|path| path_text(path)).collect())
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
    match find_entry(branch)? {
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

impl Worktree {
    /// See [`TaskBranch::squash_commit`].
    pub fn squash_commit(
        &self,
        parent: &CommitId,
        tip: &CommitId,
        message: &str,
        at_ms: u64,
    ) -> Result<CommitId, Error> {
        self.branch().squash_commit(parent, tip, message, at_ms)
    }

    /// See [`TaskBranch::squash_apply`].
    pub fn squash_apply(&self, from: &CommitId, to: &CommitId) -> Result<(), Error> {
        self.branch().squash_apply(from, to)
    }

    /// See [`TaskBranch::discard`].
    pub fn discard(&self, tip: &CommitId) -> Result<Option<String>, Error> {
        self.branch().discard(tip)
    }

    /// See [`TaskBranch::remove_worktree`].
    pub fn remove_worktree(&self) -> Result<(), Error> {
        self.branch().remove_worktree()
    }

    /// See [`Checkout::tree_equal`].
    pub fn tree_equal(&self, a: &CommitId, b: &CommitId) -> Result<bool, Error> {
        self.checkout().tree_equal(a, b)
    }

    /// See [`Checkout::diff`].
    pub fn diff(&self, from: &CommitId, to: &CommitId) -> Result<Diff, Error> {
        self.checkout().diff(from, to)
    }
}
