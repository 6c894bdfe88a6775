//! What commands see of the environment: an allow-list, and settings that keep programs from asking or paging.
//!
//! Nothing that is named like a secret ([`secret_names`]) reaches a command unless a person names its variable; nor does `SSH_AUTH_SOCK`, with which a command
//! could log in elsewhere, nor `MAKEFLAGS`, whose job server is not open in the child.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
};

use crate::domain::secret_names;

/// Passed on as they are.
const ALLOWED: &[&str] = &[
    // the person's surroundings
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    // where toolchains live
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "BUN_INSTALL",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "CONDA_DEFAULT_ENV",
    "CONDA_PREFIX",
    "DENO_DIR",
    "DOTNET_ROOT",
    "FNM_DIR",
    "GEM_HOME",
    "GEM_PATH",
    "GOCACHE",
    "GOMODCACHE",
    "GOPATH",
    "GOROOT",
    "GOTOOLCHAIN",
    "GRADLE_USER_HOME",
    "JAVA_HOME",
    "M2_HOME",
    "MAVEN_HOME",
    "MISE_DATA_DIR",
    "NIX_PATH",
    "NIX_PROFILES",
    "NIX_SSL_CERT_FILE",
    "NODE_PATH",
    "NUGET_PACKAGES",
    "NVM_BIN",
    "NVM_DIR",
    "OPAM_SWITCH_PREFIX",
    "PNPM_HOME",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "PYTHONPATH",
    "RBENV_ROOT",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SDKMAN_DIR",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "UV_CACHE_DIR",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
    // how to build
    "AR",
    "CC",
    "CFLAGS",
    "CPATH",
    "CPPFLAGS",
    "CXX",
    "CXXFLAGS",
    "LDFLAGS",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "PKG_CONFIG_PATH",
    "RUSTFLAGS",
    "SOURCE_DATE_EPOCH",
];

/// Nobody answers questions and nobody pages; git hooks of managers stay off.
const SET: &[(&str, &str)] = &[
    ("CI", "1"),
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
    ("GH_PAGER", "cat"),
    ("AWS_PAGER", "cat"),
    ("EDITOR", "true"),
    ("VISUAL", "true"),
    ("GIT_EDITOR", "true"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    ("GIT_MERGE_AUTOEDIT", "no"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GH_PROMPT_DISABLED", "1"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("PIP_NO_INPUT", "1"),
    ("HUSKY", "0"),
    ("LEFTHOOK", "0"),
];

/// A command's whole environment, of nisse's own and the names that a person passes on besides.
pub(super) fn of_command(own: &BTreeMap<OsString, OsString>, pass: &[String]) -> BTreeMap<OsString, OsString> {
    let mut seen: BTreeMap<OsString, OsString> =
        own.iter().filter(|(name, _)| is_allowed(name)).map(|(name, value)| (name.clone(), value.clone())).collect();
    seen.extend(SET.iter().map(|&(name, value)| (name.into(), value.into())));
    // last, since a person named them
    for name in pass.iter().map(OsStr::new) {
        if let Some(value) = own.get(name) {
            seen.insert(name.to_owned(), value.clone());
        }
    }
    seen
}

fn is_allowed(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    !secret_names::is_secret(name) && (ALLOWED.contains(&name) || name.starts_with("LC_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_stay_out_unless_a_person_passes_them() {
        let own: BTreeMap<OsString, OsString> = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("LC_TOKEN", "canary"),
            ("LC_PASSPHRASE", "canary"),
            ("LC_PWD", "canary"),
            ("LITELLM_API_KEY", "canary"),
            ("AWS_SECRET_ACCESS_KEY", "canary"),
            ("SSH_AUTH_SOCK", "canary"),
            ("BASH_ENV", "canary"),
            ("GIT_PAGER", "less"),
            ("MY_APP_MODE", "keep-me"),
            ("MY_TOKEN", "given"),
        ]
        .map(|(name, value)| (name.into(), value.into()))
        .into();
        let seen = of_command(&own, &["MY_APP_MODE".to_owned(), "MY_TOKEN".to_owned(), "UNSET".to_owned()]);
        let value = |name: &str| seen.get(OsStr::new(name)).and_then(|value| value.to_str());
        assert!(!seen.values().any(|value| value == "canary"), "{seen:?}");
        assert_eq!(value("PATH"), Some("/bin"));
        assert_eq!(value("LC_ALL"), Some("C"));
        assert_eq!(value("GIT_PAGER"), Some("cat"));
        assert_eq!(value("MY_APP_MODE"), Some("keep-me"));
        assert_eq!(value("MY_TOKEN"), Some("given"));
        assert_eq!(value("UNSET"), None);
    }
}
