//! Real LiteLLM proxies, each started once for all tests.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::LazyLock,
    time::Duration,
};

use crate::support::wait_until;

/// A start takes 20 to 40 s on a busy machine.
const READY: Duration = Duration::from_mins(5);

/// A proxy that runs; its process ends when its stdin is closed, which is when this process ends.
pub(super) struct Proxy {
    /// Its address, as a person would configure it.
    pub(super) url: String,
    /// Its Python environment.
    pub(super) venv: PathBuf,
    vendor_port: u16,
    _process: Child,
}

/// The proxy without limits (`tests/proxy/config.yaml`).
pub(super) fn open() -> &'static Proxy {
    static PROXY: LazyLock<Result<Proxy, String>> = LazyLock::new(|| start("config.yaml"));
    PROXY.as_ref().unwrap_or_else(|reason| panic!("{reason}"))
}

/// The proxy with virtual keys, budgets and cooldowns (`tests/proxy/limits.yaml`).
pub(super) fn limited() -> &'static Proxy {
    static PROXY: LazyLock<Result<Proxy, String>> = LazyLock::new(|| start("limits.yaml"));
    PROXY.as_ref().unwrap_or_else(|reason| panic!("{reason}"))
}

impl Proxy {
    /// The models that were called at the vendor under this name, in order.
    pub(super) fn calls(&self, name: &str) -> Vec<String> {
        let answer = get(self.vendor_port, &format!("/calls/{name}")).expect("the vendor answers");
        let body = answer.split_once("\r\n\r\n").expect("a response").1;
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }
}

/// A file of what `tests/proxy/setup.sh` installs.
pub(crate) fn installed(file: &str) -> Result<PathBuf, String> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .filter(|directory| !directory.is_empty())
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")))
        .ok_or("neither XDG_CACHE_HOME nor HOME says where tests/proxy/setup.sh installs")?;
    let path = cache.join("nisse-tests").join(file);
    if path.exists() { Ok(path) } else { Err(format!("there is no {}: run tests/proxy/setup.sh", path.display())) }
}

fn start(config: &str) -> Result<Proxy, String> {
    let stamp = installed("litellm-1.106.12/.made-from")?;
    let venv = stamp.parent().ok_or("a file has a directory")?.to_owned();
    let port = free_port().map_err(|error| format!("no free port: {error}"))?;
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("proxy-{port}"));
    std::fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let log = directory.join("start.log");
    let output = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let errors = output.try_clone().map_err(|error| format!("{}: {error}", log.display()))?;
    let mut process = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/proxy/start.sh"))
        .args([venv.as_os_str(), config.as_ref(), port.to_string().as_ref(), directory.as_os_str()])
        .stdin(Stdio::piped())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .map_err(|error| format!("tests/proxy/start.sh: {error}"))?;
    let mut died = false;
    let ready = wait_until(READY, || {
        died = !matches!(process.try_wait(), Ok(None));
        died || get(port, "/health/liveliness").is_some_and(|answer| answer.starts_with("HTTP/1.1 200"))
    });
    let vendor_port =
        std::fs::read_to_string(directory.join("vendor.port")).ok().and_then(|port| port.trim().parse().ok());
    match vendor_port {
        Some(vendor_port) if ready && !died => {
            Ok(Proxy { url: format!("http://127.0.0.1:{port}"), venv, vendor_port, _process: process })
        }
        Some(_) | None => {
            let tail = |file: &str| std::fs::read_to_string(directory.join(file)).unwrap_or_default();
            Err(format!(
                "the proxy did not start (see {}):\n{}{}{}",
                directory.display(),
                tail("start.log"),
                tail("upstream.log"),
                tail("proxy.log")
            ))
        }
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// The whole answer to a GET at this port of this machine, if one comes.
fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let mut answer = String::new();
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
