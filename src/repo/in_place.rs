//! A task that works in the checkout itself: the checkout goes onto the task's branch, and back at the end.
//!
//! Only a clean checkout does, so that nothing of a person's is to be kept. Going there changes neither a file nor the
//! index. A directory in the checkout's git directory says which task is there, and keeps the index byte for byte: the
//! task's own writes lose what git keeps in it besides. Every step may be done again.

pub(super) mod give_back;

use std::{
    fs::{self, File, FileTimes},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use super::{
    Checkout, Error, Snapshot, SnapshotRequest, TaskBranch, Worktree, WorktreeSpec,
    commit::{Author, SUBJECT, commit_tree},
    io_error,
    paths::path_text,
    removal::remove_tree,
    small_files::read_line,
};
use crate::{
    domain::{
        checkout::Base,
        id::{Hash, TaskId},
    },
    log::crash,
};

/// The directory, in the checkout's git directory, that is there while a task works in place.
const DIRECTORY: &str = "nisse-in-place";
/// The file in it that names the task.
const TASK: &str = "task";
/// The file in it that is the index as it was.
pub(super) const INDEX: &str = "index";

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
        let unknown = || Error::Foreign { what: path_text(&directory), why: "it names no task".to_owned() };
        read_line(&directory.join(TASK)).map(Some).ok_or_else(unknown)
    }

    /// Refuses a checkout that is on the branch of another task, which works in place: what is changed there would end with
    /// that task.
    pub fn refuse_branch_of_another(&self, own: TaskId) -> Result<(), Error> {
        match self.task_in_place()? {
            Some(task) if task != own.to_string() => {
                let id = short_id(&task);
                let why = format!(
                    "task {id} works in place here, and the checkout is on its branch; end it first (`nisse resume {id}`, \
                     `nisse drop {id}`)"
                );
                Err(Error::Refused { checkout: self.root().to_owned(), why })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Refuses a checkout in which no task can work in place: another one does, or it holds unfinished work.
    pub fn refuse_in_place(&self) -> Result<(), Error> {
        let refused = |why: String| Err(Error::Refused { checkout: self.root().to_owned(), why });
        self.refuse_read_only(self.root())?;
        if let Some(task) = self.task_in_place()? {
            return refused(format!(
                "task {0} works in place here; end it first (`nisse resume {0}`), or use a worktree",
                short_id(&task)
            ));
        }
        if self.has_split_index()? {
            return refused("its index is split; `git update-index --no-split-index` makes it whole".to_owned());
        }
        if let Some(state) = self.rules().state_below(self.root())
            && !self.git().call(["ls-files", "-z", "--"]).args([state]).run()?.is_empty()
        {
            let why = "the state directory holds files that are tracked here; set NISSE_STATE_DIR to another one";
            return refused(why.to_owned());
        }
        self.refuse_unclean()
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
    pub fn start_in_place(&self, request: &SnapshotRequest<'_>) -> Result<Snapshot, Error> {
        self.ready()?;
        self.refuse_in_place()?;
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
    pub(super) fn no_files(&self) -> Result<String, Error> {
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
        self.forget_ref_of_version_1(task)
    }

    /// The ref that recorded it up to version 1 of the log.
    fn forget_ref_of_version_1(&self, task: TaskId) -> Result<(), Error> {
        let hash: String = Hash::of(self.root().as_os_str().as_encoded_bytes()).0.chars().take(16).collect();
        let name = format!("refs/nisse/in-place/{hash}");
        match self.store().reference(&name)? {
            Some(kept) if self.task_of_commit(&kept)? == Some(task) => {
                self.git().call(["update-ref", "-d", &name, &kept.0]).run().map(drop)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Records that `task` works here, if none does, and saves a copy of the index.
    fn record_in_place(&self, task: TaskId) -> Result<(), Error> {
        match self.task_in_place()? {
            Some(there) if there == task.to_string() => return Ok(()),
            Some(there) => {
                let there = short_id(&there);
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
}

impl Worktree {
    /// Switches the checkout to the task's branch, which begins at `spec.start`; its files are those of that commit already.
    pub fn switch_to_task(checkout: &Checkout, spec: &WorktreeSpec) -> Result<Self, Error> {
        let branch = TaskBranch::new(checkout, spec)?;
        let git = checkout.git();
        checkout.record_in_place(branch.task)?;
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
    pub(super) fn is_checked_out(&self) -> Result<bool, Error> {
        Ok(self.checkout.store().symbolic_head()?.as_deref() == Some(&*self.reference()))
    }

    pub(super) fn reference(&self) -> String {
        format!("refs/heads/{}", self.name)
    }
}

/// A task's id as people know it.
fn short_id(named: &str) -> String {
    named.parse().map_or_else(|_| named.to_owned(), |task: TaskId| task.short())
}

/// Copies an index with its time, which git compares with the files' times; nothing where there is none.
pub(super) fn copy_index(from: &Path, to: &Path) -> std::io::Result<()> {
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
