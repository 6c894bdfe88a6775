//! A command's surroundings. Everything is opened when it is first needed, and nothing before.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use uuid::Uuid;

use super::{
    Error,
    settings::{self, Environment, Flags, Settings, state_dir},
};
use crate::{
    domain::{id::TaskId, started::TaskStarted},
    log::{Access, Log},
    ports::clock::Clock,
    repo::{self, Checkout, EndableGit, NeverStaged},
};

/// A command's surroundings: its settings, its environment, and the checkout if there is one.
pub struct Opened {
    /// The settings, all layers.
    pub settings: Settings,
    /// The process's environment.
    pub environment: Environment,
    path: PathBuf,
    checkout: Option<Checkout>,
    clock: Clock,
    git: EndableGit,
    log: Mutex<Option<Log>>,
    next_id: Mutex<Option<u64>>,
}

impl Opened {
    /// Reads the settings for the repository at `path`, which need not be one: commands that need a checkout say so.
    pub fn new(environment: Environment, flags: &Flags, path: &Path) -> Result<Self, Error> {
        let checkout = found(path, &environment)?;
        let settings = Settings::load(&environment, flags, checkout.as_ref().map(Checkout::root))?;
        Ok(Self::with(environment, settings, path, checkout))
    }

    /// The same for resuming existing tasks. The repository's file is not read, because its settings are in their first
    /// event, and a task in place may have changed it.
    pub fn to_go_on(environment: Environment, flags: &Flags, path: &Path) -> Result<Self, Error> {
        let checkout = found(path, &environment)?;
        let settings = Settings::load(&environment, flags, None)?;
        Ok(Self::with(environment, settings, path, checkout))
    }

    /// The same where no model is asked.
    pub fn for_begun_tasks(environment: Environment, flags: &Flags, path: &Path) -> Result<Self, Error> {
        let checkout = found(path, &environment)?;
        let settings = Settings::load_for_looking(&environment, flags)?;
        Ok(Self::with(environment, settings, path, checkout))
    }

    fn with(environment: Environment, settings: Settings, path: &Path, checkout: Option<Checkout>) -> Self {
        let git = EndableGit::default();
        Self {
            next_id: Mutex::new(settings.pins.first_id),
            log: Mutex::new(None),
            clock: settings.pins.clock(),
            settings,
            environment,
            path: path.to_owned(),
            checkout: checkout.map(|checkout| checkout.endable_by(&git)),
            git,
        }
    }

    /// The git of this command that may be ended, when it runs.
    #[must_use]
    pub fn git(&self) -> &EndableGit {
        &self.git
    }

    /// The checkout, or why there is none.
    pub fn checkout(&self) -> Result<&Checkout, Error> {
        match &self.checkout {
            Some(checkout) => Ok(checkout),
            None => Err(match self.checkout_at(&self.path) {
                Err(error) => error,
                Ok(_) => Error::Moved { path: self.path.clone() },
            }),
        }
    }

    /// The current directory in the checkout, if it is not the root; without line breaks.
    #[must_use]
    pub fn directory(&self) -> Option<String> {
        let at = std::fs::canonicalize(&self.path).ok()?;
        let below = at.strip_prefix(self.checkout.as_ref()?.root()).ok()?;
        let text = below.to_string_lossy().replace(|c: char| c.is_control() || c == '`', "?");
        (!text.is_empty()).then_some(text)
    }

    /// The checkout that a task was begun in.
    pub fn checkout_at(&self, path: &Path) -> Result<Checkout, Error> {
        Ok(Checkout::open(path, &for_git(&self.environment))?.endable_by(&self.git))
    }

    /// Whether a task began in the checkout that a command stands in.
    pub fn is_here(&self, started: &TaskStarted) -> Result<bool, Error> {
        self.checkout.as_ref().map_or(Ok(false), |here| began_in(here, started))
    }

    /// The checkout that a task was begun in, wherever it is now.
    pub fn checkout_of(&self, started: &TaskStarted) -> Result<Checkout, Error> {
        match &self.checkout {
            Some(here) if self.is_here(started)? => Ok(here.clone()),
            Some(_) | None => self.checkout_at(Path::new(&started.workplace.checkout)),
        }
    }

    /// The checkout as a task sees it: with the content filters from its beginning, and without files that no branch may have.
    pub fn for_task(&self, checkout: &Checkout, started: &TaskStarted) -> Result<Checkout, Error> {
        let rules = NeverStaged::new(&started.files.deny, self.state_dir(), started.workplace.base.commit.as_ref())?;
        Ok(checkout.clone().with_filters(&started.workplace.filters).never_staging(rules))
    }

    /// The same, where its repository may be gone: none then.
    pub fn checkout_of_any(&self, started: &TaskStarted) -> Result<Option<Checkout>, Error> {
        match self.checkout_of(started) {
            Err(Error::Repo(repo::Error::NotARepository { .. } | repo::Error::NoDirectory { .. })) => Ok(None),
            found => found.map(Some),
        }
    }

    /// The state directory.
    #[must_use]
    pub fn state_dir(&self) -> &Path {
        &self.settings.state_dir.value
    }

    /// The clock for the events' times.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// A handle on the log, for writing; state directory and database are made if they are missing.
    pub fn log(&self) -> Result<Log, Error> {
        let mut shared = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(log) = &*shared {
            return Ok(log.clone());
        }
        state_dir::prepare(self.state_dir()).map_err(settings::Error::from)?;
        let log = Log::open(self.state_dir(), Access::Write)?
            .ok_or_else(|| Error::NoLog { path: self.state_dir().to_owned() })?;
        Ok(shared.insert(log).clone())
    }

    /// Where it was asked for, a checkout or not.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An id for a new task; counted up from the pinned one in tests.
    #[must_use]
    pub fn new_task_id(&self) -> TaskId {
        let mut next = self.next_id.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(number) = *next else { return TaskId(Uuid::now_v7()) };
        *next = Some(number + 1);
        // the version and variant of a UUID 7, the rest zero
        TaskId(Uuid::from_u128(0x7000 << 64 | 0x8000 << 48 | u128::from(number)))
    }

    /// A path as the log keeps it.
    pub fn text_path(&self, path: &Path) -> Result<String, Error> {
        path.to_str().map(str::to_owned).ok_or_else(|| Error::PathNotText { path: path.to_owned() })
    }
}

/// The checkout at `path`; none where there is none, or one that tasks cannot work with. A git that died says nothing of
/// that.
fn found(path: &Path, environment: &Environment) -> Result<Option<Checkout>, Error> {
    match Checkout::open(path, &for_git(environment)) {
        Err(error @ (repo::Error::Git { .. } | repo::Error::TimedOut { .. } | repo::Error::Unreadable { .. })) => {
            Err(error.into())
        }
        found => Ok(found.ok()),
    }
}

/// Whether a task began in this checkout, which may have been moved since. Where an older nisse began it the repository
/// bears no mark, but holds its branch.
pub fn began_in(checkout: &Checkout, started: &TaskStarted) -> Result<bool, Error> {
    let place = Path::new(&started.workplace.checkout);
    let gone = || checkout.copy_of() != Some(place) && !place.join(".git").exists();
    Ok(checkout.is_or_was_at(place) || gone() && checkout.branch_exists(&started.workplace.branch)?)
}

/// What git needs of the environment.
#[must_use]
pub fn for_git(environment: &Environment) -> repo::Environment {
    repo::Environment::new(environment.variables().iter().map(|(name, value)| (name.clone(), value.clone())))
}
