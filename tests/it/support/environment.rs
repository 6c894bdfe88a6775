//! A world for one test: private directories, a cleared environment, a pinned clock and ids, a checkout, a proxy.
//!
//! When it goes out of scope it asserts what every test means: the checkout is byte for byte what it was, and no
//! request was wrong. When a test fails, it keeps the directories and prints how to run the same by hand.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    thread,
};

use nisse::commands::{
    open::Opened,
    settings::{Directories, Environment, Flags},
};

use super::{
    Checkout, Fingerprint, Run, Script, Server, Wire,
    inspect::Memory,
    process::{DEADLINE, Running, wait_until},
    server::TOKEN,
};

/// The moment at which the clock stands still: 2026-11-29, 00:00 UTC.
const CLOCK_MS: &str = "1795910400000";

/// The world.
pub(crate) struct TestEnvironment {
    directory: Option<tempfile::TempDir>,
    /// The person's repository: one commit with `a.txt`, unless the test adds to it.
    pub(crate) checkout: Checkout,
    /// The scripted proxy.
    pub(crate) server: Server,
    variables: RefCell<Vec<(String, String)>>,
    before: RefCell<Option<Fingerprint>>,
    may_add: RefCell<Vec<String>>,
    runs: RefCell<Vec<Run>>,
    started: Cell<u32>,
    /// How many were started when a world was kept, and what the proxy had been asked.
    kept: RefCell<BTreeMap<String, (u32, Memory)>>,
}

impl TestEnvironment {
    /// A world whose delegate is asked by `wire` and answers as `script` says.
    pub(crate) fn new(wire: Wire, script: impl Into<Script>) -> Self {
        Self::within(&std::env::temp_dir(), wire, script)
    }

    /// The same within this directory.
    pub(crate) fn within(place: &Path, wire: Wire, script: impl Into<Script>) -> Self {
        let directory =
            tempfile::Builder::new().prefix("nisse-test-").tempdir_in(place).expect("a temporary directory");
        let root = fs::canonicalize(directory.path()).expect("the temporary directory");
        for name in ["home", "run"] {
            fs::create_dir(root.join(name)).expect("a private directory");
        }
        let checkout = Checkout::new(&root.join("checkout"));
        checkout.write("a.txt", "a\n").commit("base");
        let server = Server::new(script);
        let at = |name: &str| root.join(name).to_str().expect("a path in UTF-8").to_owned();
        let variables = [
            ("PATH", std::env::var("PATH").expect("PATH")),
            ("HOME", at("home")),
            ("XDG_CONFIG_HOME", at("home/config")),
            ("XDG_STATE_HOME", at("home/state")),
            ("XDG_DATA_HOME", at("home/data")),
            ("XDG_CACHE_HOME", at("home/cache")),
            ("XDG_RUNTIME_DIR", at("run")),
            ("NISSE_STATE_DIR", at("state")),
            ("NISSE_LLM_BASE_URL", server.url()),
            ("NISSE_LLM_TOKEN", TOKEN.to_owned()),
            ("NISSE_ROLE_DELEGATE", wire.alias().to_owned()),
            ("NISSE_TEST_CLOCK", CLOCK_MS.to_owned()),
        ];
        Self {
            directory: Some(directory),
            checkout,
            server,
            variables: RefCell::new(variables.map(|(name, value)| (name.to_owned(), value)).to_vec()),
            before: RefCell::default(),
            may_add: RefCell::default(),
            runs: RefCell::default(),
            started: Cell::default(),
            kept: RefCell::default(),
        }
    }

    /// The world's directory.
    pub(crate) fn root(&self) -> PathBuf {
        self.checkout.path().parent().expect("the checkout lies in it").to_owned()
    }

    /// Sets a variable for the runs to come.
    pub(crate) fn set(&self, name: &str, value: &str) -> &Self {
        let mut variables = self.variables.borrow_mut();
        variables.retain(|(known, _)| known != name);
        variables.push((name.to_owned(), value.to_owned()));
        drop(variables);
        self
    }

    /// The person's settings file.
    pub(crate) fn configure(&self, text: &str) -> &Self {
        let directory = self.root().join("home/config/nisse");
        fs::create_dir_all(&directory).expect("a directory for settings");
        fs::write(directory.join("config.toml"), text).expect("a settings file");
        self
    }

    /// Puts lines of shell before the git program that nisse finds; `"$real"` is that program.
    pub(crate) fn before_git(&self, lines: &str) -> &Self {
        let path = std::env::var("PATH").unwrap();
        let real = std::env::split_paths(&path).map(|place| place.join("git")).find(|git| git.is_file()).unwrap();
        let bin = self.root().join("bin");
        fs::create_dir_all(&bin).unwrap();
        let script = format!("#!/bin/sh\nreal='{}'\n{lines}\nexec \"$real\" \"$@\"\n", real.display());
        fs::write(bin.join("git"), script).unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(bin.join("git"), executable).unwrap();
        self.set("PATH", &format!("{}:{path}", bin.display()))
    }

    /// The git program as it is, again.
    pub(crate) fn plain_git(&self) -> &Self {
        self.set("PATH", &std::env::var("PATH").unwrap())
    }

    /// Takes a variable away from the runs to come.
    pub(crate) fn unset(&self, name: &str) -> &Self {
        self.variables.borrow_mut().retain(|(known, _)| known != name);
        self
    }

    /// Counts the processes from here on, so that the tasks of several worlds share no id.
    pub(crate) fn count_from(&self, started: u32) -> &Self {
        self.started.set(started);
        self
    }

    /// Lets the clock run.
    pub(crate) fn with_running_clock(self) -> Self {
        self.variables.borrow_mut().retain(|(name, _)| name != "NISSE_TEST_CLOCK");
        self
    }

    /// A further place in the checkout where the task may add something, as `.git/refs/heads/mine`.
    pub(crate) fn may_add(&self, place: &str) -> &Self {
        self.may_add.borrow_mut().push(place.to_owned());
        self
    }

    /// The person changes a file of the checkout while a task runs: it is no longer expected to be what it was.
    /// To be called before the first run, which is when the checkout's state is taken.
    pub(crate) fn person_will_change(&self, file: &str) -> &Self {
        let mut before = Fingerprint::of(self.checkout.path());
        self.may_add(file);
        for place in self.may_add.borrow().iter() {
            before.forget(place);
        }
        self.before.replace(Some(before));
        self
    }

    /// What is different in the checkout since its state was taken, and takes it anew: to be called where something was
    /// meant to change.
    pub(crate) fn changed_paths(&self) -> Vec<String> {
        let now = Fingerprint::of(self.checkout.path());
        let changes = self.before.borrow().as_ref().map(|before| before.changes(&now, &[])).unwrap_or_default();
        self.before.replace(Some(now));
        changes.iter().filter_map(|change| change.split(": ").next()).map(str::to_owned).collect()
    }

    /// The person does something in the checkout: its state is taken anew after it.
    pub(crate) fn person(&self, act: impl FnOnce(&Checkout)) -> &Self {
        act(&self.checkout);
        self.before.replace(Some(Fingerprint::of(self.checkout.path())));
        self
    }

    /// Keeps the world as it is now, checkout and state directory, under a name.
    pub(crate) fn keep(&self, name: &str) {
        for place in ["checkout", "state"] {
            self.copy(place, &format!("{place}-{name}"));
        }
        self.kept.borrow_mut().insert(name.to_owned(), (self.started.get(), self.server.memory()));
    }

    /// Makes the world what was kept under the name; the runs to come get the ids that they got then.
    pub(crate) fn bring_back(&self, name: &str) {
        for place in ["checkout", "state"] {
            self.copy(&format!("{place}-{name}"), place);
        }
        let (started, memory) = self.kept.borrow()[name].clone();
        self.started.set(started);
        self.server.remember(memory);
    }

    /// Makes a place in the world's directory what another one is: its times too, since git compares them.
    pub(crate) fn copy(&self, from: &str, to: &str) {
        let (from, to) = (self.root().join(from), self.root().join(to));
        let _ = fs::remove_dir_all(&to);
        if !from.exists() {
            return;
        }
        let copied = Command::new("cp").arg("-a").args([&from, &to]).status().expect("cp starts");
        assert!(copied.success(), "cp -a {} {}", from.display(), to.display());
    }

    /// Where log and worktrees are.
    pub(crate) fn state(&self) -> PathBuf {
        self.root().join("state")
    }

    /// Runs `nisse delegate --json … BRIEF` in the checkout.
    pub(crate) fn delegate(&self, options: &[&str], brief: &str) -> Run {
        self.run(&[&["delegate", "--json"], options, &[brief]].concat())
    }

    /// Runs `nisse` in the checkout to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        self.finish(self.start(arguments))
    }

    /// Waits for the end of a run that was started.
    pub(crate) fn finish(&self, running: Running) -> Run {
        let run = running.finish();
        self.runs.borrow_mut().push(run.clone());
        run
    }

    /// Runs another program in this world, such as a shell that runs `nisse`, to its end.
    pub(crate) fn run_program(&self, program: &str, arguments: &[&str]) -> Run {
        self.begin();
        let mut command = self.command(program, arguments);
        command.stdin(Stdio::null());
        self.finish(Running::start(command, format!("{program} {}", arguments.join(" "))))
    }

    /// Starts `nisse` in the checkout, without a terminal and with nothing on stdin.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        self.start_with(arguments, Stdio::null())
    }

    /// Starts `nisse` in the checkout with this stdin.
    pub(crate) fn start_with(&self, arguments: &[&str], stdin: Stdio) -> Running {
        self.begin();
        let mut command = self.command(env!("CARGO_BIN_EXE_nisse"), arguments);
        command.stdin(stdin);
        let shown = self.shown(arguments);
        Running::start(command, shown)
    }

    /// Starts `nisse` in the checkout on a terminal of its own; stdout and stderr come as one, as on a screen.
    pub(crate) fn start_on_terminal(&self, arguments: &[&str]) -> Running {
        self.begin();
        let line = self.shown(arguments);
        let mut command = self.command("script", &["--quiet", "--return", "--command", &line, "/dev/null"]);
        command.stdin(Stdio::null());
        Running::start(command, line)
    }

    /// Runs `nisse` on a terminal of so many columns to its end.
    pub(crate) fn run_on_screen(&self, columns: usize, arguments: &[&str]) -> Run {
        self.begin();
        let line = format!("stty cols {columns} rows 24; {}", self.shown(arguments));
        let mut command = self.command("script", &["--quiet", "--return", "--command", &line, "/dev/null"]);
        command.stdin(Stdio::null());
        self.finish(Running::start(command, line))
    }

    /// Runs `nisse` on a terminal at which somebody sits: each time that the screen shows the words, they press the keys.
    pub(crate) fn run_with_keys(&self, arguments: &[&str], typed: &[(&str, &str)]) -> Run {
        self.run_within_with_keys(str::to_owned, arguments, typed)
    }

    /// The same with a line of shell around it.
    pub(crate) fn run_within_with_keys(
        &self,
        around: impl Fn(&str) -> String,
        arguments: &[&str],
        typed: &[(&str, &str)],
    ) -> Run {
        self.begin();
        let line = around(&self.shown(arguments));
        let screen = self.root().join("screen");
        let _ = fs::remove_file(&screen);
        let at = screen.to_str().expect("a path in UTF-8");
        // whoever runs the tests in the background has its shell ignore Ctrl-C, and so would this one
        let script = ["--default-signal=INT", "script", "--quiet", "--return", "--flush", "--command", &line, at];
        let mut command = self.command("env", &script);
        command.stdin(Stdio::piped());
        let mut running = Running::start(command, line);
        let mut keyboard = running.keyboard();
        let mut seen = 0;
        for (words, keys) in typed {
            let shown = || String::from_utf8_lossy(&fs::read(&screen).unwrap_or_default()).into_owned();
            let place = || shown().get(seen..).and_then(|rest| rest.find(words));
            wait_until(DEADLINE, || place().is_some() || running.is_over());
            let Some(found) = place() else { break };
            seen += found + words.len();
            keyboard.write_all(keys.as_bytes()).and_then(|()| keyboard.flush()).expect("a terminal that takes keys");
        }
        let run = self.finish(running);
        drop(keyboard);
        run
    }

    /// Starts `nisse` in the checkout after this line of shell, as one that sets limits.
    pub(crate) fn start_behind(&self, line: &str, arguments: &[&str]) -> Running {
        self.begin();
        let shell = format!("{line}; exec \"$0\" \"$@\"");
        let arguments = [&["-c", &shell, env!("CARGO_BIN_EXE_nisse")], arguments].concat();
        let mut command = self.command("bash", &arguments);
        command.stdin(Stdio::null());
        Running::start(command, format!("{line}; {}", self.shown(&arguments[3..])))
    }

    /// Takes the checkout's state before the first process, and counts the processes.
    fn begin(&self) {
        if self.before.borrow().is_none() {
            self.before.replace(Some(Fingerprint::of(self.checkout.path())));
        }
        self.started.set(self.started.get() + 1);
    }

    /// The surroundings of a command in this world, for what the test's own process is to do.
    pub(crate) fn opened(&self) -> Arc<Opened> {
        self.begin();
        let variables = self.environment().into_iter().map(|(name, value)| (name.into(), value.into()));
        let environment = Environment::new(variables, Directories::default());
        Arc::new(Opened::new(environment, &Flags::default(), self.checkout.path()).expect("settings"))
    }

    /// A program in this world, its output collected.
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.checkout.path()).env_clear().envs(self.environment());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The variables of the last process started; each has ids of its own, so that tasks of one world never share one.
    fn environment(&self) -> Vec<(String, String)> {
        let mut variables = self.variables.borrow().clone();
        variables.push(("NISSE_TEST_IDS".to_owned(), (self.started.get() * 0x100).to_string()));
        variables
    }

    fn shown(&self, arguments: &[&str]) -> String {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
        let variables: Vec<String> =
            self.environment().iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
        let arguments: Vec<String> = arguments.iter().map(|argument| quoted(argument)).collect();
        format!(
            "cd {} && env -i {} {} {}",
            quoted(&self.checkout.path().to_string_lossy()),
            variables.join(" "),
            quoted(env!("CARGO_BIN_EXE_nisse")),
            arguments.join(" ")
        )
    }

    /// The bytes of `file` on the branch that a result names; none if it is not there.
    #[track_caller]
    pub(crate) fn on_branch(&self, result: &serde_json::Value, file: &str) -> Option<Vec<u8>> {
        let branch = result["branch"].as_str().unwrap_or_else(|| panic!("the result names no branch: {result}"));
        self.checkout.file_at(branch, file)
    }

    /// Asserts that a task left neither branch nor worktree, and that its commits can still be reached.
    #[track_caller]
    pub(crate) fn assert_discarded(&self, result: &serde_json::Value) {
        let task = result["task"].as_str().unwrap_or_else(|| panic!("the result names no task: {result}"));
        let branches = self.checkout.git(&["for-each-ref", "--format=%(refname)", "refs/heads/"]);
        assert_eq!(branches, "refs/heads/main", "a branch is left");
        let worktrees = self.checkout.git(&["worktree", "list", "--porcelain"]);
        assert_eq!(worktrees.matches("worktree ").count(), 1, "a worktree is left: {worktrees}");
        let kept = format!("refs/nisse/discarded/{task}");
        assert!(self.checkout.has_ref(&kept), "the commits are not kept under {kept}");
    }

    /// Asserts now what is asserted at the end anyway: the checkout is what it was.
    #[track_caller]
    pub(crate) fn assert_checkout_unchanged(&self) {
        let changes = self.checkout_changes();
        assert!(changes.is_empty(), "the checkout was changed:\n{}", changes.join("\n"));
    }

    fn checkout_changes(&self) -> Vec<String> {
        let before = self.before.borrow();
        let now = Fingerprint::of(self.checkout.path());
        before.as_ref().map(|before| before.changes(&now, &self.may_add.borrow())).unwrap_or_default()
    }

    /// Everything that is needed to do the same by hand; the directories stay.
    fn explain(&mut self, root: &Path) {
        use std::fmt::Write as _;
        let mut text = String::new();
        if let Some(directory) = self.directory.take() {
            let _ = writeln!(text, "the test's directories are kept in {}", directory.keep().display());
        }
        let requests: Vec<String> = self.server.requests().into_iter().map(|asked| asked.raw).collect();
        let kept = root.join("requests.jsonl");
        if fs::write(&kept, requests.join("\n")).is_ok() {
            let _ = writeln!(text, "the requests are in {}", kept.display());
        }
        for violation in self.server.violations() {
            let _ = writeln!(text, "wrong request: {violation}");
        }
        for change in self.checkout_changes() {
            let _ = writeln!(text, "checkout changed: {change}");
        }
        for run in self.runs.borrow().iter() {
            let _ = writeln!(text, "{}", run.report());
        }
        let name = thread::current().name().unwrap_or("?").to_owned();
        let _ = writeln!(text, "the proxy lived in the test: cargo test --test it -- --exact {name}");
        eprintln!("{text}");
    }
}

impl Drop for TestEnvironment {
    fn drop(&mut self) {
        let root = self.root();
        if thread::panicking() {
            return self.explain(&root);
        }
        let wrong = self.server.violations();
        let changes = self.checkout_changes();
        if wrong.is_empty() && changes.is_empty() {
            return;
        }
        self.explain(&root);
        panic!("wrong requests: {wrong:#?}\nthe checkout was changed: {changes:#?}");
    }
}
