//! A task that works in the checkout itself: the checkout goes onto the task's branch, and back at the end.
//!
//! Going there changes no file: the snapshot is what the files are. What the checkout was (where HEAD stood, the index
//! byte for byte, what is staged) is a commit that a ref of the checkout's own holds; the same ref says that a task is
//! there, so that there is one at a time, whoever's state directory it is in. Every step may be done again.

use std::{
    ffi::OsStr,
    fs::{self, File, FileTimes},
    io::{ErrorKind, Write},
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt},
    },
    path::Path,
    time::{Duration, SystemTime},
};

use super::{
    ByOthers, Checkout, Error, Snapshot, TaskBranch, Worktree, WorktreeSpec,
    checkpoint::{Author, commit_tree},
    git::LONG,
    io_error, own_index,
    removal::remove_file,
    staging::{Staging, paths, scratch},
    tie::replaced,
};
use crate::{
    domain::{
        checkout::Base,
        id::{CommitId, Hash, TaskId},
    },
    log::crash,
};

/// The first line of the message of what is kept.
const SUBJECT: &str = "nisse: the checkout as it was";

/// Where the refs are that say that a task works in a checkout.
pub const IN_PLACE_REFS: &str = "refs/nisse/in-place/";

/// What a checkout was.
struct Kept {
    /// `ref: refs/heads/main`, or a commit's id.
    head: String,
    /// The index, with its time: git compares that with the files' times.
    index: Option<(Vec<u8>, SystemTime)>,
}

impl Checkout {
    /// The task that works in this checkout, if one does, by the words of what it left.
    pub fn task_in_place(&self) -> Result<Option<String>, Error> {
        let store = self.store();
        let Some(kept) = store.reference(&self.in_place_ref())? else { return Ok(None) };
        let message = store.message(&kept)?.unwrap_or_default();
        Ok(Some(trailer(&message, "Nisse-Task: ").unwrap_or("of another version").to_owned()))
    }

    /// Refuses a checkout in which no task can work in place: another one does, or not everything could be given back.
    pub fn refuse_in_place(&self, snapshot: Option<&Snapshot>) -> Result<(), Error> {
        let refused = |why: String| Err(Error::Refused { checkout: self.root().to_owned(), why });
        self.refuse_read_only(self.root())?;
        if let Some(task) = self.task_in_place()? {
            return refused(format!(
                "task {task} works in place here; end it first (`nisse resume {task}`), or use a worktree"
            ));
        }
        match snapshot.filter(|snapshot| !snapshot.complete) {
            Some(snapshot) => refused(format!(
                "a task can work in place only where all unfinished work can be kept: {}",
                snapshot.notices.join("; ")
            )),
            None => Ok(()),
        }
    }

    /// Writes a commit that holds what the checkout is: HEAD, the index, what is staged. No ref moves yet.
    pub fn keep(&self, task: TaskId, base: &Base, snapshot: &CommitId, at_ms: u64) -> Result<CommitId, Error> {
        let git = self.git();
        let mut entries = Vec::new();
        let mut time = String::new();
        let index = self.git_dir().join("index");
        if let Some((bytes, modified)) = read_index(&index)? {
            if bytes.windows(4).any(|part| part == b"link") && self.has_shared_index() {
                let why = "its index is split; `git update-index --no-split-index` makes it whole".to_owned();
                return Err(Error::Refused { checkout: self.root().to_owned(), why });
            }
            let scratch = scratch()?;
            let copy = scratch.path().join("index");
            File::create(&copy).and_then(|mut file| file.write_all(&bytes)).map_err(io_error("write", &copy))?;
            let staged = git.call(["write-tree"]).index(Some(&copy)).limit(LONG).line()?;
            let blob = git.call(["hash-object", "-w", "--no-filters", "--stdin"]).input(bytes).line()?;
            entries.extend(format!("100644 blob {blob}\tindex\0").bytes());
            entries.extend(format!("040000 tree {staged}\tstaged\0").bytes());
            let since = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            time = format!("Nisse-Index-Time: {}.{:09}\n", since.as_secs(), since.subsec_nanos());
        }
        let modes =
            git.call(["hash-object", "-w", "--no-filters", "--stdin"]).input(self.odd_modes(snapshot)?).line()?;
        entries.extend(format!("100644 blob {modes}\tmodes\0").bytes());
        let ignored = self.ignored_files()?;
        let ignored = git.call(["hash-object", "-w", "--no-filters", "--stdin"]).input(ignored).line()?;
        entries.extend(format!("100644 blob {ignored}\tignored\0").bytes());
        let tree = git.call(["mktree", "-z"]).input(entries).line()?;
        let head = self.head_words(base)?;
        let message = format!("{SUBJECT}\n\nNisse-Task: {task}\nNisse-Head: {head}\n{time}");
        let parents: Vec<_> = base.commit.iter().collect();
        commit_tree(git, &tree, &parents, &message, &Author { name: "nisse", email: "nisse@localhost", at_ms })
    }

    /// Modes and owners of files that are not what git would give them, each with its path.
    fn odd_modes(&self, snapshot: &CommitId) -> Result<Vec<u8>, Error> {
        let ours = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let mut odd = Vec::new();
        for path in paths(self.git().call(["ls-tree", "-r", "-z", "--name-only", &snapshot.0]).limit(LONG).parts()?) {
            let Ok(found) = self.root().join(&path).symlink_metadata() else { continue };
            let (mode, owner) = (found.permissions().mode() & 0o7777, (found.uid(), found.gid()));
            if found.is_file() && (![0o644, 0o755].contains(&mode) || owner != ours) {
                odd.extend(format!("{mode:o} {}:{} ", owner.0, owner.1).bytes());
                odd.extend_from_slice(path.as_os_str().as_bytes());
                odd.push(0);
            }
        }
        Ok(odd)
    }

    /// Gives files their modes and owners again.
    fn put_modes_back(&self, kept: &CommitId) -> Result<(), Error> {
        for part in self.git().call(["cat-file", "blob", &format!("{kept}:modes")]).limit(LONG).parts()? {
            let Some((mode, owner, path)) = odd_mode(&part) else { continue };
            let path = self.root().join(path);
            let Ok(found) = path.symlink_metadata() else { continue };
            if !found.is_file() {
                continue;
            }
            if (found.uid(), found.gid()) != owner {
                // only root may give files away, and else they are ours already
                let _ = std::os::unix::fs::lchown(&path, Some(owner.0), Some(owner.1));
            }
            if found.permissions().mode() & 0o7777 != mode {
                fs::set_permissions(&path, fs::Permissions::from_mode(mode))
                    .map_err(io_error("set the mode of", &path))?;
            }
        }
        Ok(())
    }

    /// What was ignored when the task that works here began; nothing where none does.
    pub(super) fn ignored_at_start(&self) -> Result<Vec<u8>, Error> {
        let Some(kept) = self.store().reference(&self.in_place_ref())? else { return Ok(Vec::new()) };
        self.git().call(["cat-file", "blob", &format!("{kept}:ignored")]).limit(LONG).run()
    }

    /// Where HEAD stands: `ref: refs/heads/main`, or the commit of the base.
    fn head_words(&self, base: &Base) -> Result<String, Error> {
        match (self.store().symbolic_head()?, &base.commit) {
            (Some(name), _) => Ok(format!("ref: {name}")),
            (None, Some(commit)) => Ok(commit.0.clone()),
            (None, None) => Err(Error::HeadMoved { base: None, head: self.store().head()?.commit }),
        }
    }

    fn has_shared_index(&self) -> bool {
        let listing = fs::read_dir(self.git_dir()).into_iter().flatten().flatten();
        listing.into_iter().any(|entry| entry.file_name().as_bytes().starts_with(b"sharedindex."))
    }

    /// The ref that says that a task works in this checkout: a repository may have several.
    pub(super) fn in_place_ref(&self) -> String {
        let name: String = Hash::of(self.root().as_os_str().as_bytes()).0.chars().take(16).collect();
        format!("{IN_PLACE_REFS}{name}")
    }

    fn kept(&self, commit: &CommitId) -> Result<Kept, Error> {
        let unreadable = || Error::NoSuchCommit { rev: format!("{commit} (what the checkout was)") };
        let message = self.store().message(commit)?.ok_or_else(unreadable)?;
        let head = trailer(&message, "Nisse-Head: ").ok_or_else(unreadable)?.to_owned();
        let Some(time) = trailer(&message, "Nisse-Index-Time: ") else { return Ok(Kept { head, index: None }) };
        let (seconds, nanos) = time.split_once('.').ok_or_else(unreadable)?;
        let since = Duration::new(seconds.parse().map_err(|_| unreadable())?, nanos.parse().map_err(|_| unreadable())?);
        let bytes = self.git().call(["cat-file", "blob", &format!("{commit}:index")]).limit(LONG).run()?;
        Ok(Kept { head, index: Some((bytes, SystemTime::UNIX_EPOCH + since)) })
    }

    /// Whether HEAD and the index are what was kept.
    fn is_as_kept(&self, kept: &Kept) -> Result<bool, Error> {
        let head = match self.store().symbolic_head()? {
            Some(name) => format!("ref: {name}"),
            None => self.store().head()?.commit.map(|commit| commit.0).unwrap_or_default(),
        };
        let index = read_index(&self.git_dir().join("index"))?.map(|(bytes, _)| bytes);
        Ok(head == kept.head && index.as_ref() == kept.index.as_ref().map(|(bytes, _)| bytes))
    }
}

/// Mode, owner and path of a line of what was kept.
fn odd_mode(line: &[u8]) -> Option<(u32, (u32, u32), &OsStr)> {
    let mut parts = line.splitn(3, |byte| *byte == b' ');
    let mut text = || std::str::from_utf8(parts.next()?).ok();
    let mode = u32::from_str_radix(text()?, 8).ok()?;
    let (user, group) = text()?.split_once(':')?;
    Some((mode, (user.parse().ok()?, group.parse().ok()?), OsStr::from_bytes(parts.next()?)))
}

impl Worktree {
    /// Puts the checkout onto the task's branch, begun at `spec.start`, the snapshot of its files; `kept` is what it was.
    pub fn switch_there(checkout: &Checkout, spec: &WorktreeSpec, kept: &CommitId) -> Result<Self, Error> {
        let branch = TaskBranch::new(checkout, spec)?;
        let git = checkout.git();
        let marker = checkout.in_place_ref();
        if checkout.store().reference(&marker)?.as_ref() != Some(kept) {
            checkout.refuse_in_place(None)?;
            // created only if it is not there, so that of two tasks one comes first
            let none = "0".repeat(kept.0.len());
            git.call(["update-ref", &marker, &kept.0, &none]).run()?;
        }
        crash::point("switch.marked");
        if !checkout.is_as_kept(&checkout.kept(kept)?)? {
            return Err(Error::Unsteady { checkout: checkout.root().to_owned() });
        }
        match branch.tip()? {
            Some(tip) if tip == spec.start => {}
            Some(_) => {
                let why = "there is a branch of that name already".to_owned();
                return Err(Error::Foreign { what: format!("branch {}", branch.name), why });
            }
            None => {
                let none = "0".repeat(spec.start.0.len());
                git.call(["update-ref", &format!("refs/heads/{}", branch.name), &spec.start.0, &none]).run()?;
            }
        }
        crash::point("switch.branch");
        // without -u, no file is looked at and none is written; entries that stay keep what they know of their files
        git.call(["read-tree", "--reset", &spec.start.0]).limit(LONG).run()?;
        // files that only the snapshot has are not known by their times yet
        git.call(["update-index", "-q", "--refresh"]).limit(LONG).also_fine(1).run()?;
        crash::point("switch.index");
        git.call(["symbolic-ref", "HEAD", &format!("refs/heads/{}", branch.name)]).run()?;
        crash::point("switch.head");
        Ok(Self::in_checkout(branch))
    }

    /// Finds a task's place in the checkout again; none if the checkout is not on its branch.
    pub fn open_in_place(checkout: &Checkout, spec: &WorktreeSpec, kept: &CommitId) -> Result<Option<Self>, Error> {
        let branch = TaskBranch::new(checkout, spec)?;
        if checkout.root() != spec.path {
            return Err(replaced(&spec.path));
        }
        let store = checkout.store();
        let there = store.reference(&checkout.in_place_ref())?.as_ref() == Some(kept)
            && store.symbolic_head()?.as_deref() == Some(&*format!("refs/heads/{}", branch.name));
        Ok(there.then(|| Self::in_checkout(branch)))
    }
}

impl TaskBranch {
    /// Takes back a switch that went no further than HEAD and index; no file is touched, since none was.
    pub fn undo_switch(&self, kept: &CommitId, snapshot: &CommitId) -> Result<(), Error> {
        let checkout = &self.checkout;
        let was = checkout.kept(kept)?;
        if !checkout.is_as_kept(&was)? {
            self.refuse_another_head(&was)?;
            let tree = checkout.git().call(["write-tree"]).limit(LONG).line()?;
            if tree == checkout.store().tree(snapshot)? {
                self.put_head_back(&was)?;
            } else if checkout.store().symbolic_head()?.as_deref() == Some(&*self.reference()) {
                let why = "something was staged since the task was cut off; `git reset` takes it out of the index";
                return Err(Error::Refused { checkout: checkout.root().to_owned(), why: why.to_owned() });
            }
        }
        self.unmark(kept)?;
        crash::point("undo.marked");
        if let Some(tip) = self.tip()?.filter(|tip| tip == snapshot) {
            self.delete(&tip)?;
        }
        crash::point("undo.branch");
        Ok(())
    }

    /// Gives the checkout back: files, index and HEAD as they were. The task's branch stays. What somebody else changed
    /// meanwhile is left as it is where the task did not touch it, and all of it is kept under a ref.
    pub fn switch_back(&self, kept: &CommitId, snapshot: &CommitId) -> Result<ByOthers, Error> {
        let checkout = &self.checkout;
        let was = checkout.kept(kept)?;
        if checkout.store().reference(&checkout.in_place_ref())?.as_ref() != Some(kept) {
            // done already, as far as it was this task's to do
            return Ok(ByOthers::default());
        }
        let mut by_others = ByOthers::default();
        if checkout.store().symbolic_head()?.as_deref() == Some(&*self.reference()) {
            checkout.refuse_index_lock()?;
            let worktree = Worktree::in_checkout(self.clone());
            let (files, others) = worktree.files_to_give_back(snapshot)?;
            by_others = others;
            worktree.restore(&files)?;
            checkout.put_modes_back(kept)?;
            crash::point("back.files");
            self.put_head_back(&was)?;
        } else if !checkout.is_as_kept(&was)? {
            self.refuse_another_head(&was)?;
            by_others.unfinished = self.unfinished_work_back(kept, &was, snapshot)?;
        }
        self.unmark(kept)?;
        crash::point("back.marked");
        Ok(by_others)
    }

    /// Gives unfinished work back to a checkout that its person has put where it was by themselves. Where it could be
    /// in the way of theirs it stays away, under a ref, which is given.
    fn unfinished_work_back(&self, kept: &CommitId, was: &Kept, snapshot: &CommitId) -> Result<Option<String>, Error> {
        let (checkout, git) = (&self.checkout, self.checkout.git());
        let base = git.call(["rev-list", "--parents", "-n", "1", &kept.0]).line()?;
        // before the first commit there is no other place to be
        let Some(base) = base.split(' ').nth(1).map(|id| CommitId(id.to_owned())) else { return Ok(None) };
        let call = git.call(["diff-tree", "-r", "-z", "--name-only", "--no-renames", &base.0, &snapshot.0]);
        let waiting = paths(call.limit(LONG).parts()?);
        let mut own = checkout.own_changes()?;
        own.extend(Staging { git, root: checkout.root(), index: None }.changes()?.untracked);
        if waiting.iter().all(|path| own.contains(path)) {
            // nothing was unfinished, or it is there again
            return Ok(None);
        }
        let head = checkout.store().head()?.commit;
        let index = git.call(["write-tree"]).limit(LONG).line()?;
        let untouched = head.as_ref() == Some(&base)
            && index == checkout.store().tree(&base)?
            && !waiting.iter().any(|path| own.contains(path));
        // git itself overwrites nothing that it does not know
        let back = || git.call(["read-tree", "-m", "-u", &base.0, &snapshot.0]).limit(LONG).run();
        if untouched {
            checkout.before_files_become(&base.0, &snapshot.0)?;
        }
        if untouched && back().is_ok() {
            checkout.put_modes_back(kept)?;
            self.put_head_back(was)?;
            return Ok(None);
        }
        let name = format!("refs/nisse/found/{}/unfinished", self.task);
        git.call(["update-ref", &name, &snapshot.0]).run()?;
        Ok(Some(name))
    }

    /// Refuses a HEAD that is neither on the task's branch nor where it was.
    fn refuse_another_head(&self, was: &Kept) -> Result<(), Error> {
        let head = self.checkout.store().symbolic_head()?;
        let was_at = was.head.strip_prefix("ref: ");
        if head.as_deref() == Some(&*self.reference()) || head.as_deref() == was_at {
            return Ok(());
        }
        let why = format!(
            "the task works in place on {}, and another branch is checked out; `git switch {}` and try again",
            self.name, self.name
        );
        Err(Error::Refused { checkout: self.checkout.root().to_owned(), why })
    }

    /// Index and HEAD as they were.
    fn put_head_back(&self, was: &Kept) -> Result<(), Error> {
        let git = self.checkout.git();
        let index = self.checkout.git_dir().join("index");
        match &was.index {
            Some((bytes, time)) => {
                own_index::through(self.checkout.git_dir(), self.checkout.root(), self.task, |copy| {
                    write_index(copy, bytes, *time)
                })?;
            }
            None => match fs::remove_file(&index) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(io_error("remove", &index)(error)),
                Ok(()) | Err(_) => {}
            },
        }
        crash::point("back.index");
        match was.head.strip_prefix("ref: ") {
            Some(name) => git.call(["symbolic-ref", "HEAD", name]).run()?,
            None => git.call(["update-ref", "--no-deref", "HEAD", &was.head]).run()?,
        };
        crash::point("back.head");
        Ok(())
    }

    fn unmark(&self, kept: &CommitId) -> Result<(), Error> {
        let marker = self.checkout.in_place_ref();
        if self.checkout.store().reference(&marker)?.as_ref() != Some(kept) {
            return Ok(());
        }
        self.checkout.git().call(["update-ref", "-d", &marker, &kept.0]).run().map(drop)
    }

    fn reference(&self) -> String {
        format!("refs/heads/{}", self.name)
    }
}

/// An index with its time; none where there is none.
fn read_index(path: &Path) -> Result<Option<(Vec<u8>, SystemTime)>, Error> {
    let read = || Ok::<_, std::io::Error>((fs::read(path)?, path.metadata()?.modified()?));
    match read() {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error("read", path)(error)),
    }
}

/// Writes an index, with its time.
fn write_index(path: &Path, bytes: &[u8], time: SystemTime) -> Result<(), Error> {
    remove_file(path)?;
    let write = || {
        let mut file = File::create_new(path)?;
        file.write_all(bytes)?;
        file.set_times(FileTimes::new().set_modified(time))?;
        file.sync_all()
    };
    write().map_err(io_error("write", path))
}

/// The value of a line of a message.
fn trailer<'a>(message: &'a str, key: &str) -> Option<&'a str> {
    message.lines().find_map(|line| line.strip_prefix(key))
}
