//! The command line: every subcommand and option with its help, the source of the man pages and completions.
//!
//! Defaults are not clap's: they come from the settings, and the help names the setting.

#![expect(clippy::doc_markdown, reason = "the docs here are help texts, not Markdown")]

use std::{path::PathBuf, time::Duration};

use clap::{
    ColorChoice, Parser, Subcommand, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use clap_complete::ArgValueCandidates;

use super::{candidates, manual};
use crate::{
    commands::{
        apply::Wish,
        brief::Origin,
        settings::{Flags, units},
    },
    domain::{checkout::Isolation, gate::Answer, intent::Manner, money::Money, role::RoleName},
};

/// The command line, parsed.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "nisse",
    version,
    about = "Delegate coding work to a model, on a branch of its own",
    long_about = manual::ABOUT,
    after_help = "See `nisse help <COMMAND>` for a command's manual, `nisse --help` for exit codes and files.",
    after_long_help = manual::NISSE,
    help_template = manual::SCREEN,
    arg_required_else_help = true,
    max_term_width = 100,
)]
pub struct Args {
    /// The common options.
    #[command(flatten)]
    pub common: Common,
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Common options")]
#[expect(clippy::struct_excessive_bools, reason = "a flag is a bool")]
pub struct Common {
    /// Work in the repository at PATH instead of the current directory
    #[arg(short = 'C', long, value_name = "PATH", global = true, value_hint = clap::ValueHint::DirPath)]
    pub repo: Option<PathBuf>,
    /// Print JSON on stdout
    ///
    /// Commands that run a task print one object per line; the last one is the result. Commands that report print one
    /// document. Every object has "v": 1 and "type".
    #[arg(long, global = true)]
    pub json: bool,
    /// Use colour: auto, always or never
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true,
        hide_possible_values = true,
        global = true
    )]
    pub color: ColorChoice,
    /// Print more detail
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Print only results and errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Read settings from FILE instead of your own file [env: NISSE_CONFIG]
    #[arg(long, value_name = "FILE", global = true, value_hint = clap::ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Keep the log and the worktrees in DIR [env: NISSE_STATE_DIR]
    #[arg(long, value_name = "DIR", global = true, value_hint = clap::ValueHint::DirPath)]
    pub state_dir: Option<PathBuf>,
    /// Never ask questions
    #[arg(long, global = true)]
    pub no_input: bool,
}

/// The subcommands.
#[derive(Subcommand, Clone, Debug)]
pub enum Command {
    /// Run one bounded task on a branch of its own
    #[command(after_long_help = manual::DELEGATE)]
    Delegate(Delegate),
    /// Resume an interrupted task
    ///
    /// Without TASK, resumes the pending task of this checkout. If there are several, nisse asks which one; without a
    /// terminal it lists them and exits with 6. Nothing that the log holds is requested again, and the caps still count
    /// what was spent before.
    #[command(after_long_help = manual::RESUME)]
    Resume(Resume),
    /// Apply the work of a finished task to your checkout
    ///
    /// If you have not changed the checkout since the task began, its branch is fast-forwarded. Otherwise the files are
    /// changed and nothing is committed: your own changes and the index stay as they are. If a path conflicts, nothing
    /// is changed at all (exit 6). If `nisse apply` is interrupted, run it again to finish.
    #[command(after_long_help = manual::APPLY)]
    Apply(Apply),
    /// Give up a task
    ///
    /// Ends a task that has not ended yet, and removes its branch and worktree. For 30 days, its commits are kept under
    /// refs/nisse/discarded, and uncommitted files of the worktree under refs/nisse/found.
    #[command(after_long_help = manual::DROP)]
    Drop(NamedTask),
    /// List the tasks of this checkout, or the events of one
    ///
    /// Without TASK, lists the tasks of this checkout, one per line, newest last. With TASK, shows everything that
    /// happened in it and why; with -v, every tool result in full.
    #[command(after_long_help = manual::LOG)]
    Log(Log),
    /// List the models that the proxy offers to this key
    ///
    /// One line for each alias, the models of your roles first: the model behind the alias, its context window and output
    /// limit, the price of a million input and output tokens, whether it supports tools, and the roles that use it. The
    /// proxy declares these, or [models."alias"] in your settings; a question mark means neither does. -v shows every
    /// column.
    #[command(after_long_help = manual::MODELS)]
    Models(Models),
    /// Check everything that a run needs
    ///
    /// Checks settings, git, the repository, the state directory and the database, the proxy and its key, and the role
    /// delegate. Each is marked ✓ (good), ! (warning) or ✗ (will not work), with what to do about it; the verdict comes
    /// last. -v adds every setting and its source. Costs nothing: no model is called.
    #[command(after_long_help = manual::DOCTOR)]
    Doctor {
        /// Remove leftovers of tasks where nothing is lost
        #[arg(long)]
        fix: bool,
    },
    /// Write the settings files, filled in with what the proxy offers
    ///
    /// Writes your own settings file and the repository's nisse.toml, each with every setting explained. An existing file
    /// is left as it is. If NISSE_LLM_BASE_URL and NISSE_LLM_TOKEN are set, nisse asks the proxy for its list of models;
    /// no model is called.
    #[command(after_long_help = manual::INIT)]
    Init,
    /// Trust the repository's nisse.toml as it is now
    ///
    /// Its checks, its setup command and its copies of ignored files then need no --trust-project until the file changes.
    /// Read the file first: someone else wrote it, and its commands run as you. nisse prints what you trust; --revoke
    /// ends the trust.
    #[command(after_long_help = manual::TRUST)]
    Trust {
        /// Stop trusting it
        #[arg(long)]
        revoke: bool,
    },
    /// Watch a whole delegation without any setup
    ///
    /// A scripted model fixes a real bug in a scratch repository until its test passes; the repository, the worktree, the
    /// commands and the check are real. Needs no proxy, key or network, and leaves its directory for you to look at.
    #[command(after_long_help = manual::DEMO)]
    Demo,
    /// Print a completion script for a shell
    ///
    /// Write it to where your shell looks for completion scripts. It completes commands, options, task ids, and the model
    /// aliases that your settings and tasks name; it does not contact the proxy.
    #[command(after_long_help = manual::COMPLETIONS)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print a manual page
    ///
    /// Without PAGE, prints the page of nisse itself.
    #[command(after_long_help = manual::MAN)]
    Man {
        /// The command
        page: Option<Page>,
    },
}

/// `nisse delegate`.
#[derive(clap::Args, Clone, Debug)]
pub struct Delegate {
    /// What to do; read from stdin if it is -, or if it is omitted and stdin is not a terminal
    #[arg(value_name = "BRIEF", conflicts_with = "file")]
    brief: Option<String>,
    /// Append stdin to BRIEF
    #[arg(value_name = "-", value_parser = dash, requires = "brief")]
    append: Option<String>,
    /// Read the brief from FILE; - is stdin
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// Require CMD to exit with 0; repeatable [check.commands: none]
    #[arg(long = "check", value_name = "CMD", value_parser = not_blank, value_hint = clap::ValueHint::CommandString)]
    checks: Vec<String>,
    /// Trust the repository's nisse.toml this once: run its checks and its setup command
    #[arg(long)]
    trust_project: bool,
    /// Name the branch NAME [nisse/<task>-<words of the brief>]
    #[arg(long, value_name = "NAME", value_parser = not_blank)]
    pub branch: Option<String>,
    /// Start from this commit, without uncommitted work [the checkout as it is]
    #[arg(long, value_name = "REV", value_parser = not_blank)]
    pub base: Option<String>,
    /// Work in a worktree, or in-place in the checkout itself [worktree]
    #[arg(long, value_name = "WHERE", value_parser = isolation(), hide_possible_values = true)]
    pub isolation: Option<Isolation>,
    /// Use this model [roles.delegate]
    #[arg(long, value_name = "ALIAS", value_parser = not_blank, add = ArgValueCandidates::new(candidates::aliases))]
    model: Option<String>,
    /// Limit the number of turns [delegate.max_turns: 30]
    #[arg(long, value_name = "N", value_parser = units::small_count)]
    max_turns: Option<u32>,
    /// Limit the tokens, input and output of all turns together [delegate.max_tokens: 1500000]
    #[arg(long, value_name = "N", value_parser = units::count)]
    max_tokens: Option<u64>,
    /// Limit the active time [delegate.max_time: 15m]
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    max_time: Option<Duration>,
    /// Limit the cost in US dollars, such as 2.50 [delegate.max_cost: none]
    #[arg(long, value_name = "USD", value_parser = units::money)]
    max_cost: Option<Money>,
}

/// `nisse resume`.
#[derive(clap::Args, Clone, Debug)]
pub struct Resume {
    /// The task's id, or a unique part of its beginning
    #[arg(value_parser = not_blank, add = ArgValueCandidates::new(candidates::pending))]
    pub task: Option<String>,
    /// Restore the files of the last checkpoint, and resume
    #[arg(long, group = "answer")]
    rollback: bool,
    /// Keep the files as they are, and resume
    #[arg(long, group = "answer")]
    keep: bool,
    /// Give up the task, as `nisse drop` does
    #[arg(long, group = "answer")]
    drop: bool,
}

/// `nisse apply`.
#[derive(clap::Args, Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "a flag is a bool")]
pub struct Apply {
    /// The task's id, or a unique part of its beginning
    #[arg(value_parser = not_blank, add = ArgValueCandidates::new(candidates::tasks))]
    pub task: String,
    /// Cherry-pick each commit
    #[arg(long, group = "manner")]
    commit: bool,
    /// Squash into one commit
    #[arg(long, group = "manner")]
    squash: bool,
    /// Merge the branch with a merge commit
    #[arg(long, group = "manner")]
    merge: bool,
    /// Undo what was applied and is not committed
    #[arg(long, group = "manner")]
    abort: bool,
}

/// A command on one task.
#[derive(clap::Args, Clone, Debug)]
pub struct NamedTask {
    /// The task's id, or a unique part of its beginning
    #[arg(value_parser = not_blank, add = ArgValueCandidates::new(candidates::pending))]
    pub task: String,
}

/// `nisse log`.
#[derive(clap::Args, Clone, Debug)]
pub struct Log {
    /// The task's id, or a unique part of its beginning
    #[arg(value_parser = not_blank, add = ArgValueCandidates::new(candidates::tasks))]
    pub task: Option<String>,
    /// Keep printing while another nisse works on TASK
    #[arg(short, long, requires = "task", conflicts_with = "diff")]
    pub follow: bool,
    /// Show what TASK changed, as a patch for `git apply`
    #[arg(long, requires = "task")]
    pub diff: bool,
    /// List only the newest N tasks
    #[arg(short = 'n', long, value_name = "N", value_parser = units::small_count, conflicts_with = "task")]
    pub number: Option<u32>,
}

/// `nisse models`.
#[derive(clap::Args, Clone, Debug)]
pub struct Models {
    /// List only models with FILTER in their alias, model or provider
    #[arg(value_parser = not_blank)]
    pub filter: Option<String>,
    /// Also list models declared without tool support
    #[arg(short, long)]
    pub all: bool,
}

/// A subcommand's manual page.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the commands' names")]
pub enum Page {
    Delegate,
    Resume,
    Apply,
    Drop,
    Log,
    Models,
    Doctor,
    Init,
    Trust,
    Demo,
    Completions,
    Man,
}

impl Delegate {
    /// Where to read the brief from. Never a terminal: a person would not know what nisse waits for.
    #[must_use]
    pub fn brief(&self, stdin_is_terminal: bool) -> Origin {
        match (&self.file, self.brief.as_deref(), &self.append) {
            (Some(path), ..) if path.as_os_str() == "-" => Origin::Stdin,
            (Some(path), ..) => Origin::File(path.clone()),
            (None, Some("-"), _) => Origin::Stdin,
            (None, Some(text), Some(_)) => Origin::ArgumentAndStdin(text.to_owned()),
            (None, Some(text), None) => Origin::Argument(text.to_owned()),
            (None, None, _) if stdin_is_terminal => Origin::Nothing,
            (None, None, _) => Origin::Stdin,
        }
    }
}

impl Resume {
    /// The user's answer to a gate, if the options give one.
    #[must_use]
    pub fn answer(&self) -> Option<Answer> {
        [(self.rollback, Answer::Rollback), (self.keep, Answer::Keep), (self.drop, Answer::Drop)]
            .into_iter()
            .find_map(|(given, answer)| given.then_some(answer))
    }
}

impl Apply {
    /// What the options ask for.
    #[must_use]
    pub fn wish(&self) -> Wish {
        match (self.commit, self.squash, self.merge, self.abort) {
            (true, ..) => Wish::Apply(Manner::Each),
            (_, true, ..) => Wish::Apply(Manner::Squash),
            (_, _, true, _) => Wish::Apply(Manner::Merge),
            (.., true) => Wish::PutBack,
            (false, false, false, false) => Wish::Apply(Manner::Files),
        }
    }
}

impl Args {
    /// The settings given as options: the last layer.
    #[must_use]
    pub fn flags(&self) -> Flags {
        let Common { config, state_dir, .. } = self.common.clone();
        let common = Flags { config, state_dir, ..Flags::default() };
        match &self.command {
            Command::Delegate(delegate) => Flags {
                model: delegate.model.clone().map(|alias| (RoleName::Delegate, alias)),
                checks: delegate.checks.clone(),
                trust_project: delegate.trust_project,
                max_turns: delegate.max_turns,
                max_tokens: delegate.max_tokens,
                max_time: delegate.max_time,
                max_cost: delegate.max_cost,
                ..common
            },
            Command::Resume(_)
            | Command::Apply(_)
            | Command::Drop(_)
            | Command::Log(_)
            | Command::Models(_)
            | Command::Doctor { .. }
            | Command::Init
            | Command::Trust { .. }
            | Command::Demo
            | Command::Completions { .. }
            | Command::Man { .. } => common,
        }
    }
}

fn isolation() -> impl TypedValueParser<Value = Isolation> {
    PossibleValuesParser::new(["worktree", "in-place"])
        .map(|word| if word == "in-place" { Isolation::InPlace } else { Isolation::Worktree })
}

fn dash(text: &str) -> Result<String, String> {
    if text == "-" { Ok(text.to_owned()) } else { Err("the brief is one argument: put it in quotes".to_owned()) }
}

fn not_blank(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.contains('\0') {
        return Err("it must not be empty".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, error::ErrorKind};

    use super::*;

    fn parse(line: &[&str]) -> Result<Args, clap::Error> {
        Args::try_parse_from(std::iter::once("nisse").chain(line.iter().copied()))
    }

    fn refused(line: &[&str]) -> ErrorKind {
        parse(line).unwrap_err().kind()
    }

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_delegation_sets_the_last_layer() {
        let line = ["delegate", "do it", "--check", "a", "--check", "b", "--model", "m", "--max-time", "1h30m"];
        let args =
            parse(&[&line[..], &["--max-cost", "2.50", "--trust-project", "--config", "c.toml"]].concat()).unwrap();
        let expected = Flags {
            config: Some("c.toml".into()),
            checks: vec!["a".into(), "b".into()],
            model: Some((RoleName::Delegate, "m".into())),
            max_time: Some(Duration::from_mins(90)),
            max_cost: Money::from_usd(2.5),
            trust_project: true,
            ..Flags::default()
        };
        assert_eq!(args.flags(), expected);
    }

    #[test]
    fn a_brief_comes_from_one_place() {
        let brief = |line: &[&str]| match parse(line).unwrap().command {
            Command::Delegate(delegate) => delegate.brief(true),
            other => panic!("{other:?}"),
        };
        assert_eq!(brief(&["delegate", "words"]), Origin::Argument("words".into()));
        assert_eq!(brief(&["delegate", "-"]), Origin::Stdin);
        assert_eq!(brief(&["delegate", "words", "-"]), Origin::ArgumentAndStdin("words".into()));
        assert_eq!(brief(&["delegate", "-", "-"]), Origin::Stdin);
        assert_eq!(brief(&["delegate", "--file", "-"]), Origin::Stdin);
        assert_eq!(brief(&["delegate", "--file", "f"]), Origin::File("f".into()));
        assert_eq!(brief(&["delegate"]), Origin::Nothing);
        assert_eq!(brief(&["delegate", "--", "--odd"]), Origin::Argument("--odd".into()));
        let unquoted = parse(&["delegate", "fix", "it"]).unwrap_err().to_string();
        assert!(unquoted.contains("put it in quotes"), "{unquoted}");
        assert_eq!(refused(&["delegate", "words", "--file", "f"]), ErrorKind::ArgumentConflict);
    }

    #[test]
    fn wrong_values_are_refused() {
        for line in [["--max-turns", "0"], ["--max-time", "15"], ["--max-cost", "free"], ["--check", " "]] {
            assert_eq!(refused(&[&["delegate", "x"][..], &line].concat()), ErrorKind::ValueValidation, "{line:?}");
        }
        assert_eq!(refused(&["log", "-v", "-q"]), ErrorKind::ArgumentConflict);
        assert_eq!(refused(&["modles"]), ErrorKind::InvalidSubcommand);
        assert_eq!(refused(&[]), ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
    }

    #[test]
    fn help_starts_with_a_command_and_fits_a_screen() {
        let mut nisse = Args::command();
        nisse.build();
        let mut all: Vec<clap::Command> = nisse.get_subcommands().cloned().collect();
        all.push(nisse);
        for mut command in all {
            let short = command.render_help().to_string();
            assert!(short.lines().count() <= 40, "{short}");
            let about = command.get_about().unwrap().to_string();
            assert!(!about.ends_with('.') && about.starts_with(char::is_uppercase), "{about}");
        }
    }

    #[test]
    fn the_groups_name_every_command_as_it_names_itself() {
        let mut nisse = Args::command();
        nisse.build();
        let screen = anstream::adapter::strip_str(manual::SCREEN).to_string();
        let lines: Vec<&str> = screen.lines().filter(|line| line.starts_with("  ")).map(str::trim).collect();
        let mut told: Vec<(&str, &str)> =
            lines.iter().map(|line| line.split_once(' ').unwrap()).map(|(name, about)| (name, about.trim())).collect();
        let mut commands: Vec<(String, String)> = nisse
            .get_subcommands()
            .map(|command| (command.get_name().to_owned(), command.get_about().unwrap().to_string()))
            .collect();
        told.sort_unstable();
        commands.sort_unstable();
        assert_eq!(told, commands.iter().map(|(name, about)| (name.as_str(), about.as_str())).collect::<Vec<_>>());
    }

    #[test]
    fn the_help_of_every_command_ends_with_examples() {
        let mut nisse = Args::command();
        nisse.build();
        let mut all: Vec<clap::Command> =
            nisse.get_subcommands().filter(|command| command.get_name() != "help").cloned().collect();
        all.push(nisse);
        for mut command in all {
            let help = command.render_long_help().to_string();
            let examples = help.rsplit("\n\n").next().unwrap();
            assert!(examples.starts_with("Examples:\n") && examples.trim().lines().count() >= 3, "{help}");
            assert!(examples.trim().lines().skip(1).all(|line| line.contains("nisse ") || line.contains("git ")));
        }
    }

    #[test]
    fn every_command_has_a_page() {
        let pages: Vec<String> =
            Page::value_variants().iter().filter_map(|p| Some(p.to_possible_value()?.get_name().to_owned())).collect();
        let commands: Vec<String> = Args::command().get_subcommands().map(|c| c.get_name().to_owned()).collect();
        assert_eq!(pages, commands);
    }
}
