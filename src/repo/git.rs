//! The one place that runs the git program.
//!
//! Every call names its repository, has a closed environment and nothing to read from but what it is given, is alone in
//! its process group and without a terminal, ends within a limit, and runs nothing that a configuration names.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    os::{fd::OwnedFd, unix::process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::{Arc, Weak},
    time::Duration,
};

use super::{
    Environment, Error,
    environment::PATH,
    lock_files::{in_the_way, named_in},
    names::is_lock_reason_of,
    own_index,
    process::{EndableGit, exchange, set_apart},
    running_git::RunningGit,
    small_files::read_line,
};
use crate::domain::{filters::Filters, id::TaskId};

/// Calls that look or write a little.
const SHORT: Duration = Duration::from_mins(2);
/// Calls that go through all files.
pub(super) const LONG: Duration = Duration::from_mins(20);

/// Configuration that holds for every call of ours, whatever the person's says.
const SETTINGS: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.splitIndex", "false"),
    ("index.sparse", "false"),
    ("core.fsync", "committed,reference"),
    // a reflog would be one more thing left behind in the person's repository
    ("core.logAllRefUpdates", "false"),
    // staging must not fail over a line ending that git itself would convert
    ("core.safecrlf", "false"),
    ("commit.gpgSign", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("i18n.commitEncoding", "UTF-8"),
    ("submodule.recurse", "false"),
    // else `worktree add` writes an extension into the repository's configuration
    ("worktree.useRelativePaths", "false"),
];

/// Subcommands that write the index of the working tree.
const INDEX_WRITERS: &[&str] =
    &["read-tree", "update-index", "reset", "merge", "checkout", "switch", "restore", "add", "rm", "sparse-checkout"];

/// How a call ended, with its standard output and standard error.
type Finished = (ExitStatus, Vec<u8>, Vec<u8>);

/// The git program, set up for one repository and one working tree.
#[derive(Clone, Debug)]
pub(super) struct Git {
    environment: Environment,
    repository: Option<(PathBuf, PathBuf)>,
    filters: Filters,
    no_fetch: bool,
    locks: Vec<Weak<File>>,
    /// The task that writes indexes of the person's by way of a copy.
    owner: Option<TaskId>,
    /// The working tree as it was opened: what its path leads to may be another one by now.
    directory: Option<Arc<OwnedFd>>,
    /// Where a call is known that may be ended.
    endable: EndableGit,
}

impl Git {
    /// Git without a repository: it looks for one from the directory that a call names with `-C`.
    pub(super) fn new(environment: Environment) -> Self {
        Self {
            environment,
            repository: None,
            filters: Filters::default(),
            no_fetch: false,
            locks: Vec::new(),
            owner: None,
            directory: None,
            endable: EndableGit::default(),
        }
    }

    /// The same, whose calls that may be ended are known there.
    pub(super) fn endable_by(&self, endable: EndableGit) -> Self {
        Self { endable, ..self.clone() }
    }

    /// The same for the repository at `git_dir` and the working tree `work_tree`.
    pub(super) fn at(&self, git_dir: &Path, work_tree: &Path) -> Self {
        Self { repository: Some((git_dir.to_owned(), work_tree.to_owned())), directory: None, ..self.clone() }
    }

    /// The same in the working tree that was opened so.
    pub(super) fn within(&self, directory: Arc<OwnedFd>) -> Self {
        Self { directory: Some(directory), ..self.clone() }
    }

    /// The same with these content filters as they are here, whatever the configuration says of them.
    pub(super) fn with_filters(&self, filters: Filters) -> Self {
        Self { filters, ..self.clone() }
    }

    /// The same without fetching objects that a partial clone lacks: the place to fetch from may have been changed.
    pub(super) fn without_fetching(&self) -> Self {
        Self { no_fetch: true, ..self.clone() }
    }

    /// The same for the owner of a task: with processes that hold these locks, the owner's, for as long as they live.
    pub(super) fn with_task_locks(&self, task: TaskId, locks: Vec<Weak<File>>) -> Self {
        Self { locks, owner: Some(task), ..self.clone() }
    }

    /// Does what writes the index. One that is a person's it is to write by way of a copy, which it is given.
    pub(super) fn writing_index<T>(&self, work: impl Fn(Option<&Path>) -> Result<T, Error>) -> Result<T, Error> {
        match (&self.repository, self.owner) {
            (Some((git_dir, work_tree)), Some(task)) if !is_of_task(git_dir, task) => {
                own_index::through(git_dir, work_tree, task, |copy| work(Some(copy)))
            }
            (Some(_) | None, Some(_) | None) => work(None),
        }
    }

    /// What it sees of the environment.
    pub(super) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// A call of `git <args…>`.
    pub(super) fn call<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Call<'_> {
        Call {
            git: self,
            args: args.into_iter().map(|arg| arg.as_ref().to_owned()).collect(),
            variables: Vec::new(),
            settings: Vec::new(),
            input: None,
            limit: SHORT,
            fine: 0,
            by_the_person: false,
            endable: false,
        }
    }
}

/// A call that is being put together.
#[derive(Debug)]
pub(super) struct Call<'a> {
    git: &'a Git,
    args: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
    settings: Vec<(&'static str, &'static str)>,
    input: Option<Vec<u8>>,
    limit: Duration,
    fine: i32,
    by_the_person: bool,
    endable: bool,
}

impl Call<'_> {
    /// Further arguments.
    pub(super) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// An environment variable.
    pub(super) fn variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// Another index than the working tree's own.
    pub(super) fn index(self, index: Option<&Path>) -> Self {
        match index {
            Some(path) => self.variable("GIT_INDEX_FILE", path),
            None => self,
        }
    }

    /// A setting for this call.
    pub(super) fn setting(mut self, key: &'static str, value: &'static str) -> Self {
        self.settings.push((key, value));
        self
    }

    /// What the program reads from its standard input; nothing if this is not called.
    pub(super) fn input(mut self, bytes: Vec<u8>) -> Self {
        self.input = Some(bytes);
        self
    }

    /// Another limit than two minutes.
    pub(super) fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Another exit status than 0 that is no failure.
    pub(super) fn also_fine(mut self, status: i32) -> Self {
        self.fine = status;
        self
    }

    /// Runs as the person would: with their environment, hooks, signing and whatever else their configuration names.
    pub(super) fn by_the_person(mut self) -> Self {
        self.by_the_person = true;
        self.endable = true;
        self
    }

    /// May be ended by a person who does not want to wait: nothing is lost by it.
    pub(super) fn endable(mut self) -> Self {
        self.endable = true;
        self
    }

    /// Runs it and gives its standard output; any other exit status is an error with the program's words.
    pub(super) fn run(self) -> Result<Vec<u8>, Error> {
        let (action, fine) = (self.action(), self.fine);
        let (status, stdout, stderr) = self.finish(&action)?;
        if status.success() || status.code() == Some(fine) {
            return Ok(stdout);
        }
        let stderr = words(&stderr);
        match named_in(&stderr) {
            Some(lock) => Err(in_the_way(&lock)),
            None => Err(Error::Git { action, status: status.to_string(), stderr }),
        }
    }

    /// Runs it and gives its exit status, where it ended by itself.
    pub(super) fn status(self) -> Result<i32, Error> {
        let action = self.action();
        let (status, _, stderr) = self.finish(&action)?;
        status.code().ok_or_else(|| Error::Git { action, status: status.to_string(), stderr: words(&stderr) })
    }

    /// Runs it and gives its standard output as one line of text.
    pub(super) fn line(self) -> Result<String, Error> {
        let action = self.action();
        let stdout = self.run()?;
        match String::from_utf8(stdout) {
            Ok(text) if !text.trim().is_empty() => Ok(text.trim_end_matches('\n').to_owned()),
            Ok(text) => Err(Error::Unreadable { action, answer: text }),
            Err(error) => Err(Error::Unreadable { action, answer: words(error.as_bytes()) }),
        }
    }

    /// Runs it and gives the parts of its standard output, each ended by NUL.
    pub(super) fn parts(self) -> Result<Vec<Vec<u8>>, Error> {
        let stdout = self.run()?;
        Ok(stdout.split(|byte| *byte == 0).filter(|part| !part.is_empty()).map(<[u8]>::to_vec).collect())
    }

    /// The subcommand, for messages.
    fn action(&self) -> String {
        let mut args = self.args.iter();
        match args.next() {
            Some(first) if first == "-C" => args.nth(1),
            other => other,
        }
        .map(|arg| arg.to_string_lossy().into_owned())
        .unwrap_or_default()
    }

    fn command(&self) -> Command {
        // looked up here: a relative place would be looked for in the worktree, and hooks are told the plain name
        let program = self.git.environment.program("git").unwrap_or_else(|| "git".into());
        #[expect(clippy::disallowed_methods, reason = "the one home of the git program")]
        let mut command = Command::new(program);
        command.arg0("git");
        command.env_clear().env("PATH", PATH);
        if self.by_the_person {
            command.envs(self.git.environment.person.iter().map(|(name, value)| (name, value)));
            // nobody sits in front of an editor
            command.envs([("GIT_TERMINAL_PROMPT", "0"), ("GIT_EDITOR", ":"), ("GIT_MERGE_AUTOEDIT", "no")]);
        } else {
            command.envs(self.git.environment.kept.iter().map(|(name, value)| (name, value)));
            command.envs([("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_OPTIONAL_LOCKS", "0")]);
            // a replaced object would be read in another way than libgit2 reads it
            command.env("GIT_NO_REPLACE_OBJECTS", "1");
            self.configure(&mut command);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));

        if let Some((git_dir, work_tree)) = &self.git.repository {
            let opened = self.git.directory.is_some();
            if !opened {
                command.current_dir(work_tree);
            }
            // a hook may work in other repositories, which these would follow it to
            if !self.by_the_person {
                let work_tree = if opened { Path::new(".") } else { work_tree };
                command.arg("--git-dir").arg(git_dir).arg("--work-tree").arg(work_tree);
            }
        }
        command.args(&self.args);
        command.stdin(if self.input.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        // what the person's hooks leave in the background would keep the task for ever
        let held: &[Weak<File>] = if self.by_the_person { &[] } else { &self.git.locks };
        let locks = held.iter().filter_map(Weak::upgrade).collect();
        set_apart(&mut command, locks, self.git.directory.clone());
        command
    }

    /// What holds whatever the person's configuration says.
    fn configure(&self, command: &mut Command) {
        if self.git.no_fetch {
            command.env("GIT_NO_LAZY_FETCH", "1");
        }
        let fixed = SETTINGS.iter().chain(&self.settings).map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        // after the person's own, so that ours hold
        let mut count = self.git.environment.settings();
        for (key, value) in fixed.chain(self.git.filters.settings()) {
            command.env(format!("GIT_CONFIG_KEY_{count}"), key).env(format!("GIT_CONFIG_VALUE_{count}"), value);
            count += 1;
        }
        command.env("GIT_CONFIG_COUNT", count.to_string());
    }

    /// Whether it writes the index of the working tree.
    fn writes_index(&self, action: &str) -> bool {
        INDEX_WRITERS.contains(&action)
            && !self.by_the_person
            && !self.variables.iter().any(|(name, _)| *name == "GIT_INDEX_FILE")
    }

    fn finish(&self, action: &str) -> Result<Finished, Error> {
        if self.writes_index(action) {
            return self.git.writing_index(|index| self.finish_once(action, index));
        }
        self.finish_once(action, None)
    }

    fn finish_once(&self, action: &str, index: Option<&Path>) -> Result<Finished, Error> {
        let running = match (&self.git.repository, self.git.owner) {
            (Some((git_dir, _)), Some(task)) if !self.by_the_person => RunningGit::begin(git_dir, task, action),
            (Some(_) | None, Some(_) | None) => None,
        };
        let mut command = self.command();
        command.envs(index.map(|index| ("GIT_INDEX_FILE", index)));
        let child = match command.spawn() {
            Ok(child) => child,
            Err(source) => {
                // a working tree that is gone looks like a program that is gone
                let gone = self.git.repository.as_ref().map(|(_, work_tree)| work_tree).filter(|path| !path.is_dir());
                return Err(match gone {
                    Some(path) => super::io_error("enter", path)(source),
                    None => Error::NoGit { source },
                });
            }
        };
        let input = self.input.clone();
        let ended = exchange(child, input, self.limit, self.endable.then_some(&self.git.endable))
            .map_err(|source| Error::Io { what: format!("wait for git {action}"), source })?;
        if let Some(running) = running {
            // one that was killed may have left its locks
            if ended.status.is_some_and(|status| status.code().is_some()) { running.end() } else { running.killed() }
        }
        match ended.status {
            Some(status) => Ok((status, ended.stdout, ended.stderr)),
            None => Err(Error::TimedOut { action: action.to_owned(), limit: self.limit }),
        }
    }
}

/// Whether a git directory is the entry of the task's own worktree: whatever lies in it is the task's.
fn is_of_task(git_dir: &Path, task: TaskId) -> bool {
    read_line(&git_dir.join("locked")).is_some_and(|words| is_lock_reason_of(task, &words))
}

/// The program's words on one line, at most a thousand characters.
fn words(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let joined = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    if joined.is_empty() { "it said nothing".to_owned() } else { joined.chars().take(1000).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        Environment::new([
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("GIT_DIR".into(), "/elsewhere".into()),
            ("SOME_TOKEN".into(), "secret".into()),
            ("NISSE_LLM_TOKEN".into(), "secret".into()),
        ])
    }

    #[test]
    fn only_what_git_needs_is_passed_on() {
        let names = |list: &[(OsString, OsString)]| -> Vec<String> {
            list.iter().map(|(name, _)| name.to_str().unwrap().to_owned()).collect()
        };
        let Environment { kept, person } = environment();
        assert_eq!(names(&kept), ["PATH"]);
        assert_eq!(names(&person), ["PATH", "SOME_TOKEN"], "a commit of the person's sees what theirs would");
    }

    #[test]
    fn a_program_that_does_not_end_is_killed_with_its_children() {
        let git = Git::new(environment());
        let call = git.call(["-c", "alias.wait=!sleep 600 & sleep 600", "wait"]).limit(Duration::from_millis(200));
        assert!(matches!(call.run(), Err(Error::TimedOut { .. })));
    }

    #[test]
    fn a_failure_carries_the_programs_words() {
        let git = Git::new(environment());
        let error = git.call(["-C", "/", "cat-file", "-t", "nothing"]).run().unwrap_err();
        assert!(
            matches!(&error, Error::Git { action, stderr, .. } if action == "cat-file" && !stderr.is_empty()),
            "{error}"
        );
    }

    #[test]
    fn more_than_a_pipe_holds_goes_in_and_out() {
        let git = Git::new(environment());
        let bytes = vec![b'x'; 1 << 20];
        let out = git.call(["-c", "alias.echo=!cat", "echo"]).input(bytes.clone()).run().unwrap();
        assert_eq!(out, bytes);
    }
}
