//! A task that works in the checkout itself: the checkout goes onto the task's branch, and back at the end.
//!
//! Only a clean checkout does, so that nothing of a person's is to be kept. Going there changes neither a file nor the
//! index. A directory in the checkout's git directory says which task is there, and keeps the index byte for byte: the
//! task's own writes lose what git keeps in it besides. Every step may be done again.

use std::{
    fs::{self, File, FileTimes, Metadata, Permissions},
    io::{ErrorKind, Write},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use super::{
    Checkout, Error, Snapshot, SnapshotRequest, TaskBranch, Worktree, WorktreeSpec,
    checkpoint::{Author, commit_tree},
    git::LONG,
    io_error, keep_owner,
    restore::remove_tree_or_file,
    snapshot::SUBJECT,
    staging::{paths, shown},
    worktree::{read_line, remove_tree},
};
use crate::{
    domain::{
        checkout::Base,
        globs::PathGlobs,
        id::{CommitId, Hash, TaskId},
    },
    log::crash,
};

/// The directory, in the checkout's git directory, that is there while a task works in place.
const DIRECTORY: &str = "nisse-in-place";
/// The file in it that names the task.
const TASK: &str = "task";
/// The file in it that is the index as it was.
const INDEX: &str = "index";

/// What giving a checkout back came to.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct GivenBack {
    /// Files of the task that somebody else had changed: the checkout has them as they were before the task.
    pub changed: Vec<String>,
    /// The ref that keeps what was in them.
    pub kept: Option<String>,
    /// Files whose hard links are torn apart.
    pub torn: Vec<String>,
}

impl Checkout {
    /// Where what a task in place keeps lies.
    pub(super) fn in_place_directory(&self) -> PathBuf {
        self.git_dir().join(DIRECTORY)
    }

    /// The task that works in this checkout, if one does.
    pub fn task_in_place(&self) -> Result<Option<String>, Error> {
        let directory = self.in_place_directory();
        if directory.symlink_metadata().is_err() {
            return Ok(None);
        }
        let unknown = || Error::Foreign { what: shown(&directory), why: "it names no task".to_owned() };
        read_line(&directory.join(TASK)).map(Some).ok_or_else(unknown)
    }

    /// Refuses a checkout in which no task can work in place: another one does, or it holds unfinished work. Untracked
    /// files that `spared` names are none.
    pub fn refuse_in_place(&self, spared: &PathGlobs) -> Result<(), Error> {
        let refused = |why: String| Err(Error::Refused { checkout: self.root().to_owned(), why });
        self.refuse_read_only(self.root())?;
        if let Some(task) = self.task_in_place()? {
            return refused(format!(
                "task {task} works in place here; end it first (`nisse resume {task}`), or use a worktree"
            ));
        }
        if self.has_split_index()? {
            return refused("its index is split; `git update-index --no-split-index` makes it whole".to_owned());
        }
        if let Some(state) = self.kept_out()
            && !self.git().call(["ls-files", "-z", "--"]).args([state]).run()?.is_empty()
        {
            let why = "the state directory holds files that are tracked here; set NISSE_STATE_DIR to another one";
            return refused(why.to_owned());
        }
        self.refuse_unclean(spared)
    }

    fn has_split_index(&self) -> Result<bool, Error> {
        let listing = fs::read_dir(self.git_dir()).map_err(io_error("list", self.git_dir()))?;
        let shared = listing.flatten().any(|entry| entry.file_name().as_encoded_bytes().starts_with(b"sharedindex."));
        let index = self.git_dir().join("index");
        match fs::read(&index) {
            Ok(bytes) => Ok(shared && memchr::memmem::find(&bytes, b"link").is_some()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(io_error("read", &index)(error)),
        }
    }

    /// Where a task begins that works in place: at HEAD, in a clean checkout.
    pub fn start_in_place(&self, request: &SnapshotRequest<'_>, spared: &PathGlobs) -> Result<Snapshot, Error> {
        self.ready()?;
        self.refuse_in_place(spared)?;
        let (base, now) = (request.base, self.base()?);
        if now.commit != base.commit {
            return Err(Error::HeadMoved { base: base.commit.clone(), head: now.commit });
        }
        if now.branch != base.branch {
            let why = format!("the task was begun on {}; `git switch` back there, and try again", place(base));
            return Err(Error::Refused { checkout: self.root().to_owned(), why });
        }
        let commit = if let Some(commit) = &base.commit {
            commit.clone()
        } else {
            let author = Author { name: "nisse", email: "nisse@localhost", at_ms: request.at_ms };
            let message = format!("{SUBJECT}\n\nNisse-Task: {}\n", request.task);
            commit_tree(self.git(), &self.no_files()?, &[], &message, &author)?
        };
        Ok(Snapshot { commit, dirty: false, notices: self.unknown_filters()?.into_iter().collect() })
    }

    /// The tree without entries.
    fn no_files(&self) -> Result<String, Error> {
        self.git().call(["mktree"]).input(Vec::new()).line()
    }

    /// Says that no task works here any more, where `task` did.
    pub fn forget_in_place(&self, task: TaskId) -> Result<(), Error> {
        if self.task_in_place()?.as_deref() == Some(&*task.to_string()) {
            // away at once, with all that is in it
            let aside = self.git_dir().join(format!("{DIRECTORY}.{task}"));
            remove_tree(&aside)?;
            let directory = self.in_place_directory();
            fs::rename(&directory, &aside).map_err(io_error("remove", &directory))?;
            remove_tree(&aside)?;
        }
        self.forget_mark_of_version_1(task)
    }

    /// Up to version 1 of the log a ref said so.
    fn forget_mark_of_version_1(&self, task: TaskId) -> Result<(), Error> {
        let hash: String = Hash::of(self.root().as_os_str().as_encoded_bytes()).0.chars().take(16).collect();
        let name = format!("refs/nisse/in-place/{hash}");
        match self.store().reference(&name)? {
            Some(kept) if self.task_of_commit(&kept)? == Some(task) => {
                self.git().call(["update-ref", "-d", &name, &kept.0]).run().map(drop)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Says that `task` works here, if none does, and keeps the index.
    fn mark_in_place(&self, task: TaskId) -> Result<(), Error> {
        match self.task_in_place()? {
            Some(there) if there == task.to_string() => return Ok(()),
            Some(there) => {
                let why = format!("task {there} works in place here; end it first (`nisse resume {there}`)");
                return Err(Error::Refused { checkout: self.root().to_owned(), why });
            }
            None => {}
        }
        let new = self.git_dir().join(format!("{DIRECTORY}.{task}"));
        remove_tree(&new)?;
        let make = || -> std::io::Result<()> {
            fs::create_dir(&new)?;
            let mut named = File::create_new(new.join(TASK))?;
            writeln!(named, "{task}")?;
            named.sync_all()?;
            copy_index(&self.git_dir().join("index"), &new.join(INDEX))?;
            // over one that is not empty, this fails: of two tasks one comes first
            fs::rename(&new, self.in_place_directory())?;
            File::open(self.git_dir())?.sync_all()
        };
        make().map_err(io_error("make", &self.in_place_directory()))
    }

    /// What the checkout is to be on again: the branch where it is by now, or the commit.
    fn place_again(&self, base: &Base) -> Result<(Option<CommitId>, Option<String>), Error> {
        let Some(branch) = &base.branch else { return Ok((base.commit.clone(), None)) };
        Ok(match (self.branch_tip(branch)?, &base.commit) {
            (Some(tip), _) => (Some(tip), Some(branch.clone())),
            (None, None) => (None, Some(branch.clone())),
            // somebody deleted it meanwhile
            (None, Some(commit)) => (Some(commit.clone()), None),
        })
    }
}

impl Worktree {
    /// Puts the checkout onto the task's branch, begun at `spec.start`, which its files are.
    pub fn switch_there(checkout: &Checkout, spec: &WorktreeSpec) -> Result<Self, Error> {
        let branch = TaskBranch::new(checkout, spec)?;
        let git = checkout.git();
        checkout.mark_in_place(branch.task)?;
        crash::point("switch.marked");
        match branch.tip()? {
            Some(tip) if tip == spec.start => {}
            Some(_) => {
                let why = "there is a branch of that name already".to_owned();
                return Err(Error::Foreign { what: format!("branch {}", branch.name), why });
            }
            None => {
                let none = "0".repeat(spec.start.0.len());
                git.call(["update-ref", &branch.reference(), &spec.start.0, &none]).run()?;
            }
        }
        crash::point("switch.branch");
        git.call(["symbolic-ref", "HEAD", &branch.reference()]).run()?;
        crash::point("switch.head");
        Ok(Self::in_checkout(branch))
    }

    /// Finds a task's place in the checkout again; none if the checkout is not on its branch, or is not the task's.
    pub fn open_in_place(checkout: &Checkout, spec: &WorktreeSpec) -> Result<Option<Self>, Error> {
        let branch = TaskBranch::new(checkout, spec)?;
        let there = checkout.task_in_place()?.as_deref() == Some(&*spec.task.to_string()) && branch.is_checked_out()?;
        Ok(there.then(|| Self::in_checkout(branch)))
    }
}

impl TaskBranch {
    /// Takes back a switch of a task that never stood; its branch goes.
    pub fn undo_switch(&self, base: &Base, snapshot: &CommitId) -> Result<GivenBack, Error> {
        let given = self.switch_back(base, snapshot, 0)?;
        crash::point("undo.marked");
        if let Some(tip) = self.tip()?.filter(|tip| tip == snapshot) {
            self.delete(&tip)?;
        }
        crash::point("undo.branch");
        Ok(given)
    }

    /// Gives the checkout back, by the switch of branches that git itself would make: files that differ between the two
    /// are written, others are not looked at. `tip` is where the task's branch is to be. One that was taken off the task's
    /// branch by hand is its person's already.
    pub fn switch_back(&self, base: &Base, tip: &CommitId, at_ms: u64) -> Result<GivenBack, Error> {
        let checkout = &self.checkout;
        let mut given = GivenBack::default();
        if self.is_checked_out()? {
            checkout.refuse_index_lock()?;
            let tip = self.tip()?.unwrap_or_else(|| tip.clone());
            let (commit, branch) = checkout.place_again(base)?;
            let to = match &commit {
                Some(commit) => checkout.store().tree(commit)?,
                None => checkout.no_files()?,
            };
            given = Worktree::in_checkout(self.clone()).write_files(&tip, &to, at_ms)?;
            crash::point("back.files");
            self.put_index_back(commit.as_ref() == base.commit.as_ref())?;
            crash::point("back.index");
            let git = checkout.git();
            match (branch, commit) {
                (Some(branch), _) => git.call(["symbolic-ref", "HEAD", &format!("refs/heads/{branch}")]).run()?,
                (None, Some(commit)) => git.call(["update-ref", "--no-deref", "HEAD", &commit.0]).run()?,
                (None, None) => return Err(Error::HeadMoved { base: None, head: None }),
            };
            crash::point("back.head");
        }
        checkout.forget_in_place(self.task)?;
        crash::point("back.marked");
        Ok(given)
    }

    /// Keeps the unfinished work that a task of version 1 of the log had taken into its snapshot, and says under which
    /// ref; none where the snapshot is the base itself.
    pub fn keep_unfinished(&self, base: &Base, snapshot: &CommitId) -> Result<Option<String>, Error> {
        let store = self.checkout.store();
        let before = match &base.commit {
            Some(commit) => store.tree(commit)?,
            None => self.checkout.no_files()?,
        };
        if before == store.tree(snapshot)? {
            return Ok(None);
        }
        let name = format!("refs/nisse/found/{}/unfinished", self.task);
        self.checkout.git().call(["update-ref", &name, &snapshot.0]).run()?;
        Ok(Some(name))
    }

    /// The index as it was, where it fits: the caller's branch is where it was.
    fn put_index_back(&self, fits: bool) -> Result<(), Error> {
        let (kept, index) = (self.checkout.in_place_directory().join(INDEX), self.checkout.git_dir().join("index"));
        // a task of version 1 of the log kept none here
        if !fits || self.checkout.task_in_place()?.is_none() {
            return Ok(());
        }
        let lock = index.with_extension("lock");
        let put = || -> std::io::Result<()> {
            if !kept.exists() {
                return match fs::remove_file(&index) {
                    Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                    Ok(()) | Err(_) => Ok(()),
                };
            }
            copy_index(&kept, &lock)?;
            fs::rename(&lock, &index)
        };
        put().map_err(|error| {
            let _ = fs::remove_file(&lock);
            io_error("write", &index)(error)
        })
    }

    fn is_checked_out(&self) -> Result<bool, Error> {
        Ok(self.checkout.store().symbolic_head()?.as_deref() == Some(&*self.reference()))
    }

    fn reference(&self) -> String {
        format!("refs/heads/{}", self.name)
    }
}

impl Worktree {
    /// Makes the files of `tip` those of the tree `to`. What somebody else has in their place is kept first, save what is
    /// of `to` already, as an attempt leaves it that was cut off.
    fn write_files(&self, tip: &CommitId, to: &str, at_ms: u64) -> Result<GivenBack, Error> {
        let git = self.git()?;
        self.reset_index(&git, tip)?;
        let between = |from: &str, to: &str| {
            let call = git.call(["diff-tree", "-r", "-z", "--name-only", "--no-renames", from, to]);
            Ok::<_, Error>(paths(call.limit(LONG).parts()?))
        };
        let of_task = between(&tip.0, to)?;
        let in_the_way =
            |path: &PathBuf| of_task.iter().any(|one| one.starts_with(path) || path.starts_with(one.as_path()));
        let changes = self.changes(&git, None)?;
        let tracked: Vec<_> = changes.tracked.into_iter().filter(in_the_way).collect();
        let untracked: Vec<_> = changes.untracked.into_iter().filter(in_the_way).collect();
        let mut given = GivenBack::default();
        if !(tracked.is_empty() && untracked.is_empty()) {
            if let Some(found) = self.hold(tip, at_ms)? {
                let differs = between(to, &found.0)?;
                let others = tracked.iter().chain(&untracked).filter(|path| differs.contains(path));
                given.changed = others.map(|path| shown(path)).collect();
            }
            if !given.changed.is_empty() {
                given.kept = self.keep_as("meanwhile", tip, at_ms)?;
            }
            for path in tracked.iter().chain(&untracked) {
                remove_tree_or_file(&self.path().join(path))?;
            }
            let input = tracked.iter().flat_map(|path| path.as_os_str().as_encoded_bytes().iter().copied().chain([0]));
            git.call(["checkout-index", "-f", "-u", "-z", "--stdin"]).limit(LONG).input(input.collect()).run()?;
        }
        given.torn = self.linked(&of_task);
        let stood = of_task.iter().filter_map(|path| Some((path, self.path().join(path).symlink_metadata().ok()?)));
        let stood: Vec<_> = stood.filter(|(_, found)| found.is_file()).collect();
        git.call(["read-tree", "-m", "-u", &tip.0, to]).limit(LONG).run()?;
        for (path, was) in stood {
            self.keep_mode(path, &was)?;
        }
        Ok(given)
    }

    /// Gives a file that was written anew owner and mode of the one that stood there, save whether it may be run: that is
    /// git's to say.
    fn keep_mode(&self, path: &Path, was: &Metadata) -> Result<(), Error> {
        let place = self.path().join(path);
        let Some(found) = place.symlink_metadata().ok().filter(Metadata::is_file) else { return Ok(()) };
        let keep = || {
            keep_owner(&File::open(&place)?, was)?;
            let (old, new) = (was.permissions().mode() & 0o7777, found.permissions().mode() & 0o7777);
            let same = (old & 0o100 == new & 0o100) && old != new;
            if same { fs::set_permissions(&place, Permissions::from_mode(old)) } else { Ok(()) }
        };
        keep().map_err(io_error("set the mode of", &place))
    }

    /// Those of these files that have further names, which are torn apart where git writes them anew.
    pub(super) fn linked(&self, paths: &[PathBuf]) -> Vec<String> {
        let linked = |path: &&PathBuf| {
            let found = self.path().join(path).symlink_metadata();
            found.is_ok_and(|found| found.is_file() && found.nlink() > 1)
        };
        paths.iter().filter(linked).map(|path| shown(path)).collect()
    }
}

/// Copies an index with its time, which git compares with the files' times; nothing where there is none.
fn copy_index(from: &Path, to: &Path) -> std::io::Result<()> {
    let modified = match from.metadata() {
        Ok(found) => found.modified()?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let bytes = fs::read(from)?;
    let mut file = File::create_new(to)?;
    file.write_all(&bytes)?;
    file.set_permissions(from.metadata()?.permissions())?;
    file.set_times(FileTimes::new().set_modified(modified))?;
    file.sync_all()
}

/// A base in words.
fn place(base: &Base) -> String {
    match (&base.branch, &base.commit) {
        (Some(branch), _) => branch.clone(),
        (None, Some(commit)) => format!("the commit {}", commit.short()),
        (None, None) => "no commit".to_owned(),
    }
}
