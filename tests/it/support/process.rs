//! A run of the program: started, watched, signalled, judged.

use std::{
    io::Read,
    os::unix::process::ExitStatusExt as _,
    process::{Child, ChildStdin, Command, ExitStatus},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

/// Far more than any run needs; a hang ends here.
pub(crate) const DEADLINE: Duration = Duration::from_mins(3);

/// Waits until `holds`, and says whether it came to hold within `limit`.
pub(crate) fn wait_until(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < limit {
        if holds() {
            return true;
        }
        thread::sleep(Duration::from_millis(20));
    }
    holds()
}

/// Whether a process with this id is at work: not gone, and not dead and left uncollected, which is its parent's doing.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let dead = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']));
    !dead && Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid).is_ok())
}

/// A run that goes on.
pub(crate) struct Running {
    child: Child,
    command: String,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

impl Running {
    /// Starts `command`; `shown` is how a person would type it.
    pub(crate) fn start(mut command: Command, shown: String) -> Self {
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{shown}: {error}"));
        let (stdout, stderr) = (child.stdout.take().map(collect), child.stderr.take().map(collect));
        Self { child, command: shown, stdout, stderr }
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it reads, where that is a pipe.
    pub(super) fn keyboard(&mut self) -> ChildStdin {
        self.child.stdin.take().expect("its stdin is a pipe")
    }

    /// Whether it has ended.
    pub(super) fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("the program is ours").is_some()
    }

    /// Sends a signal to the program alone.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("the program runs");
    }

    /// Waits for its end; [`super::TestEnvironment::finish`] also keeps it for the report.
    pub(super) fn finish(mut self) -> Run {
        let ended = wait_until(DEADLINE, || self.child.try_wait().expect("the program is ours").is_some());
        if !ended {
            self.child.kill().expect("the program is ours");
        }
        let status = self.child.wait().expect("the program is ours");
        let text = |reader: Option<JoinHandle<Vec<u8>>>| {
            let bytes = reader.map(|reader| reader.join().expect("a reader")).unwrap_or_default();
            String::from_utf8(bytes).expect("the program writes UTF-8")
        };
        let run = Run {
            command: self.command.clone(),
            status,
            stdout: text(self.stdout.take()),
            stderr: text(self.stderr.take()),
        };
        assert!(ended, "did not end within {DEADLINE:?}\n{}", run.report());
        run
    }
}

fn collect(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).expect("the program's output");
        bytes
    })
}

/// A run that is over.
#[derive(Clone)]
pub(crate) struct Run {
    /// How a person would type it.
    pub(crate) command: String,
    status: ExitStatus,
    /// What it wrote, data only.
    pub(crate) stdout: String,
    /// What it said.
    pub(crate) stderr: String,
}

impl Run {
    /// The exit code; none if a signal ended it.
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Asserts the exit code, and that the program did not panic.
    #[track_caller]
    pub(crate) fn exits(&self, code: i32) -> &Self {
        let panicked = self.stderr.contains("panicked at") || self.stderr.contains("bug in nisse");
        assert!(self.status.code() == Some(code) && !panicked, "expected exit {code}\n{}", self.report());
        self
    }

    /// The JSON objects on stdout: nothing else may stand there.
    #[track_caller]
    pub(crate) fn json(&self) -> Vec<Value> {
        let objects = self.stdout.lines().map(|line| {
            let object: Value = serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("not JSON on stdout: {error}: {line}\n{}", self.report()));
            assert!(object["v"] == 1 && object["type"].is_string(), "without `v` and `type`: {line}");
            object
        });
        objects.collect()
    }

    /// The `result` object, the last line; its exit code is the process's.
    #[track_caller]
    pub(crate) fn result(&self) -> Value {
        let last = self.json().pop().unwrap_or_else(|| panic!("nothing on stdout\n{}", self.report()));
        assert_eq!(last["type"], "result", "the last line is no result\n{}", self.report());
        assert_eq!(last["exit"].as_i64(), self.status.code().map(i64::from), "{}", self.report());
        last
    }

    /// Asserts the exit code and the outcome's word, and returns the result.
    #[track_caller]
    pub(crate) fn ends(&self, code: i32, outcome: &str) -> Value {
        self.exits(code);
        let result = self.result();
        assert_eq!(result["outcome"], outcome, "{}", self.report());
        result
    }

    /// Everything about it, for a failed test.
    pub(crate) fn report(&self) -> String {
        let how = match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exit {code}"),
            (None, signal) => format!("signal {signal:?}"),
        };
        format!("$ {}\n{how}\n--- stdout\n{}\n--- stderr\n{}", self.command, self.stdout, self.stderr)
    }
}
