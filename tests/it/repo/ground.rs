//! A repository in a directory of its own, with a home of its own, and what can be asked about it.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Command,
};

use nisse::{
    domain::{
        checkout::Base,
        id::{CallId, CommitId, TaskId},
    },
    repo::{
        Checkout, CheckpointRequest, Environment, Error, Snapshot, SnapshotRequest, Worktree, WorktreeSpec, branch_name,
    },
};

/// A date in the past: 2026-01-01.
pub(crate) const AT_MS: u64 = 1_767_225_600_000;

pub(crate) struct Ground {
    directory: tempfile::TempDir,
    /// The checkout; not always the first one.
    pub(crate) root: PathBuf,
    /// Further variables that the person's git and nisse see.
    pub(crate) variables: Vec<(String, String)>,
}

impl Ground {
    /// An empty directory, with a home beside it.
    pub(crate) fn bare() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().canonicalize().unwrap();
        fs::create_dir_all(real.join("home")).unwrap();
        fs::create_dir_all(real.join("repo")).unwrap();
        let ground = Self { directory, root: real.join("repo"), variables: Vec::new() };
        fs::write(ground.home().join(".gitconfig"), "[user]\n\tname = Ada\n\temail = ada@example.org\n").unwrap();
        ground
    }

    /// A repository without commits.
    pub(crate) fn unborn() -> Self {
        let ground = Self::bare();
        ground.git(&["init", "-q", "-b", "main"]);
        ground
    }

    /// A repository with one commit.
    pub(crate) fn new() -> Self {
        let ground = Self::unborn();
        ground.put("a.txt", "one\n");
        ground.put("b.txt", "two\n");
        ground.put("src/main.c", "int main(void) { return 0; }\n");
        ground.put("run.sh", "echo run\n");
        fs::set_permissions(ground.root.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("a.txt", ground.root.join("link")).unwrap();
        ground.put(".gitignore", "*.log\nbuild/\n");
        ground.git(&["add", "-A"]);
        ground.git(&["commit", "-q", "-m", "first"]);
        ground
    }

    pub(crate) fn top(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.top().join("home")
    }

    pub(crate) fn put(&self, path: &str, text: &str) {
        put(&self.root, path, text);
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.root, args)
    }

    pub(crate) fn git_in(&self, directory: &Path, args: &[&str]) -> String {
        let (status, text) = self.try_git(directory, args);
        assert!(status, "git {args:?} in {}: {text}", directory.display());
        text
    }

    pub(crate) fn try_git(&self, directory: &Path, args: &[&str]) -> (bool, String) {
        self.try_git_with(directory, args, &[])
    }

    /// The same with variables for this call.
    pub(crate) fn try_git_with(&self, directory: &Path, args: &[&str], variables: &[(&str, &str)]) -> (bool, String) {
        let mut git = Command::new("git");
        git.args(args).current_dir(directory).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        git.envs(self.places()).envs(variables.iter().copied());
        let out = git.output().unwrap();
        let text = if out.status.success() { &out.stdout } else { &out.stderr };
        (out.status.success(), String::from_utf8_lossy(text).trim_end().to_owned())
    }

    /// Where git looks for configuration.
    fn places(&self) -> Vec<(String, String)> {
        let mut places = vec![("HOME".to_owned(), self.home().to_str().unwrap().to_owned())];
        if !self.variables.iter().any(|(name, _)| name == "GIT_CONFIG_SYSTEM") {
            places.push(("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned()));
        }
        [places, self.variables.clone()].concat()
    }

    /// What git sees; programs of the ground's own `bin` come first.
    pub(crate) fn environment(&self) -> Environment {
        let mut programs = self.top().join("bin:").into_os_string();
        programs.push(std::env::var_os("PATH").unwrap_or_default());
        let places = self.places().into_iter().map(|(name, value)| (name.into(), value.into()));
        Environment::new(places.chain([("PATH".into(), programs)]))
    }

    /// Puts a shell script before the real git program; `$real` is that.
    pub(crate) fn before_git(&self, script: &str) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let real = std::env::split_paths(&path).map(|place| place.join("git")).find(|git| git.is_file()).unwrap();
        let program = self.top().join("bin/git");
        put(
            &self.top(),
            "bin/git",
            &format!("#!/bin/sh\nreal='{}'\n{script}\nexec \"$real\" \"$@\"\n", real.display()),
        );
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn open(&self) -> Result<Checkout, Error> {
        Checkout::open(&self.root, &self.environment())
    }

    pub(crate) fn checkout(&self) -> Checkout {
        self.open().unwrap()
    }

    pub(crate) fn snapshot(&self) -> Result<Snapshot, Error> {
        let checkout = self.open()?;
        snapshot(&checkout, &checkout.base()?)
    }

    /// The name and place of the one task.
    pub(crate) fn spec(&self, start: &CommitId) -> WorktreeSpec {
        WorktreeSpec {
            task: task(),
            path: self.top().join("state/worktrees").join(task().to_string()),
            branch: branch_name(task(), "do it"),
            start: start.clone(),
            isolation: nisse::domain::checkout::Isolation::Worktree,
        }
    }

    /// Snapshot and worktree.
    pub(crate) fn begin(&self) -> (Worktree, Snapshot) {
        self.begin_in(&self.checkout())
    }

    /// The same in a checkout that is open already.
    pub(crate) fn begin_in(&self, checkout: &Checkout) -> (Worktree, Snapshot) {
        let mut snapshot = snapshot(checkout, &checkout.base().unwrap()).unwrap();
        let worktree = Worktree::create(checkout, &self.spec(&snapshot.commit)).unwrap();
        snapshot.notices.extend(worktree.fill_submodules(&snapshot.commit).unwrap());
        (worktree, snapshot)
    }

    pub(crate) fn rev(&self, name: &str) -> Option<String> {
        let (found, text) = self.try_git(&self.root, &["rev-parse", "-q", "--verify", name]);
        found.then_some(text)
    }
}

pub(crate) fn task() -> TaskId {
    "01993c5e-7b1a-7000-8000-0123456789ab".parse().unwrap()
}

pub(crate) fn snapshot(checkout: &Checkout, base: &Base) -> Result<Snapshot, Error> {
    checkout.snapshot(&SnapshotRequest { task: task(), base, at_ms: AT_MS, max_untracked: 1000 })
}

pub(crate) fn checkpoint(
    worktree: &Worktree,
    number: u32,
    parent: &CommitId,
    paths: Option<&[&str]>,
) -> Result<Option<CommitId>, Error> {
    let paths = paths.map(|paths| paths.iter().map(ToString::to_string).collect::<Vec<_>>());
    worktree.checkpoint(&CheckpointRequest {
        task: task(),
        turn: number,
        call: &CallId::new(number, 0),
        parent,
        subject: "edit",
        at_ms: AT_MS + u64::from(number) * 1000,
        paths: paths.as_deref(),
    })
}

pub(crate) fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Everything under a directory, by path: kind, mode, time and content; directories without their time.
/// Of a ground, its `state` directory is left out: worktrees lie there.
pub(crate) fn fingerprint(root: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    look(root, root, &mut all);
    all.retain(|path, _| !Path::new(path).starts_with("state"));
    all
}

fn look(root: &Path, directory: &Path, all: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        let found = path.symlink_metadata().unwrap();
        let mode = found.mode();
        if found.is_dir() {
            all.insert(name, format!("directory {mode:o}"));
            look(root, &path, all);
        } else if found.is_symlink() {
            all.insert(name, format!("link to {}", fs::read_link(&path).unwrap().display()));
        } else if !found.is_file() {
            all.insert(name, "neither file nor directory".to_owned());
        } else {
            let bytes = fs::read(&path).unwrap();
            let hash = nisse::domain::id::Hash::of(&bytes);
            // git freshens an object that would be written again
            let time = if name.contains(".git/objects/") || name.contains(".git/modules/lib/objects/") {
                String::new()
            } else {
                format!("{}.{}", found.mtime(), found.mtime_nsec())
            };
            all.insert(name, format!("file {mode:o} {time} {hash}"));
        }
    }
}

/// The person's files, and what is theirs in the git directory.
pub(crate) fn without_ours(ground: &Ground) -> Vec<(String, String)> {
    let theirs = |path: &str| {
        let inside = path.split_once(".git/").map(|(_, inside)| inside);
        let ours = [
            "objects",
            "nisse-id",
            "worktrees",
            "refs/heads/nisse",
            "refs/nisse",
            "logs/refs",
            "reftable",
            "modules/lib/",
            "sharedindex",
        ];
        inside.is_none_or(|inside| !ours.iter().any(|ours| inside.starts_with(ours)))
    };
    fingerprint(&ground.top()).into_iter().filter(|(path, _)| theirs(path)).collect()
}

/// What may come and go in a `.git`: objects, nisse's refs, the worktree's entry.
const OURS: &[&str] =
    &["objects", "refs/heads/nisse", "refs/nisse", "worktrees", "logs/refs/heads/nisse", "logs/refs/nisse"];

/// Fails unless everything in `before` is as it was, and what came is nisse's own.
pub(crate) fn assert_untouched(before: &BTreeMap<String, String>, root: &Path, git: &str, what: &str) {
    let after = fingerprint(root);
    let moving = |path: &str| path.strip_prefix(git).is_some_and(|path| path.starts_with("refs/nisse"));
    for (path, was) in before.iter().filter(|(path, _)| !moving(path)) {
        assert_eq!(after.get(path), Some(was), "{what}: {path} changed");
    }
    for path in after.keys().filter(|path| !before.contains_key(*path)) {
        let inside = path.strip_prefix(git).is_some_and(|path| OURS.iter().any(|ours| path.starts_with(ours)));
        assert!(inside, "{what}: {path} appeared");
    }
}

/// The files of a directory by path, without `.git`: executable or not, and content.
pub(crate) fn files(root: &Path) -> BTreeMap<String, String> {
    let all = fingerprint(root);
    let kept = all
        .into_iter()
        .filter(|(path, what)| path != ".git" && !path.starts_with(".git/") && !what.starts_with("directory"));
    kept.map(|(path, what)| {
        let words: Vec<_> = what.split(' ').collect();
        let brief = if words[0] == "file" {
            let executable = u32::from_str_radix(words[1], 8).unwrap() & 0o100 != 0;
            format!("{executable} {}", words[3])
        } else {
            what.clone()
        };
        (path, brief)
    })
    .collect()
}
