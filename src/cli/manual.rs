//! What `--help` and the manual pages say beyond the list of options: exit codes, files, examples.
//!
//! Lines have at most 78 columns, because clap does not wrap this text.

pub(super) const ABOUT: &str = "\
Delegate coding work to a model, on a branch of its own

A task works in a git worktree on its own branch. It starts from your checkout as it is, uncommitted work included; your \
files, index and branches are not touched. A log records everything that happens, so that `nisse resume` can continue an \
interrupted task. nisse verifies success itself: files must have changed, and your checks must pass.";

/// The screen of `nisse help`: clap cannot group commands. A test compares its lines with the commands.
pub(super) const SCREEN: &str = "\
{before-help}{about-with-newline}
{usage-heading} {usage}

\u{1b}[1;4mWork on a task:\u{1b}[0m
  \u{1b}[1mdelegate\u{1b}[0m     Run one bounded task on a branch of its own
  \u{1b}[1mresume\u{1b}[0m       Resume an interrupted task
  \u{1b}[1mapply\u{1b}[0m        Apply the work of a finished task to your checkout
  \u{1b}[1mdrop\u{1b}[0m         Give up a task

\u{1b}[1;4mInspect:\u{1b}[0m
  \u{1b}[1mlog\u{1b}[0m          List the tasks of this checkout, or the events of one
  \u{1b}[1mmodels\u{1b}[0m       List the models that the proxy offers to this key
  \u{1b}[1mdoctor\u{1b}[0m       Check everything that a run needs

\u{1b}[1;4mSet up:\u{1b}[0m
  \u{1b}[1minit\u{1b}[0m         Write the settings files, filled in with what the proxy offers
  \u{1b}[1mtrust\u{1b}[0m        Trust the repository's nisse.toml as it is now
  \u{1b}[1mcompletions\u{1b}[0m  Print a completion script for a shell
  \u{1b}[1mman\u{1b}[0m          Print a manual page

\u{1b}[1;4mLearn:\u{1b}[0m
  \u{1b}[1mdemo\u{1b}[0m         Watch a whole delegation without any setup
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
  5   interrupted by the proxy or the model's vendor; `nisse resume` continues
  6   a person must decide
  7   stopped on request; `nisse resume` continues (after Ctrl-C at a terminal
      nisse ends by that signal, which a shell shows as 130)
  70  a bug in nisse

Settings, later ones win:
  1. built-in values
  2. nisse/config.toml in your configuration directory, or --config
  3. nisse.toml at the repository's root, which may not set everything
  4. environment variables
  5. options
  `nisse doctor -v` shows where each value comes from.

Variables:
  NISSE_LLM_BASE_URL       address of the LiteLLM proxy (proxy.base_url)
  NISSE_LLM_TOKEN          its token (or proxy.token_command, .token_file)
  NISSE_ROLE_<ROLE>        a role's model (roles.delegate and so on)
  NISSE_STATE_DIR          directory of the log and the worktrees
  NISSE_CONFIG             the settings file
  NISSE_MAX_OUTPUT_TOKENS  output limit of a reply (max_output_tokens)
  NISSE_<SECTION>_<KEY>    any other setting (NISSE_DELEGATE_MAX_TURNS);
                           a list has one entry per line
  NO_COLOR                 no colour

Secrets:
  nisse masks secrets in what a model reads, in the log, in commits and on the
  screen: the proxy's token, anything that looks like a token, credentials in
  the repository's configuration, and the value of every environment variable
  whose name says that it is secret. Such a name has KEY, TOKEN, SECRET,
  PASSWORD, PASSWD, PASSPHRASE or CREDENTIAL (or a plural) as a part between
  underscores, or PWD as a part after the first, or a part that ends in one of
  these words (PGPASSWORD, APIKEY). Not masked: values under 8 characters, a
  single word under 16 letters, the path of an existing file. No command sees
  such a variable unless commands.pass_env names it.

Output:
  Data goes to stdout, everything else to stderr. If stdin is not a terminal,
  nothing waits for input except `nisse delegate` without a brief.

Examples:
  nisse doctor
  nisse delegate 'Make the parser accept trailing commas' --check 'cargo test'
  nisse log
  nisse resume";

pub(super) const DELEGATE: &str = "\
The result:
  A branch with one commit (branch.history), and a note that says what
  changed, what is true now and what comes next. `nisse apply` applies it. A
  task that fails or reaches a cap leaves no branch; its commits are kept
  under refs/nisse/discarded. Your checkout is not touched, except by
  --isolation in-place.
  If your checkout has uncommitted work, the branch begins with a commit of
  it; the result says how many files. `nisse apply --commit` commits
  the task's part only, and --base HEAD starts without your uncommitted work.
  Untracked files that files.deny names (.env, keys) are in no commit.

Where it works:
  In a git worktree of its own, made from the checkout as it is, in the state
  directory or in worktree.dir. It has no files that git ignores:
  worktree.copy names some to copy (.env, node_modules), and worktree.setup a
  command to run first (npm ci).
  --isolation in-place works in the checkout itself, and is meant for
  checkouts made for the job. It refuses one with uncommitted work (6), so
  that nothing of yours can be lost. It switches to the task's branch, and
  switches back when the task ends, however it ends. Files that git ignores
  stay as the task left them. Only one task at a time can work in place.

  What you change there while a task works stays yours: before the next
  command, and before it writes a file that you changed, the task stops and
  asks you (6).

Checks:
  After the model says that it is done, nisse runs the checks in the task's
  worktree; all must exit with 0. They come from --check, or else from
  check.commands. Without checks, success is the model's word, and the result
  says so.
  Checks in a repository's nisse.toml run only if you trust that file, because
  someone else wrote them; the same holds for its worktree.setup and
  worktree.copy. On a terminal, nisse shows them and asks. `nisse trust`
  trusts them until the file changes, --trust-project once.

Exit status:
  0   handed back, and every check passed
  1   the environment failed: git, disk, database, a proxy that is down
  2   wrong usage or configuration
  3   the model gave up, broke the rules, or the checks never passed
  4   a cap was reached
  5   interrupted by the proxy or the model's vendor; `nisse resume` continues
  6   a person must decide
  7   stopped on request; `nisse resume` continues (after Ctrl-C at a terminal
      nisse ends by that signal, which a shell shows as 130)
  70  a bug in nisse

Examples:
  nisse delegate 'Fix the off-by-one in src/page.rs' --check 'cargo test page'
  nisse delegate --file brief.md --branch fix/pages --max-cost 2.50
  git log -1 --format=%B v1.2 | nisse delegate - --base v1.2
  make test 2>&1 | nisse delegate 'Make these tests pass:' -
  nisse delegate --json 'Port the tests to pytest' | tail -n 1 | jq .outcome";

pub(super) const RESUME: &str = "\
Decisions:
  If the log does not say how a command ended, or the files differ from the
  log, the task waits for you (exit 6), and nothing is touched. On a terminal,
  nisse shows what it found, and asks. Elsewhere, choose with an option:
  --rollback  restore branch and files of the last checkpoint; what was there
              is kept under refs/nisse/found; ignored files stay as they are
  --keep      make a checkpoint of what is in the worktree
  --drop      give up the task
  The model is told which of its commands was interrupted.

Where:
  Run it anywhere in the task's repository, a linked worktree included; for a
  task in place, in its own checkout. For a task of another repository, nisse
  says where that is, and does nothing.

Exit status:
  as for `nisse delegate`; 0 also if nothing was pending

JSON:
  Events and a result, as `nisse delegate --json` prints them. If nothing was
  pending, one line of type nothing_pending, and exit 0.

Examples:
  nisse resume
  nisse resume 0199a3 --rollback";

pub(super) const APPLY: &str = "\
What is applied:
  The task's own commits, never the commit with the uncommitted work that your
  checkout had when the task began. If you changed the same file, the changes
  are merged, unless they overlap. If you save a file at the moment when nisse
  writes it, nisse stops, and what you saved stays.

Where:
  Only in the checkout in which the task began. For a task of another
  repository or worktree, nisse says where that is, and does nothing; use
  `nisse -C PATH apply TASK`. HEAD and the files show whether the work is
  already there: after a reset, a stash or a switch, it is applied again. What
  files cannot show (a submodule's commit), nisse tells you.

Commits:
  --commit, --squash and --merge commit as your own git does: with your name,
  your hooks and your signature. The commit message is the note, including
  lines that begin with #. If a hook or the signing fails, the files stay in
  the checkout, uncommitted, and nisse exits with 6. With
  branch.history = \"squash\" a task has one commit, and --commit and --squash
  do the same. Both need the task's paths free of changes of yours; --merge
  needs everything committed.

Undo:
  Your checkout as it was before is kept at refs/nisse/before-apply/<task> for
  30 days. --abort restores every file that is still as nisse wrote it, with
  its mode. It leaves what you have committed or changed since, and names it.

Exit status:
  0   applied, undone, or already applied
  1   the environment failed: git, disk, database
  2   no such task, a task of another checkout, or it was not handed back;
      with --abort: the task is not applied here, or all of it is committed
  6   your own changes conflict, a commit was refused, or --abort left
      something

Examples:
  nisse apply 0199a3
  nisse apply 0199a3 --commit
  nisse apply 0199a3 --abort";

pub(super) const DROP: &str = "\
Exit status:
  0  given up, now or before
  1  the environment failed: git, disk, database, or another nisse works on it
  2  no such task, a task of another repository, or it has already ended

Examples:
  nisse drop 0199a3
  git log -p refs/nisse/discarded/<task>";

pub(super) const LOG: &str = "\
The diff:
  From the commit that the task started from to its last one, even if its
  branch was discarded; without your uncommitted work. On a terminal it is
  coloured. In a pipe it is a patch with binary files, modes and renames, from
  which `git apply` makes the same files.

Exit status:
  0  shown
  1  the environment failed: git, disk, database
  2  no such task, or one without commits

Other repositories:
  A short id names a task of this repository first, then one of another. For a
  task of another repository, nisse also says where that is.

JSON:
  One document: the tasks, or a task with its events. With --follow, one
  event per line, as `nisse delegate --json` prints them.

The list:
  One line per task, cut to the screen's width. running: a nisse works on it;
  cut off: none does, and `nisse resume` continues; waits: a person must
  decide; applied, committed: its work is in the checkout, as files or as
  commits.

Examples:
  nisse log
  nisse log -n 5
  nisse log 0199a3
  nisse log --follow 0199a3
  nisse log 0199a3 --diff > task.patch
  nisse log 0199a3 --json | jq -r '.events[].event'";

pub(super) const MODELS: &str = "\
Columns:
  WINDOW and OUTPUT are in tokens (128k), $/M in dollars per million tokens of
  input and output (3/15). Models declared without tool support are only
  counted; --all lists them. Wide columns are cut to the screen's width;
  --json prints everything.

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
  Worktrees, branches, refs and locks of tasks that have ended. --fix removes
  only what is provably dead: worktrees without changes of their own, branches
  whose commits another branch holds, refs of tasks that ended more than 30
  days ago. If a leftover holds something that nothing else holds, it stays,
  and nisse names it. Leftovers that are not in this log belong to another
  nisse, and stay too.

Exit status:
  0  nothing is ✗
  1  something in the environment is ✗
  2  something in the configuration is ✗

Examples:
  nisse doctor
  nisse doctor -C ~/src/project --json";

pub(super) const INIT: &str = "\
Files:
  Your own settings: nisse/config.toml in your configuration directory, or the
  file that --config or NISSE_CONFIG names. The project's settings: nisse.toml
  at the root of the repository, if you are in one; commit it. Existing files
  are left as they are. No file holds the token: set NISSE_LLM_TOKEN, or name
  a command that prints it.

What is filled in:
  The proxy's address, and a model for the role delegate: the one in
  NISSE_ROLE_DELEGATE, or the only one that the proxy offers. If there are
  several, nisse asks on a terminal; elsewhere it lists them in the file. If
  the proxy does not answer, nisse says so and writes the rest.

Exit status:
  0  written, or all files existed already
  1  a file cannot be written
  2  a variable holds a wrong setting

Examples:
  NISSE_LLM_BASE_URL=http://127.0.0.1:4000 nisse init
  nisse init --config ./ci.toml";

pub(super) const TRUST: &str = "\
What is trusted:
  This nisse.toml, at this path, with this content; the state directory
  remembers it. When the file changes, for instance by a pull, you are asked
  again. You trust the commands as written: what `make test` runs is up to the
  repository. Trust does not let the file set what a repository may not set.

Exit status:
  0  trusted, or no longer trusted
  1  no repository, or it cannot be remembered
  2  no nisse.toml, or it is wrong

Examples:
  nisse trust
  nisse trust --revoke";

pub(super) const DEMO: &str = "\
What it leaves:
  A directory of its own below $TMPDIR, with the repository and the log. The
  last lines say how to look at the task, how to apply it, and how to remove
  everything.

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
