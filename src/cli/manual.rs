//! What `--help` and the manual pages say beyond the list of options: exit codes, files, examples.
//!
//! Lines are at most 78 columns, since help keeps them as they are.

pub(super) const ABOUT: &str = "\
Delegate coding work to a model, on a branch of its own

A task works in a git worktree, on its own branch, started from your checkout as it is, unfinished work included; your \
files, index and branches stay as they were. Everything that happens is in a log, so that a task that was cut off goes \
on with `nisse resume`. Success is observed, never believed: the files must have changed, and your checks must pass.";

/// The screen of `nisse help`, with the commands in groups, which clap does not make by itself. A test holds the lines to
/// the commands.
pub(super) const SCREEN: &str = "\
{before-help}{about-with-newline}
{usage-heading} {usage}

\u{1b}[1;4mWork on a task:\u{1b}[0m
  \u{1b}[1mdelegate\u{1b}[0m     Run one bounded task on a branch of its own
  \u{1b}[1mresume\u{1b}[0m       Go on with a task that was cut off
  \u{1b}[1mapply\u{1b}[0m        Apply the work of a finished task to your checkout
  \u{1b}[1mdrop\u{1b}[0m         Give a task up

\u{1b}[1;4mLook:\u{1b}[0m
  \u{1b}[1mlog\u{1b}[0m          List the tasks of this checkout, or the events of one
  \u{1b}[1mmodels\u{1b}[0m       List the models that the proxy offers to this key
  \u{1b}[1mdoctor\u{1b}[0m       Check everything that a run needs

\u{1b}[1;4mSet up:\u{1b}[0m
  \u{1b}[1minit\u{1b}[0m         Write the settings files, with what the proxy offers filled in
  \u{1b}[1mtrust\u{1b}[0m        Trust the repository's nisse.toml as it is now
  \u{1b}[1mcompletions\u{1b}[0m  Print a completion script for a shell
  \u{1b}[1mman\u{1b}[0m          Print a manual page

\u{1b}[1;4mLearn:\u{1b}[0m
  \u{1b}[1mdemo\u{1b}[0m         Watch a whole delegation with nothing set up
  \u{1b}[1mhelp\u{1b}[0m         Print this message or the help of the given subcommand(s)

\u{1b}[1;4mOptions:\u{1b}[0m
{options}{after-help}";

pub(super) const NISSE: &str = "\
Exit status:
  0   done
  1   the environment failed: git, disk, database, a proxy that is down
  2   wrong usage or configuration: a role, a key, an address, a certificate
  3   the task failed
  4   a cap was reached: turns, tokens, cost or time
  5   interrupted by upstream trouble; `nisse resume` goes on
  6   a person must decide
  7   stopped on request; `nisse resume` goes on (a Ctrl-C at a terminal ends
      nisse by that signal, which a shell shows as 130)
  70  a bug in nisse

Settings, later ones win:
  1. built-in values
  2. nisse/config.toml in your configuration directory, or --config
  3. nisse.toml at the repository's root, which may not set everything
  4. variables
  5. options
  `nisse doctor -v` shows where each value came from.

Variables:
  NISSE_LLM_BASE_URL       address of the LiteLLM proxy (proxy.base_url)
  NISSE_LLM_TOKEN          its token (or proxy.token_command, .token_file)
  NISSE_ROLE_<ROLE>        a role's model (roles.delegate and so on)
  NISSE_STATE_DIR          where the log and the worktrees are
  NISSE_CONFIG             the settings file
  NISSE_MAX_OUTPUT_TOKENS  output ceiling of a reply (max_output_tokens)
  NISSE_<SECTION>_<KEY>    any other setting, as NISSE_DELEGATE_MAX_TURNS;
                           a list has one entry a line
  NO_COLOR                 no colour

Secrets:
  Masked in what a model reads, in the log, in commits and on the screen: the
  proxy's token, what has the shape of a token, credentials of the
  repository's configuration, and the value of every variable that has KEY,
  TOKEN, SECRET, PASSWORD, PASSWD, PASSPHRASE or CREDENTIAL (or a plural) as a
  part between underscores, PWD after one, or ends a part with such a word
  (PGPASSWORD, APIKEY). Not masked: values under 8 characters, a word of under
  16 letters, a path that is there. No command sees such a variable, unless
  commands.pass_env names it.

Output:
  Data goes to stdout, everything else to stderr. Nothing waits for input when
  stdin is no terminal, but a `nisse delegate` without a brief.

Examples:
  nisse doctor
  nisse delegate 'Make the parser accept trailing commas' --check 'cargo test'
  nisse log
  nisse resume";

pub(super) const DELEGATE: &str = "\
The result:
  A branch with one commit (branch.history), and a note that says what
  changed, what is true now and what is next. `nisse apply` applies it. A
  task that fails or reaches a cap leaves no branch; its commits stay under
  refs/nisse/discarded. Your checkout is never touched, save in place.
  A branch of a checkout with unfinished work begins with a commit of that;
  the result says of how many files. `nisse apply --commit` makes commits of
  the task's part alone, --base HEAD begins without it. Untracked files that
  files.deny names (.env, keys) are in no commit.

Where it works:
  In a git worktree of its own, started from the checkout as it is; a folder
  of the state directory, or of worktree.dir. Files that git ignores are not
  in it: worktree.copy names some to copy (.env, node_modules), worktree.setup
  a command to run first (npm ci). --isolation in-place works in the checkout
  itself, for checkouts made for the job: one with unfinished work is refused
  (6), for nothing of yours is to be lost. It goes onto the task's branch, and
  back when the task has ended, however it ends. Files that git ignores stay
  as the task left them. One task at a time can.

  What you change there while a task works is yours: before the next command,
  and before a file is written that you changed, the task waits for you (6).

Checks:
  Run by nisse itself in the task's worktree, after the model says that it is
  done; all must exit with 0. They come from --check, else check.commands.
  Without any, success is the model's word, and the result says so.
  Those in a repository's nisse.toml run only if you trust that file, since
  they are commands that somebody else wrote; so do its worktree.setup and
  worktree.copy. On a terminal you are shown them and asked; `nisse trust`
  says it until the file changes, --trust-project once.

Exit status:
  0   handed back, and every check passed
  1   the environment failed: git, disk, database, a proxy that is down
  2   wrong usage or configuration
  3   the model gave up, broke the rules, or the checks never passed
  4   a cap was reached
  5   interrupted by upstream trouble; `nisse resume` goes on
  6   a person must decide
  7   stopped on request; `nisse resume` goes on (a Ctrl-C at a terminal ends
      nisse by that signal, which a shell shows as 130)
  70  a bug in nisse

Examples:
  nisse delegate 'Fix the off-by-one in src/page.rs' --check 'cargo test page'
  nisse delegate --file brief.md --branch fix/pages --max-cost 2.50
  git log -1 --format=%B v1.2 | nisse delegate - --base v1.2
  make test 2>&1 | nisse delegate 'Make these tests pass:' -
  nisse delegate --json 'Port the tests to pytest' | tail -n 1 | jq .outcome";

pub(super) const RESUME: &str = "\
Decisions:
  Where it was not recorded how a command ended, or the files are not what the
  log says, the task rests with exit 6, and nothing is touched. On a terminal
  you are shown what is there, and asked. Elsewhere one of these says how it
  goes on:
  --rollback  branch and files go back to the last checkpoint; what was there
              is kept under refs/nisse/found; ignored files stay as they are
  --keep      what is in the worktree becomes a checkpoint
  --drop      the task is given up
  The model is told that its command was interrupted, and which it was.

Where:
  From anywhere in the repository that the task belongs to, a linked worktree
  of it too; a task in place from its own checkout. A task of another
  repository is named with its place, and nothing is done.

Exit status:
  as for `nisse delegate`; 0 also if nothing was pending

JSON:
  Events and a result, as `nisse delegate --json` prints them. If nothing was
  pending, one line that says so, with the type nothing_pending and exit 0.

Examples:
  nisse resume
  nisse resume 0199a3 --rollback";

pub(super) const APPLY: &str = "\
What is brought:
  The task's own commits; never the commit that holds the unfinished work that
  your checkout had when the task began. A file that you changed too is
  merged, if the changes do not touch each other. A file that you save in the
  moment in which it is written stops it, and what you saved stays.

Where:
  In the checkout that the task was begun in, and only from there: a task of
  another repository or worktree is named with its place, and nothing is done.
  `nisse -C PATH apply TASK` is the way. Whether the work is there already is
  seen by HEAD and the files: after a reset, a stash or a switch it comes
  again. What files alone do not say (a submodule's commit) is told.

Commits:
  --commit, --squash and --merge make commits as your own git does: your name,
  your hooks, your signature; the message is the note, also its lines that
  begin with #. A hook or a signature that refuses leaves the
  files in the checkout, and exit 6. With branch.history = \"squash\" a task has
  one commit, and --commit and --squash are the same. They need the paths to
  be free of changes of yours, --merge needs everything committed.

Taking it back:
  The checkout as it was is kept at refs/nisse/before-apply/<task> for 30
  days. --abort puts back every file that is still as it was brought, with its
  mode, and leaves what you have committed or changed since, which it names.

Exit status:
  0   applied, put back, or applied already
  1   the environment failed: git, disk, database
  2   no such task, a task of another checkout, or it was not handed back;
      with --abort: nothing of it is here, or all of it is committed
  6   your own changes stand against it, a commit was refused, or --abort left
      something

Examples:
  nisse apply 0199a3
  nisse apply 0199a3 --commit
  nisse apply 0199a3 --abort";

pub(super) const DROP: &str = "\
Exit status:
  0  given up, now or before
  1  the environment failed: git, disk, database, another nisse at work on it
  2  no such task, a task of another repository, or it has ended already

Examples:
  nisse drop 0199a3
  git log -p refs/nisse/discarded/<task>";

pub(super) const LOG: &str = "\
The diff:
  From the commit that the task started from to its last one, whether its
  branch stands or was discarded; your unfinished work is not in it. On a
  terminal it is coloured; in a pipe it is a patch, with binary files, modes
  and renames, from which `git apply` makes the same files.

Exit status:
  0  shown
  1  the environment failed: git, disk, database
  2  no such task, or one without commits

Elsewhere:
  The beginning of an id means a task of this repository before one of
  another. A task that was begun elsewhere is shown, and its place is said.

JSON:
  One document: the tasks, or a task with its events. With --follow, one
  event a line, as `nisse delegate --json` prints them.

The list:
  One line a task, as wide as the screen. running: a nisse works on it now;
  cut off: none does, and `nisse resume` goes on; waits: a person must decide;
  applied, committed: its work came into the checkout as files or as commits.

Examples:
  nisse log
  nisse log -n 5
  nisse log 0199a3
  nisse log --follow 0199a3
  nisse log 0199a3 --diff > task.patch
  nisse log 0199a3 --json | jq -r '.events[].event'";

pub(super) const MODELS: &str = "\
Columns:
  WINDOW and OUTPUT in tokens (128k), $/M in dollars for a million tokens in
  and out (3/15). Models that are declared to take no tools are counted alone;
  --all lists them. What does not fit the screen is cut; --json has all of it.

Exit status:
  0  listed
  1  the proxy cannot be reached
  2  the proxy's address, certificate or token is wrong

Examples:
  nisse models
  nisse models claude --all
  nisse models --json | jq -r '.models[].alias'";

pub(super) const DOCTOR: &str = "\
Leftovers:
  Worktrees, branches, refs and locks of tasks that have ended. --fix takes
  away what is provably dead: worktrees without changes of their own, branches
  whose commits another branch holds, refs of tasks that ended more than 30
  days ago. What holds something that nothing else holds stays, and is named;
  what this log does not know belongs to another nisse, and stays too.

Exit status:
  0  nothing is ✗
  1  something in the environment is ✗
  2  something in the configuration is ✗

Examples:
  nisse doctor
  nisse doctor -C ~/src/project --json";

pub(super) const INIT: &str = "\
Files:
  nisse/config.toml in your configuration directory, or what --config or
  NISSE_CONFIG names: yours. nisse.toml at the root of the repository, if you
  stand in one: the project's, to be committed. What is there already stays as
  it is. The token is in no file: set NISSE_LLM_TOKEN, or name a command that
  prints it; none is named for you.

What is filled in:
  The proxy's address, and a model for the role delegate: the one that
  NISSE_ROLE_DELEGATE names, or the only one that the proxy offers. On a
  terminal you are asked which of several; elsewhere they are listed in the
  file. A proxy that cannot be asked is said so, and the rest is written.

Exit status:
  0  written, or all of it was there
  1  a file cannot be written
  2  a variable holds a wrong setting

Examples:
  NISSE_LLM_BASE_URL=http://127.0.0.1:4000 nisse init
  nisse init --config ./ci.toml";

pub(super) const TRUST: &str = "\
What is trusted:
  This nisse.toml in this place with this content, as the state directory
  remembers it. After a change, as by a pull, it waits again. The commands are
  trusted as they stand there: what a `make test` runs is the repository's.
  No setting that a repository may not set comes through by it.

Exit status:
  0  trusted, or forgotten
  1  no repository, or it cannot be remembered
  2  no nisse.toml, or it is wrong

Examples:
  nisse trust
  nisse trust --revoke";

pub(super) const DEMO: &str = "\
What it leaves:
  A directory of its own below $TMPDIR, with the repository and the log. Its
  last lines say how to look at the task, how to apply it, and how to remove
  all of it.

Exit status:
  0  the test passes
  1  the environment failed: git, disk, no port on 127.0.0.1
  7  stopped on request (130 in a shell after a Ctrl-C at a terminal)

Examples:
  nisse demo
  nisse demo --json | tail -n 1 | jq .outcome";

pub(super) const COMPLETIONS: &str = "\
Examples:
  nisse completions bash > ~/.local/share/bash-completion/completions/nisse
  nisse completions zsh > ~/.zfunc/_nisse
  nisse completions fish > ~/.config/fish/completions/nisse.fish";

pub(super) const MAN: &str = "\
Examples:
  nisse man | man -l -
  nisse man delegate > nisse-delegate.1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_a_terminal() {
        for text in [NISSE, DELEGATE, RESUME, APPLY, DROP, LOG, MODELS, DOCTOR, INIT, TRUST, DEMO, COMPLETIONS, MAN] {
            for line in text.lines() {
                assert!(line.chars().count() <= 78, "{line}");
            }
        }
    }
}
