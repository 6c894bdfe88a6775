//! The program dies at every named point, and a resume ends as if it had not.
//!
//! Compiled with the feature `crashpoints` only; `tests/run` does it.

use std::collections::BTreeMap;

use nisse::log::crash::POINTS;
use serde_json::json;

use crate::support::{Run, Script, Step, TestEnvironment, Wire};

/// How a task ends, and how it works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Way {
    isolation: &'static str,
    succeeds: bool,
}

fn world(way: Way) -> TestEnvironment {
    let end = if way.succeeds { Step::hand_back() } else { Step::give_up() };
    let env = TestEnvironment::new(
        Wire::Chat,
        Script::ByHistory(vec![
            Step::call("write_file", json!({"path": "b.txt", "content": "b\n"})),
            Step::call("edit_file", json!({"path": "a.txt", "old": "unfinished", "new": "finished"})),
            end,
        ]),
    );
    env.checkout.write(".gitignore", "*.log\n").commit("rules");
    env.checkout.write("a.txt", "unfinished\n").write("x.log", "ignored\n").write("staged.txt", "staged\n");
    env.checkout.git(&["add", "staged.txt"]);
    // in place, HEAD goes away and comes back, which its reflog tells
    env.person_will_change(".git/logs/HEAD");
    env.set("NISSE_WORKTREE_SETUP", "true").set("NISSE_WORKTREE_COPY", "x.log");
    env
}

fn begin(env: &TestEnvironment, way: Way) -> Run {
    env.delegate(&["--isolation", way.isolation], "Finish it.")
}

/// What is left of the task: its refs by kind, each with its files.
fn left(env: &TestEnvironment) -> BTreeMap<String, String> {
    let refs = env.checkout.git(&["for-each-ref", "--format=%(refname) %(tree)", "refs/heads", "refs/nisse"]);
    let kind = |line: &str| {
        let (name, tree) = line.split_once(' ').unwrap();
        let name = name.rsplit_once('/').unwrap().0;
        (name.to_owned(), env.checkout.git(&["ls-tree", "-r", tree]))
    };
    refs.lines().map(kind).collect()
}

/// Whether a task of this kind comes by a point.
fn reaches(point: &str, way: Way) -> bool {
    let (group, _) = point.split_once('.').unwrap();
    match group {
        "switch" | "back" => way.isolation == "in-place",
        "squash" => way.succeeds,
        "end" | "clean_up" => way.succeeds && way.isolation == "worktree",
        "discard" => !way.succeeds,
        _ if matches!(point, "prepare.submodules" | "prepare.copied") => way.isolation == "worktree",
        _ => true,
    }
}

#[test]
fn at_every_point_and_on_it_goes() {
    for isolation in ["worktree", "in-place"] {
        for succeeds in [true, false] {
            let way = Way { isolation, succeeds };
            let (code, outcome) = if succeeds { (0, "handback") } else { (3, "failed") };
            let whole = world(way);
            begin(&whole, way).ends(code, outcome);
            let expected = left(&whole);
            for point in POINTS.iter().filter(|point| reaches(point, way)) {
                let env = world(way);
                env.set("CRASHPOINT", point);
                let died = begin(&env, way);
                assert!(died.stderr.contains(&format!("crashed at {point}\n")), "{way:?} {point}\n{}", died.report());
                // it may come by the same point again; then it dies there again
                let again = env.run(&["resume", "--json"]);
                let last = if again.stderr.contains("crashed at") {
                    env.set("CRASHPOINT", "");
                    env.run(&["resume", "--json"])
                } else {
                    again
                };
                let over = last.stderr.contains("nothing is pending");
                assert!(
                    !over || ["clean_up.done", "discard.branch"].contains(point),
                    "{way:?} {point}\n{}",
                    last.report()
                );
                if !over {
                    last.ends(code, outcome);
                }
                let mut after = left(&env);
                // files that were given back by half look like somebody else's: they are kept once more, to be safe
                if point.starts_with("back.") {
                    after.retain(|kind, _| !kind.starts_with("refs/nisse/found/"));
                }
                assert_eq!(after, expected, "{way:?} {point}");
                env.assert_checkout_unchanged();
                let worktrees = env.checkout.git(&["worktree", "list"]);
                assert_eq!(worktrees.lines().count(), 1, "{way:?} {point}: {worktrees}");
            }
        }
    }
}
