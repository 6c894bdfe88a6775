//! Planning how a task's part comes into the checkout: nothing of the person's is touched here.
//!
//! A plan (`planned`) says what will be true, so that carrying it out can be taken up again, and taken back.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    Checkout, Error, SnapshotRequest,
    disk::{self, Content, Found, SUBMODULE},
    git::LONG,
    io_error,
    paths::{path_text, paths},
    plan_commit::{Contents, Parts},
    staging::{Staging, scratch},
    three_way::{Change, Entry, Merged},
};
use crate::domain::id::{CommitId, TaskId};

/// Each path once, with what it is to be.
type Files = BTreeMap<PathBuf, Option<Entry>>;

/// A path that stands against it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// Relative to the checkout.
    pub path: String,
    /// Why.
    pub why: &'static str,
}

/// What is to be brought.
#[derive(Clone, Debug)]
pub struct PlanRequest<'a> {
    /// The task.
    pub task: TaskId,
    /// The task's commits, oldest first, with the one that the first of them stands on before them.
    pub commits: &'a [CommitId],
    /// The files are to be committed by themselves, so nothing of the person's may be in them.
    pub to_commit: bool,
    /// The branch follows the files, and with it the index: what only they say of submodules counts.
    pub forward: bool,
    /// The date of the commits made for it, in milliseconds since 1970 UTC.
    pub at_ms: u64,
    /// Untracked files over this many bytes are not looked at.
    pub max_untracked: u64,
}

/// A plan for the first of the commits; the others were only tried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The commit that holds it.
    pub commit: CommitId,
    /// The checkout's snapshot.
    pub before: CommitId,
    /// The paths that change.
    pub files: Vec<String>,
    /// Every path of the commit is here as the commit found it.
    pub whole: bool,
}

/// What came of planning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Planning {
    /// The plan; none if the checkout has everything already.
    pub plan: Option<Plan>,
    /// What files alone cannot say, in sentences.
    pub notices: Vec<String>,
}

/// What is known of the checkout and of what comes.
struct View<'a> {
    steps: &'a [Vec<Change>],
    /// What the checkout has where it differs from where the commits begin.
    tracked: Files,
    found: BTreeMap<PathBuf, Found>,
}

impl View<'_> {
    /// What git believes to be at a path.
    fn expected(&self, path: &Path) -> Option<&Entry> {
        let begins = || self.steps.iter().flatten().find(|change| change.path == path)?.old.as_ref();
        self.tracked.get(path).map_or_else(begins, Option::as_ref)
    }

    /// Whether the commits take away what is at a path.
    fn goes(&self, path: &Path) -> bool {
        self.steps.iter().flatten().any(|change| change.path == path && change.new.is_none())
    }

    /// What is on the disk: bytes, or the directory of a submodule.
    fn content(&self, path: &Path) -> Option<Content> {
        match (self.found.get(path)?, self.expected(path)) {
            (Found::File(content), _) => Some(content.clone()),
            (Found::Directory, Some(entry)) if entry.mode == SUBMODULE => {
                Some(Content { mode: entry.mode.clone(), bytes: entry.blob.clone().into_bytes() })
            }
            (Found::Absent | Found::Directory | Found::Behind(_) | Found::Other, _) => None,
        }
    }
}

impl Checkout {
    /// Plans how the first of the commits comes into the checkout as it is; no plan if the checkout has it already. A
    /// path that stands against any of them is an [`Error::Conflicts`] with all of them.
    pub fn plan(&self, request: &PlanRequest<'_>) -> Result<Planning, Error> {
        self.ready()?;
        self.refuse_read_only(self.root())?;
        let nothing = Planning { plan: None, notices: Vec::new() };
        let [start, _, ..] = request.commits else { return Ok(nothing) };
        let mut steps = Vec::new();
        for pair in request.commits.windows(2) {
            if let [from, to] = pair {
                steps.push(self.changes(from, to)?);
            }
        }
        let touched: BTreeSet<PathBuf> = steps.iter().flatten().map(|change| change.path.clone()).collect();
        let found = self.files_at(&touched)?;
        let base = self.base()?;
        let before = self
            .snapshot(&SnapshotRequest {
                task: request.task,
                base: &base,
                at_ms: request.at_ms,
                max_untracked: request.max_untracked,
            })?
            .commit;

        let mut ours: Files =
            self.changes(start, &before)?.into_iter().map(|change| (change.path, change.new)).collect();
        let view = View { steps: &steps, tracked: ours.clone(), found };
        let mut merged = Vec::new();
        for step in &steps {
            merged.push(self.merge(step, &mut ours)?);
        }
        let all = merged.iter().flat_map(|step| step.files.keys().cloned()).collect::<BTreeSet<_>>();
        let mut conflicts: Vec<_> = merged.iter().flat_map(|step| step.conflicts.iter().cloned()).collect();
        conflicts.extend(self.in_the_way(&all, &view)?);
        if request.to_commit {
            // a file that is not tracked yet is theirs from its first byte
            let mut own = self.own_changes()?;
            own.extend(self.untracked()?);
            for path in touched.iter().filter(|path| own.contains(*path)) {
                let brought = "it is here already, uncommitted, and would be missing in the commit";
                let why = if all.contains(path) { "your own changes to it would be committed too" } else { brought };
                conflicts.push((path.clone(), why));
            }
        }
        if !conflicts.is_empty() {
            return Err(refusal(conflicts));
        }
        let Some(Merged { mut files, taken, .. }) = merged.into_iter().next() else { return Ok(nothing) };
        let whole = steps.first().is_some_and(|changes| changes.len() == taken);
        let notices = if request.to_commit || request.forward { Vec::new() } else { self.pointers(&mut files, &view)? };
        if files.is_empty() {
            return Ok(Planning { plan: None, notices });
        }
        let after = self.checked_out(&files)?;
        let now: Contents = files.keys().map(|path| (path.clone(), view.content(path))).collect();
        let is_file = |content: Option<&Option<Content>>| {
            content.is_some_and(|content| content.as_ref().is_some_and(|content| content.mode.starts_with("100")))
        };
        // what stays a file keeps its rights by itself
        let going = now.keys().filter(|path| is_file(now.get(*path)) && !is_file(after.get(*path)));
        let rights = going.filter_map(|path| Some((path.clone(), disk::rights(self.root(), path)?))).collect();
        let parts = Parts { before: &now, after: &after, rights: &rights };
        let commit = self.commit_plan(request.task, request.at_ms, &parts, &before)?;
        if self.files_at(&touched)? != view.found {
            return Err(Error::Unsteady { checkout: self.root().to_owned() });
        }
        let files = files.keys().map(|path| path_text(path)).collect();
        Ok(Planning { plan: Some(Plan { commit, before, files, whole }), notices })
    }

    /// Which commit a submodule is at is in the index and not in a file. What is left to do to the files stays in
    /// `files`, and the rest is said.
    fn pointers(&self, files: &mut Files, view: &View<'_>) -> Result<Vec<String>, Error> {
        let mut notices = Vec::new();
        let mut settled = Vec::new();
        for (path, entry) in &*files {
            let name = path_text(path);
            let directory = view.found.get(path) == Some(&Found::Directory);
            let submodule = |entry: Option<&Entry>| entry.is_some_and(|entry| entry.mode == SUBMODULE);
            match entry {
                Some(Entry { mode, blob }) if mode == SUBMODULE => {
                    notices.push(format!(
                        "{name} is to be the submodule at {blob}, which files alone do not say: \
                         `git update-index --add --cacheinfo {SUBMODULE},{blob},{name}` does, then `git submodule update`"
                    ));
                    if directory {
                        settled.push(path.clone());
                    }
                }
                None if directory && submodule(view.expected(path)) => {
                    if disk::first_in(self.root(), path, &|_| false)?.is_some() {
                        notices.push(format!(
                            "{name} is to be no submodule any more, and stays on the disk, since it is not empty: \
                             `git rm {name}` takes it away"
                        ));
                        settled.push(path.clone());
                    }
                }
                Some(_) | None => {}
            }
        }
        for path in settled {
            files.remove(&path);
        }
        Ok(notices)
    }

    /// Paths with changes of the person's, staged or not.
    pub fn own_paths(&self) -> Result<Vec<String>, Error> {
        Ok(self.own_changes()?.iter().map(|path| path_text(path)).collect())
    }

    pub(super) fn own_changes(&self) -> Result<BTreeSet<PathBuf>, Error> {
        // `git diff` writes what it learnt of the files' times into the index
        let scratch = scratch()?;
        let index = scratch.path().join("index");
        self.see(Some(&index))?;
        let head = match self.store().head()?.commit {
            Some(head) => head.0,
            None => self.empty_tree()?,
        };
        let mut all = BTreeSet::new();
        for staged in [&[][..], &["--cached"][..]] {
            let call = self.git().call(["diff", "-z", "--name-only", "--no-ext-diff", "--no-textconv", "--no-renames"]);
            let call = call.args(["--ignore-submodules=all"]).args(staged).args([head.as_str(), "--"]);
            all.extend(paths(call.index(Some(&index)).limit(LONG).parts()?));
        }
        Ok(all)
    }

    /// The tree without entries.
    pub(super) fn empty_tree(&self) -> Result<String, Error> {
        self.git().call(["hash-object", "-t", "tree", "--stdin"]).input(Vec::new()).line()
    }

    /// The paths that differ from HEAD, files that are not tracked included.
    pub fn unfinished_paths(&self) -> Result<BTreeSet<String>, Error> {
        Ok(self.own_changes()?.iter().chain(&self.untracked()?).map(|path| path_text(path)).collect())
    }

    /// Files that git neither tracks nor ignores.
    pub(super) fn untracked(&self) -> Result<Vec<PathBuf>, Error> {
        Ok(Staging { git: self.git(), root: self.root(), index: None }.changes()?.untracked)
    }

    fn files_at(&self, touched: &BTreeSet<PathBuf>) -> Result<BTreeMap<PathBuf, Found>, Error> {
        touched.iter().map(|path| Ok((path.clone(), disk::read(self.root(), path)?))).collect()
    }

    /// What is on the disk and not in the snapshot: ignored and large files, directories, links, repositories, and what
    /// git is told not to look at.
    fn in_the_way(&self, files: &BTreeSet<PathBuf>, view: &View<'_>) -> Result<Vec<(PathBuf, &'static str)>, Error> {
        let unwatched: BTreeSet<Vec<u8>> = self.store().unwatched()?.into_iter().map(|(path, _)| path).collect();
        let becomes_file = |path: &Path| {
            let last = view.steps.iter().flatten().rfind(|change| change.path == path);
            last.is_some_and(|change| change.new.as_ref().is_some_and(|new| new.mode != SUBMODULE))
        };
        let mut against = Vec::new();
        for path in files {
            let expected = view.expected(path);
            let is_submodule = expected.is_some_and(|entry| entry.mode == SUBMODULE);
            let why = match (view.found.get(path), expected) {
                _ if unwatched.contains(path.as_os_str().as_bytes()) => Some("git is told not to look at it"),
                (Some(Found::Other), _) => Some("it is no file, or lies in a repository of its own"),
                (Some(Found::Behind(link)), None) if view.goes(link) => None,
                (Some(Found::Behind(_)), _) => Some("it lies behind a link"),
                (Some(Found::Directory), Some(_)) if !is_submodule => Some("there is a directory"),
                (Some(Found::Directory), _) if becomes_file(path) => {
                    let stays = disk::first_in(self.root(), path, &|inner| view.goes(inner))?;
                    stays.map(|_| "there is a directory with something of yours in it")
                }
                (Some(Found::Directory), _) => None,
                (Some(Found::File(_)), None) => Some("it is there already, untracked"),
                (Some(Found::Absent) | None, Some(_)) if !is_submodule => Some("it is gone"),
                (Some(Found::File(content)), Some(entry)) if content.mode[..2] != entry.mode[..2] => {
                    Some("it is another kind of file on the disk")
                }
                (Some(Found::File(_) | Found::Absent) | None, _) => {
                    let blocked = disk::above(path).any(|part| {
                        let meta = self.root().join(&part).symlink_metadata();
                        meta.is_ok_and(|meta| !meta.is_dir()) && !view.goes(&part)
                    });
                    blocked.then_some("a file is where its directory would be")
                }
            };
            against.extend(why.map(|why| (path.clone(), why)));
        }
        Ok(against)
    }

    /// The bytes of the files as git checks them out here: line endings and all.
    fn checked_out(&self, files: &Files) -> Result<Contents, Error> {
        let scratch = scratch()?;
        let index = scratch.path().join("index");
        let mut input = Vec::new();
        for (path, entry) in files {
            let Some(Entry { mode, blob }) = entry else { continue };
            if mode == SUBMODULE {
                continue;
            }
            input.extend_from_slice(format!("{mode} {blob}\t").as_bytes());
            input.extend_from_slice(path.as_os_str().as_bytes());
            input.push(0);
        }
        let out = scratch.path().join("out");
        std::fs::create_dir(&out).map_err(io_error("make", &out))?;
        self.git().call(["read-tree", "--empty"]).index(Some(&index)).run()?;
        let call = self.git().call(["update-index", "-z", "--add", "--index-info"]);
        call.index(Some(&index)).limit(LONG).input(input).run()?;
        let mut prefix = std::ffi::OsString::from("--prefix=");
        prefix.push(out.join(""));
        let call = self.git().call(["checkout-index", "--all", "--force", "--quiet"]).args([prefix]);
        call.index(Some(&index)).limit(LONG).run()?;
        let look = |(path, entry): (&PathBuf, &Option<Entry>)| {
            let content = match entry {
                Some(Entry { mode, blob }) if mode == SUBMODULE => {
                    Some(Content { mode: mode.clone(), bytes: blob.clone().into_bytes() })
                }
                Some(_) => disk::read(&out, path)?.content(),
                None => None,
            };
            Ok((path.clone(), content))
        };
        files.iter().map(look).collect()
    }
}

/// The error that names every conflict once.
fn refusal(mut conflicts: Vec<(PathBuf, &'static str)>) -> Error {
    conflicts.sort();
    conflicts.dedup_by(|a, b| a.0 == b.0);
    let named = conflicts.into_iter().map(|(path, why)| Conflict { path: path_text(&path), why });
    Error::Conflicts { conflicts: named.collect() }
}
