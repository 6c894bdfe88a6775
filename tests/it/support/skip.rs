//! What a machine lacks: a test that cannot run there fails, unless it may be passed over, and then the summary says so.
//!
//! `NISSE_TESTS_MAY_SKIP` names what may be lacking (`tracing,superuser`). `tests/run` prints at its end each test that was
//! passed over, with its reason, from the file that `NISSE_TESTS_SKIPPED` names.

use std::{fs::OpenOptions, io::Write as _, os::unix::fs::MetadataExt as _, path::Path, process::Command, thread};

/// What a machine may lack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Needs {
    /// `strace` that may trace and kill.
    Tracing,
    /// Files can be given away.
    Superuser,
    /// Something can be mounted where nobody else sees it.
    Mounts,
    /// Anybody can make a process namespace.
    Namespaces,
    /// A second file system.
    FileSystems,
    /// A model behind `NISSE_REPLAY_URL`: an instrument and no test, so that it may always be lacking.
    Model,
}

impl Needs {
    fn word(self) -> &'static str {
        match self {
            Self::Tracing => "tracing",
            Self::Superuser => "superuser",
            Self::Mounts => "mounts",
            Self::Namespaces => "namespaces",
            Self::FileSystems => "file-systems",
            Self::Model => "model",
        }
    }

    fn lacking(self) -> &'static str {
        match self {
            Self::Tracing => "strace is missing or cannot trace here",
            Self::Superuser => "only a superuser can give files away",
            Self::Mounts => "nothing can be mounted in a namespace of its own",
            Self::Namespaces => "nobody but root can make a process namespace",
            Self::FileSystems => "memory and build directory are no other file system than that of temporary files",
            Self::Model => "NISSE_REPLAY_URL names no model to ask",
        }
    }

    /// Whether this machine has it, as far as that can be asked without a world.
    fn is_here(self) -> bool {
        let can = |program: &str, arguments: &[&str]| {
            let tried = Command::new(program).args(arguments).output();
            tried.is_ok_and(|output| output.status.success())
        };
        match self {
            Self::Tracing => {
                let inject = "inject=getppid:signal=SIGKILL:when=1";
                can("strace", &["-f", "-qq", "-o", "/dev/null", "-e", inject, "-b", "execve", "true"])
            }
            Self::Superuser => rustix::process::geteuid().is_root(),
            Self::Mounts => can("unshare", &["--mount", "sh", "-c", "mount -t tmpfs tmpfs /tmp"]),
            Self::Namespaces => can(
                "unshare",
                &["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child", "true"],
            ),
            Self::FileSystems => other_file_system().is_some(),
            Self::Model => std::env::var_os("NISSE_REPLAY_URL").is_some(),
        }
    }
}

/// A directory on another file system than that of the worlds.
pub(crate) fn other_file_system() -> Option<&'static Path> {
    let device = |path: &Path| path.metadata().ok().map(|found| found.dev());
    let here = device(&std::env::temp_dir());
    let known = ["/dev/shm", env!("CARGO_TARGET_TMPDIR")].map(Path::new);
    known.into_iter().find(|path| device(path).is_some_and(|other| Some(other) != here))
}

/// Whether the test that calls this is to be passed over for want of something. It fails where that is not allowed.
#[track_caller]
pub(crate) fn lacks(needs: Needs) -> bool {
    if needs.is_here() {
        return false;
    }
    let name = thread::current().name().unwrap_or("?").to_owned();
    let allowed = std::env::var("NISSE_TESTS_MAY_SKIP").unwrap_or_default();
    assert!(needs == Needs::Model || may_skip(&allowed, needs), "{}", refusal(needs));
    let line = format!("{name}: {}\n", needs.lacking());
    if let Some(list) = std::env::var_os("NISSE_TESTS_SKIPPED") {
        // one write a line, so that the tests of several threads do not mix
        let opened = OpenOptions::new().create(true).append(true).open(list);
        opened.and_then(|mut list| list.write_all(line.as_bytes())).expect("a list of what is passed over");
    }
    eprint!("passed over: {line}");
    true
}

fn may_skip(allowed: &str, needs: Needs) -> bool {
    allowed.split([',', ' ']).any(|word| word == needs.word())
}

fn refusal(needs: Needs) -> String {
    let (lacking, word) = (needs.lacking(), needs.word());
    format!("this test cannot run here: {lacking}; NISSE_TESTS_MAY_SKIP={word} passes over what needs it")
}

#[test]
fn only_what_is_named_may_be_passed_over() {
    assert!(may_skip("tracing,mounts", Needs::Mounts) && may_skip("tracing mounts", Needs::Tracing));
    for none in ["", "superuser", "mount", "tracingmounts"] {
        assert!(!may_skip(none, Needs::Mounts), "{none}");
    }
    assert!(refusal(Needs::Superuser).contains("NISSE_TESTS_MAY_SKIP=superuser"));
}
