//! How fast: a fixed script of tool turns against a loopback server, with a bare loop as the floor in the same run.
//!
//! `cargo bench --bench bench` runs it on the release build; it is not part of the tests. Times are shown beside the
//! floor's and this disk's, since they say little alone on a machine that does other things too.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on has nothing to say")]
#![expect(clippy::disallowed_methods, reason = "a benchmark arranges its world itself: files, processes, environment")]
#![expect(clippy::print_stdout, reason = "its figures are its output")]

mod floor;
mod process;
mod server;
mod world;

use std::time::{Duration, Instant};

use server::{Server, Turn};
use world::World;

/// Aims: see README.
const GAP_OVER_FLOOR_MS: f64 = 3.0;
const FSYNCS: f64 = 6.0;
const LAUNCH_MS: f64 = 60.0;
const MEMORY_MB: f64 = 25.0;
const GROWTH: f64 = 1.5;
const CHECKPOINT_MS: f64 = 100.0;
const VERSION_MS: f64 = 8.0;

fn main() {
    // `-- 50` runs the script of so many turns alone, `-- checkpoints` that part alone
    let named: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let is_wanted = |part: &str| named.is_empty() || named.iter().any(|name| name == part);
    let turns: Vec<u32> = match named.as_slice() {
        [] => vec![50, 500, 2000],
        named => named.iter().filter_map(|arg| arg.parse().ok()).collect(),
    };
    println!("{} cores, load {}", std::thread::available_parallelism().map_or(0, usize::from), process::load());
    let disk = world::fdatasync_ms();
    println!("this disk: fdatasync of 4 KiB, median {disk:.2} ms");
    if is_wanted("version") {
        version();
    }
    for turns in turns {
        script(turns, disk);
    }
    if is_wanted("checkpoints") {
        checkpoints();
    }
    if is_wanted("edits") {
        edits();
    }
}

fn version() {
    let times: Vec<f64> = (0..20).map(|_| ms(process::version())).collect();
    aim("--version, median", median(&times), VERSION_MS, "ms");
}

/// The script of so many turns, a shell line and a 4 KB read in turn.
fn script(turns: u32, disk: f64) {
    println!("\n{turns} tool turns in a repository of 200 files");
    let world = World::new(200);
    let floor = {
        let server = Server::start(script_of(turns));
        floor::run(&server.address(), &world.repo);
        server.finish()
    };
    let server = Server::start(script_of(turns));
    let begun = Instant::now();
    let run = process::delegate(&world, &server, turns);
    let wall = begun.elapsed();
    let ours = server.finish();

    let (floor_gaps, gaps) = (gaps(&floor), gaps(&ours));
    println!("  floor: gap median {:.2} ms, p95 {:.2} ms", median(&floor_gaps), p95(&floor_gaps));
    println!("  nisse: gap median {:.2} ms, p95 {:.2} ms", median(&gaps), p95(&gaps));
    let every_second =
        |gaps: &[f64], from: usize| median(&gaps.iter().skip(from).step_by(2).copied().collect::<Vec<_>>());
    for (from, what) in ["shell line", "read"].into_iter().enumerate() {
        println!(
            "    {what}: floor {:.2} ms, nisse {:.2} ms",
            every_second(&floor_gaps, from),
            every_second(&gaps, from)
        );
    }
    let syncs = process::fsyncs(&world, &Server::start(script_of(20)), 20).map(|all| per(all, 20));
    let allowed = median(&floor_gaps) + GAP_OVER_FLOOR_MS + syncs.unwrap_or(FSYNCS) * disk;
    aim("gap, median", median(&gaps), allowed, "ms");
    println!("  ratio to the floor: {:.2}", median(&gaps) / median(&floor_gaps));
    match syncs {
        Some(syncs) => aim("fsyncs a turn", syncs, FSYNCS, ""),
        None => println!("  fsyncs: not counted (strace is not installed)"),
    }
    let first = ours.first().map_or(0.0, |turn| ms(turn.asked.duration_since(begun)));
    aim("launch to first request", first, LAUNCH_MS, "ms");
    aim("peak memory", run.peak_mb, MEMORY_MB, "MB");
    println!("  memory after 50 turns {:.1} MB, at the end {:.1} MB", run.early_mb, run.late_mb);
    let bytes: usize = ours.iter().map(|turn| turn.bytes).sum();
    println!("  wall {:.2} s, CPU {:.2} s, {:.1} MB sent", wall.as_secs_f64(), run.cpu_s, mega(bytes));
    if gaps.len() >= 500 {
        let growth = |gaps: &[f64]| median(&gaps[gaps.len() - 40..]) / median(&gaps[30..70]);
        aim("gap at the end to gap at turn 50", growth(&gaps), GROWTH, "×");
        println!("    the floor's, with requests as long: {:.2} ×", growth(&floor_gaps));
    }
}

/// What a command's checkpoint costs in a repository of 20,000 files.
fn checkpoints() {
    println!("\ncheckpoints in a repository of 20,000 files");
    let world = World::new(20_000);
    let script = |command: &str| -> Vec<server::Reply> {
        let command = command.to_owned();
        let mut replies: Vec<_> = (0..20)
            .map(|n| {
                server::Reply::call(
                    "run_command",
                    &serde_json::json!({"command": command.replace("$N", &n.to_string())}),
                )
            })
            .collect();
        replies.push(server::Reply::give_up());
        replies
    };
    let measure = |command: &str| {
        let server = Server::start(script(command));
        process::delegate(&world, &server, 30);
        median(&gaps(&server.finish()))
    };
    let (unchanged, changed) = (measure("echo $N"), measure("echo $N > dir-1/file-1.txt"));
    println!("  a turn whose command changes nothing {unchanged:.1} ms, one file {changed:.1} ms");
    aim("a turn with its checkpoint", changed, CHECKPOINT_MS, "ms");
}

/// What an edit costs, and apart from it the wait for the next second: that parts two versions of a file, between which a
/// command has run.
fn edits() {
    println!("\nedits of a file, with a command between each and the next");
    let world = World::new(200);
    let mut replies: Vec<_> = (0..20)
        .map(|n| {
            if n % 2 == 0 {
                let [old, new] = if n % 4 == 0 { ["first", "other"] } else { ["other", "first"] };
                let edit = serde_json::json!({"path": "dir-1/file-1.txt", "old": old, "new": new});
                server::Reply::call("edit_file", &edit)
            } else {
                server::Reply::call("run_command", &serde_json::json!({"command": "cat dir-1/file-1.txt"}))
            }
        })
        .collect();
    replies.push(server::Reply::give_up());
    let server = Server::start(replies);
    process::delegate(&world, &server, 30);
    let turns = server.finish();
    let (mut own, mut waits) = (Vec::new(), Vec::new());
    for pair in turns.windows(2).step_by(2) {
        let gap = pair[1].asked.duration_since(pair[0].answered);
        let after = gap.checked_sub(pair[0].left_of_second);
        own.push(ms(after.unwrap_or(gap)));
        waits.push(after.map_or(0.0, |_| ms(pair[0].left_of_second)));
    }
    println!(
        "  an edit, median {:.2} ms; before it a wait for the next second, median {:.0} ms",
        median(&own),
        median(&waits)
    );
}

fn script_of(turns: u32) -> Vec<server::Reply> {
    let mut replies: Vec<_> = (0..turns)
        .map(|n| {
            if n % 2 == 0 {
                server::Reply::call("run_command", &serde_json::json!({"command": "echo a line"}))
            } else {
                server::Reply::call("read_file", &serde_json::json!({"path": "four-kilobytes.txt"}))
            }
        })
        .collect();
    replies.push(server::Reply::give_up());
    replies
}

/// From the end of a reply to the next request, whole.
fn gaps(turns: &[Turn]) -> Vec<f64> {
    turns.windows(2).map(|pair| ms(pair[1].asked.duration_since(pair[0].answered))).collect()
}

fn aim(what: &str, found: f64, most: f64, unit: &str) {
    let verdict = if found <= most { "ok" } else { "MISSED" };
    println!("  {verdict:<6} {what}: {found:.2} {unit} (aim: at most {most:.2})");
}

fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

fn p95(values: &[f64]) -> f64 {
    quantile(values, 0.95)
}

fn quantile(values: &[f64], at: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index"
    )]
    let index = ((sorted.len().saturating_sub(1)) as f64 * at).round() as usize;
    sorted.get(index).copied().unwrap_or(f64::NAN)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
fn mega(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

fn per(all: u32, turns: u32) -> f64 {
    f64::from(all) / f64::from(turns)
}
