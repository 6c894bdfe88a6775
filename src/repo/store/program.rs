//! The store by the git program: it reads whatever git reads.

use std::{
    path::{Path, PathBuf},
    str,
};

use super::{Head, Store, Submodule, TrackState};
use crate::{
    domain::{filters::filter_of, id::CommitId},
    repo::{
        Error,
        commit::{Author, commit_tree},
        git::{Call, Git, LONG},
        paths::paths,
        staging::Staging,
    },
};

/// A repository read by the git program.
#[derive(Clone, Debug)]
pub(in crate::repo) struct Program {
    git: Git,
    sparse: bool,
}

impl Program {
    /// `sparse`: the checkout is one, so that skip-worktree marks are git's own business.
    pub(in crate::repo) fn new(git: Git, sparse: bool) -> Self {
        Self { git, sparse }
    }

    /// What a question says on one line; none where it answers with exit status 1 and nothing.
    fn ask<const N: usize>(&self, args: [&str; N]) -> Result<Option<String>, Error> {
        let answer = self.git.call(args).also_fine(1).run()?;
        let text = String::from_utf8_lossy(&answer).trim_end_matches('\n').to_owned();
        Ok((!text.is_empty()).then_some(text))
    }

    /// The index's entries: its marks, mode, id, stage and path.
    fn entries(&self) -> Result<Vec<Entry>, Error> {
        let parts = self.git.call(["ls-files", "-z", "--stage", "-v"]).limit(LONG).parts()?;
        let unreadable = |part: &[u8]| Error::Unreadable {
            action: "ls-files".to_owned(),
            answer: String::from_utf8_lossy(part).into_owned(),
        };
        parts.iter().map(|part| Entry::read(part).ok_or_else(|| unreadable(part))).collect()
    }

    /// Whether an entry's mark hides its path from git.
    fn hides(&self, entry: &Entry) -> bool {
        entry.assumed || entry.skipped && !self.sparse
    }
}

/// An entry of the index.
struct Entry {
    assumed: bool,
    skipped: bool,
    mode: String,
    id: String,
    stage: String,
    path: Vec<u8>,
}

impl Entry {
    /// `H 100644 <id> 0\t<path>`; a small letter stands for assume-unchanged, an S for skip-worktree.
    fn read(part: &[u8]) -> Option<Self> {
        let tab = part.iter().position(|byte| *byte == b'\t')?;
        let (head, path) = (str::from_utf8(&part[..tab]).ok()?, &part[tab + 1..]);
        let mut words = head.split(' ');
        let (mark, mode, id, stage) = (words.next()?, words.next()?, words.next()?, words.next()?);
        Some(Self {
            assumed: mark.chars().all(|c| c.is_ascii_lowercase()),
            skipped: mark.eq_ignore_ascii_case("S"),
            mode: mode.to_owned(),
            id: id.to_owned(),
            stage: stage.to_owned(),
            path: path.to_owned(),
        })
    }
}

impl Store for Program {
    fn head(&self) -> Result<Head, Error> {
        let branch = self.symbolic_head()?.and_then(|name| name.strip_prefix("refs/heads/").map(str::to_owned));
        Ok(Head { commit: self.reference("HEAD")?, branch })
    }

    fn symbolic_head(&self) -> Result<Option<String>, Error> {
        self.ask(["symbolic-ref", "--quiet", "HEAD"])
    }

    fn reference(&self, name: &str) -> Result<Option<CommitId>, Error> {
        let peeled = format!("{name}^{{commit}}");
        Ok(self.ask(["rev-parse", "--quiet", "--verify", "--end-of-options", &peeled])?.map(CommitId))
    }

    fn references(&self, prefixes: &[&str]) -> Result<Vec<(String, CommitId)>, Error> {
        // without its last slash a prefix is a directory of refs to git, with it nothing
        let below = prefixes.iter().map(|prefix| prefix.trim_end_matches('/'));
        let call = self.git.call(["for-each-ref", "--format=%(refname) %(objectname)"]).args(below);
        let listed = String::from_utf8_lossy(&call.run()?).into_owned();
        let split = |line: &str| line.split_once(' ').map(|(name, at)| (name.to_owned(), CommitId(at.to_owned())));
        let mut found: Vec<_> = listed.lines().filter_map(split).collect();
        found.sort();
        Ok(found)
    }

    fn resolve(&self, rev: &str) -> Result<CommitId, Error> {
        let missing = || Error::NoSuchCommit { rev: rev.to_owned() };
        if rev.is_empty() {
            return Err(missing());
        }
        match self.reference(rev) {
            Ok(Some(commit)) => Ok(commit),
            // it has words about a name that is no commit's (`HEAD:a.txt`)
            Ok(None) | Err(Error::Git { .. }) => Err(missing()),
            Err(error) => Err(error),
        }
    }

    fn tree(&self, commit: &CommitId) -> Result<String, Error> {
        self.git.call(["rev-parse", "--verify", "--end-of-options", &format!("{commit}^{{tree}}")]).line()
    }

    fn message(&self, commit: &CommitId) -> Result<Option<String>, Error> {
        let answer = self.git.call(["cat-file", "--batch"]).input(format!("{commit}\n").into_bytes()).run()?;
        // `<id> commit <size>`, the object, a line break; or `<id> missing`
        let Some(line) = answer.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
        if !String::from_utf8_lossy(&answer[..line]).contains(" commit ") {
            return Ok(None);
        }
        let object = answer[line + 1..].strip_suffix(b"\n").unwrap_or_default();
        let body = object.windows(2).position(|pair| pair == b"\n\n").map_or(&object[..0], |at| &object[at + 2..]);
        Ok(Some(String::from_utf8_lossy(body).into_owned()))
    }

    fn reaches(&self, tip: &CommitId, commit: &CommitId) -> Result<bool, Error> {
        if tip == commit {
            return Ok(true);
        }
        match self.git.call(["merge-base", "--is-ancestor", &commit.0, &tip.0]).status()? {
            0 => Ok(true),
            1 => Ok(false),
            _ => Err(Error::NoSuchCommit { rev: format!("{commit} or {tip}") }),
        }
    }

    fn picking(&self) -> Result<Option<&'static str>, Error> {
        for (name, what) in [("CHERRY_PICK_HEAD", "a cherry-pick"), ("REVERT_HEAD", "a revert")] {
            if self.reference(name)?.is_some() {
                return Ok(Some(what));
            }
        }
        Ok(None)
    }

    fn conflicts(&self) -> Result<Vec<String>, Error> {
        let parts = self.git.call(["ls-files", "-z", "--unmerged"]).limit(LONG).parts()?;
        let path = |part: &Vec<u8>| part.iter().position(|byte| *byte == b'\t').map(|tab| part[tab + 1..].to_vec());
        let mut paths: Vec<_> = parts.iter().filter_map(path).collect();
        paths.dedup();
        Ok(paths.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect())
    }

    fn tracked(&self) -> Result<Vec<Vec<u8>>, Error> {
        self.git.call(["ls-files", "-z"]).limit(LONG).parts()
    }

    fn named(&self, name: &str) -> Result<Vec<Vec<u8>>, Error> {
        self.git.call(["ls-files", "-z", "--", &format!(":(glob)**/{name}")]).limit(LONG).parts()
    }

    fn unwatched(&self) -> Result<Vec<(Vec<u8>, String)>, Error> {
        let hidden = self.entries()?.into_iter().filter(|entry| self.hides(entry));
        Ok(hidden.map(|entry| (entry.path, entry.id)).collect())
    }

    fn index_is_plain(&self) -> Result<bool, Error> {
        match self.entries() {
            Ok(entries) => Ok(!entries.iter().any(|entry| self.hides(entry) || entry.stage != "0")),
            Err(Error::Git { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn track_states(&self, paths: &[String]) -> Result<Vec<TrackState>, Error> {
        let entries = self.entries()?;
        let is = |path: &String, entry: &Entry| entry.path == path.as_bytes();
        let within = |path: &String, entry: &Entry| {
            entry.mode == "160000"
                && path.as_bytes().strip_prefix(&*entry.path).is_some_and(|rest| rest.starts_with(b"/"))
        };
        let states = paths.iter().map(|path| {
            if entries.iter().any(|entry| is(path, entry)) {
                Some(TrackState::Tracked)
            } else if entries.iter().any(|entry| within(path, entry)) {
                Some(TrackState::Ignored)
            } else {
                None
            }
        });
        let states: Vec<_> = states.collect();
        let unknown: Vec<u8> = paths
            .iter()
            .zip(&states)
            .filter(|(_, state)| state.is_none())
            .flat_map(|(path, _)| path.bytes().chain([0]))
            .collect();
        let ignored = if unknown.is_empty() {
            Vec::new()
        } else {
            let call = self.git.call(["check-ignore", "-z", "--stdin"]).input(unknown).also_fine(1);
            call.parts()?
        };
        let known = |path: &String| ignored.iter().any(|ignored| ignored == path.as_bytes());
        let settle = |(path, state): (&String, Option<TrackState>)| {
            state.unwrap_or(if known(path) { TrackState::Ignored } else { TrackState::Untracked })
        };
        Ok(paths.iter().zip(states).map(settle).collect())
    }

    fn filters(&self) -> Result<Vec<(String, String)>, Error> {
        let call = self.git.call(["config", "-z", "--name-only", "--get-regexp", "^filter\\."]).also_fine(1);
        let keys = call.parts()?;
        let part = |key: &Vec<u8>| {
            filter_of(&String::from_utf8_lossy(key)).map(|(name, part)| (name.to_owned(), part.to_owned()))
        };
        Ok(keys.iter().filter_map(part).collect())
    }

    fn submodules(&self, commit: &CommitId) -> Result<Vec<Submodule>, Error> {
        let parts = self.git.call(["ls-tree", "-r", "-z", "--full-tree", &commit.0]).limit(LONG).parts()?;
        let submodule = |part: &Vec<u8>| {
            let link = part.strip_prefix(b"160000 commit ")?;
            let tab = link.iter().position(|byte| *byte == b'\t')?;
            Some(Submodule { path: link[tab + 1..].to_owned(), commit: str::from_utf8(&link[..tab]).ok()?.to_owned() })
        };
        Ok(parts.iter().filter_map(submodule).collect())
    }

    fn stage(&self, git: &Git, root: &Path, changed: &[PathBuf], gone: &[PathBuf]) -> Result<String, Error> {
        let staging = Staging { git, root, index: None };
        staging.add(changed)?;
        staging.remove(gone)?;
        staging.write_tree()
    }

    fn commit(
        &self,
        git: &Git,
        tree: &str,
        parent: &CommitId,
        message: &str,
        author: &Author<'_>,
    ) -> Result<CommitId, Error> {
        commit_tree(git, tree, &[parent], message, author)
    }

    fn added(&self, commit: &CommitId, tree: &str) -> Result<Vec<PathBuf>, Error> {
        let call = self.git.call(["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A"]);
        Ok(paths(call.args([&*commit.0, tree]).limit(LONG).parts()?))
    }

    fn contains(&self, commit: &CommitId, path: &Path) -> Result<bool, Error> {
        let call = self.git.call(["ls-tree", "-z", "--full-tree", &commit.0, "--"]).args([path]);
        let found = call.variable("GIT_LITERAL_PATHSPECS", "1").parts()?;
        Ok(found.iter().any(|entry| !entry.starts_with(b"040000 ")))
    }

    fn move_ref(&self, git: &Git, name: &str, from: &CommitId, to: &CommitId) -> Result<(), Error> {
        let call: Call<'_> = git.call(["update-ref", "--no-deref", name, &to.0, &from.0]);
        call.run().map(drop)
    }
}
