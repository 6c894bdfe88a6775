//! Planning how a task's part comes into the checkout: nothing of the person's is touched here.
//!
//! A plan is a commit that holds, byte for byte, the files that are to change as they are (`before/…`) and as they are to
//! be (`after/…`). It says what will be true, so that carrying it out can be taken up again, and taken back.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    Checkout, Error, SnapshotRequest,
    checkpoint::{Author, commit_tree},
    disk::{self, Content, Found},
    git::LONG,
    io_error,
    staging::{Staging, paths, scratch, shown},
    three_way::{Change, Entry, Merged},
};
use crate::domain::id::{CommitId, TaskId};

/// Each path once, with what it is to be.
type Files = BTreeMap<PathBuf, Option<Entry>>;
/// Paths with the bytes that are there.
type Contents = BTreeMap<PathBuf, Option<Content>>;

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
}

impl Checkout {
    /// Plans how the first of the commits comes into the checkout as it is; none if the checkout has it already. A path
    /// that stands against any of them is an [`Error::Conflicts`] with all of them.
    pub fn plan(&self, request: &PlanRequest<'_>) -> Result<Option<Plan>, Error> {
        self.ready()?;
        self.refuse_read_only(self.root())?;
        let [start, _, ..] = request.commits else { return Ok(None) };
        let mut steps = Vec::new();
        for pair in request.commits.windows(2) {
            if let [from, to] = pair {
                steps.push(self.changes(from, to)?);
            }
        }
        let touched: BTreeSet<PathBuf> = steps.iter().flatten().map(|change| change.path.clone()).collect();
        let found = self.look_at(&touched)?;
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
        let tracked = ours.clone();
        let mut merged = Vec::new();
        for step in &steps {
            merged.push(self.merge(step, &mut ours)?);
        }
        let all = merged.iter().flat_map(|step| step.files.keys().cloned()).collect::<BTreeSet<_>>();
        let mut conflicts: Vec<_> = merged.iter().flat_map(|step| step.conflicts.iter().cloned()).collect();
        conflicts.extend(self.in_the_way(&all, &steps, &tracked, &found)?);
        if request.to_commit {
            // a file that is not tracked yet is theirs from its first byte
            let mut own = self.own_changes()?;
            own.extend(self.untracked()?);
            let shared = all.iter().filter(|path| own.contains(*path)).cloned();
            conflicts.extend(shared.map(|path| (path, "your own changes to it would be committed too")));
        }
        if !conflicts.is_empty() {
            return Err(refusal(conflicts));
        }
        let Some(Merged { files, .. }) = merged.into_iter().next().filter(|first| !first.files.is_empty()) else {
            return Ok(None);
        };
        let now: Contents =
            files.keys().map(|path| (path.clone(), found.get(path).cloned().and_then(Found::content))).collect();
        let commit = self.write_plan(request, &files, &now, &before)?;
        if self.look_at(&touched)? != found {
            return Err(Error::Unsteady { checkout: self.root().to_owned() });
        }
        Ok(Some(Plan { commit, before, files: files.keys().map(|path| shown(path)).collect() }))
    }

    /// Paths with changes of the person's, staged or not.
    pub fn own_paths(&self) -> Result<Vec<String>, Error> {
        Ok(self.own_changes()?.iter().map(|path| shown(path)).collect())
    }

    pub(super) fn own_changes(&self) -> Result<BTreeSet<PathBuf>, Error> {
        // `git diff` writes what it learnt of the files' times into the index
        let scratch = scratch()?;
        let index = scratch.path().join("index");
        self.see(Some(&index))?;
        let head = match self.store().head()?.commit {
            Some(head) => head.0,
            // the tree without entries
            None => self.git().call(["hash-object", "-t", "tree", "--stdin"]).input(Vec::new()).line()?,
        };
        let mut all = BTreeSet::new();
        for staged in [&[][..], &["--cached"][..]] {
            let call = self.git().call(["diff", "-z", "--name-only", "--no-ext-diff", "--no-textconv", "--no-renames"]);
            let call = call.args(["--ignore-submodules=all"]).args(staged).args([head.as_str(), "--"]);
            all.extend(paths(call.index(Some(&index)).limit(LONG).parts()?));
        }
        Ok(all)
    }

    /// Files that git neither tracks nor ignores.
    pub(super) fn untracked(&self) -> Result<Vec<PathBuf>, Error> {
        Ok(Staging { git: self.git(), root: self.root(), index: None }.changes()?.untracked)
    }

    fn look_at(&self, touched: &BTreeSet<PathBuf>) -> Result<BTreeMap<PathBuf, Found>, Error> {
        touched.iter().map(|path| Ok((path.clone(), disk::look(self.root(), path)?))).collect()
    }

    /// What is on the disk and not in the snapshot: ignored and large files, directories, links, repositories, and what
    /// git is told not to look at.
    fn in_the_way(
        &self,
        files: &BTreeSet<PathBuf>,
        steps: &[Vec<Change>],
        tracked: &Files,
        found: &BTreeMap<PathBuf, Found>,
    ) -> Result<Vec<(PathBuf, &'static str)>, Error> {
        let unwatched: BTreeSet<Vec<u8>> = self.store().unwatched()?.into_iter().map(|(path, _)| path).collect();
        let first: BTreeMap<&PathBuf, &Change> =
            steps.iter().flatten().rev().map(|change| (&change.path, change)).collect();
        let goes = |path: &Path| steps.iter().flatten().any(|change| change.path == path && change.new.is_none());
        let goes_below =
            |path: &Path| steps.iter().flatten().any(|change| change.new.is_none() && change.path.starts_with(path));
        let mut against = Vec::new();
        for path in files {
            let begins = first.get(path).and_then(|change| change.old.as_ref());
            let expected = tracked.get(path).map_or(begins, Option::as_ref);
            let why = match (found.get(path), expected) {
                _ if unwatched.contains(path.as_os_str().as_bytes()) => Some("git is told not to look at it"),
                (Some(Found::Other), _) => Some("it is no file, or lies behind a link or in a repository of its own"),
                (Some(Found::Directory), None) if !goes_below(path) => Some("there is a directory"),
                (Some(Found::Directory), Some(_)) => Some("there is a directory"),
                (Some(Found::File(_)), None) => Some("it is there already, untracked"),
                (Some(Found::Absent) | None, Some(_)) => Some("it is gone"),
                (Some(Found::File(content)), Some(entry)) if (content.mode == "120000") != (entry.mode == "120000") => {
                    Some("it is another kind of file on the disk")
                }
                (Some(Found::File(_)), Some(_)) | (Some(Found::Directory | Found::Absent) | None, None) => {
                    let blocked = disk::above(path).any(|part| {
                        let meta = self.root().join(&part).symlink_metadata();
                        meta.is_ok_and(|meta| !meta.is_dir()) && !goes(&part)
                    });
                    blocked.then_some("a file is where its directory would be")
                }
            };
            against.extend(why.map(|why| (path.clone(), why)));
        }
        Ok(against)
    }

    /// Writes the plan's objects.
    fn write_plan(
        &self,
        request: &PlanRequest<'_>,
        files: &Files,
        now: &Contents,
        before: &CommitId,
    ) -> Result<CommitId, Error> {
        let scratch = scratch()?;
        let index = scratch.path().join("index");
        let after = self.checked_out(files, scratch.path(), &index)?;
        let raw = scratch.path().join("raw");
        std::fs::create_dir(&raw).map_err(io_error("make", &raw))?;
        let sides = [("before/", now), ("after/", &after)];
        let mut input = Vec::new();
        let mut names = Vec::new();
        for (side, contents) in sides {
            for (path, content) in contents {
                let Some(content) = content else { continue };
                // hash-object reads names line by line
                let file = raw.join(names.len().to_string());
                let write = || std::fs::File::create(&file)?.write_all(&content.bytes);
                write().map_err(io_error("write", &file))?;
                input.extend_from_slice(file.as_os_str().as_bytes());
                input.push(b'\n');
                names.push((side, path, &content.mode));
            }
        }
        let call = self.git().call(["hash-object", "-w", "--no-filters", "--stdin-paths"]);
        let ids = String::from_utf8_lossy(&call.limit(LONG).input(input).run()?).into_owned();
        let mut entries = Vec::new();
        for ((side, path, mode), id) in names.into_iter().zip(ids.lines()) {
            entries.extend_from_slice(format!("{mode} {id}\t{side}").as_bytes());
            entries.extend_from_slice(path.as_os_str().as_bytes());
            entries.push(0);
        }
        self.git().call(["read-tree", "--empty"]).index(Some(&index)).run()?;
        let call = self.git().call(["update-index", "-z", "--add", "--index-info"]);
        call.index(Some(&index)).limit(LONG).input(entries).run()?;
        let tree = self.git().call(["write-tree"]).index(Some(&index)).limit(LONG).line()?;
        let author = Author { name: "nisse", email: "nisse@localhost", at_ms: request.at_ms };
        let message = format!("nisse: files before and after\n\nNisse-Task: {}\n", request.task);
        commit_tree(self.git(), &tree, &[before], &message, &author)
    }

    /// The bytes of the files as git checks them out here: line endings and all.
    fn checked_out(&self, files: &Files, scratch: &Path, index: &Path) -> Result<Contents, Error> {
        let mut input = Vec::new();
        for (path, entry) in files {
            let Some(Entry { mode, blob }) = entry else { continue };
            input.extend_from_slice(format!("{mode} {blob}\t").as_bytes());
            input.extend_from_slice(path.as_os_str().as_bytes());
            input.push(0);
        }
        let out = scratch.join("out");
        std::fs::create_dir(&out).map_err(io_error("make", &out))?;
        self.git().call(["read-tree", "--empty"]).index(Some(index)).run()?;
        let call = self.git().call(["update-index", "-z", "--add", "--index-info"]);
        call.index(Some(index)).limit(LONG).input(input).run()?;
        let mut prefix = std::ffi::OsString::from("--prefix=");
        prefix.push(out.join(""));
        let call = self.git().call(["checkout-index", "--all", "--force", "--quiet"]).args([prefix]);
        call.index(Some(index)).limit(LONG).run()?;
        let look = |(path, entry): (&PathBuf, &Option<Entry>)| {
            let content = match entry {
                Some(_) => disk::look(&out, path)?.content(),
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
    let named = conflicts.into_iter().map(|(path, why)| Conflict { path: shown(&path), why });
    Error::Conflicts { conflicts: named.collect() }
}
