//! The layers and their order.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    Branch, Commands, Delegate, Environment, Error, Fallback, Files, History, KeepTurns, Pins, Problem, Proxy,
    Settings, Source, Sourced, Worktree,
    file::SettingsFile,
    given::{Given, Raw},
    keys::KEYS,
    near::nearest,
    token::TOKEN_VARIABLE,
};
use crate::domain::{money::Money, role::RoleName};

/// How the names of our variables begin.
const PREFIX: &str = "NISSE_";
/// Variables beside those of the keys.
const CONFIG: &str = "NISSE_CONFIG";
const STATE_DIR: &str = "NISSE_STATE_DIR";
const TEST_CLOCK: &str = "NISSE_TEST_CLOCK";
const TEST_IDS: &str = "NISSE_TEST_IDS";
/// Variables that a task's commands see; harmless to a nisse among them.
const COMMAND_MARK: &str = "NISSE_COMMAND";
const OTHER_VARIABLES: [&str; 6] = [TOKEN_VARIABLE, CONFIG, STATE_DIR, TEST_CLOCK, TEST_IDS, COMMAND_MARK];

/// Whether nisse uses a variable of that name.
fn is_known(name: &str) -> bool {
    KEYS.iter().any(|key| key.env == name) || OTHER_VARIABLES.contains(&name)
}

/// Which layers are read, and how strictly.
#[derive(Clone, Copy)]
struct Reading {
    own: Own,
    /// A variable that looks like a mistyped setting is an error.
    mistyped_matter: bool,
}

/// The user's own file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Own {
    /// Is read, if it is there, and must be where it was named.
    There,
    /// Is left out.
    Out,
}

/// What the command line sets; the last layer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Flags {
    /// `--config`: replaces the user's own file.
    pub config: Option<PathBuf>,
    /// `--state-dir`.
    pub state_dir: Option<PathBuf>,
    /// `--model`, for the role of the command that is run.
    pub model: Option<(RoleName, String)>,
    /// `--check`; empty if none was given.
    pub checks: Vec<String>,
    /// `--trust-project`.
    pub trust_project: bool,
    /// `--max-turns`.
    pub max_turns: Option<u32>,
    /// `--max-tokens`.
    pub max_tokens: Option<u64>,
    /// `--max-time`.
    pub max_time: Option<Duration>,
    /// `--max-cost`.
    pub max_cost: Option<Money>,
}

impl Settings {
    /// Lays all layers over each other. `repository` is the root of the checkout, where there is one.
    ///
    /// # Errors
    /// Everything that is wrong in any layer, at once, unless a file cannot be read at all.
    pub fn load(environment: &Environment, flags: &Flags, repository: Option<&Path>) -> Result<Self, Error> {
        Self::layered(environment, flags, repository, Reading { own: Own::There, mistyped_matter: true })
    }

    /// The same for a command that calls no model: it ignores variables that look like mistyped settings.
    ///
    /// # Errors
    /// As for [`Self::load`].
    pub fn load_for_looking(environment: &Environment, flags: &Flags) -> Result<Self, Error> {
        Self::layered(environment, flags, None, Reading { own: Own::There, mistyped_matter: false })
    }

    /// The same without the user's own file, to write it.
    ///
    /// # Errors
    /// As for [`Self::load`].
    pub fn load_without_own_file(environment: &Environment, flags: &Flags) -> Result<Self, Error> {
        Self::layered(environment, flags, None, Reading { own: Own::Out, mistyped_matter: true })
    }

    /// What the repository's file says by itself, whatever the other layers say.
    ///
    /// # Errors
    /// As for [`Self::load`].
    pub fn load_project(environment: &Environment, flags: &Flags, root: &Path) -> Result<Self, Error> {
        let mut problems = Vec::new();
        let mut settings = Self::built_in();
        settings.locate(environment, flags, &mut problems)?;
        settings.apply_project(root, environment, &mut problems)?;
        if problems.is_empty() { Ok(settings) } else { Err(Error::Wrong(problems)) }
    }

    fn layered(
        environment: &Environment,
        flags: &Flags,
        repository: Option<&Path>,
        reading: Reading,
    ) -> Result<Self, Error> {
        let mut problems = Vec::new();
        let mut settings = Self::built_in();
        settings.locate(environment, flags, &mut problems)?;
        let named = flags.config.is_some() || environment.get(CONFIG).is_some();
        let own = match &settings.config_file {
            Some(path) if problems.is_empty() && reading.own == Own::There => SettingsFile::own(path, named)?,
            Some(_) | None => None,
        };
        if let Some(own) = own {
            own.apply(&mut settings, environment.home(), &mut problems);
        }
        if let Some(root) = repository {
            settings.apply_project(root, environment, &mut problems)?;
        }
        settings.apply_environment(environment, &mut problems, reading.mistyped_matter);
        settings.apply_flags(flags);
        if problems.is_empty() { Ok(settings) } else { Err(Error::Wrong(problems)) }
    }

    fn built_in() -> Self {
        let deny = [".env*", "*.pem", "*.key", "*.p12", "*.pfx", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*"];
        Self {
            proxy: Proxy {
                base_url: Sourced::built_in(None),
                token_command: Sourced::built_in(None),
                token_file: Sourced::built_in(None),
                first_byte: Sourced::built_in(Duration::from_mins(5)),
                idle: Sourced::built_in(Duration::from_mins(2)),
                ca_file: Sourced::built_in(None),
            },
            roles: BTreeMap::new(),
            delegate: Delegate {
                max_turns: Sourced::built_in(30),
                max_tokens: Sourced::built_in(1_500_000),
                max_time: Sourced::built_in(Duration::from_mins(15)),
                max_cost: Sourced::built_in(None),
                fallback: Sourced::built_in(Fallback::Refuse),
            },
            check_commands: Sourced::built_in(Vec::new()),
            commands: Commands {
                time_limit: Sourced::built_in(Duration::from_mins(10)),
                pass_env: Sourced::built_in(Vec::new()),
            },
            files: Files {
                deny: Sourced::built_in(deny.map(str::to_owned).to_vec()),
                project_deny: Sourced::built_in(Vec::new()),
            },
            worktree: Worktree {
                max_untracked: Sourced::built_in(50_000_000),
                dir: Sourced::built_in(None),
                copy: Sourced::built_in(Vec::new()),
                setup: Sourced::built_in(None),
            },
            branch: Branch {
                history: Sourced::built_in(History::Squash),
                keep_turns: Sourced::built_in(KeepTurns::default()),
            },
            max_output_tokens: Sourced::built_in(16_384),
            models: BTreeMap::new(),
            state_dir: Sourced::built_in(PathBuf::new()),
            pins: Pins::default(),
            unknown_variables: Vec::new(),
            config_file: None,
            project: None,
            trust_project: false,
        }
    }

    /// Finds the user's file and the state directory, which no file can name.
    fn locate(&mut self, environment: &Environment, flags: &Flags, problems: &mut Vec<Problem>) -> Result<(), Error> {
        let mut variable = |name: &'static str| {
            let value = environment.get(name)?;
            if value.is_empty() {
                problems.push(Problem::new(Source::Env(name.to_owned()), "is empty; unset it, or give it a value"));
                return None;
            }
            Some(PathBuf::from(value))
        };
        let (config, state_dir) = (variable(CONFIG), variable(STATE_DIR));
        self.config_file = flags.config.clone().or(config).or_else(|| environment.config_file());
        let (path, source) = match (&flags.state_dir, state_dir) {
            (Some(path), _) => (path.clone(), Source::Flag("--state-dir")),
            (None, Some(path)) => (path, Source::Env(STATE_DIR.to_owned())),
            (None, None) => (environment.state_dir().ok_or(Error::NoStateDirectory)?, Source::Default),
        };
        let path = std::path::absolute(&path).map_err(|source| Error::Unreadable { path, source })?;
        if path.to_str().is_none() {
            problems.push(Problem::new(source.clone(), "is a state directory whose path is not UTF-8"));
        }
        self.state_dir = Sourced { value: path, source };
        Ok(())
    }

    fn apply_project(
        &mut self,
        root: &Path,
        environment: &Environment,
        problems: &mut Vec<Problem>,
    ) -> Result<(), Error> {
        if let Some(file) = SettingsFile::project(root)? {
            file.apply(self, environment.home(), problems);
            let project = file.as_project();
            self.trust_project = project.is_trusted(&self.state_dir.value);
            self.project = Some(project);
        }
        Ok(())
    }

    fn apply_environment(&mut self, environment: &Environment, problems: &mut Vec<Problem>, mistyped_matter: bool) {
        for (name, value) in environment.variables() {
            let name = name.to_string_lossy();
            let Some(own) = name.strip_prefix(PREFIX) else { continue };
            if is_known(&name) {
                problems.extend(self.apply_variable(&name, value, environment.home()).err());
                continue;
            }
            // a service that is called nisse has such variables in a cluster too, so it must look like one of ours
            let known =
                KEYS.iter().map(|key| key.env).chain(OTHER_VARIABLES).filter_map(|one| one.strip_prefix(PREFIX));
            match nearest(own, known) {
                Some(near) if mistyped_matter => problems.push(Problem {
                    near: Some(format!("{PREFIX}{near}")),
                    ..Problem::new(Source::Env(name.clone().into_owned()), "is unknown")
                }),
                Some(_) => {}
                None => self.unknown_variables.push(name.into_owned()),
            }
        }
    }

    fn apply_variable(&mut self, name: &str, value: &OsStr, home: Option<&Path>) -> Result<(), Problem> {
        let source = Source::Env(name.to_owned());
        let wrong = |what: String| Problem::new(Source::Env(name.to_owned()), what);
        if let Some(key) = KEYS.iter().find(|key| key.env == name) {
            let text = value.to_str().ok_or_else(|| wrong("is not UTF-8 text".to_owned()))?;
            return (key.set)(self, &Given { raw: Raw::Text(text), source, base: Path::new(""), home }).map_err(wrong);
        }
        let number = |most: u64| {
            let number = value.to_str().and_then(|text| text.parse::<u64>().ok()).filter(|number| *number <= most);
            number
                .map(Some)
                .ok_or_else(|| wrong(format!("takes a whole number up to {most}, not {:?}", value.to_string_lossy())))
        };
        match name {
            TEST_CLOCK => self.pins.clock_ms = number(u64::MAX)?,
            // the last group of a UUID has 48 bits
            TEST_IDS => self.pins.first_id = number((1 << 48) - 1)?,
            // found before the files were read, read when it is needed, or no setting
            _ => {}
        }
        Ok(())
    }

    fn apply_flags(&mut self, flags: &Flags) {
        fn lay<T: Clone>(slot: &mut Sourced<T>, value: Option<T>, name: &'static str) {
            if let Some(value) = value {
                *slot = Sourced { value, source: Source::Flag(name) };
            }
        }
        lay(&mut self.delegate.max_turns, flags.max_turns, "--max-turns");
        lay(&mut self.delegate.max_tokens, flags.max_tokens, "--max-tokens");
        lay(&mut self.delegate.max_time, flags.max_time, "--max-time");
        lay(&mut self.delegate.max_cost, flags.max_cost.map(Some), "--max-cost");
        lay(&mut self.check_commands, (!flags.checks.is_empty()).then(|| flags.checks.clone()), "--check");
        if let Some((role, alias)) = &flags.model {
            self.roles.insert(*role, Sourced { value: alias.clone(), source: Source::Flag("--model") });
        }
        self.trust_project |= flags.trust_project;
    }
}
