//! Where a brief comes from: the command line, stdin where it is asked for, a file; and from which directory.

use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::support::{Script, Step, TestEnvironment, Wire};

/// Far more than the three seconds that nisse waits.
const DEADLINE: Duration = Duration::from_mins(1);

fn world() -> TestEnvironment {
    TestEnvironment::new(Wire::Chat, Script::by_content(|_| Step::give_up()))
}

/// What the model was told last, as it began.
fn told(env: &TestEnvironment) -> String {
    let requests = env.server.requests();
    requests.iter().rev().find(|asked| asked.replies() == 0).expect("it was asked").last_told()
}

#[test]
fn a_brief_is_an_argument_or_stdin_or_both() {
    let env = world();
    let input = env.root().join("input");
    fs::write(&input, "from stdin\n").unwrap();
    let file = input.to_str().unwrap();
    for (arguments, brief) in [
        (&["words"][..], "# Your task\n\nwords\n"),
        (&["-"], "# Your task\n\nfrom stdin\n"),
        (&[], "# Your task\n\nfrom stdin\n"),
        (&["words", "-"], "# Your task\n\nwords\n\nfrom stdin\n"),
        (&["--file", "-"], "# Your task\n\nfrom stdin\n"),
        (&["--file", file], "# Your task\n\nfrom stdin\n"),
    ] {
        let stdin = Stdio::from(File::open(&input).unwrap());
        let run = env.finish(env.start_with(&[&["delegate"], arguments].concat(), stdin));
        run.exits(3);
        assert!(!run.stderr.contains("waiting for the brief"), "{arguments:?}\n{}", run.report());
        let told = told(&env);
        assert!(told.starts_with(brief), "{arguments:?}: {told}");
        assert_eq!(told.contains("from stdin"), brief.contains("from stdin"), "{arguments:?}: {told}");
    }
    for (arguments, words) in [
        (&["delegate"][..], "the brief from stdin is empty"),
        (&["delegate", "words", "-"], "the brief from stdin is empty"),
        (&["delegate", "fix", "it"], "put it in quotes"),
        (&["delegate", "words", "--file", "f"], "cannot be used with"),
    ] {
        let run = env.run(arguments);
        assert!(run.exits(2).stderr.contains(words), "{arguments:?}\n{}", run.report());
    }
    let alone = env.finish(env.start_on_terminal(&["delegate"]));
    assert!(alone.exits(2).stdout.contains("there is no brief"), "{}", alone.report());
}

#[test]
fn stdin_beside_a_brief_is_never_read() {
    let env = world();
    // nothing ever comes, and it stays open
    let (open, stdin) = pipe();
    env.finish(env.start_with(&["delegate", "words"], stdin)).exits(3);
    drop(open);
}

/// A pipe, as nobody writes to it yet: its writing end, and what is read from it.
fn pipe() -> (std::io::PipeWriter, Stdio) {
    let (reader, writer) = std::io::pipe().unwrap();
    (writer, Stdio::from(reader))
}

#[test]
fn whoever_waits_for_stdin_or_a_pipe_is_told_so() {
    let env = world();
    let (mut writer, stdin) = pipe();
    let mut told = Told::start(&env, &["delegate"], stdin);
    let first = told.first();
    assert!(first.contains("waiting for the brief on stdin"), "{first}");
    writer.write_all(b"do it\n").unwrap();
    drop(writer);
    told.ends();

    let named = env.root().join("named");
    assert!(Command::new("mkfifo").arg(&named).status().unwrap().success());
    let mut told = Told::start(&env, &["delegate", "--file", named.to_str().unwrap()], Stdio::null());
    let first = told.first();
    assert!(first.contains(&format!("waiting for the brief in {}", named.display())), "{first}");
    fs::write(&named, "do it\n").unwrap();
    told.ends();
}

/// A nisse without settings, and what it says.
struct Told {
    child: Child,
    hears: mpsc::Receiver<String>,
}

impl Told {
    fn start(env: &TestEnvironment, arguments: &[&str], stdin: Stdio) -> Self {
        let (said, hears) = mpsc::channel();
        let (reader, stderr) = std::io::pipe().unwrap();
        thread::spawn(move || {
            let (mut reader, mut buffer) = (reader, [0; 1024]);
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                let _ = said.send(String::from_utf8_lossy(&buffer[..read]).into_owned());
            }
        });
        let mut command = Command::new(env!("CARGO_BIN_EXE_nisse"));
        command.args(arguments).current_dir(env.checkout.path()).env_clear();
        command.env("HOME", env.root()).env("PATH", std::env::var_os("PATH").unwrap());
        let child = command.stdin(stdin).stdout(Stdio::null()).stderr(stderr).spawn().unwrap();
        drop(command); // with its end of the pipe
        Self { child, hears }
    }

    fn first(&self) -> String {
        self.hears.recv_timeout(DEADLINE).expect("nothing was said")
    }

    /// The brief was read: what is missing now is the rest.
    fn ends(&mut self) {
        assert_eq!(self.child.wait().unwrap().code(), Some(2));
        let rest: String = self.hears.iter().collect();
        assert!(rest.contains("the proxy's address is not set") && !rest.contains("waiting"), "{rest}");
    }
}

#[test]
fn the_model_is_told_in_which_directory_the_person_stood() {
    let env = world();
    env.checkout.write("pkg/ab`c/x.txt", "x\n").commit("packages");
    env.run(&["delegate", "words"]).exits(3);
    assert!(told(&env).starts_with("# Your task\n\nwords\n"), "{}", told(&env));
    env.run(&["-C", "pkg", "delegate", "words"]).exits(3);
    let by_option = told(&env);
    assert!(by_option.contains("from the directory `pkg`") && by_option.contains("\n\nwords\n"), "{by_option}");
    let line = format!("cd 'pkg/ab`c' && '{}' delegate words", env!("CARGO_BIN_EXE_nisse"));
    env.run_program("bash", &["-c", &line]).exits(3);
    assert!(told(&env).contains("from the directory `pkg/ab?c`"), "{}", told(&env));
}
