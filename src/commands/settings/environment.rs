//! The process's environment, read only here and passed to everything else.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt,
    path::{Path, PathBuf},
};

/// All environment variables, and the platform's directories that follow from them.
///
/// Contains secrets: its `Debug` shows only names.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    directories: Directories,
}

/// The platform's directories for this person; absent where the platform names none.
#[derive(Clone, Default, Debug)]
pub struct Directories {
    /// The home directory, for `~/` in settings.
    pub home: Option<PathBuf>,
    /// Where programs keep their settings; ours are in `nisse/` there.
    pub config: Option<PathBuf>,
    /// Where programs keep state that must survive; ours is in `nisse/` there.
    pub state: Option<PathBuf>,
}

impl Environment {
    /// The environment that this process was started with.
    #[must_use]
    pub fn from_process() -> Self {
        let directories = directories::BaseDirs::new().map_or_else(Directories::default, |dirs| Directories {
            home: Some(dirs.home_dir().to_owned()),
            config: Some(dirs.config_dir().to_owned()),
            // only Linux has a directory for state
            state: Some(dirs.state_dir().unwrap_or(dirs.data_local_dir()).to_owned()),
        });
        Self::new(std::env::vars_os(), directories)
    }

    /// An environment made of these variables.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>, directories: Directories) -> Self {
        Self { variables: variables.into_iter().collect(), directories }
    }

    /// All variables, for code that starts processes and chooses what they see.
    #[must_use]
    pub fn variables(&self) -> &BTreeMap<OsString, OsString> {
        &self.variables
    }

    /// The same without settings of ours but the tests' pins, and without the platform's directories.
    #[must_use]
    pub fn without_settings(&self) -> Self {
        let ours =
            |name: &OsString| name.to_str().is_some_and(|n| n.starts_with("NISSE_") && !n.starts_with("NISSE_TEST_"));
        let others = self.variables.iter().filter(|(name, _)| !ours(name));
        Self::new(others.map(|(name, value)| (name.clone(), value.clone())), Directories::default())
    }

    /// The same with this variable set.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// The value of one variable.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// The user's own settings file, whether it is there or not.
    #[must_use]
    pub fn config_file(&self) -> Option<PathBuf> {
        self.directories.config.as_ref().map(|dir| dir.join("nisse").join("config.toml"))
    }

    /// The default state directory.
    #[must_use]
    pub fn state_dir(&self) -> Option<PathBuf> {
        self.directories.state.as_ref().map(|dir| dir.join("nisse"))
    }

    /// The home directory.
    #[must_use]
    pub fn home(&self) -> Option<&Path> {
        self.directories.home.as_deref()
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("variables", &self.variables.keys().collect::<Vec<_>>())
            .field("directories", &self.directories)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_holds_no_value() {
        let environment =
            Environment::new([("NISSE_LLM_TOKEN".into(), "sk-very-secret".into())], Directories::default());
        let shown = format!("{environment:?}");
        assert!(shown.contains("NISSE_LLM_TOKEN") && !shown.contains("secret"), "{shown}");
    }

    #[test]
    fn the_process_has_a_path() {
        assert!(Environment::from_process().get("PATH").is_some());
    }
}
