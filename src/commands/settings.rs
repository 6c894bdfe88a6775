//! Settings: layered, each value with its source.
//!
//! Later layers win: built in, the user's file, the repository's `nisse.toml`, the environment, flags. Guarantees:
//! - The environment is read in [`Environment::from_process`] and nowhere else.
//! - A repository is not trusted: its file sets what [`keys`] lets it, and its checks wait until the user trusts the
//!   file ([`trust`]), or for `--trust-project`.
//! - An unknown key is an error, never ignored, and so is a variable that looks like a mistyped one of ours; all mistakes
//!   of all layers are reported at once. Other variables that begin with `NISSE_` may be someone else's.
//! - Loading runs nothing and writes nothing; the token is fetched by [`Settings::token`], when it is needed.

mod declared;
mod environment;
mod error;
mod fallback;
mod file;
mod given;
mod history;
mod keep_turns;
mod keys;
mod layers;
mod near;
mod source;
pub mod state_dir;
#[cfg(test)]
mod tests;
pub mod token;
mod trust;
pub mod units;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Serialize;

pub use self::{
    declared::Declared,
    environment::{Directories, Environment},
    error::{Error, Problem},
    fallback::Fallback,
    history::History,
    keep_turns::KeepTurns,
    layers::Flags,
    source::{Source, Sourced},
    trust::ProjectFile,
};
use crate::{
    domain::{caps::Caps, money::Money, role::RoleName},
    ports::clock::Clock,
};

/// All settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `[proxy]`.
    pub proxy: Proxy,
    /// `[roles]`: the alias of each role that has one.
    pub roles: BTreeMap<RoleName, Sourced<String>>,
    /// `[delegate]`.
    pub delegate: Delegate,
    /// `[check] commands`; read it through [`Settings::checks`], which asks whether it is trusted.
    check_commands: Sourced<Vec<String>>,
    /// `[commands]`.
    pub commands: Commands,
    /// `[files]`.
    pub files: Files,
    /// `[worktree]`.
    pub worktree: Worktree,
    /// `[branch]`.
    pub branch: Branch,
    /// The output ceiling of a reply in tokens, lowered to what the model allows.
    pub max_output_tokens: Sourced<u64>,
    /// `[models."alias"]`.
    pub models: BTreeMap<String, Declared>,
    /// The state directory, absolute; see [`state_dir::prepare`].
    pub state_dir: Sourced<PathBuf>,
    /// What tests hold still.
    pub pins: Pins,
    /// Variables that begin like ours and mean nothing to us.
    pub unknown_variables: Vec<String>,
    /// The user's settings file, whether it is there or not.
    pub config_file: Option<PathBuf>,
    /// The repository's settings file, if one was read.
    pub project: Option<ProjectFile>,
    trust_project: bool,
}

/// `[proxy]`: where the models are.
#[derive(Clone, Debug)]
pub struct Proxy {
    /// Its address, with or without `/v1`; none if no one named one.
    pub base_url: Sourced<Option<String>>,
    /// A command that prints the token.
    pub token_command: Sourced<Option<String>>,
    /// A file that holds the token.
    pub token_file: Sourced<Option<PathBuf>>,
    /// How long a reply may take to begin.
    pub first_byte: Sourced<Duration>,
    /// How long a reply may be silent.
    pub idle: Sourced<Duration>,
    /// A certificate authority to trust beside the system's (PEM).
    pub ca_file: Sourced<Option<PathBuf>>,
}

/// `[delegate]`: the caps of a delegation, and who may answer.
#[derive(Clone, Debug)]
pub struct Delegate {
    /// Replies.
    pub max_turns: Sourced<u32>,
    /// All input of all turns, cached or not, plus all output.
    pub max_tokens: Sourced<u64>,
    /// Active time.
    pub max_time: Sourced<Duration>,
    /// Money; none for no such cap.
    pub max_cost: Sourced<Option<Money>>,
    /// Whether another model than the one asked for may answer.
    pub fallback: Sourced<Fallback>,
}

impl Delegate {
    /// The caps as a task records them.
    #[must_use]
    pub fn caps(&self) -> Caps {
        Caps {
            turns: self.max_turns.value,
            tokens: self.max_tokens.value,
            cost: self.max_cost.value,
            time_ms: millis(self.max_time.value),
        }
    }
}

/// `[commands]`: the commands of a model, and the checks.
#[derive(Clone, Debug)]
pub struct Commands {
    /// A command's time limit.
    pub time_limit: Sourced<Duration>,
    /// Names of further variables that commands see.
    pub pass_env: Sourced<Vec<String>>,
}

/// `[files]`: what no file tool touches.
#[derive(Clone, Debug)]
pub struct Files {
    /// Globs that the user denies.
    pub deny: Sourced<Vec<String>>,
    /// Globs that the repository adds.
    pub project_deny: Sourced<Vec<String>>,
}

impl Files {
    /// All denied globs.
    #[must_use]
    pub fn denied(&self) -> Vec<String> {
        self.deny.value.iter().chain(&self.project_deny.value).cloned().collect()
    }
}

/// `[worktree]`.
#[derive(Clone, Debug)]
pub struct Worktree {
    /// Untracked files over this many bytes are not carried into the task's worktree.
    pub max_untracked: Sourced<u64>,
    /// Where worktrees are made, relative to the checkout; none for the state directory.
    pub dir: Sourced<Option<PathBuf>>,
    /// Globs of ignored files that are copied; read them through [`Settings::copied`], which asks whether they are
    /// trusted.
    copy: Sourced<Vec<String>>,
    /// A command that makes a worktree fit for work; read it through [`Settings::setup`].
    setup: Sourced<Option<String>>,
}

/// `[branch]`.
#[derive(Clone, Debug)]
pub struct Branch {
    /// What a finished branch holds.
    pub history: Sourced<History>,
    /// What is kept of the single turns of finished tasks.
    pub keep_turns: Sourced<KeepTurns>,
}

/// What tests hold still: `NISSE_TEST_CLOCK` and `NISSE_TEST_IDS`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pins {
    /// The time, in milliseconds since 1970 UTC.
    pub clock_ms: Option<u64>,
    /// The number in this process's first task id; below 2^48.
    pub first_id: Option<u64>,
}

impl Pins {
    /// The system's clock, or one that stands still.
    #[must_use]
    pub fn clock(self) -> Clock {
        self.clock_ms.map_or_else(Clock::system, |at_ms| Clock::Fixed { at_ms })
    }
}

/// Something with effects that the repository's settings file names.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Effect {
    /// The setting.
    pub key: &'static str,
    /// Its values: command lines or globs.
    pub values: Vec<String>,
}

/// A setting as `doctor` shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shown {
    /// Section and key.
    pub key: String,
    /// The value; none if it is not set.
    pub value: Option<String>,
    /// Where it came from.
    pub source: Source,
}

impl Settings {
    /// The alias of a role.
    ///
    /// # Errors
    /// [`Error::NoRole`] if no one named one.
    pub fn role(&self, role: RoleName) -> Result<&Sourced<String>, Error> {
        self.roles.get(&role).ok_or(Error::NoRole(role))
    }

    /// The proxy's address.
    ///
    /// # Errors
    /// [`Error::NoAddress`] if no one named one.
    pub fn base_url(&self) -> Result<&str, Error> {
        self.proxy.base_url.value.as_deref().ok_or(Error::NoAddress)
    }

    /// The token for the proxy: `NISSE_LLM_TOKEN`, else what `token_command` prints, else what `token_file` holds.
    ///
    /// # Errors
    /// [`Error::Token`] says which of them could not be had, and why. It never holds the token.
    pub fn token(&self, environment: &Environment) -> Result<SecretString, Error> {
        Ok(token::fetch(&self.proxy, environment)?)
    }

    /// The check commands.
    ///
    /// # Errors
    /// [`Error::Untrusted`] if they come from the repository's file, and it is not trusted.
    pub fn checks(&self) -> Result<&[String], Error> {
        self.trusted(&self.check_commands, "check commands, which run as you", Clone::clone).map(Vec::as_slice)
    }

    /// Globs of ignored files that are copied into a task's worktree.
    ///
    /// # Errors
    /// As [`Settings::checks`]: what is copied, a model's commands see.
    pub fn copied(&self) -> Result<&[String], Error> {
        let what = "ignored files to copy, which a model's commands would see";
        self.trusted(&self.worktree.copy, what, Clone::clone).map(Vec::as_slice)
    }

    /// The command that makes a task's worktree fit for work.
    ///
    /// # Errors
    /// As [`Settings::checks`].
    pub fn setup(&self) -> Result<Option<&str>, Error> {
        let shown = |setup: &Option<String>| setup.iter().cloned().collect();
        self.trusted(&self.worktree.setup, "a setup command, which runs as you", shown).map(Option::as_deref)
    }

    /// What the repository's file names that has effects, and what is in force of it.
    #[must_use]
    pub fn effects(&self) -> Vec<Effect> {
        let checks = ("check.commands", &self.check_commands.source, self.check_commands.value.clone());
        let copy = ("worktree.copy", &self.worktree.copy.source, self.worktree.copy.value.clone());
        let setup =
            ("worktree.setup", &self.worktree.setup.source, self.worktree.setup.value.iter().cloned().collect());
        [checks, copy, setup]
            .into_iter()
            .filter(|(_, source, _)| source.is_project())
            .map(|(key, _, values)| Effect { key, values })
            .collect()
    }

    /// Whether the repository's file names something with effects, and the user has not said that it is trusted.
    #[must_use]
    pub fn waits_for_trust(&self) -> bool {
        !self.trust_project && !self.effects().is_empty()
    }

    /// A value that a repository may name and only the user may let through.
    fn trusted<'a, T>(
        &self,
        value: &'a Sourced<T>,
        what: &'static str,
        shown: impl Fn(&T) -> Vec<String>,
    ) -> Result<&'a T, Error> {
        match &value.source {
            Source::Project { path, line } if !self.trust_project => {
                Err(Error::Untrusted { path: path.clone(), line: *line, what, named: shown(&value.value) })
            }
            Source::Default | Source::File { .. } | Source::Project { .. } | Source::Env(_) | Source::Flag(_) => {
                Ok(&value.value)
            }
        }
    }

    /// A command's time limit in milliseconds.
    #[must_use]
    pub fn command_time_ms(&self) -> u64 {
        millis(self.commands.time_limit.value)
    }

    /// Every setting with its source, in a fixed order.
    #[must_use]
    pub fn entries(&self) -> Vec<Shown> {
        let state_dir = Shown {
            key: "state directory".to_owned(),
            value: Some(self.state_dir.value.display().to_string()),
            source: self.state_dir.source.clone(),
        };
        let keys = keys::KEYS.iter().map(|key| {
            let (value, source) = (key.show)(self);
            Shown { key: key.name.to_owned(), value, source: source.clone() }
        });
        let project_deny = (!self.files.project_deny.value.is_empty()).then(|| Shown {
            key: "files.deny (added)".to_owned(),
            value: Some(format!("{:?}", self.files.project_deny.value)),
            source: self.files.project_deny.source.clone(),
        });
        let models = self.models.iter().flat_map(|(alias, declared)| {
            declared.entries().map(move |(key, value, source)| Shown {
                key: format!("models.{alias:?}.{key}"),
                value: Some(value),
                source: source.clone(),
            })
        });
        std::iter::once(state_dir).chain(keys).chain(project_deny).chain(models).collect()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
