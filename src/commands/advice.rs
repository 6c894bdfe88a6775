//! What to do about an error: one sentence without its end, in the imperative, for `doctor` and for the edge alike.

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

/// What to do about it; none where the error itself says it, or nothing can be done.
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
        Error::BranchTaken { .. } => Some("name another with --branch, or leave it out".to_owned()),
        Error::BranchName { .. } => Some("see `git help check-ref-format`, or leave --branch out".to_owned()),
        Error::HoldsSecret { .. } => Some(
            "in a command, name the environment variable that holds it (in single quotes: '$NAME'), and let commands have \
             that by commands.pass_env"
                .to_owned(),
        ),
        Error::WorktreeInside { .. } => Some("name a directory outside, such as \"..\"".to_owned()),
        Error::BaseInPlace => Some("leave one of the two out".to_owned()),
        Error::Log(error) => Some(on_log(error).to_owned()),
        Error::Forgotten { worktree, .. } => Some(format!(
            "put nisse.db and nisse.db-wal back as they were; the work itself is in {}",
            worktree.display()
        )),
        Error::NoLog { .. } | Error::Write { .. } => {
            Some("make it writable, or name another with --state-dir".to_owned())
        }
        Error::Cut { task, source, .. } => Some(on_cut(*task, source)),
        Error::Unmade { source, .. } => Some(on_unmade(source)),
        Error::NoProject { .. } => {
            Some("name the repository with -C, or write one with `nisse init`; one below the root is not read".to_owned())
        }
        Error::Unwritten { source, .. } if source.kind() == std::io::ErrorKind::IsADirectory => {
            Some("name a file with --config, not a directory".to_owned())
        }
        Error::Unwritten { .. } => Some("make its directory writable; your own file can be named with --config".to_owned()),
        Error::Moved { .. } => Some("try again".to_owned()),
        Error::PathNotText { .. } => Some("give it a name in UTF-8".to_owned()),
        Error::Several(_) => Some("name the one that is to go on: nisse resume <TASK>".to_owned()),
        Error::Over { task, .. } => Some(format!("see what came of it: nisse log {task:#}")),
        Error::NoDiff { task } => Some(format!("see what happened: nisse log {task:#}")),
        Error::OtherCheckout { task, checkout, command, .. } => {
            Some(format!("if that one is meant: nisse -C {} {command} {task:#}", quoted(checkout)))
        }
        Error::RepositoryGone { task, .. } => Some(on_gone(*task)),
        Error::NotHandedBack { task, outcome } => Some(match *outcome {
            "failed" | "capped" | "dropped" => {
                format!("see what there is: nisse log {task:#} --diff")
            }
            _ => format!("let it end first: nisse resume {task:#}"),
        }),
        Error::NothingToPutBack { task, left, .. } if !left.is_empty() => {
            let paths = left.iter().map(|path| quoted(path)).collect::<Vec<_>>().join(" ");
            Some(format!("see how they differ from before: git diff {} -- {paths}", repo::before_apply_ref(*task)))
        }
        Error::NothingToPutBack { .. } => {
            Some("what is committed is taken back with git revert or git reset".to_owned())
        }
        Error::ChangedSinceAsked { task, .. } => {
            Some(format!("look at them; the same answer again is about these too: nisse resume {task:#}"))
        }
        Error::NoQuestion { task } => Some(format!("leave the answer out: nisse resume {task:#}")),
        Error::Signals { .. } | Error::NoThread { .. } | Error::Listen { .. } => None,
        Error::Bug(_) => Some("please report this".to_owned()),
    }
}

/// A word as a shell takes it.
#[must_use]
pub fn quoted(path: &str) -> String {
    let plain = |one: char| one.is_ascii_alphanumeric() || "/._-+@%:,".contains(one);
    if path.chars().all(plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

/// What makes room for the first request.
fn on_window(found: &TooSmall) -> String {
    let TooSmall { alias, ceiling, .. } = found;
    let larger = format!(
        "name a model with a larger window, or declare max_input_tokens under [models.{alias:?}] if its own is larger"
    );
    match ceiling {
        Some(ceiling) => {
            format!("lower the output ceiling, NISSE_MAX_OUTPUT_TOKENS={ceiling} (max_output_tokens); or {larger}")
        }
        None => larger,
    }
}

/// The task has ended before it began.
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
    let mend = mend.unwrap_or("see to that place, or name another with worktree.dir or --state-dir");
    format!("{mend}; then delegate it again")
}

/// A repository that is gone took what was committed along; what is in files and in the log is there.
fn on_gone(task: TaskId) -> String {
    format!(
        "the files are as they are, and `nisse log {task:#}` tells what was done; bring the repository back from a copy, then \
         nisse resume {task:#}; or end the task: nisse drop {task:#}"
    )
}

/// The task is as it was: what is to be mended, how it goes on, and how it ends where that cannot be mended.
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
        agent::Error::Setup { .. } => Some("mend it or what it needs"),
        agent::Error::Unmade { source, .. } => on_repo(source),
        agent::Error::Bug(_) => Some("please report this"),
    };
    // what is wrong there may never be mended
    let or = match error {
        agent::Error::Repo(_) | agent::Error::Host(_) | agent::Error::Setup { .. } => {
            format!(", or give it up: nisse drop {task:#}")
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
            "bring nisse.db back from a backup; or move the state directory away, and begin anew: branches are untouched"
        }
        log::Error::OldLibrary { .. } => "build nisse with its own SQLite",
        log::Error::Newer { .. } | log::Error::NewerEvent { .. } => {
            "install the newer nisse, or name another state directory"
        }
        log::Error::Corrupt { .. } => "see the task's events with sqlite3; other tasks are not concerned",
        log::Error::Held { .. } => "wait until it is done, or stop it",
        log::Error::CheckoutHeld { .. } => "wait until it is done, or stop it; then run this again",
        log::Error::NoSuchTask { .. } | log::Error::Ambiguous { .. } => "see the ids with `nisse log`",
        log::Error::Illegal(_) => "please report this",
    }
}

/// What the system says decides: nobody is to look for room on a disk that has it.
fn on_io(error: &std::io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE) => TOO_MANY_FILES,
        Some(Errno::NOSPC | Errno::DQUOT) => "make room on the disk of the state directory",
        Some(Errno::ROFS | Errno::ACCESS | Errno::PERM) => {
            "see that the state directory can be written, or name another with --state-dir"
        }
        Some(_) | None => "see that the disk has room and the state directory can be written",
    }
}

/// The same for what `SQLite` says.
fn on_database(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "wait until the process that holds the log is done (fuser -v on the file names it)"
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            "the file is damaged: put a copy of it back, save what is in it with `sqlite3 nisse.db .recover`, or move it \
             away to begin a new log"
        }
        Some(ErrorCode::DiskFull) => "make room on the disk of the state directory",
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            "see that the state directory can be written, or name another with --state-dir"
        }
        Some(_) | None => "see that the disk has room and the state directory can be written",
    }
}

const TOO_MANY_FILES: &str = "close what holds files open, or raise the limit of open files (ulimit -n)";

/// A git that does not start: it is missing only where the system says so.
fn on_git(error: &std::io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT) => "install git 2.34 or newer",
        Some(Errno::MFILE | Errno::NFILE) => TOO_MANY_FILES,
        Some(Errno::AGAIN | Errno::NOMEM) => "end other processes, or raise this machine's limits (ulimit -a)",
        Some(_) | None => "see that the git program in your PATH can be run",
    }
}

fn on_settings(error: &settings::Error) -> String {
    let words = match error {
        settings::Error::Wrong(problems) => match problems.iter().find_map(|problem| problem.near.as_ref()) {
            Some(near) if problems.len() == 1 => return format!("write {near}"),
            Some(_) | None => "correct it; `nisse help` and examples/config.toml name every setting",
        },
        settings::Error::Unreadable { .. } => "make it readable, or name another file",
        settings::Error::NotAFile(_) => "put a plain file in its place, or remove it",
        settings::Error::TooLarge(_) => "see whether it is the file that you meant",
        settings::Error::NoStateDirectory => "name one with --state-dir or NISSE_STATE_DIR",
        settings::Error::StateDir(error) => match error {
            state_dir::Error::Io { .. } | state_dir::Error::NotADirectory(_) => "name another with --state-dir",
            state_dir::Error::Open(path) => {
                return format!("chmod 700 {}, or name another with --state-dir", path.display());
            }
        },
        settings::Error::NoAddress => "set proxy.base_url in your settings, or NISSE_LLM_BASE_URL",
        settings::Error::NoRole(role) => return on_role(&BadRole::Unset(*role)),
        settings::Error::Untrusted { .. } => {
            "read what it names, then run `nisse trust`, or give --trust-project this once; or set it yourself (--check, or the variable of that setting)"
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
        token::Error::Unusable { origin, .. } => format!("see what {origin} holds or prints"),
        token::Error::Start { .. } | token::Error::Command { .. } => {
            "run the command yourself, and correct proxy.token_command".to_owned()
        }
        token::Error::File { .. } => "correct proxy.token_file, or make the file readable".to_owned(),
        token::Error::Open(path) => format!("chmod 600 {}", path.display()),
    }
}

fn on_brief(error: &brief::Error) -> &'static str {
    match error {
        brief::Error::Unreadable { .. } => "name a file that can be read, or give the brief itself",
        brief::Error::Empty(_) | brief::Error::Missing => {
            "say what is to be done: nisse delegate 'BRIEF', or name a file with --file"
        }
        brief::Error::TooLong(_) => "say it shorter, and name the files to read instead of quoting them",
        brief::Error::NotText(_) => "write it as plain UTF-8 text",
    }
}

fn on_proxy(error: &litellm::Error) -> &'static str {
    match error {
        litellm::Error::Address { .. } => "correct proxy.base_url or NISSE_LLM_BASE_URL, such as http://127.0.0.1:4000",
        litellm::Error::Token => "see what NISSE_LLM_TOKEN holds, or what proxy.token_command prints",
        litellm::Error::CaFile { .. } | litellm::Error::CaContent { .. } => "correct proxy.ca_file",
        litellm::Error::Client { .. } => "see that the system's certificate store can be read",
    }
}

/// What to do about upstream trouble outside a task.
fn on_trouble(trouble: Trouble) -> &'static str {
    match trouble {
        Trouble::KeyRefused => "ask whoever runs the proxy for a key, and set it as the token",
        Trouble::VendorKeyRefused => "ask whoever runs the proxy to renew its key for that vendor",
        Trouble::ServerSetUp => "start the model's server with its tool-call support (llama.cpp: --jinja)",
        Trouble::BadAddress => "correct proxy.base_url or NISSE_LLM_BASE_URL",
        Trouble::BadCertificate => "name the authority that signed it in proxy.ca_file",
        Trouble::Unreachable => "start the proxy, or correct proxy.base_url or NISSE_LLM_BASE_URL",
        Trouble::BudgetGone => "raise the key's budget, or wait until it is reset",
        Trouble::ModelDenied | Trouble::ModelUnknown => "see with `nisse models` what this key may use",
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
        | Trouble::Stopped => "try again in a while, and see the proxy's log",
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

/// The files that are half there can be taken back too.
fn on_applying(task: TaskId, error: &repo::Error) -> Option<String> {
    let half_done = matches!(
        error,
        repo::Error::Between { .. } | repo::Error::NotForward { .. } | repo::Error::NotCommitted { .. }
    );
    let way_back =
        if half_done { format!("; or take the files back: nisse apply {task:#} --abort") } else { String::new() };
    if let repo::Error::MergeRefused { .. } = error {
        return Some(format!("bring the task's part alone: nisse apply {task:#} --commit, or --squash"));
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
            Some("commit it or stash it, or leave out --isolation: a worktree takes unfinished work along")
        }
        repo::Error::BranchMoved { .. } => Some("see with `git log` who moved it"),
        repo::Error::Conflicts { .. } => Some(
            "commit or stash your changes to these paths, and move away what git does not track; then run it again",
        ),
        repo::Error::Between { .. } | repo::Error::NotForward { .. } => {
            Some("put that back as it was, and run it again")
        }
        repo::Error::NotCommitted { .. } => Some("see to it, and run it again"),
        repo::Error::TimedOut { .. } => Some("see whether the disk is slow or another git holds a lock"),
        repo::Error::Foreign { .. } => Some("move it out of the way, or choose another name with --branch"),
        // these say it themselves, or nothing can be said
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
