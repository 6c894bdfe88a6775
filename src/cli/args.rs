//! The command line: every subcommand and option, with its help, from which man pages and completions are made.
//!
//! An option stands here when something obeys it, and not before. Defaults are not clap's: they come from the settings,
//! which the help names.

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
    after_help = "`nisse help <COMMAND>` is the manual of a command; `nisse --help` has exit codes and files.",
    after_long_help = manual::NISSE,
    help_template = manual::SCREEN,
    arg_required_else_help = true,
    max_term_width = 100,
)]
pub struct Args {
    /// What every command understands.
    #[command(flatten)]
    pub common: Common,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What every command understands.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Common options")]
#[expect(clippy::struct_excessive_bools, reason = "a flag is a bool")]
pub struct Common {
    /// Work in the repository at PATH instead of the current directory
    #[arg(short = 'C', long, value_name = "PATH", global = true, value_hint = clap::ValueHint::DirPath)]
    pub repo: Option<PathBuf>,
    /// Print JSON on stdout
    ///
    /// Commands that run a task print one object a line, the last of them the result; commands that report print one
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
    /// Keep log and worktrees in DIR [env: NISSE_STATE_DIR]
    #[arg(long, value_name = "DIR", global = true, value_hint = clap::ValueHint::DirPath)]
    pub state_dir: Option<PathBuf>,
    /// Never ask anything
    #[arg(long, global = true)]
    pub no_input: bool,
}

/// The subcommands.
#[derive(Subcommand, Clone, Debug)]
pub enum Command {
    /// Run one bounded task on a branch of its own
    #[command(after_long_help = manual::DELEGATE)]
    Delegate(Delegate),
    /// Go on with a task that was cut off
    ///
    /// Without TASK, the one pending task of this checkout goes on. Several are listed and asked for; without a
    /// terminal that is exit 6. Nothing that was recorded is asked of the model again, and the caps count on.
    #[command(after_long_help = manual::RESUME)]
    Resume(Resume),
    /// Apply the work of a finished task to your checkout
    ///
    /// A checkout that is where the task began, without changes of your own, is fast-forwarded. Else the files are
    /// changed and nothing is committed: your own changes stay as they are, the index is not touched, and if a path
    /// stands against it nothing is touched at all (exit 6). Cut off, it goes on when it is run again.
    #[command(after_long_help = manual::APPLY)]
    Apply(Apply),
    /// Give a task up
    ///
    /// For a task that has not ended. Branch and worktree go; the commits are kept under refs/nisse/discarded, and what
    /// the worktree held beyond them under refs/nisse/found, for 30 days.
    #[command(after_long_help = manual::DROP)]
    Drop(NamedTask),
    /// List the tasks of this checkout, or the events of one
    ///
    /// Without TASK, the tasks of this checkout, newest last, one line each. With TASK, everything that happened in it, with the cause
    /// of each step; with -v, every answer whole.
    #[command(after_long_help = manual::LOG)]
    Log(Log),
    /// List the models that the proxy offers to this key
    ///
    /// One line for each alias, those of roles first: the model behind it, its window and output limit, the price of a
    /// million tokens in and out, whether it takes tools, and the roles that use it, as the proxy declares them or
    /// [models."alias"] in your settings does. A question mark is what nobody says. With -v every column.
    #[command(after_long_help = manual::MODELS)]
    Models(Models),
    /// Check everything that a run needs
    ///
    /// Settings, git, the repository, the state directory and the database, the proxy and its key, the role delegate:
    /// each with ✓ (good), ! (works, but know this) or ✗ (will not work) and what to do about it, and the verdict last.
    /// With -v every setting with its source. Costs nothing: no model is asked.
    #[command(after_long_help = manual::DOCTOR)]
    Doctor {
        /// Take away what tasks have left and nothing is lost with
        #[arg(long)]
        fix: bool,
    },
    /// Write the settings files, with what the proxy offers filled in
    ///
    /// Your own file, and the repository's nisse.toml, each with every setting explained. A file that is there is left as
    /// it is. The proxy is asked for its models where NISSE_LLM_BASE_URL and NISSE_LLM_TOKEN are set; no model is asked.
    #[command(after_long_help = manual::INIT)]
    Init,
    /// Trust the repository's nisse.toml as it is now
    ///
    /// Its checks, its setup and its copies of ignored files then need no --trust-project, until the file changes. Read
    /// the file first: somebody else wrote it, and what it names runs as you. What is trusted is printed; --revoke takes
    /// it back.
    #[command(after_long_help = manual::TRUST)]
    Trust {
        /// Forget that it is trusted
        #[arg(long)]
        revoke: bool,
    },
    /// Watch a whole delegation with nothing set up
    ///
    /// A scripted model fixes a real bug in a scratch repository until its test passes; repository, worktree, commands
    /// and check are real. Needs no proxy, no key and no network, and leaves its directory for a look.
    #[command(after_long_help = manual::DEMO)]
    Demo,
    /// Print a completion script for a shell
    ///
    /// Pipe it to where the shell looks for such scripts. Options, commands, the ids of tasks and the aliases that your
    /// settings and tasks name are completed; the proxy is not asked.
    #[command(after_long_help = manual::COMPLETIONS)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print a manual page
    ///
    /// Without PAGE, that of nisse itself.
    #[command(after_long_help = manual::MAN)]
    Man {
        /// The command whose page it is
        page: Option<Page>,
    },
}

/// `nisse delegate`.
#[derive(clap::Args, Clone, Debug)]
pub struct Delegate {
    /// What is to be done; read from stdin if it is -, or left out where stdin is no terminal
    #[arg(value_name = "BRIEF", conflicts_with = "file")]
    brief: Option<String>,
    /// A - after BRIEF appends stdin to it
    #[arg(value_name = "-", value_parser = dash, requires = "brief")]
    append: Option<String>,
    /// Read the brief from FILE; - is stdin
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// Require CMD to exit with 0; repeatable [check.commands: none]
    #[arg(long = "check", value_name = "CMD", value_parser = not_blank, value_hint = clap::ValueHint::CommandString)]
    checks: Vec<String>,
    /// Trust the repository's nisse.toml this once: run the checks and the setup that it names
    #[arg(long)]
    trust_project: bool,
    /// Name the branch [nisse/<task>-<words of the brief>]
    #[arg(long, value_name = "NAME", value_parser = not_blank)]
    pub branch: Option<String>,
    /// Start from this commit, without unfinished work [the checkout as it is]
    #[arg(long, value_name = "REV", value_parser = not_blank)]
    pub base: Option<String>,
    /// Work in a worktree or in-place, in the checkout itself [worktree]
    #[arg(long, value_name = "WHERE", value_parser = isolation(), hide_possible_values = true)]
    pub isolation: Option<Isolation>,
    /// Ask this model [roles.delegate]
    #[arg(long, value_name = "ALIAS", value_parser = not_blank, add = ArgValueCandidates::new(candidates::aliases))]
    model: Option<String>,
    /// Limit the number of replies [delegate.max_turns: 30]
    #[arg(long, value_name = "N", value_parser = units::small_count)]
    max_turns: Option<u32>,
    /// Limit the tokens: input of every turn, and output [delegate.max_tokens: 1500000]
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
    /// Put the files back to the last checkpoint, and go on
    #[arg(long, group = "answer")]
    rollback: bool,
    /// Keep what is in the worktree, and go on
    #[arg(long, group = "answer")]
    keep: bool,
    /// Give the task up, as `nisse drop` does
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
    /// Go on telling while another nisse works on TASK
    #[arg(short, long, requires = "task", conflicts_with = "diff")]
    pub follow: bool,
    /// Show what TASK changed, as a patch that `git apply` takes
    #[arg(long, requires = "task")]
    pub diff: bool,
    /// List the newest N tasks
    #[arg(short = 'n', long, value_name = "N", value_parser = units::small_count, conflicts_with = "task")]
    pub number: Option<u32>,
}

/// `nisse models`.
#[derive(clap::Args, Clone, Debug)]
pub struct Models {
    /// List those that have FILTER in their alias, model or provider
    #[arg(value_parser = not_blank)]
    pub filter: Option<String>,
    /// List also those that are declared to take no tools
    #[arg(short, long)]
    pub all: bool,
}

/// A manual page other than nisse's own.
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
    /// Where the brief is to be read from. Nobody is kept waiting at a terminal for what they may not know is wanted.
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
    /// The person's answer to a gate, if there is one.
    #[must_use]
    pub fn answer(&self) -> Option<Answer> {
        [(self.rollback, Answer::Rollback), (self.keep, Answer::Keep), (self.drop, Answer::Drop)]
            .into_iter()
            .find_map(|(given, answer)| given.then_some(answer))
    }
}

impl Apply {
    /// What is asked for.
    #[must_use]
    pub fn wish(&self) -> Wish {
        match (self.commit, self.squash, self.merge, self.abort) {
            (true, ..) => Wish::Bring(Manner::Each),
            (_, true, ..) => Wish::Bring(Manner::Squash),
            (_, _, true, _) => Wish::Bring(Manner::Merge),
            (.., true) => Wish::PutBack,
            (false, false, false, false) => Wish::Bring(Manner::Files),
        }
    }
}

impl Args {
    /// What the command line sets, as the last layer of the settings.
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
    if text == "-" { Ok(text.to_owned()) } else { Err("a brief is one argument: put it in quotes".to_owned()) }
}

fn not_blank(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.contains('\0') {
        return Err("it is empty".to_owned());
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
