//! Running nisse and looking at it from outside.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use super::{server::Server, world::World};

const NISSE: &str = env!("CARGO_BIN_EXE_nisse");

/// What a run cost.
#[derive(Default)]
pub(crate) struct Run {
    pub(crate) cpu_s: f64,
    pub(crate) peak_mb: f64,
    pub(crate) early_mb: f64,
    pub(crate) late_mb: f64,
}

pub(crate) fn version() -> Duration {
    let begun = Instant::now();
    Command::new(NISSE).arg("--version").stdout(Stdio::null()).status().unwrap();
    begun.elapsed()
}

pub(crate) fn load() -> String {
    fs::read_to_string("/proc/loadavg").unwrap_or_default().split(' ').next().unwrap_or("?").to_owned()
}

/// Delegates to the server's script. Looks at the process while it waits for a reply.
pub(crate) fn delegate(world: &World, server: &Server, turns: u32) -> Run {
    watched(world, server, turns, Command::new(NISSE))
}

/// The same under strace, which makes it slow: how often nisse and its children sync. None without strace.
pub(crate) fn fsyncs(world: &World, server: &Server, turns: u32) -> Option<u32> {
    let trace = world.state.with_file_name("trace");
    if strace() {
        let mut command = Command::new("strace");
        command.args(["-f", "--seccomp-bpf", "-qq", "-e", "trace=fsync,fdatasync,sync_file_range", "-o"]).arg(&trace);
        command.arg(NISSE);
        watched(world, server, turns, command);
        let lines = fs::read_to_string(&trace).unwrap_or_default();
        let calls = lines.lines().filter(|line| line.contains("sync") && !line.contains("resumed")).count();
        return u32::try_from(calls).ok();
    }
    None
}

fn watched(world: &World, server: &Server, turns: u32, mut command: Command) -> Run {
    let _ = fs::remove_dir_all(&world.state);
    command
        .args(["delegate", "--quiet", "--max-time", "10h", "--max-tokens", "1000000000", "--max-turns"])
        .arg((turns + 5).to_string())
        .arg("measure")
        .current_dir(&world.repo)
        .env_clear()
        .envs([("PATH", std::env::var("PATH").unwrap()), ("HOME", world.state.display().to_string())])
        .env("NISSE_LLM_BASE_URL", format!("http://{}", server.address()))
        .envs([("NISSE_LLM_TOKEN", "sk-bench-token"), ("NISSE_ROLE_DELEGATE", "bench")])
        .env("NISSE_STATE_DIR", &world.state)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let seen = Arc::new(Mutex::new(Run::default()));
    let (kept, pid) = (Arc::clone(&seen), child.id());
    server.watch(move |number| look(pid, number, &mut kept.lock().unwrap()));
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(3), "the script ends by giving up");
    std::mem::take(&mut *seen.lock().unwrap())
}

fn strace() -> bool {
    Command::new("strace").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}

fn look(pid: u32, number: usize, run: &mut Run) {
    let status = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).unwrap_or_default();
    let field = |name: &str| -> f64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
    };
    run.peak_mb = run.peak_mb.max(field("VmHWM:"));
    run.late_mb = field("VmRSS:");
    if number <= 50 {
        run.early_mb = run.late_mb;
    }
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let ticks: f64 = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|t| t.parse::<f64>().ok())
        .sum();
    run.cpu_s = ticks / 100.0;
}
