//! Carrying a plan out in the checkout, or back: each file by rename, and none that is neither what it was nor what it is
//! to be. Done again after it was half done, it does the rest.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
};

use super::{
    Checkout, Error,
    disk::{self, Content, Found},
    git::LONG,
    staging::shown,
};
use crate::{
    domain::{
        apply::Advance,
        id::{CommitId, TaskId},
    },
    log::crash,
};

/// How many files are held at once.
const BATCH: usize = 64;

/// Which way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From before to after; a file that is neither stops it, before anything else is touched.
    Forth,
    /// From after to before; a file that is not as it was brought is left alone.
    Back,
}

/// What a file was, and is to be.
type Sides = (Option<Content>, Option<Content>);

/// A file of a plan: the ids and modes of what it was and is to be.
#[derive(Default)]
struct Planned {
    before: Option<(String, String)>,
    after: Option<(String, String)>,
    /// Its place among them, which names its temporary file.
    place: usize,
}

/// Where the checkout's snapshot is kept.
#[must_use]
pub fn before_apply_ref(task: TaskId) -> String {
    format!("refs/nisse/before-apply/{task}")
}

fn plan_ref(task: TaskId) -> String {
    format!("refs/nisse/plan/{task}")
}

impl Checkout {
    /// Keeps the plan, and the snapshot that it was made on if `before` is given, from being pruned.
    pub fn hold_plan(&self, task: TaskId, plan: &CommitId, before: Option<&CommitId>) -> Result<(), Error> {
        let mut input = format!("start\nupdate {} {plan}\n", plan_ref(task));
        if let Some(before) = before {
            let _ = writeln!(input, "update {} {before}", before_apply_ref(task));
        }
        input.push_str("commit\n");
        self.git().call(["update-ref", "--stdin"]).input(input.into_bytes()).run().map(drop)
    }

    /// Whether there is a ref of that name.
    pub fn has_ref(&self, name: &str) -> Result<bool, Error> {
        Ok(self.store().reference(name)?.is_some())
    }

    pub(super) fn planned_files(&self, plan: &CommitId) -> Result<Vec<PathBuf>, Error> {
        Ok(self.planned(plan)?.into_keys().collect())
    }

    /// Carries a plan out, or back. Gives the paths that were left alone on the way back.
    pub fn carry(&self, task: TaskId, plan: &CommitId, way: Way) -> Result<Vec<String>, Error> {
        let planned = self.planned(plan)?;
        let paths: Vec<&PathBuf> = planned.keys().collect();
        let mut left = BTreeSet::new();
        // first a look at all of them: forth, nothing is touched if one stands against it
        for pass in [Pass::Look, Pass::Take, Pass::Put] {
            for batch in paths.chunks(BATCH) {
                left.extend(self.step(task, &planned, batch, way, pass)?);
            }
            // and what somebody changes after that look is not passed over
            if way == Way::Forth && !left.is_empty() {
                return Err(Error::Between { paths: left.iter().map(|path| shown(path)).collect() });
            }
        }
        Ok(left.iter().map(|path| shown(path)).collect())
    }

    fn step(
        &self,
        task: TaskId,
        planned: &BTreeMap<PathBuf, Planned>,
        batch: &[&PathBuf],
        way: Way,
        pass: Pass,
    ) -> Result<Vec<PathBuf>, Error> {
        let contents = self.contents(planned, batch)?;
        let mut against = Vec::new();
        for (path, (before, after)) in batch.iter().zip(contents) {
            let (from, to) = match way {
                Way::Forth => (before, after),
                Way::Back => (after, before),
            };
            let place = planned.get(*path).map_or(0, |one| one.place);
            let temporary = format!(".nisse-{}-{place}", task.short());
            if pass == Pass::Look {
                disk::clear(self.root(), path, &temporary)?;
            }
            let found = disk::look(self.root(), path)?;
            let is = |wanted: Option<&Content>| match (&found, wanted) {
                (Found::Absent | Found::Directory, None) => true,
                (Found::File(content), Some(wanted)) => content == wanted,
                (Found::Absent | Found::Directory | Found::File(_) | Found::Other, Some(_) | None) => false,
            };
            if is(to.as_ref()) {
                continue;
            }
            if !is(from.as_ref()) {
                against.push((*path).clone());
                continue;
            }
            if matches!((pass, &to), (Pass::Take, None) | (Pass::Put, Some(_))) {
                self.same_second().before_change(self.root(), &[self.root().join(path)]);
            }
            match (pass, &to) {
                (Pass::Take, None) => disk::take(self.root(), path)?,
                (Pass::Put, Some(to)) => disk::put(self.root(), path, to, &temporary)?,
                (Pass::Look, Some(_) | None) | (Pass::Take, Some(_)) | (Pass::Put, None) => continue,
            }
            crash::point("file.moved");
        }
        Ok(against)
    }

    fn planned(&self, plan: &CommitId) -> Result<BTreeMap<PathBuf, Planned>, Error> {
        let listed = self.git().call(["ls-tree", "-r", "-z", "--full-tree", &plan.0]).limit(LONG).parts()?;
        let mut planned: BTreeMap<PathBuf, Planned> = BTreeMap::new();
        for line in listed {
            let unreadable = || Error::Unreadable {
                action: "ls-tree".to_owned(),
                answer: String::from_utf8_lossy(&line).into_owned(),
            };
            let tab = line.iter().position(|byte| *byte == b'\t').ok_or_else(unreadable)?;
            let (head, path) = line.split_at(tab);
            let head = String::from_utf8_lossy(head).into_owned();
            let [mode, _, id] = head.split(' ').collect::<Vec<_>>()[..] else { return Err(unreadable()) };
            let entry = Some((mode.to_owned(), id.to_owned()));
            let path = path.get(1..).unwrap_or_default();
            let at = |path: &[u8]| PathBuf::from(std::ffi::OsStr::from_bytes(path));
            if let Some(path) = path.strip_prefix(b"before/") {
                planned.entry(at(path)).or_default().before = entry;
            } else if let Some(path) = path.strip_prefix(b"after/") {
                planned.entry(at(path)).or_default().after = entry;
            } else {
                return Err(unreadable());
            }
        }
        planned.values_mut().enumerate().for_each(|(place, one)| one.place = place);
        Ok(planned)
    }

    /// What these files were and are to be.
    fn contents(&self, planned: &BTreeMap<PathBuf, Planned>, batch: &[&PathBuf]) -> Result<Vec<Sides>, Error> {
        let of = |path: &&PathBuf| planned.get(*path).map(|one| [one.before.clone(), one.after.clone()]);
        let sides: Vec<[Option<(String, String)>; 2]> = batch.iter().map(|path| of(path).unwrap_or_default()).collect();
        let ids: Vec<&str> = sides.iter().flatten().flatten().map(|(_, id)| id.as_str()).collect();
        let mut blobs = self.blobs(&ids)?.into_iter();
        let mut next = |side: &Option<(String, String)>| {
            side.as_ref().and_then(|(mode, _)| blobs.next().map(|bytes| Content { mode: mode.clone(), bytes }))
        };
        Ok(sides.iter().map(|[before, after]| (next(before), next(after))).collect())
    }

    /// The contents of blobs, in order.
    fn blobs(&self, ids: &[&str]) -> Result<Vec<Vec<u8>>, Error> {
        let answer = self.git().call(["cat-file", "--batch"]).limit(LONG).input(ids.join("\n").into_bytes()).run()?;
        let mut rest = answer.as_slice();
        let mut blobs = Vec::new();
        for id in ids {
            let unreadable =
                || Error::Unreadable { action: "cat-file".to_owned(), answer: format!("nothing for {id}") };
            let end = rest.iter().position(|byte| *byte == b'\n').ok_or_else(unreadable)?;
            let head = String::from_utf8_lossy(rest.get(..end).unwrap_or_default()).into_owned();
            let size = match head.split(' ').collect::<Vec<_>>()[..] {
                [_, "blob", size] => size.parse::<usize>().map_err(|_| unreadable())?,
                _ => return Err(unreadable()),
            };
            let from = end + 1;
            blobs.push(rest.get(from..from + size).ok_or_else(unreadable)?.to_vec());
            rest = rest.get(from + size + 1..).unwrap_or_default();
        }
        Ok(blobs)
    }

    /// Brings index and branch to where the files are, the branch by compare-and-swap and last.
    pub fn advance(&self, advance: &Advance) -> Result<(), Error> {
        let Advance { branch, from, to } = advance;
        let head = self.store().head()?;
        let here = head.branch.as_ref() == Some(branch);
        if here && head.commit.as_ref() == Some(to) {
            return Ok(());
        }
        if !here || head.commit.as_ref() != Some(from) {
            let at = head.commit.as_ref().map_or("no commit", CommitId::short);
            let on = head.branch.as_deref().unwrap_or("a detached HEAD");
            let why = format!("it was at {}, and the checkout is on {on} at {at} by now", from.short());
            return Err(Error::NotForward { branch: branch.clone(), why });
        }
        self.move_index(branch, from, to)?;
        crash::point("advance.index");
        let name = format!("refs/heads/{branch}");
        self.git().call(["update-ref", "-m", "nisse apply: fast-forward", &name, &to.0, &from.0]).run()?;
        crash::point("advance.branch");
        Ok(())
    }

    /// Takes back what a fast-forward has done that has not come to its branch.
    pub fn retreat(&self, advance: &Advance) -> Result<(), Error> {
        self.move_index(&advance.branch, &advance.to, &advance.from)
    }

    /// Makes the index hold what `to` has, where that differs from `from`; what else is staged stays. Done already, or
    /// by half, it does the rest.
    fn move_index(&self, branch: &str, from: &CommitId, to: &CommitId) -> Result<(), Error> {
        let moved = self.git().call(["read-tree", "-i", "-m", &from.0, &to.0]).limit(LONG).run();
        moved.map_err(|error| match error {
            Error::Git { stderr, .. } => Error::NotForward {
                branch: branch.to_owned(),
                why: format!("something of its files is staged by now: {}", stderr.trim()),
            },
            other => other,
        })?;
        // a file that needs a look is told by the status alone
        self.git().call(["update-index", "-q", "--refresh"]).also_fine(1).limit(LONG).run().map(drop)
    }
}

/// Looking comes before taking away, and that before putting there: a file may become a directory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Look,
    Take,
    Put,
}
