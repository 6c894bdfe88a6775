//! Commits of the person's: made by their own git, with their hooks, their signature and their name.
//!
//! Their index is not used for it: what they staged stays staged and is not committed.

use std::{
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::plan_commit::PlannedFile;
use crate::{
    domain::{
        id::{CommitId, TaskId},
        intent::UserCommit,
    },
    log::crash,
    repo::{
        Checkout, Conflict, Error,
        git::LONG,
        staging::{Staging, scratch},
    },
};

/// A line that begins with `#` is part of the message, whatever the person's `commit.cleanup` says.
const VERBATIM: &str = "--cleanup=verbatim";

impl Checkout {
    /// Makes the commit, once: a commit that is there already is known by its parents, and by the task in its message.
    pub fn make_user_commit(&self, task: TaskId, intent: &UserCommit) -> Result<CommitId, Error> {
        let head = self.store().head()?.commit;
        if head == intent.parent {
            crash::point("land.begun");
            let made = match &intent.merge {
                Some(other) => self.merge_commit(other, &intent.message),
                None => self.commit(intent),
            };
            if let Err(error) = made {
                // a git that outlived a killed nisse may have made it meanwhile
                let head = self.store().head()?.commit;
                if head == intent.parent || self.find_user_commit(task, intent, head.as_ref())?.is_none() {
                    return Err(error);
                }
            }
        }
        let head = self.store().head()?.commit;
        let Some(made) = self.find_user_commit(task, intent, head.as_ref())? else {
            return Err(Error::HeadMoved { base: intent.parent.clone(), head });
        };
        crash::point("land.made");
        // once more was committed on top, the index is the person's alone
        if let Some(plan) = intent.plan.as_ref().filter(|_| head.as_ref() == Some(&made)) {
            self.follow_head(plan)?;
        }
        crash::point("land.index");
        Ok(made)
    }

    /// The commit that was made for this intent, at HEAD or below; none if none was.
    fn find_user_commit(
        &self,
        task: TaskId,
        intent: &UserCommit,
        head: Option<&CommitId>,
    ) -> Result<Option<CommitId>, Error> {
        let Some(head) = head else { return Ok(None) };
        let mut call = self.git().call(["rev-list", "--parents", &head.0]);
        if let Some(parent) = &intent.parent {
            call = call.args([format!("^{parent}")]);
        }
        let listed = String::from_utf8_lossy(&call.limit(LONG).run()?).into_owned();
        let wanted: Vec<&str> = intent.parent.iter().chain(&intent.merge).map(|id| id.0.as_str()).collect();
        for line in listed.lines() {
            let Some((commit, parents)) = line
                .split(' ')
                .collect::<Vec<_>>()
                .split_first()
                .map(|(id, rest)| (CommitId((*id).to_owned()), rest == wanted.as_slice()))
            else {
                continue;
            };
            if parents && (intent.merge.is_some() || self.is_of_task(task, &commit)?) {
                return Ok(Some(commit));
            }
        }
        Ok(None)
    }

    fn is_of_task(&self, task: TaskId, commit: &CommitId) -> Result<bool, Error> {
        let message = self.store().message(commit)?;
        Ok(message.is_some_and(|text| text.lines().any(|line| line == format!("Nisse-Task: {task}"))))
    }

    /// Whether HEAD contains `commit` already.
    pub fn head_contains(&self, commit: &CommitId) -> Result<bool, Error> {
        match self.store().head()?.commit {
            Some(head) => self.store().reaches(&head, commit),
            None => Ok(false),
        }
    }

    /// Whether HEAD contains a commit that was made for this intent, also one amended or rebased since: it is known by the
    /// trailers of its message.
    pub fn has_user_commit(&self, intent: &UserCommit) -> Result<bool, Error> {
        let Some(head) = self.store().head()?.commit else { return Ok(false) };
        if let Some(other) = &intent.merge {
            return self.store().reaches(&head, other);
        }
        let trailers: Vec<&str> = intent.message.lines().filter(|line| line.starts_with("Nisse-")).collect();
        let Some(first) = trailers.first() else { return Ok(false) };
        let list = |without: Option<&CommitId>| {
            let call = self.git().call(["rev-list", "--fixed-strings", &format!("--grep={first}"), &head.0]);
            call.args(without.map(|parent| format!("^{parent}"))).limit(LONG).run()
        };
        let listed = match list(intent.parent.as_ref()) {
            // what it was made on may be gone by now
            Err(Error::Git { .. }) => list(None)?,
            listed => listed?,
        };
        for id in String::from_utf8_lossy(&listed).lines() {
            let message = self.store().message(&CommitId(id.to_owned()))?.unwrap_or_default();
            if trailers.iter().all(|trailer| message.lines().any(|line| line == *trailer)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The commits from `from` to `to`, both included, oldest first.
    pub fn chain(&self, from: &CommitId, to: &CommitId) -> Result<Vec<CommitId>, Error> {
        let range = format!("{from}..{to}");
        let listed = self.git().call(["rev-list", "--reverse", "--topo-order", &range]).limit(LONG).run()?;
        let text = String::from_utf8_lossy(&listed).into_owned();
        Ok(std::iter::once(from.clone()).chain(text.lines().map(|id| CommitId(id.to_owned()))).collect())
    }

    /// A commit's message.
    pub fn message(&self, commit: &CommitId) -> Result<String, Error> {
        self.store().message(commit)?.ok_or_else(|| Error::NoSuchCommit { rev: commit.0.clone() })
    }

    fn commit(&self, intent: &UserCommit) -> Result<(), Error> {
        let Some(plan) = &intent.plan else { return Ok(()) };
        let scratch = scratch()?;
        let index = scratch.path().join("index");
        let start = intent.parent.as_ref().map_or("--empty", |parent| parent.0.as_str());
        self.git().call(["read-tree", start]).index(Some(&index)).limit(LONG).run()?;
        let (pointers, files): (Vec<_>, Vec<_>) =
            self.read_plan(plan)?.into_iter().partition(|(_, planned)| planned.is_submodule());
        let files: Vec<_> = files.into_iter().map(|(path, _)| path).collect();
        Staging { git: self.git(), root: self.root(), index: Some(&index) }.add(&files)?;
        self.point(&pointers, &index)?;
        // hooks that ask what differs from the index are to see only what does
        self.git().call(["update-index", "-q", "--refresh"]).index(Some(&index)).also_fine(1).limit(LONG).run()?;
        let call = self.git().call(["commit", "--quiet", VERBATIM, "--file=-"]).by_the_person().index(Some(&index));
        not_committed(call.limit(LONG).input(intent.message.clone().into_bytes()).run())
    }

    /// Stages what a plan says of submodules: only a directory of them is on the disk.
    fn point(&self, pointers: &[(PathBuf, PlannedFile)], index: &Path) -> Result<(), Error> {
        let mut input = Vec::new();
        let mut gone = Vec::new();
        for (path, planned) in pointers {
            let Some((mode, id)) = &planned.after else {
                gone.push(path.clone());
                continue;
            };
            input.extend_from_slice(format!("{mode} {id}\t").as_bytes());
            input.extend_from_slice(path.as_os_str().as_bytes());
            input.push(0);
        }
        Staging { git: self.git(), root: self.root(), index: Some(index) }.remove(&gone)?;
        if input.is_empty() {
            return Ok(());
        }
        let call = self.git().call(["update-index", "-z", "--add", "--replace", "--index-info"]).index(Some(index));
        call.limit(LONG).input(input).run().map(drop)
    }

    fn merge_commit(&self, other: &CommitId, message: &str) -> Result<(), Error> {
        // a killed attempt left it half done, and nothing of the person's was in it
        self.abort_merge(other)?;
        let own = self.own_paths()?;
        if !own.is_empty() {
            let conflicts = own.into_iter().map(|path| Conflict { path, why: "a merge needs everything committed" });
            return Err(Error::Conflicts { conflicts: conflicts.collect() });
        }
        self.before_files_become("HEAD", &other.0)?;
        let call = self.git().call(["merge", "--quiet", "--no-ff", VERBATIM, "-m", message, &other.0]).by_the_person();
        let merged = not_committed(call.limit(LONG).run());
        // a hook may have run anything
        self.same_second().ran();
        if merged.is_err() && !self.abort_known_merge(other)? {
            self.unstage_merge(other)?;
        }
        merged
    }

    /// Makes the index say of these files what HEAD says; the rest of it stays.
    fn follow_head(&self, plan: &CommitId) -> Result<(), Error> {
        let mut input = Vec::new();
        for path in self.plan_paths(plan)? {
            input.extend_from_slice(path.as_os_str().as_bytes());
            input.push(0);
        }
        let call = self.git().call(["reset", "--quiet", "--pathspec-from-file=-", "--pathspec-file-nul"]);
        call.variable("GIT_LITERAL_PATHSPECS", "1").also_fine(1).limit(LONG).input(input).run().map(drop)
    }
}

/// A commit that a hook, a signature or git itself refused.
fn not_committed(ran: Result<Vec<u8>, Error>) -> Result<(), Error> {
    match ran {
        Ok(_) => Ok(()),
        Err(Error::Git { action, status, stderr }) => {
            Err(Error::NotCommitted { why: format!("git {action} ended with {status}: {stderr}") })
        }
        Err(Error::TimedOut { action, limit }) => {
            let why = format!(
                "git {action} did not end within {} s: does a hook or the signature wait for you?",
                limit.as_secs()
            );
            Err(Error::NotCommitted { why })
        }
        Err(other) => Err(other),
    }
}
