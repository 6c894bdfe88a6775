//! The token for the proxy: from a variable, a command or a file; kept as a secret, never printed.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::{
        fs::MetadataExt as _,
        process::{CommandExt as _, ExitStatusExt as _},
    },
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};
use secrecy::SecretString;

use super::{Environment, Proxy};

/// The variable that holds the token itself.
pub const TOKEN_VARIABLE: &str = "NISSE_LLM_TOKEN";

/// How long `token_command` may take: a person may have to unlock a key.
const COMMAND_LIMIT: Duration = Duration::from_secs(30);
/// How long its output may stay open after it has exited, for instance because it started an agent.
const DRAIN: Duration = Duration::from_secs(2);
/// The most bytes read of a token, and of a command's complaint.
const MOST: u64 = 64 * 1024;

/// Why there is no token. Never holds one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// None is set.
    #[error("the proxy's token is not set")]
    Unset,
    /// What was found cannot be sent in a header.
    #[error("cannot use the token from {origin}: {what}")]
    Unusable {
        /// The variable, command or file.
        origin: String,
        /// Why.
        what: &'static str,
    },
    /// The command could not be started.
    #[error("cannot run token_command ({command})")]
    Start {
        /// Its line.
        command: String,
        /// What the system said.
        source: io::Error,
    },
    /// The command failed, or took too long.
    #[error("token_command ({command}) {how}")]
    Command {
        /// Its line.
        command: String,
        /// How it ended, with its own complaint.
        how: String,
    },
    /// The file cannot be read.
    #[error("cannot read the token file {}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file lets others see the token.
    #[error("others may read the token file {}", .0.display())]
    Open(PathBuf),
}

/// Fetches the token from the first place that is set.
pub(super) fn fetch(proxy: &Proxy, environment: &Environment) -> Result<SecretString, Error> {
    if let Some(value) = environment.get(TOKEN_VARIABLE) {
        return usable(value.as_encoded_bytes(), || TOKEN_VARIABLE.to_owned());
    }
    if let Some(command) = &proxy.token_command.value {
        let printed = run(command, environment, COMMAND_LIMIT)?;
        return usable(&printed, || format!("token_command ({command})"));
    }
    let Some(path) = &proxy.token_file.value else { return Err(Error::Unset) };
    let unreadable = |source| Error::File { path: path.clone(), source };
    let file = File::open(path).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.mode() & 0o077 != 0 {
        return Err(Error::Open(path.clone()));
    }
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes).map_err(unreadable)?;
    usable(&bytes, || format!("the token file {}", path.display()))
}

/// A token is one word of visible ASCII: nothing else goes through a header unharmed.
fn usable(bytes: &[u8], origin: impl Fn() -> String) -> Result<SecretString, Error> {
    let unusable = |what| Error::Unusable { origin: origin(), what };
    let text = std::str::from_utf8(bytes).map_err(|_| unusable("it is not text"))?.trim();
    if text.is_empty() {
        return Err(unusable("it is empty"));
    }
    if bytes.len() as u64 >= MOST {
        return Err(unusable("it is too long"));
    }
    if text.bytes().any(|byte| !byte.is_ascii_graphic()) {
        return Err(unusable("it is not one word of plain ASCII characters"));
    }
    Ok(SecretString::from(text))
}

/// What the command prints, if it ends well within `limit`; past it, its process group is killed.
fn run(line: &str, environment: &Environment, limit: Duration) -> Result<Vec<u8>, Error> {
    let start = |source| Error::Start { command: line.to_owned(), source };
    #[expect(clippy::disallowed_methods, reason = "the person's own command, run before there is any host")]
    let mut command = Command::new("sh");
    command.arg("-c").arg(line).env_clear().envs(environment.variables());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(start)?;
    let (output, complaint) = (child.stdout.take().map(pump), child.stderr.take().map(pump));
    match wait(&mut child, limit).map_err(start)? {
        Some(status) if status.success() => Ok(collect(output)),
        Some(status) => Err(failed(line, ending(status), complaint)),
        None => {
            end_group(&child);
            child.wait().map_err(start)?;
            Err(failed(line, format!("did not end within {} s", limit.as_secs()), complaint))
        }
    }
}

fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with status {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended abnormally".to_owned(),
    }
}

fn failed(line: &str, mut how: String, complaint: Option<Receiver<Vec<u8>>>) -> Error {
    let text = String::from_utf8_lossy(&collect(complaint)).into_owned();
    let words: Vec<&str> = text.split_whitespace().collect();
    if !words.is_empty() {
        let said: String = words.join(" ").chars().filter(|c| !c.is_control()).take(300).collect();
        how = format!("{how}: {said}");
    }
    Error::Command { command: line.to_owned(), how }
}

/// The child's end, or none if the limit came first.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Kills the process group that the child leads. The child is not reaped yet, so the number is still its own.
fn end_group(child: &Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // fails only if nothing is left, which is what was wanted
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Reads a pipe on a thread of its own, so that a full one never stops the child, and an open one never stops us.
fn pump(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let (mut buffer, mut kept) = ([0; 4096], 0);
        while let Ok(read @ 1..) = pipe.read(&mut buffer) {
            // past the bound it is read and dropped
            if kept < MOST && sender.send(buffer[..read].to_vec()).is_err() {
                return;
            }
            kept += read as u64;
        }
    });
    receiver
}

fn collect(pipe: Option<Receiver<Vec<u8>>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        let deadline = Instant::now() + DRAIN;
        while let Ok(piece) = pipe.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            bytes.extend(piece);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write as _, os::unix::fs::PermissionsExt as _};

    use secrecy::ExposeSecret as _;

    use super::*;
    use crate::commands::settings::{Directories, Flags, Settings};

    fn environment(variables: &[(&str, &str)]) -> Environment {
        let path = Environment::from_process().get("PATH").unwrap().to_owned();
        let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let directories = Directories { state: Some("/nowhere".into()), ..Directories::default() };
        Environment::new(variables.chain([("PATH".into(), path)]), directories)
    }

    fn token(variables: &[(&str, &str)]) -> Result<String, String> {
        let environment = environment(variables);
        let settings = Settings::load(&environment, &Flags::default(), None).unwrap();
        match fetch(&settings.proxy, &environment) {
            Ok(token) => Ok(token.expose_secret().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn the_variable_beats_the_command_and_the_command_the_file() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("token");
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&path).unwrap();
        file.write_all(b"from-file\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let file = ("NISSE_LLM_TOKEN_FILE", path.to_str().unwrap());
        let command = ("NISSE_LLM_TOKEN_COMMAND", "cat; echo from-command; test -z \"$NISSE_LLM_TOKEN\"");
        assert_eq!(token(&[file]).as_deref(), Ok("from-file"));
        assert_eq!(token(&[file, command]).as_deref(), Ok("from-command"));
        assert_eq!(token(&[file, command, ("NISSE_LLM_TOKEN", "from-variable")]).as_deref(), Ok("from-variable"));
        assert_eq!(token(&[]), Err("the proxy's token is not set".to_owned()));

        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(token(&[file]).unwrap_err().contains("others may read"));
    }

    #[test]
    fn a_failing_command_is_told_with_its_own_words() {
        let said = token(&[("NISSE_LLM_TOKEN_COMMAND", "echo sk-half; echo locked >&2; exit 3")]).unwrap_err();
        assert!(said.ends_with("exited with status 3: locked") && !said.ends_with("sk-half"), "{said}");
        assert!(token(&[("NISSE_LLM_TOKEN_COMMAND", "kill -9 $$")]).unwrap_err().contains("signal 9"));
    }

    #[test]
    fn what_is_no_token_is_refused_and_not_shown() {
        for (printed, why) in
            [("true", "empty"), ("printf 'sk-a\\nsk-b'", "one word"), ("printf 'sk-\\303\\274'", "one word")]
        {
            let said = token(&[("NISSE_LLM_TOKEN_COMMAND", printed)]).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
        let said = token(&[("NISSE_LLM_TOKEN", "sk-one two")]).unwrap_err();
        assert!(!said.contains("sk-one"), "{said}");
        let flood = token(&[("NISSE_LLM_TOKEN_COMMAND", "yes | head -c 1000000")]).unwrap_err();
        assert!(flood.contains("too long"), "{flood}");
    }

    #[test]
    fn a_command_that_hangs_is_ended_with_its_children() {
        let temp = tempfile::tempdir().unwrap();
        let pid_file = temp.path().join("pid");
        let line = format!("sleep 300 & echo $! > '{}'; wait", pid_file.display());
        let error = run(&line, &environment(&[]), Duration::from_millis(500)).unwrap_err();
        assert!(error.to_string().contains("did not end"), "{error}");
        let pid = fs::read_to_string(&pid_file).unwrap().trim().parse().ok().and_then(Pid::from_raw).unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while alive(pid) {
            assert!(Instant::now() < deadline, "{pid:?} still runs");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// A zombie that no one reaps yet is not alive.
    fn alive(pid: Pid) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        match stat {
            Ok(stat) => !stat.contains(") Z"),
            Err(_) => rustix::process::test_kill_process(pid).is_ok() && cfg!(not(target_os = "linux")),
        }
    }

    #[test]
    fn a_helper_that_keeps_the_output_open_holds_nothing_up() {
        let printed = run("sleep 300 & echo sk-token", &environment(&[]), COMMAND_LIMIT).unwrap();
        assert_eq!(printed, b"sk-token\n");
    }
}
