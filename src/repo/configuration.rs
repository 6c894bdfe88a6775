//! What a repository's configuration says about how to work in it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use secrecy::SecretString;

use super::{Environment, Error, credentials, git::Git};
use crate::domain::filters::Filters;

/// In what formats a repository is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Formats {
    /// It is a sparse checkout.
    pub(super) sparse: bool,
    /// A ref is a file, as against reftable.
    pub(super) refs_in_files: bool,
    /// libgit2 refuses it, or reads it wrongly: the git program does everything.
    pub(super) by_program: bool,
}

/// A file of a person's that holds for all of their repositories: named by a setting, else in its usual place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PersonalFile {
    /// Of ignore rules.
    Excludes,
    /// Of attributes.
    Attributes,
}

impl PersonalFile {
    pub(super) const ALL: [Self; 2] = [Self::Excludes, Self::Attributes];

    /// The setting that names it.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Excludes => "core.excludesfile",
            Self::Attributes => "core.attributesfile",
        }
    }

    /// Where it is, by the setting's value and the places of a person; none if that cannot be told.
    pub(super) fn place(
        self,
        value: Option<&str>,
        home: Option<&Path>,
        config_home: Option<PathBuf>,
    ) -> Option<PathBuf> {
        let usual = match self {
            Self::Excludes => "ignore",
            Self::Attributes => "attributes",
        };
        match value {
            None => Some(config_home?.join(usual)),
            Some(value) => match value.strip_prefix("~/") {
                Some(below) => Some(home?.join(below)),
                None => Some(PathBuf::from(value)).filter(|path| path.is_absolute()),
            },
        }
    }
}

/// What a configuration file says by itself, sorted. One that cannot be read says nothing.
pub(super) fn entries(file: &Path) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let Ok(config) = git2::Config::open(file) else { return all };
    let Ok(mut listed) = config.entries(None) else { return all };
    while let Some(Ok(entry)) = listed.next() {
        all.extend(entry.name().ok().map(|name| (name.to_owned(), entry.value().unwrap_or("true").to_owned())));
    }
    all.sort();
    all
}

/// Those of these entries that are about a branch, by its name: its upstream and the like.
pub(super) fn of_branches(entries: &[(String, String)]) -> BTreeMap<String, Vec<(String, String)>> {
    let mut all: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for (key, value) in entries {
        if let Some((branch, _)) = key.strip_prefix("branch.").and_then(|rest| rest.rsplit_once('.')) {
            all.entry(branch.to_owned()).or_default().push((key.clone(), value.clone()));
        }
    }
    all
}

/// The configuration as git sees it, in order.
#[derive(Clone, Debug)]
pub(super) struct Configuration(Vec<(String, String)>);

impl Configuration {
    pub(super) fn read(git: &Git) -> Result<Self, Error> {
        let entries = git.call(["config", "--list", "-z"]).parts()?;
        let split = |entry: Vec<u8>| {
            let text = String::from_utf8_lossy(&entry).into_owned();
            match text.split_once('\n') {
                Some((key, value)) => (key.to_owned(), value.to_owned()),
                // a key alone stands for true
                None => (text, "true".to_owned()),
            }
        };
        Ok(Self(entries.into_iter().map(split).collect()))
    }

    pub(super) fn last(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    fn is_on(&self, key: &str) -> bool {
        let off = |value: &str| ["", "false", "no", "off", "0"].contains(&value.to_ascii_lowercase().as_str());
        self.last(key).is_some_and(|value| !off(value))
    }

    /// In what formats the repository is kept.
    pub(super) fn formats(&self) -> Formats {
        let promisor = |(key, _): &(String, String)| {
            key == "extensions.partialclone" || key.starts_with("remote.") && key.ends_with(".promisor")
        };
        let sparse = self.is_on("core.sparsecheckout");
        let partial = self.0.iter().any(promisor);
        let refs_in_files = self.last("extensions.refstorage").is_none_or(|storage| storage == "files");
        let sha1 = self.last("extensions.objectformat").is_none_or(|format| format == "sha1");
        let two = self.last("extensions.compatobjectformat").is_some();
        Formats { sparse, refs_in_files, by_program: sparse || partial || !refs_in_files || !sha1 || two }
    }

    /// Where a person's file is.
    pub(super) fn personal_file(&self, file: PersonalFile, environment: &Environment) -> Option<PathBuf> {
        file.place(self.last(file.key()), environment.home(), environment.config_home())
    }

    /// The content filters that it defines.
    pub(super) fn filters(&self) -> Filters {
        Filters::configured(self.0.iter().map(|(key, value)| (key.as_str(), value.as_str())))
    }

    /// The credentials that it holds.
    pub(super) fn credentials(&self) -> Vec<SecretString> {
        self.0.iter().flat_map(|(key, value)| credentials::of_entry(key, value)).collect()
    }

    /// The person's name and address where both are usable, else nisse's own.
    pub(super) fn identity(&self) -> (String, String) {
        // what git strips from a name's ends, and what it leaves out of its middle
        let usable = |value: &str| {
            let kept: String = value.chars().filter(|c| !matches!(c, '<' | '>' | '\n' | '\0')).collect();
            let crud = |c: char| c <= ' ' || matches!(c, '.' | ',' | ':' | ';' | '"' | '\\' | '\'');
            let trimmed = kept.trim_matches(crud).to_owned();
            (!trimmed.is_empty()).then_some(trimmed)
        };
        let name = self.last("user.name").and_then(usable);
        let email = self.last("user.email").and_then(usable);
        match (name, email) {
            (Some(name), Some(email)) => (name, email),
            (Some(_) | None, None) | (None, Some(_)) => ("nisse".to_owned(), "nisse@localhost".to_owned()),
        }
    }
}
