//! What to do about an error: one imperative sentence without a full stop, for `doctor` and for error messages.

use rusqlite::ErrorCode;
use rustix::io::Errno;

use super::{
    Error,
    bad_role::BadRole,
    brief,
    settings::{self, state_dir, token},
};
use crate::{
    adapters::litellm::{self, Instead, PinError},
    agent::{self, first_request::TooSmall},
    domain::{id::TaskId, upstream::Trouble},
    log, repo,
};

/// What to do about an error; none if the error says it itself, or nothing can be done.
#[must_use]
pub fn advice(error: &Error) -> Option<String> {
    match error {
        Error::Settings(error) => Some(on_settings(error)),
        Error::Brief(error) => Some(on_brief(error).to_owned()),
        Error::Proxy(error) => Some(on_proxy(error).to_owned()),
        Error::Catalog { source, .. } => Some(on_trouble(source.trouble).to_owned()),
        Error::Repo(error) => on_repo(error).map(str::to_owned),
        Error::Applying { task, source } => on_applying(*task, source),
        Error::Roles(roles) => {
            let mut all: Vec<String> = roles.iter().map(on_role).collect();
            all.dedup();
            Some(all.join("; "))
        }
        Error::Unpriced { alias } => Some(format!(
            "declare input_cost_per_token and output_cost_per_token under [models.{alias:?}], or set no cost cap"
        )),
        Error::Window(found) => Some(on_window(found)),
        Error::BranchTaken { .. } => Some("choose another name, or leave out --branch".to_owned()),
        Error::BranchName { .. } => Some("see `git help check-ref-format`, or leave out --branch".to_owned()),
        Error::HoldsSecret { .. } => Some(
            "in a command, use the environment variable that holds it (in single quotes: '$NAME'), and list that variable in \
             commands.pass_env"
                .to_owned(),
        ),
        Error::WorktreeInside { .. } => Some("choose a directory outside of it, such as \"..\"".to_owned()),
        Error::BaseInPlace => Some("leave out one of the two".to_owned()),
        Error::Log(error) => Some(on_log(error).to_owned()),
        Error::Forgotten { worktree, .. } => Some(format!(
            "restore nisse.db and nisse.db-wal; the work itself is in {}",
            worktree.display()
        )),
        Error::NoLog { .. } | Error::Write { .. } => {
            Some("make it writable, or choose another with --state-dir".to_owned())
        }
        Error::Cut { task, source, .. } => Some(on_cut(*task, source)),
        Error::Unmade { source, .. } => Some(on_unmade(source)),
        Error::NoProject { .. } => {
            Some("name the repository with -C, or write the file with `nisse init`; nisse reads only the one at the root".to_owned())
        }
        Error::Unwritten { source, .. } if source.kind() == std::io::ErrorKind::IsADirectory => {
            Some("name a file with --config, not a directory".to_owned())
        }
        Error::Unwritten { .. } => Some("make its directory writable, or choose another file with --config".to_owned()),
        Error::Moved { .. } => Some("try again".to_owned()),
        Error::PathNotText { .. } => Some("rename it to UTF-8".to_owned()),
        Error::Several(_) => Some("say which one: nisse resume <TASK>".to_owned()),
        Error::Over { task, .. } => Some(format!("see its result: nisse log {task:#}")),
        Error::NoDiff { task } => Some(format!("see what happened: nisse log {task:#}")),
        Error::OtherCheckout { task, checkout, command, .. } => {
            Some(format!("if you mean that task: nisse -C {} {command} {task:#}", quoted(checkout)))
        }
        Error::RepositoryGone { task, .. } => Some(on_gone(*task)),
        Error::NotHandedBack { task, outcome } => Some(match *outcome {
            "failed" | "capped" | "dropped" => {
                format!("see what it changed: nisse log {task:#} --diff")
            }
            _ => format!("finish it first: nisse resume {task:#}"),
        }),
        Error::NothingToPutBack { task, left, .. } if !left.is_empty() => {
            let paths = left.iter().map(|path| quoted(path)).collect::<Vec<_>>().join(" ");
            Some(format!("compare them with the files before `nisse apply`: git diff {} -- {paths}", repo::before_apply_ref(*task)))
        }
        Error::NothingToPutBack { .. } => {
            Some("to undo commits, use git revert or git reset".to_owned())
        }
        Error::ChangedSinceAsked { task, .. } => {
            Some(format!("look at them, then answer again: nisse resume {task:#}"))
        }
        Error::NoQuestion { task } => Some(format!("resume it without an answer: nisse resume {task:#}")),
        Error::Signals { .. } | Error::NoThread { .. } | Error::Listen { .. } => None,
        Error::Bug(_) => Some("please report this".to_owned()),
    }
}

/// A word, quoted for a shell if necessary.
#[must_use]
pub fn quoted(path: &str) -> String {
    let plain = |one: char| one.is_ascii_alphanumeric() || "/._-+@%:,".contains(one);
    if path.chars().all(plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

/// How to make room for the first request.
fn on_window(found: &TooSmall) -> String {
    let TooSmall { alias, ceiling, .. } = found;
    let larger = format!(
        "choose a model with a larger window, or declare max_input_tokens under [models.{alias:?}] if its real window is larger"
    );
    match ceiling {
        Some(ceiling) => {
            format!("lower the output limit, NISSE_MAX_OUTPUT_TOKENS={ceiling} (max_output_tokens); or {larger}")
        }
        None => larger,
    }
}

/// The task ended before it began.
fn on_unmade(error: &agent::Error) -> String {
    let mend = match error {
        agent::Error::Unmade { source, .. } => on_repo(source),
        agent::Error::Log(_)
        | agent::Error::Repo(_)
        | agent::Error::Globs(_)
        | agent::Error::Host(_)
        | agent::Error::Upstream { .. }
        | agent::Error::Setup { .. }
        | agent::Error::Bug(_) => None,
    };
    let mend = mend.unwrap_or("make that path usable, or choose another with worktree.dir or --state-dir");
    format!("{mend}; then delegate the task again")
}

/// The commits are gone with the repository; the files and the log are still there.
fn on_gone(task: TaskId) -> String {
    format!(
        "the files are untouched, and `nisse log {task:#}` shows what was done; restore the repository from a copy, then run \
         nisse resume {task:#}; or end the task: nisse drop {task:#}"
    )
}

/// The task is as it was: what to fix, how to resume it, and how to end it if the problem cannot be fixed.
fn on_cut(task: TaskId, error: &agent::Error) -> String {
    if let agent::Error::Repo(repo::Error::Gone { .. }) = error {
        return on_gone(task);
    }
    let mend = match error {
        agent::Error::Log(error) => Some(on_log(error)),
        agent::Error::Repo(error) => on_repo(error),
        agent::Error::Globs(_) => Some("correct files.deny"),
        agent::Error::Host(_) => None,
        agent::Error::Upstream { trouble, .. } => Some(on_trouble(*trouble)),
        agent::Error::Setup { .. } => Some("fix the command, or what it needs"),
        agent::Error::Unmade { source, .. } => on_repo(source),
        agent::Error::Bug(_) => Some("please report this"),
    };
    // these may be impossible to fix
    let or = match error {
        agent::Error::Repo(_) | agent::Error::Host(_) | agent::Error::Setup { .. } => {
            format!(", or give up the task: nisse drop {task:#}")
        }
        agent::Error::Log(_)
        | agent::Error::Globs(_)
        | agent::Error::Upstream { .. }
        | agent::Error::Unmade { .. }
        | agent::Error::Bug(_) => String::new(),
    };
    let mend = mend.map_or_else(String::new, |mend| format!("{mend}; "));
    format!("{mend}nothing is lost: nisse resume {task:#}{or}")
}

fn on_log(error: &log::Error) -> &'static str {
    match error {
        log::Error::Io { source, .. } => on_io(source),
        log::Error::Database { source, .. } => on_database(source),
        log::Error::Emptied { .. } => {
            "restore nisse.db from a backup, or move the state directory away to start over; your branches are untouched"
        }
        log::Error::OldLibrary { .. } => "build nisse with its own SQLite",
        log::Error::Newer { .. } | log::Error::NewerEvent { .. } => {
            "install a newer nisse, or choose another state directory"
        }
        log::Error::Corrupt { .. } => "look at the task's events with sqlite3; other tasks are not affected",
        log::Error::Held { .. } => "wait until it is done, or stop it",
        log::Error::CheckoutHeld { .. } => "wait until it is done, or stop it; then run this again",
        log::Error::NoSuchTask { .. } | log::Error::Ambiguous { .. } => "see the ids with `nisse log`",
        log::Error::Illegal(_) => "please report this",
    }
}

/// By what the system says: advice to free disk space must not send anyone to a disk that has room.
fn on_io(error: &std::io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE) => TOO_MANY_FILES,
        Some(Errno::NOSPC | Errno::DQUOT) => "free space on the disk of the state directory",
        Some(Errno::ROFS | Errno::ACCESS | Errno::PERM) => {
            "make the state directory writable, or choose another with --state-dir"
        }
        Some(_) | None => "check that the disk has space and the state directory is writable",
    }
}

/// The same for what `SQLite` says.
fn on_database(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "wait for the process that holds the log (`fuser -v` on the file names it)"
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            "restore the damaged file from a backup, save what is in it with `sqlite3 nisse.db .recover`, or move it \
             away to start a new log"
        }
        Some(ErrorCode::DiskFull) => "free space on the disk of the state directory",
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            "make the state directory writable, or choose another with --state-dir"
        }
        Some(_) | None => "check that the disk has space and the state directory is writable",
    }
}

const TOO_MANY_FILES: &str = "end programs that hold files open, or raise the limit of open files (ulimit -n)";

/// A git that does not start; only ENOENT means that it is missing.
fn on_git(error: &std::io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT) => "install git 2.34 or newer",
        Some(Errno::MFILE | Errno::NFILE) => TOO_MANY_FILES,
        Some(Errno::AGAIN | Errno::NOMEM) => "end other processes, or raise this machine's limits (ulimit -a)",
        Some(_) | None => "check that you can run the git in your PATH",
    }
}

fn on_settings(error: &settings::Error) -> String {
    let words = match error {
        settings::Error::Wrong(problems) => match problems.iter().find_map(|problem| problem.near.as_ref()) {
            Some(near) if problems.len() == 1 => return format!("write {near}"),
            Some(_) | None => "correct it; `nisse help` and examples/config.toml name every setting",
        },
        settings::Error::Unreadable { .. } => "make it readable, or choose another file",
        settings::Error::NotAFile(_) => "replace it with a regular file, or remove it",
        settings::Error::TooLarge(_) => "check that it is the file that you meant",
        settings::Error::NoStateDirectory => "set --state-dir or NISSE_STATE_DIR",
        settings::Error::StateDir(error) => match error {
            state_dir::Error::Io { .. } | state_dir::Error::NotADirectory(_) => "choose another with --state-dir",
            state_dir::Error::Open(path) => {
                return format!("chmod 700 {}, or choose another with --state-dir", path.display());
            }
        },
        settings::Error::NoAddress => "set proxy.base_url in your settings, or NISSE_LLM_BASE_URL",
        settings::Error::NoRole(role) => return on_role(&BadRole::Unset(*role)),
        settings::Error::Untrusted { .. } => {
            "read them, then run `nisse trust`, or pass --trust-project this once; or set them yourself (--check, or the setting's variable)"
        }
        settings::Error::Token(error) => return on_token(error),
    };
    words.to_owned()
}

fn on_token(error: &token::Error) -> String {
    match error {
        token::Error::Unset => {
            "set NISSE_LLM_TOKEN, or proxy.token_command or proxy.token_file in your settings".to_owned()
        }
        token::Error::Unusable { origin, .. } => format!("check {origin}"),
        token::Error::Start { .. } | token::Error::Command { .. } => {
            "run the command yourself, then correct proxy.token_command".to_owned()
        }
        token::Error::File { .. } => "correct proxy.token_file, or make the file readable".to_owned(),
        token::Error::Open(path) => format!("chmod 600 {}", path.display()),
    }
}

fn on_brief(error: &brief::Error) -> &'static str {
    match error {
        brief::Error::Unreadable { .. } => "name a readable file, or pass the brief itself",
        brief::Error::Empty(_) | brief::Error::Missing => {
            "say what to do: nisse delegate 'BRIEF', or name a file with --file"
        }
        brief::Error::TooLong(_) => "shorten it, and name the files to read instead of quoting them",
        brief::Error::NotText(_) => "write it as plain UTF-8 text",
    }
}

fn on_proxy(error: &litellm::Error) -> &'static str {
    match error {
        litellm::Error::Address { .. } => "correct proxy.base_url or NISSE_LLM_BASE_URL, such as http://127.0.0.1:4000",
        litellm::Error::Token => "check NISSE_LLM_TOKEN, or what proxy.token_command prints",
        litellm::Error::CaFile { .. } | litellm::Error::CaContent { .. } => "correct proxy.ca_file",
        litellm::Error::Client { .. } => "check that the system's certificate store is readable",
    }
}

/// What to do about upstream trouble outside a task.
fn on_trouble(trouble: Trouble) -> &'static str {
    match trouble {
        Trouble::KeyRefused => "ask whoever runs the proxy for a key, and set it as the token",
        Trouble::VendorKeyRefused => "ask whoever runs the proxy to renew its key for that vendor",
        Trouble::ServerSetUp => "start the model's server with its tool-call support (llama.cpp: --jinja)",
        Trouble::BadAddress => "correct proxy.base_url or NISSE_LLM_BASE_URL",
        Trouble::BadCertificate => "set proxy.ca_file to the certificate of the authority that signed it",
        Trouble::Unreachable => "start the proxy, or correct proxy.base_url or NISSE_LLM_BASE_URL",
        Trouble::BudgetGone => "raise the key's budget, or wait until it resets",
        Trouble::ModelDenied | Trouble::ModelUnknown => "see what this key may use: nisse models",
        Trouble::Timeout
        | Trouble::Overloaded
        | Trouble::RateLimited
        | Trouble::Cut
        | Trouble::ContextOverflow
        | Trouble::ToolChoiceUnsupported
        | Trouble::ToolsUnsupported
        | Trouble::FallbackRefused
        | Trouble::Policy
        | Trouble::BadRequest
        | Trouble::Stopped => "try again later, and read the proxy's log",
    }
}

/// What to do about a role without a usable model.
fn on_role(bad: &BadRole) -> String {
    match bad {
        BadRole::Unset(role) => {
            let variable = role.as_str().to_uppercase();
            format!("set roles.{role} in your settings, or NISSE_ROLE_{variable}; `nisse models` lists what there is")
        }
        BadRole::Unusable { trouble, alias, .. } => match trouble {
            PinError::Unknown { instead: Instead::Near(near), .. } if let Some(near) = near.first() => {
                format!("write {near:?} in {}; `nisse models` lists what this key may use", alias.source)
            }
            PinError::Unknown { .. } => {
                format!("name another in {}; `nisse models` lists what this key may use", alias.source)
            }
            PinError::NoWindow { alias } => {
                format!("declare max_input_tokens under [models.{alias:?}] in your settings")
            }
            PinError::NoProvider { alias } => {
                format!("declare provider or route under [models.{alias:?}] in your settings")
            }
        },
    }
}

/// Files that were applied by half can also be restored.
fn on_applying(task: TaskId, error: &repo::Error) -> Option<String> {
    let half_done = matches!(
        error,
        repo::Error::Between { .. } | repo::Error::NotForward { .. } | repo::Error::NotCommitted { .. }
    );
    let way_back =
        if half_done { format!("; or restore the files: nisse apply {task:#} --abort") } else { String::new() };
    if let repo::Error::MergeRefused { .. } = error {
        return Some(format!("apply only the task's own commits: nisse apply {task:#} --commit, or --squash"));
    }
    on_repo(error).map(|first| format!("{first}{way_back}"))
}

fn on_repo(error: &repo::Error) -> Option<&'static str> {
    match error {
        repo::Error::NotARepository { .. } | repo::Error::NoDirectory { .. } => Some("name the repository with -C"),
        repo::Error::NoGit { source } => Some(on_git(source)),
        repo::Error::OldGit { .. } => Some("install git 2.34 or newer"),
        repo::Error::NoSuchCommit { .. } => Some("name a branch, a tag or a commit of this repository"),
        repo::Error::Unclean { .. } => {
            Some("commit or stash it, or leave out --isolation: a worktree includes uncommitted work")
        }
        repo::Error::BranchMoved { .. } => Some("see with `git log` who moved it"),
        repo::Error::Conflicts { .. } => {
            Some("commit or stash your changes to these paths, and move untracked files away; then run it again")
        }
        repo::Error::Between { .. } | repo::Error::NotForward { .. } => Some("restore that, then run it again"),
        repo::Error::NotCommitted { .. } => Some("fix that, then run it again"),
        repo::Error::TimedOut { .. } => Some("check whether the disk is slow or another git holds a lock"),
        repo::Error::Foreign { .. } => Some("move it away, or choose another name with --branch"),
        // these say it themselves, or there is no advice
        repo::Error::Gone { .. }
        | repo::Error::Refused { .. }
        | repo::Error::MergeRefused { .. }
        | repo::Error::Locked { .. }
        | repo::Error::Git { .. }
        | repo::Error::Unreadable { .. }
        | repo::Error::Read { .. }
        | repo::Error::Io { .. }
        | repo::Error::Unsteady { .. }
        | repo::Error::Replaced { .. }
        | repo::Error::HeadMoved { .. }
        | repo::Error::TreesDiffer { .. } => None,
    }
}
