//! The table of all keys: name, variable, whether a repository may set it, how it is read and shown.
//!
//! A key is here only if something uses it. `models."alias"` is in [`super::declared`].

use super::{
    Fallback, Settings,
    given::Given,
    history::History,
    keep_turns::KeepTurns,
    source::{Source, Sourced},
    units,
};
use crate::domain::role::RoleName;

/// A key of the settings.
pub(super) struct Key {
    /// Section and key, with dots.
    pub(super) name: &'static str,
    /// The variable that sets it; a list has one entry per line there.
    pub(super) env: &'static str,
    /// A repository's `nisse.toml` may set it.
    pub(super) project: bool,
    /// Reads a value into the settings.
    pub(super) set: fn(&mut Settings, &Given<'_>) -> Result<(), String>,
    /// The current value, none if it is not set, and its source.
    pub(super) show: fn(&Settings) -> (Option<String>, &Source),
}

static UNSET: Source = Source::Default;

fn put<T>(slot: &mut Sourced<T>, value: Result<T, String>, given: &Given<'_>) -> Result<(), String> {
    *slot = Sourced { value: value?, source: given.source.clone() };
    Ok(())
}

fn value_and_source<T>(slot: &Sourced<T>, show: impl Fn(&T) -> String) -> (Option<String>, &Source) {
    (Some(show(&slot.value)), &slot.source)
}

fn shown_if<T>(slot: &Sourced<Option<T>>, show: impl Fn(&T) -> String) -> (Option<String>, &Source) {
    (slot.value.as_ref().map(show), &slot.source)
}

fn list(items: &Vec<String>) -> String {
    format!("{items:?}")
}

macro_rules! role {
    ($role:expr, $name:literal, $env:literal) => {
        Key {
            name: $name,
            env: $env,
            project: true,
            set: |s, g| {
                let alias = Sourced { value: g.text()?, source: g.source.clone() };
                s.roles.insert($role, alias);
                Ok(())
            },
            show: |s| s.roles.get(&$role).map_or((None, &UNSET), |alias| value_and_source(alias, String::clone)),
        }
    };
}

/// All keys, in the order in which they are shown.
pub(super) const KEYS: &[Key] = &[
    Key {
        name: "proxy.base_url",
        env: "NISSE_LLM_BASE_URL",
        project: false,
        set: |s, g| put(&mut s.proxy.base_url, g.text().map(Some), g),
        // what stands before an @ may be a password, although no such address is taken
        show: |s| shown_if(&s.proxy.base_url, |url| url.rsplit('@').next().unwrap_or_default().to_owned()),
    },
    Key {
        name: "proxy.token_command",
        env: "NISSE_LLM_TOKEN_COMMAND",
        project: false,
        set: |s, g| put(&mut s.proxy.token_command, g.text().map(Some), g),
        show: |s| shown_if(&s.proxy.token_command, String::clone),
    },
    Key {
        name: "proxy.token_file",
        env: "NISSE_LLM_TOKEN_FILE",
        project: false,
        set: |s, g| put(&mut s.proxy.token_file, g.path().map(Some), g),
        show: |s| shown_if(&s.proxy.token_file, |path| path.display().to_string()),
    },
    Key {
        name: "proxy.first_byte",
        env: "NISSE_LLM_FIRST_BYTE",
        project: false,
        set: |s, g| put(&mut s.proxy.first_byte, g.duration(), g),
        show: |s| value_and_source(&s.proxy.first_byte, |time| units::show_duration(*time)),
    },
    Key {
        name: "proxy.idle",
        env: "NISSE_LLM_IDLE",
        project: false,
        set: |s, g| put(&mut s.proxy.idle, g.duration(), g),
        show: |s| value_and_source(&s.proxy.idle, |time| units::show_duration(*time)),
    },
    Key {
        name: "proxy.ca_file",
        env: "NISSE_LLM_CA_FILE",
        project: false,
        set: |s, g| put(&mut s.proxy.ca_file, g.path().map(Some), g),
        show: |s| shown_if(&s.proxy.ca_file, |path| path.display().to_string()),
    },
    role!(RoleName::Planner, "roles.planner", "NISSE_ROLE_PLANNER"),
    role!(RoleName::Executor, "roles.executor", "NISSE_ROLE_EXECUTOR"),
    role!(RoleName::Delegate, "roles.delegate", "NISSE_ROLE_DELEGATE"),
    role!(RoleName::Consultant, "roles.consultant", "NISSE_ROLE_CONSULTANT"),
    role!(RoleName::Classifier, "roles.classifier", "NISSE_ROLE_CLASSIFIER"),
    Key {
        name: "delegate.max_turns",
        env: "NISSE_DELEGATE_MAX_TURNS",
        project: true,
        set: |s, g| put(&mut s.delegate.max_turns, g.small_count(), g),
        show: |s| value_and_source(&s.delegate.max_turns, u32::to_string),
    },
    Key {
        name: "delegate.max_tokens",
        env: "NISSE_DELEGATE_MAX_TOKENS",
        project: true,
        set: |s, g| put(&mut s.delegate.max_tokens, g.count(), g),
        show: |s| value_and_source(&s.delegate.max_tokens, u64::to_string),
    },
    Key {
        name: "delegate.max_time",
        env: "NISSE_DELEGATE_MAX_TIME",
        project: true,
        set: |s, g| put(&mut s.delegate.max_time, g.duration(), g),
        show: |s| value_and_source(&s.delegate.max_time, |time| units::show_duration(*time)),
    },
    Key {
        name: "delegate.max_cost",
        env: "NISSE_DELEGATE_MAX_COST",
        project: true,
        set: |s, g| put(&mut s.delegate.max_cost, g.money().map(Some), g),
        show: |s| shown_if(&s.delegate.max_cost, ToString::to_string),
    },
    Key {
        name: "delegate.fallback",
        env: "NISSE_DELEGATE_FALLBACK",
        // what is asked may go to another vendor
        project: false,
        set: |s, g| put(&mut s.delegate.fallback, Fallback::read(g), g),
        show: |s| value_and_source(&s.delegate.fallback, ToString::to_string),
    },
    Key {
        name: "check.commands",
        env: "NISSE_CHECK_COMMANDS",
        project: true,
        set: |s, g| put(&mut s.check_commands, g.list(), g),
        show: |s| value_and_source(&s.check_commands, list),
    },
    Key {
        name: "commands.time_limit",
        env: "NISSE_COMMANDS_TIME_LIMIT",
        project: false,
        set: |s, g| put(&mut s.commands.time_limit, g.duration(), g),
        show: |s| value_and_source(&s.commands.time_limit, |time| units::show_duration(*time)),
    },
    Key {
        name: "commands.pass_env",
        env: "NISSE_COMMANDS_PASS_ENV",
        project: false,
        set: |s, g| put(&mut s.commands.pass_env, g.variable_names(), g),
        show: |s| value_and_source(&s.commands.pass_env, list),
    },
    Key {
        name: "files.deny",
        env: "NISSE_FILES_DENY",
        project: true,
        set: |s, g| {
            // a repository adds to what the user denies, and takes nothing away
            let slot = if g.source.is_project() { &mut s.files.project_deny } else { &mut s.files.deny };
            put(slot, g.globs(), g)
        },
        show: |s| value_and_source(&s.files.deny, list),
    },
    Key {
        name: "worktree.max_untracked",
        env: "NISSE_WORKTREE_MAX_UNTRACKED",
        project: true,
        set: |s, g| put(&mut s.worktree.max_untracked, g.size(), g),
        show: |s| value_and_source(&s.worktree.max_untracked, |bytes| units::show_size(*bytes)),
    },
    Key {
        name: "worktree.dir",
        env: "NISSE_WORKTREE_DIR",
        project: false,
        set: |s, g| put(&mut s.worktree.dir, g.path_from_checkout().map(Some), g),
        show: |s| shown_if(&s.worktree.dir, |path| path.display().to_string()),
    },
    Key {
        name: "worktree.copy",
        env: "NISSE_WORKTREE_COPY",
        project: true,
        set: |s, g| put(&mut s.worktree.copy, g.globs(), g),
        show: |s| value_and_source(&s.worktree.copy, list),
    },
    Key {
        name: "worktree.setup",
        env: "NISSE_WORKTREE_SETUP",
        project: true,
        set: |s, g| put(&mut s.worktree.setup, g.text().map(Some), g),
        show: |s| shown_if(&s.worktree.setup, String::clone),
    },
    Key {
        name: "branch.history",
        env: "NISSE_BRANCH_HISTORY",
        project: true,
        set: |s, g| put(&mut s.branch.history, History::read(g), g),
        show: |s| value_and_source(&s.branch.history, ToString::to_string),
    },
    Key {
        name: "branch.keep_turns",
        env: "NISSE_BRANCH_KEEP_TURNS",
        // a repository could discard what the user paid for
        project: false,
        set: |s, g| put(&mut s.branch.keep_turns, KeepTurns::read(g), g),
        show: |s| value_and_source(&s.branch.keep_turns, ToString::to_string),
    },
    Key {
        name: "max_output_tokens",
        env: "NISSE_MAX_OUTPUT_TOKENS",
        project: false,
        set: |s, g| put(&mut s.max_output_tokens, g.count(), g),
        show: |s| value_and_source(&s.max_output_tokens, u64::to_string),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_named_after_their_keys() {
        for key in KEYS {
            let expected = match key.name.split_once('.') {
                Some(("proxy", rest)) => format!("NISSE_LLM_{rest}"),
                Some(("roles", rest)) => format!("NISSE_ROLE_{rest}"),
                Some((section, rest)) => format!("NISSE_{section}_{rest}"),
                None => format!("NISSE_{}", key.name),
            };
            assert_eq!(key.env, expected.to_uppercase());
        }
    }

    #[test]
    fn every_role_has_its_key() {
        for role in RoleName::ALL {
            assert!(KEYS.iter().any(|key| key.name == format!("roles.{role}")), "{role}");
        }
    }
}
