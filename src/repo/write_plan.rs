//! Carrying a plan out in the checkout, or back: file by file, and none that is neither what it was nor what it is to be.
//! Done again after it was half done, it does the rest.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
};

use super::{
    Checkout, Error,
    disk::{self, Content, Found, Moved, Moving},
    exchange::Outcome,
    git::LONG,
    names::{before_apply_ref, earlier_before_apply, plan_ref},
    paths::{names_notice, path_text},
    plan_commit::{PlannedFile, Sides},
};
use crate::{
    domain::{
        id::{CommitId, Hash, TaskId},
        intent::Advance,
    },
    log::crash,
};

/// How many files are held at once.
const BATCH: usize = 64;

/// Which way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From before to after; a file that is neither stops it, before anything else is touched.
    Apply,
    /// From after to before; a file that is not as it was brought is left alone.
    Revert,
}

/// What was done on the way.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Written {
    /// The paths that were brought, or put back.
    pub moved: Vec<String>,
    /// The paths that were left alone, because they are no longer as they were brought.
    pub left: Vec<String>,
    /// What the person should know, in sentences.
    pub notices: Vec<String>,
}

impl Checkout {
    /// Keeps the plan, and the snapshot that it was made on if `before` is given, from being pruned. What was kept of an
    /// earlier time goes beside it: it may be the only place of what was reset since.
    pub fn pin_plan(&self, task: TaskId, plan: &CommitId, before: Option<&CommitId>) -> Result<(), Error> {
        let mut input = format!("start\nupdate {} {plan}\n", plan_ref(task));
        if let Some(before) = before {
            let name = before_apply_ref(task);
            if let Some(earlier) = self.store().reference(&name)?.filter(|earlier| earlier != before) {
                let _ = writeln!(input, "update {} {earlier}", earlier_before_apply(task, &earlier));
            }
            let _ = writeln!(input, "update {name} {before}");
        }
        input.push_str("commit\n");
        self.git().call(["update-ref", "--stdin"]).input(input.into_bytes()).run().map(drop)
    }

    /// Whether there is a ref of that name.
    pub fn has_ref(&self, name: &str) -> Result<bool, Error> {
        Ok(self.store().reference(name)?.is_some())
    }

    /// Carries a plan out, or back; `keep` is passed over.
    pub fn write_plan(
        &self,
        task: TaskId,
        plan: &CommitId,
        direction: Direction,
        keep: &BTreeSet<PathBuf>,
    ) -> Result<Written, Error> {
        let planned = self.read_plan(plan)?;
        let paths: Vec<&PathBuf> = planned.keys().filter(|path| !keep.contains(*path)).collect();
        let mut run = Run { checkout: self, task, planned: &planned, direction, report: Report::default() };
        // first a look at all of them: forth, nothing is touched if one stands against it
        for pass in [Pass::Look, Pass::Take, Pass::Put] {
            for batch in paths.chunks(BATCH) {
                run.step(batch, pass)?;
            }
            // and what somebody changes after that look is not passed over
            if direction == Direction::Apply && !run.report.left.is_empty() {
                return Err(Error::Between { paths: run.report.left.iter().map(|path| path_text(path)).collect() });
            }
        }
        Ok(run.report.into_written())
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

/// How names beside a path begin while it is moved: its own, whatever else a plan holds.
fn own_name(task: TaskId, path: &Path) -> String {
    let Hash(hash) = Hash::of(path.as_os_str().as_encoded_bytes());
    format!(".nisse-{}-{}", task.short(), hash.get(..12).unwrap_or(&hash))
}

/// Looking comes before taking away, and that before putting there: a file may become a directory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Look,
    Take,
    Put,
}

/// A plan on its way.
struct Run<'a> {
    checkout: &'a Checkout,
    task: TaskId,
    planned: &'a BTreeMap<PathBuf, PlannedFile>,
    direction: Direction,
    report: Report,
}

#[derive(Default)]
struct Report {
    moved: BTreeSet<PathBuf>,
    left: BTreeSet<PathBuf>,
    linked: BTreeSet<PathBuf>,
    filled: BTreeSet<PathBuf>,
    by_steps: bool,
}

impl Run<'_> {
    fn step(&mut self, batch: &[&PathBuf], pass: Pass) -> Result<(), Error> {
        let contents = self.checkout.plan_contents(self.planned, batch)?;
        for (path, (before, after)) in batch.iter().zip(contents) {
            let (from, to) = match self.direction {
                Direction::Apply => (before, after),
                Direction::Revert => (after, before),
            };
            if !self.report.left.contains(*path) {
                self.path(path, (from, to), pass)?;
            }
        }
        Ok(())
    }

    fn path(&mut self, path: &Path, (from, to): Sides, pass: Pass) -> Result<(), Error> {
        let root = self.checkout.root();
        let planned = self.planned.get(path);
        let own = own_name(self.task, path);
        let moving = Moving { root, path, own: &own, from: from.as_ref(), to: to.as_ref() };
        if pass == Pass::Look && moving.settle()? == Outcome::Kept {
            // two versions of the person's: theirs to choose from
            self.report.left.insert(path.to_owned());
            self.report.left.insert(path.with_file_name(&own));
            return Ok(());
        }
        let found = disk::read(root, path)?;
        let is_submodule = |content: &Option<Content>| content.as_ref().is_some_and(Content::is_submodule);
        // where a submodule was, an empty directory is not nothing
        let is_left = pass == Pass::Take && found == Found::Directory && is_submodule(&from) && to.is_none();
        if Self::is(&found, to.as_ref()) && !is_left {
            // a process that died after it had taken the file away left its directories
            if pass == Pass::Take && found == Found::Absent && to.is_none() && from.is_some() {
                moving.remove_empty_above();
            }
            return Ok(());
        }
        let half_way = found == Found::Absent && is_submodule(&to);
        if !half_way && !self.may_go(path, &found, from.as_ref(), to.as_ref(), pass)? {
            self.report.left.insert(path.to_owned());
            return Ok(());
        }
        if matches!((pass, &to), (Pass::Take, None) | (Pass::Put, Some(_))) {
            self.checkout.same_second().before_change(root, &[root.join(path)]);
        }
        let done = Moved { outcome: Outcome::Done, had_links: false, by_steps: false };
        let moved = match (pass, &to) {
            (Pass::Take, None) if is_submodule(&from) => {
                // one that is filled is the person's: git leaves it too
                if !disk::remove_empty(root, path)? {
                    self.report.filled.insert(path.to_owned());
                    return Ok(());
                }
                done
            }
            (Pass::Take, to) if matches!(found, Found::File(_)) && (to.is_none() || is_submodule(to)) => {
                moving.take()?
            }
            (Pass::Look | Pass::Take, _) | (Pass::Put, None) => return Ok(()),
            (Pass::Put, Some(to)) if to.is_submodule() => {
                disk::make_directory(root, path)?;
                done
            }
            (Pass::Put, Some(to)) => {
                if found == Found::Directory && !disk::remove_empty(root, path)? {
                    self.report.left.insert(path.to_owned());
                    return Ok(());
                }
                moving.put(to, planned.and_then(|one| one.rights).filter(|_| self.direction == Direction::Revert))?
            }
        };
        if moved.outcome == Outcome::Done {
            self.report.moved.insert(path.to_owned());
        } else {
            self.report.left.insert(path.to_owned());
        }
        if moved.had_links {
            self.report.linked.insert(path.to_owned());
        }
        self.report.by_steps |= moved.by_steps;
        crash::point("file.moved");
        Ok(())
    }

    /// Whether what was found is what is wanted.
    fn is(found: &Found, wanted: Option<&Content>) -> bool {
        match (found, wanted) {
            (Found::Absent | Found::Directory | Found::Behind(_), None) => true,
            (Found::Directory, Some(wanted)) if wanted.is_submodule() => true,
            (Found::File(content), Some(wanted)) => content == wanted,
            (Found::Absent | Found::Directory | Found::Behind(_) | Found::File(_) | Found::Other, _) => false,
        }
    }

    /// Whether what was found may go to what is wanted.
    fn may_go(
        &self,
        path: &Path,
        found: &Found,
        from: Option<&Content>,
        to: Option<&Content>,
        pass: Pass,
    ) -> Result<bool, Error> {
        let absent_submodule = *found == Found::Absent && from.is_some_and(Content::is_submodule);
        if !absent_submodule && !Self::is(found, from) {
            return Ok(false);
        }
        Ok(match (found, to) {
            // a link that goes makes room for a directory
            (Found::Behind(link), Some(_)) => pass != Pass::Put && self.goes(link),
            // a directory makes room for a file with nothing in it but what goes
            (Found::Directory, Some(to)) if !to.is_submodule() => {
                disk::first_in(self.checkout.root(), path, &|inner| self.goes(inner))?.is_none()
            }
            (Found::Absent | Found::Directory | Found::Behind(_) | Found::File(_) | Found::Other, _) => true,
        })
    }

    /// Whether nothing is to be at a path of the plan.
    fn goes(&self, path: &Path) -> bool {
        self.planned.get(path).is_some_and(|one| match self.direction {
            Direction::Apply => one.after.is_none(),
            Direction::Revert => one.before.is_none(),
        })
    }
}

impl Report {
    fn into_written(self) -> Written {
        let list = |paths: &BTreeSet<PathBuf>| paths.iter().map(|path| path_text(path)).collect::<Vec<_>>();
        let mut notices: Vec<_> = [
            names_notice("had other names (hard links), which keep the old content", &list(&self.linked)),
            names_notice("submodules that stay on the disk, since they are not empty", &list(&self.filled)),
        ]
        .into_iter()
        .flatten()
        .collect();
        if self.by_steps {
            notices.push(
                "this file system cannot exchange two files in one step, so each file was missing for a moment while it \
                 was replaced"
                    .to_owned(),
            );
        }
        Written { moved: list(&self.moved), left: list(&self.left), notices }
    }
}
