//! Giving back a checkout that a task worked in: files, index and HEAD, by the switch of branches that git itself would
//! make. Every step may be done again.

use std::{
    fs::{self, File, Metadata, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use super::{
    Checkout, Error, TaskBranch, Worktree,
    draft::keep_owner,
    git::LONG,
    in_place::{INDEX, copy_index},
    io_error, own_index,
    paths::{path_text, paths},
    removal::{remove_file, remove_tree},
};
use crate::{
    domain::{checkout::Base, id::CommitId},
    log::crash,
};

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

impl TaskBranch {
    /// Takes back a switch of a task that never stood; its branch goes.
    pub fn undo_switch(&self, base: &Base, snapshot: &CommitId) -> Result<GivenBack, Error> {
        let given = self.switch_to_base(base, snapshot, 0)?;
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
    pub fn switch_to_base(&self, base: &Base, tip: &CommitId, at_ms: u64) -> Result<GivenBack, Error> {
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
    pub fn pin_unfinished(&self, base: &Base, snapshot: &CommitId) -> Result<Option<String>, Error> {
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
        if !kept.exists() {
            return remove_file(&index);
        }
        own_index::through(self.checkout.git_dir(), self.checkout.root(), self.task, |copy| {
            remove_file(copy)?;
            copy_index(&kept, copy).map_err(io_error("write", copy))
        })
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
            if let Some(found) = self.snapshot_files(tip, at_ms)? {
                let differs = between(to, &found.0)?;
                let others = tracked.iter().chain(&untracked).filter(|path| differs.contains(path));
                given.changed = others.map(|path| path_text(path)).collect();
            }
            if !given.changed.is_empty() {
                given.kept = self.save_files("meanwhile", tip, at_ms)?;
            }
            for path in tracked.iter().chain(&untracked) {
                remove_tree(&self.path().join(path))?;
            }
            let input = tracked.iter().flat_map(|path| path.as_os_str().as_encoded_bytes().iter().copied().chain([0]));
            git.call(["checkout-index", "-f", "-u", "-z", "--stdin"]).limit(LONG).input(input.collect()).run()?;
        }
        given.torn = self.linked(&of_task);
        let stood = of_task.iter().filter_map(|path| Some((path, self.path().join(path).symlink_metadata().ok()?)));
        let stood: Vec<_> = stood.filter(|(_, found)| found.is_file()).collect();
        let changing: Vec<_> = of_task.iter().map(|path| self.path().join(path)).collect();
        self.checkout().same_second().before_change(self.path(), &changing);
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
        paths.iter().filter(linked).map(|path| path_text(path)).collect()
    }
}
