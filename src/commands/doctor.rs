//! `nisse doctor`: every condition that a run needs, checked without changing anything and without asking a model.
//!
//! A check that depends on a failed one is left out: the report names causes, not consequences.

mod models;
mod remains;
mod storage;

pub use remains::KEPT;

use std::path::Path;

use schemars::JsonSchema;
use secrecy::ExposeSecret as _;
use serde::Serialize;

use super::{
    Error, advice,
    leftovers::Leftover,
    proxy, secrets,
    settings::{self, Environment, Flags, Settings, Shown, Source, token::TOKEN_VARIABLE},
};
use crate::{
    domain::upstream::{Reaction, Trouble},
    repo::{self, Checkout, ForeignLock},
};

/// The report.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Report {
    /// Version of this object's form.
    #[schemars(extend("const" = 1))]
    v: u32,
    /// `doctor`.
    #[schemars(extend("const" = "doctor"))]
    r#type: &'static str,
    /// The process's exit status: 2 if something in the configuration is bad, else 1 if something in the environment is.
    exit: u8,
    /// The checks, in the order in which they were made.
    pub checks: Vec<Check>,
    /// What settled tasks have left behind.
    pub leftovers: Vec<Leftover>,
    /// Every setting with its source; none if they cannot be read.
    pub settings: Vec<Setting>,
}

/// One condition.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Check {
    /// The subject.
    pub subject: &'static str,
    /// The verdict.
    pub verdict: Verdict,
    /// What was found, in one line.
    pub found: String,
    /// What to do about it, if anything.
    pub advice: Option<String>,
}

/// The verdict on a condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Good.
    Good,
    /// A run works, but the user should know this.
    Warning,
    /// No run works, because of something in the environment.
    BadEnvironment,
    /// No run works, because of something in the configuration.
    BadConfiguration,
}

/// A setting, for JSON.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Setting {
    /// Section and key.
    pub key: String,
    /// The value; none if it is not set.
    pub value: Option<String>,
    /// Where it came from.
    pub source: String,
}

impl Report {
    /// The exit status: 2 if something in the configuration is bad, else 1 if something in the environment is.
    #[must_use]
    pub fn exit(&self) -> u8 {
        self.exit
    }
}

impl From<Shown> for Setting {
    fn from(shown: Shown) -> Self {
        Self { key: shown.key, value: shown.value, source: shown.source.to_string() }
    }
}

impl Check {
    fn good(subject: &'static str, found: impl Into<String>) -> Self {
        Self { subject, verdict: Verdict::Good, found: found.into(), advice: None }
    }

    fn new(subject: &'static str, verdict: Verdict, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { subject, verdict, found: found.into(), advice: Some(advice.into()) }
    }
}

/// Checks everything. `directory` is where a run would start; `flags` are those that every command has. With `fix`,
/// removes leftovers of tasks that are provably dead; changes nothing else.
pub async fn doctor(environment: &Environment, flags: &Flags, directory: &Path, fix: bool) -> Report {
    let mut checks = Vec::new();
    let mut leftovers = Vec::new();
    let root = repository(environment, directory, &mut checks);
    let settings = match Settings::load(environment, flags, root.as_deref()) {
        Ok(settings) => {
            checks.insert(0, Check::good("settings", described(&settings, environment)));
            checks.extend(root.as_deref().and_then(|root| unread(root, directory)));
            checks.extend(settings.unknown_variables.iter().map(|name| {
                let found = format!("{name} is not a setting of nisse; it is ignored");
                Check::new("settings", Verdict::Warning, found, "if you meant a setting, see the names in `nisse help`")
            }));
            storage::check_state_directory(&settings.state_dir.value, &mut checks);
            leftovers = remains::check_remains(&settings, environment, flags, directory, fix, &mut checks).await;
            connect(&settings, environment, root.as_deref(), &mut checks).await;
            settings.entries().into_iter().map(Setting::from).collect()
        }
        Err(error) => {
            checks.splice(0..0, wrong_settings(error));
            Vec::new()
        }
    };
    let exit = exit(&checks);
    Report { v: 1, r#type: "doctor", exit, checks, leftovers, settings }
}

/// Configuration first, because the user can change it.
fn exit(checks: &[Check]) -> u8 {
    let any = |verdict| checks.iter().any(|check| check.verdict == verdict);
    if any(Verdict::BadConfiguration) { 2 } else { u8::from(any(Verdict::BadEnvironment)) }
}

/// A settings file that the user may expect to be read: in the current directory or above, but not at the root.
fn unread(root: &Path, directory: &Path) -> Option<Check> {
    let below = directory.canonicalize().ok()?;
    let between = below.ancestors().take_while(|path| *path != root && path.starts_with(root));
    let file = between.map(|path| path.join("nisse.toml")).find(|file| file.symlink_metadata().is_ok())?;
    let found = format!("{} is ignored; nisse reads only the one at the repository's root", file.display());
    let advice = format!("move its settings to {}", root.join("nisse.toml").display());
    Some(Check::new("settings", Verdict::Warning, found, advice))
}

/// Which files were read.
fn described(settings: &Settings, environment: &Environment) -> String {
    let own = match &settings.config_file {
        Some(path) if path.exists() => path.display().to_string(),
        Some(path) => format!("{} (not there)", path.display()),
        None => "no settings file of your own".to_owned(),
    };
    let shown = settings.entries();
    let project = shown.iter().find_map(|shown| match &shown.source {
        Source::Project { path, .. } => Some(path.display().to_string()),
        Source::Default | Source::File { .. } | Source::Env(_) | Source::Flag(_) => None,
    });
    // the token is a setting, too, but is not shown
    let variables = shown.iter().filter(|shown| matches!(shown.source, Source::Env(_))).count()
        + usize::from(environment.get(TOKEN_VARIABLE).is_some());
    let mut parts = vec![own];
    parts.extend(project);
    if variables > 0 {
        parts.push(format!("{variables} from NISSE_* variables"));
    }
    parts.join(", ")
}

/// Each mistake is a check of its own.
fn wrong_settings(error: settings::Error) -> Vec<Check> {
    let errors = match error {
        settings::Error::Wrong(problems) => problems.into_iter().map(|one| settings::Error::Wrong(vec![one])).collect(),
        other => vec![other],
    };
    errors.into_iter().map(|error| bad("settings", Verdict::BadConfiguration, &error.into())).collect()
}

/// Git and the repository; its root.
fn repository(environment: &Environment, directory: &Path, checks: &mut Vec<Check>) -> Option<std::path::PathBuf> {
    let visible = repo::Environment::new(environment.variables().clone());
    match repo::git_version(&visible) {
        Ok(version) => checks.push(Check::good("git", version)),
        Err(error) => {
            checks.push(bad("git", Verdict::BadEnvironment, &error.into()));
            return None;
        }
    }
    let unusable = |error: repo::Error| bad("repository", Verdict::BadEnvironment, &error.into());
    match Checkout::open(directory, &visible) {
        Ok(checkout) => {
            checks.push(match checkout.ready().and_then(|()| checkout.refuse_special_files()) {
                Ok(()) => Check::good("repository", checkout.root().display().to_string()),
                Err(error) => unusable(error),
            });
            // an index lock, which blocks every run, is reported above
            let others = checkout.foreign_locks().into_iter().filter(|lock| !lock.path.ends_with("index.lock"));
            checks.extend(others.map(|ForeignLock { path, age_s }| {
                let found = format!("{} is there, {age_s} s old: another git is running, or died", path.display());
                Check::new("repository", Verdict::Warning, found, "if no git is running, remove the file")
            }));
            Some(checkout.root().to_owned())
        }
        Err(error) => {
            checks.push(unusable(error));
            None
        }
    }
}

/// The proxy and its models.
async fn connect(settings: &Settings, environment: &Environment, root: Option<&Path>, checks: &mut Vec<Check>) {
    if settings.waits_for_trust() {
        let keys: Vec<_> = settings.effects().iter().map(|effect| effect.key).collect();
        let found =
            format!("the repository's nisse.toml is not trusted, so no task can begin; it sets {}", keys.join(", "));
        let advice = "read it, then run `nisse trust`, or pass --trust-project";
        checks.push(Check::new("checks", Verdict::Warning, found, advice));
    }
    let client = match proxy::connect(settings, environment) {
        Ok(client) => client,
        Err(error) => {
            checks.push(bad("proxy", Verdict::BadConfiguration, &error));
            return models::check_roles_without_catalog(settings, checks);
        }
    };
    if !secrets::can_be_masked(client.token().expose_secret()) {
        let found = "the token is too short to be masked in the log and in what a model reads";
        checks.push(Check::new(
            "proxy",
            Verdict::Warning,
            found,
            "ask whoever runs the proxy for a token of 6 characters or more",
        ));
    }
    match proxy::catalog(&client, settings, proxy::LOOK).await {
        Ok(catalog) => {
            let address = settings.base_url().unwrap_or_default();
            checks.push(Check::good("proxy", format!("{address}, which accepts the token")));
            for note in &catalog.notes {
                checks.push(Check::new("proxy", Verdict::Warning, note, "read the proxy's log"));
            }
            models::check_roles(&catalog, settings, root, checks);
        }
        Err(error) => {
            let verdict = match &error {
                Error::Catalog { source, .. } => blame(source.trouble),
                Error::Settings(_)
                | Error::Brief(_)
                | Error::Proxy(_)
                | Error::Repo(_)
                | Error::Applying { .. }
                | Error::Roles(_)
                | Error::Unpriced { .. }
                | Error::Window(_)
                | Error::Unmade { .. }
                | Error::BranchTaken { .. }
                | Error::BranchName { .. }
                | Error::HoldsSecret { .. }
                | Error::WorktreeInside { .. }
                | Error::BaseInPlace
                | Error::Log(_)
                | Error::NoLog { .. }
                | Error::Forgotten { .. }
                | Error::Cut { .. }
                | Error::Moved { .. }
                | Error::PathNotText { .. }
                | Error::Write { .. }
                | Error::Unwritten { .. }
                | Error::NoProject { .. }
                | Error::Several(_)
                | Error::Over { .. }
                | Error::NoDiff { .. }
                | Error::OtherCheckout { .. }
                | Error::RepositoryGone { .. }
                | Error::NotHandedBack { .. }
                | Error::NothingToPutBack { .. }
                | Error::NoQuestion { .. }
                | Error::ChangedSinceAsked { .. }
                | Error::Signals { .. }
                | Error::NoThread { .. }
                | Error::Listen { .. }
                | Error::Bug(_) => Verdict::BadConfiguration,
            };
            checks.push(bad("proxy", verdict, &error));
            models::check_roles_without_catalog(settings, checks);
        }
    }
}

/// Whether the proxy cannot answer because of the configuration.
fn blame(trouble: Trouble) -> Verdict {
    match trouble.reaction() {
        Reaction::Configuration => Verdict::BadConfiguration,
        Reaction::Retry
        | Reaction::Interrupt
        | Reaction::Evict
        | Reaction::Fail
        | Reaction::DropToolChoice
        | Reaction::Stop => Verdict::BadEnvironment,
    }
}

fn bad(subject: &'static str, verdict: Verdict, error: &Error) -> Check {
    Check { subject, verdict, found: with_causes(error), advice: advice(error) }
}

/// An error and its causes, in one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let told = next.to_string();
        if !line.contains(&told) {
            line = format!("{line}: {told}");
        }
        cause = next.source();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_outranks_the_environment() {
        let check = |verdict| Check::new("x", verdict, "", "");
        let (good, warning) = (check(Verdict::Good), check(Verdict::Warning));
        let (environment, configuration) = (check(Verdict::BadEnvironment), check(Verdict::BadConfiguration));
        assert_eq!(exit(&[good.clone(), warning]), 0);
        assert_eq!(exit(&[good, environment.clone()]), 1);
        assert_eq!(exit(&[environment, configuration]), 2);
    }
}
