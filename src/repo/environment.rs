//! What git may see of the environment.

use std::{
    ffi::{OsStr, OsString},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// Where programs are, if the environment does not say.
pub(super) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What git needs of the environment: where programs are, and where the person's configuration lies.
const NAMES: &[&str] = &[
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "TMPDIR",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CEILING_DIRECTORIES",
    "GIT_EXEC_PATH",
    "DEVELOPER_DIR",
    "GIT_CONFIG_COUNT",
];

/// Variables that would make git work somewhere else than it is told to; not even the person's commits see them.
const ELSEWHERE: &[&str] = &[
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_GRAFT_FILE",
    "GIT_SHALLOW_FILE",
];

/// The environment variables that git may see, taken from those of the process.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// What every call sees.
    pub(super) kept: Vec<(OsString, OsString)>,
    /// What a call sees that makes a commit of the person's: hooks and signing need more.
    pub(super) person: Vec<(OsString, OsString)>,
}

impl Environment {
    /// Keeps of `variables` what git needs: `PATH`, `HOME`, where its configuration is. The rest is for the person's own
    /// commits, save what is nisse's.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let own = |name: &OsStr| name.to_string_lossy().starts_with("NISSE_");
        let person: Vec<_> = variables
            .into_iter()
            .filter(|(name, _)| !own(name) && !ELSEWHERE.iter().any(|known| name == known))
            .collect();
        let setting = |name: &OsStr| {
            let name = name.to_string_lossy();
            name.starts_with("GIT_CONFIG_KEY_") || name.starts_with("GIT_CONFIG_VALUE_")
        };
        let needed = |(name, _): &&(OsString, OsString)| NAMES.iter().any(|known| name == known) || setting(name);
        Self { kept: person.iter().filter(needed).cloned().collect(), person }
    }

    /// A variable that git sees.
    fn kept(&self, name: &str) -> Option<&OsStr> {
        self.kept.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
    }

    /// The home directory that git sees.
    pub(super) fn home(&self) -> Option<&Path> {
        self.kept("HOME").filter(|home| !home.is_empty()).map(Path::new)
    }

    /// The directory in which git looks for its files of this person, beside `~/.gitconfig`.
    pub(super) fn config_home(&self) -> Option<PathBuf> {
        config_home(self.kept("XDG_CONFIG_HOME"), self.home())
    }

    /// The settings that the person gave by `GIT_CONFIG_COUNT`: how many.
    pub(super) fn settings(&self) -> usize {
        self.kept("GIT_CONFIG_COUNT").and_then(|value| value.to_str()?.parse().ok()).unwrap_or(0)
    }

    /// Where the program of that name is; none if there is none that could be started.
    pub(super) fn program(&self, name: &str) -> Option<PathBuf> {
        let path = self.kept("PATH").unwrap_or(OsStr::new(PATH));
        let can_be_started = |place: &PathBuf| {
            place.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        };
        // one that is relative would be looked for in the worktree
        let places = std::env::split_paths(path).filter(|place| place.is_absolute());
        places.map(|place| place.join(name)).find(can_be_started)
    }
}

/// Where git's files of a person are, by the two variables that say so.
pub(super) fn config_home(xdg: Option<&OsStr>, home: Option<&Path>) -> Option<PathBuf> {
    match xdg.filter(|xdg| !xdg.is_empty()) {
        Some(xdg) => Some(Path::new(xdg).join("git")),
        None => Some(home?.join(".config/git")),
    }
}
