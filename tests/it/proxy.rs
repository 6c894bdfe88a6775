//! nisse against real LiteLLM proxies with a scripted vendor behind them.
//!
//! `tests/proxy/setup.sh` installs the proxy; it must have run.

mod limits;
pub(crate) mod start;
mod trouble;

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;
use start::Proxy;

use crate::support::{Run, Step, TestEnvironment, Wire};

/// The proxies' own key (`tests/proxy/*.yaml`).
const KEY: &str = "sk-test-proxy-master";
/// The models of the normalized and of the native route.
const MODELS: [&str; 2] = ["local-coder", "remote-architect"];

/// A world whose proxy is the real one, and whose checkout has a bug and a test that shows it.
fn environment(proxy: &Proxy, role: &str) -> TestEnvironment {
    let env = TestEnvironment::new(Wire::Chat, Vec::<Step>::new());
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

/// A brief whose requests meet these faults at the vendor, and the name under which the calls are counted.
fn faulty(faults: &str) -> (String, String) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("case-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    (format!("test_stats.py fails: mend the median in stats.py. [vendor: {name} {faults}]"), name)
}

/// The data of each event of this kind.
fn events(run: &Run, kind: &str) -> Vec<Value> {
    run.json().into_iter().filter(|line| line["event"] == kind).map(|line| line["data"].clone()).collect()
}

#[test]
fn the_catalog_is_the_proxys_own() {
    let env = environment(start::open(), "local-coder");
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
    let env = environment(start::open(), "remote-architect");
    env.run(&["doctor", "--json"]).exits(0);
}

#[test]
fn a_wrong_key_is_told_as_one() {
    let env = environment(start::open(), "local-coder");
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
    let env = environment(start::open(), role);
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
