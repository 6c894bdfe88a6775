//! nisse against a real LiteLLM proxy with a scripted vendor behind it: one proxy for all tests here.
//!
//! `tests/proxy/setup.sh` installs the proxy; it must have run.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::LazyLock,
    time::Duration,
};

use crate::support::{Step, TestEnvironment, Wire, wait_until};

/// The proxy's own key (`tests/proxy/config.yaml`).
const KEY: &str = "sk-test-proxy-master";
/// A start takes 20 to 40 s on a busy machine.
const READY: Duration = Duration::from_mins(5);

/// A proxy that runs; its process ends when its stdin is closed, which is when this process ends.
struct Proxy {
    url: String,
    venv: PathBuf,
    _process: Child,
}

static PROXY: LazyLock<Result<Proxy, String>> = LazyLock::new(start);

fn proxy() -> &'static Proxy {
    PROXY.as_ref().unwrap_or_else(|reason| panic!("{reason}"))
}

fn start() -> Result<Proxy, String> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .filter(|directory| !directory.is_empty())
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")))
        .ok_or("neither XDG_CACHE_HOME nor HOME says where the proxy is installed")?;
    let venv = cache.join("nisse-tests/litellm-1.106.12");
    if !venv.join(".made-from").exists() {
        return Err(format!("there is no LiteLLM proxy in {}: run tests/proxy/setup.sh", venv.display()));
    }
    let port = free_port().map_err(|error| format!("no free port: {error}"))?;
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("proxy-{port}"));
    std::fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let log = directory.join("start.log");
    let output = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let errors = output.try_clone().map_err(|error| format!("{}: {error}", log.display()))?;
    let mut process = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/proxy/start.sh"))
        .arg(&venv)
        .arg(port.to_string())
        .arg(&directory)
        .stdin(Stdio::piped())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .map_err(|error| format!("tests/proxy/start.sh: {error}"))?;
    let mut died = false;
    let ready = wait_until(READY, || {
        died = !matches!(process.try_wait(), Ok(None));
        died || is_ready(port)
    });
    if died || !ready {
        let tail = |file: &str| std::fs::read_to_string(directory.join(file)).unwrap_or_default();
        return Err(format!(
            "the proxy did not start (see {}):\n{}{}{}",
            directory.display(),
            tail("start.log"),
            tail("upstream.log"),
            tail("proxy.log")
        ));
    }
    Ok(Proxy { url: format!("http://127.0.0.1:{port}"), venv, _process: process })
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn is_ready(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return false };
    let request = "GET /health/liveliness HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let mut answer = String::new();
    stream.set_read_timeout(Some(Duration::from_secs(10))).is_ok()
        && stream.write_all(request.as_bytes()).is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.starts_with("HTTP/1.1 200")
}

/// A world whose proxy is the real one, and whose checkout has a bug and a test that shows it.
fn environment(role: &str) -> TestEnvironment {
    let proxy = proxy();
    let env = TestEnvironment::new(Wire::Chat, Vec::<Step>::new()).with_running_clock();
    env.set("NISSE_LLM_BASE_URL", &proxy.url).set("NISSE_LLM_TOKEN", KEY).set("NISSE_ROLE_DELEGATE", role);
    let path = std::env::var("PATH").expect("PATH");
    // the proxy's own interpreter: one that needs nothing of the person's home
    env.set("PATH", &format!("{}:{path}", proxy.venv.join("bin").display()));
    env.checkout
        .write("stats.py", "def median(values):\n    ordered = sorted(values)\n    return ordered[len(ordered) // 2]\n")
        .write(
            "test_stats.py",
            "from stats import median\n\nassert median([3, 1, 2]) == 2\nassert median([4, 1, 3, 2]) == 2.5\nprint('ok')\n",
        )
        .write(".gitignore", "__pycache__/\n")
        .commit("a median with a bug");
    env
}

#[test]
fn the_catalog_is_the_proxys_own() {
    let env = environment("local-coder");
    let run = env.run(&["models", "--json"]);
    let catalog = run.exits(0).stdout.clone();
    for fact in ["local-coder", "openai/scripted-coder", "remote-architect", "anthropic/claude-scripted"] {
        assert!(catalog.contains(fact), "{fact} is not in the catalog\n{}", run.report());
    }
    for (limit, route) in [("100000", "normalized"), ("200000", "native")] {
        assert!(catalog.contains(limit) && catalog.contains(route), "{limit}, {route}\n{}", run.report());
    }
}

#[test]
fn the_doctor_finds_nothing_wrong() {
    let env = environment("remote-architect");
    env.run(&["doctor", "--json"]).exits(0);
}

#[test]
fn a_wrong_key_is_told_as_one() {
    let env = environment("local-coder");
    env.set("NISSE_LLM_TOKEN", "sk-nobody");
    env.delegate(&[], "Mend the median.").exits(2);
}

#[test]
fn a_delegation_mends_a_bug_to_a_green_check_on_the_normalized_route() {
    // 4 turns of 100 tokens at 1e-6 and 20 at 2e-6
    mend("local-coder", 4.0 * (100.0 * 1e-6 + 20.0 * 2e-6));
}

#[test]
fn a_delegation_mends_a_bug_to_a_green_check_on_the_native_route() {
    // 4 turns of 100 tokens at 3e-6 and 20 at 15e-6
    mend("remote-architect", 4.0 * (100.0 * 3e-6 + 20.0 * 15e-6));
}

fn mend(role: &str, cost: f64) {
    let env = environment(role);
    let base = env.checkout.git(&["rev-parse", "HEAD"]);
    let brief = "test_stats.py fails: mend the median in stats.py.";
    let result = env.delegate(&["--check", "python3 test_stats.py"], brief).ends(0, "handback");
    let branch = result["branch"].as_str().unwrap();
    assert_eq!(env.checkout.git(&["rev-list", "--count", &format!("{base}..{branch}")]), "1");
    assert_eq!(env.checkout.git(&["diff", "--name-only", &base, branch]), "stats.py");
    let mended = String::from_utf8(env.on_branch(&result, "stats.py").unwrap()).unwrap();
    assert!(mended.contains("middle = len(ordered) // 2"), "{mended}");
    assert_eq!(result["turns"], 4);
    assert_eq!((result["tokens"]["input"].as_u64(), result["tokens"]["output"].as_u64()), (Some(400), Some(80)));
    assert!((result["cost_usd"].as_f64().unwrap() - cost).abs() < 1e-9, "{result}");
    let log = env.run(&["log", "--json", result["task"].as_str().unwrap()]);
    assert!(log.exits(0).stdout.contains(role), "{}", log.report());
    env.assert_checkout_unchanged();
}
