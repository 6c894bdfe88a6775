//! `nisse trust`: the user has read the repository's settings file, and lets its commands run until it changes.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Error,
    open::for_git,
    settings::{self, Effect, Environment, Flags, ProjectFile, Settings, state_dir},
};
use crate::repo::Checkout;

/// The repository's settings file, as it was read.
#[derive(Clone, Debug)]
pub struct Project {
    file: ProjectFile,
    effects: Vec<Effect>,
    state_dir: PathBuf,
}

/// The result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Report {
    /// Version of this object's form.
    #[schemars(extend("const" = 1))]
    v: u32,
    /// `trust`.
    #[schemars(extend("const" = "trust"))]
    r#type: &'static str,
    /// The file.
    pub path: String,
    /// Whether it is trusted as it is now.
    pub trusted: bool,
    /// Its settings that need trust.
    pub effects: Vec<Effect>,
}

/// Reads the settings file of the repository at `directory`, and of other settings only the state directory.
///
/// # Errors
/// There is no repository, no such file, or it is wrong.
pub fn read_project(environment: &Environment, flags: &Flags, directory: &Path) -> Result<Project, Error> {
    let checkout = Checkout::open(directory, &for_git(environment))?;
    let settings = Settings::load_project(environment, flags, checkout.root())?;
    let effects = settings.effects();
    let file = settings.project.ok_or_else(|| Error::NoProject { root: checkout.root().to_owned() })?;
    Ok(Project { file, effects, state_dir: settings.state_dir.value })
}

impl Project {
    /// Trusts the file as it was read.
    ///
    /// # Errors
    /// That cannot be remembered.
    pub fn trust(&self) -> Result<Report, Error> {
        state_dir::prepare(&self.state_dir).map_err(settings::Error::from)?;
        self.file.trust(&self.state_dir).map_err(|source| self.unwritten(source))?;
        Ok(self.report())
    }

    /// Forgets it.
    ///
    /// # Errors
    /// That cannot be done.
    pub fn revoke(&self) -> Result<Report, Error> {
        self.file.revoke(&self.state_dir).map_err(|source| self.unwritten(source))?;
        Ok(self.report())
    }

    /// How it stands.
    #[must_use]
    pub fn report(&self) -> Report {
        let trusted = self.file.is_trusted(&self.state_dir);
        let path = self.file.path().display().to_string();
        Report { v: 1, r#type: "trust", path, trusted, effects: self.effects.clone() }
    }

    fn unwritten(&self, source: std::io::Error) -> Error {
        Error::Write { path: self.file.mark(&self.state_dir), source }
    }
}
