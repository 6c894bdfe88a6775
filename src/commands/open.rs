//! Wiring: the only file that puts adapters to work. Everything is opened when it is first needed, and nothing before.

use std::{
    cell::Cell,
    path::{Path, PathBuf},
};

use secrecy::SecretString;
use uuid::Uuid;

use super::{
    Error,
    settings::{Declared, Environment, Flags, Settings, state_dir},
};
use crate::{
    adapters::litellm::{self, Catalog, Override, PinError, Proxy},
    domain::{
        id::TaskId,
        model::{PinnedModel, Prices},
        role::RoleName,
    },
    log::{Access, Log},
    ports::{clock::Clock, llm::Llm},
    repo::Checkout,
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
    next_id: Cell<Option<u64>>,
}

impl Opened {
    /// Reads the settings for the repository at `path`, which need not be one: commands that need a checkout say so.
    pub fn new(environment: Environment, flags: &Flags, path: &Path) -> Result<Self, Error> {
        let checkout = Checkout::open(path).ok();
        let settings = Settings::load(&environment, flags, checkout.as_ref().map(Checkout::root))?;
        Ok(Self {
            next_id: Cell::new(settings.pins.first_id),
            clock: settings.pins.clock(),
            settings,
            environment,
            path: path.to_owned(),
            checkout,
        })
    }

    /// The checkout, or why there is none.
    pub fn checkout(&self) -> Result<&Checkout, Error> {
        match &self.checkout {
            Some(checkout) => Ok(checkout),
            None => Err(match Checkout::open(&self.path) {
                Err(error) => error.into(),
                Ok(_) => Error::Moved { path: self.path.clone() },
            }),
        }
    }

    /// The state directory.
    #[must_use]
    pub fn state_dir(&self) -> &Path {
        &self.settings.state_dir.value
    }

    /// The clock that events are dated by.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The log, for writing; state directory and database are made if they are missing.
    pub fn log(&self) -> Result<Log, Error> {
        state_dir::prepare(self.state_dir())?;
        Log::open(self.state_dir(), Access::Write)?.ok_or_else(|| Error::NoLog { path: self.state_dir().to_owned() })
    }

    /// An id for a new task; counted up from the pinned one in tests.
    #[must_use]
    pub fn new_task_id(&self) -> TaskId {
        let Some(number) = self.next_id.get() else { return TaskId(Uuid::now_v7()) };
        self.next_id.set(Some(number + 1));
        // the version and variant of a UUID 7, the rest zero
        TaskId(Uuid::from_u128(0x7000_8000 << 64 | 0x8000 << 48 | u128::from(number)))
    }

    /// A path as the log keeps it.
    pub fn text_path(&self, path: &Path) -> Result<String, Error> {
        path.to_str().map(str::to_owned).ok_or_else(|| Error::PathNotText { path: path.to_owned() })
    }

    /// A client for the proxy; nothing is sent yet.
    pub fn proxy(&self) -> Result<Connected, Error> {
        let token = self.settings.token(&self.environment)?;
        let proxy = &self.settings.proxy;
        let client = Proxy::new(litellm::Settings {
            address: self.settings.base_url()?.to_owned(),
            token: token.clone(),
            first_byte: proxy.first_byte.value,
            idle: proxy.idle.value,
            extra_ca: proxy.ca_file.value.clone(),
        })?;
        Ok(Connected { client, token })
    }
}

/// The proxy, with the token that it is spoken to with.
pub struct Connected {
    client: Proxy,
    token: SecretString,
}

impl Connected {
    /// The model behind the proxy.
    #[must_use]
    pub fn llm(&self) -> &dyn Llm {
        &self.client
    }

    /// What must be masked.
    #[must_use]
    pub fn secrets(&self) -> Vec<SecretString> {
        vec![self.token.clone()]
    }

    /// The catalog, with what the settings declare over it.
    pub async fn catalog(&self, settings: &Settings) -> Result<Catalog, Error> {
        let mut catalog = self.client.catalog().await.map_err(Error::Proxy)?;
        for (alias, declared) in &settings.models {
            catalog.apply(alias, &declared_over(declared));
        }
        Ok(catalog)
    }
}

fn declared_over(declared: &Declared) -> Override {
    Override {
        provider: declared.provider.as_ref().map(|set| set.value.clone()),
        route: declared.route.as_ref().map(|set| set.value),
        max_input_tokens: declared.max_input_tokens.as_ref().map(|set| set.value),
        max_output_tokens: declared.max_output_tokens.as_ref().map(|set| set.value),
        tool_choice: declared.tool_choice.as_ref().map(|set| set.value),
        prices: Prices {
            input: declared.input_cost_per_token.as_ref().map(|set| set.value),
            output: declared.output_cost_per_token.as_ref().map(|set| set.value),
            cache_read: None,
            cache_write: None,
        },
    }
}

/// The models of `roles`, or everything that is wrong with any of them, before anything is touched.
pub fn pin(settings: &Settings, catalog: &Catalog, roles: &[RoleName]) -> Result<Vec<PinnedModel>, Error> {
    let mut pinned = Vec::new();
    let mut bad = Vec::new();
    for role in roles {
        let alias = &settings.role(*role)?.value;
        match catalog.pin(alias, settings.max_output_tokens.value) {
            Ok(model) => pinned.push(model),
            Err(error) => bad.push(BadRole { role: *role, error }),
        }
    }
    if bad.is_empty() { Ok(pinned) } else { Err(Error::Roles(bad)) }
}

/// A role whose model cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("role {role}: {error}")]
pub struct BadRole {
    /// Which.
    pub role: RoleName,
    /// Why not.
    pub error: PinError,
}
