//! What is the person's in the repository and is gone after a command comes back, and is named; what moved or is new is
//! named, and left.

use std::{fs, time::Duration};

use serde_json::{Value, json};

use crate::{
    gates::killed_in,
    support::{Checkout, Step, TestEnvironment, Wire, wait_until},
};

const STASH: [&str; 2] = [".git/refs/stash", ".git/logs/refs/stash"];

/// Two entries in the stash, a branch, a tag of its own.
fn furnish(checkout: &Checkout) {
    for name in ["older", "newer"] {
        checkout.write("a.txt", format!("{name}\n")).git(&["stash", "push", "--quiet", "--message", name]);
    }
    checkout.git(&["branch", "topic"]);
    checkout.git(&["tag", "--annotate", "--message", "a release", "v1"]);
}

fn stash(checkout: &Checkout) -> String {
    checkout.git(&["stash", "list", "--format=%H %gs"])
}

fn refs(checkout: &Checkout) -> String {
    checkout.git(&["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags"])
}

/// A task whose one command is this line, in a repository that is furnished; its world, its result, and what the model was
/// told of the command.
fn after(line: &str, prepare: impl FnOnce(&TestEnvironment)) -> (TestEnvironment, Value, String) {
    let line = format!("{line}; echo b > b.txt");
    let run = Step::call("run_command", json!({"command": line}));
    let env = TestEnvironment::new(Wire::Chat, vec![run, Step::hand_back()]);
    furnish(&env.checkout);
    prepare(&env);
    let result = env.delegate(&["--branch", "mine"], "Make b.txt.").ends(0, "handback");
    assert_eq!(env.on_branch(&result, "b.txt").unwrap(), b"b\n");
    let told = env.server.requests()[1].last_answers()[0].text.clone();
    (env, result, told)
}

fn may_change(env: &TestEnvironment, places: &[&str]) {
    env.may_add(".git/refs/heads/mine").may_add(".git/logs/refs/heads/mine");
    for place in places {
        env.person_will_change(place);
    }
}

#[test]
fn a_stash_that_a_command_emptied_is_what_it_was() {
    for (line, back) in [
        ("git stash; git stash pop", "On main: newer"),
        ("git stash drop 'stash@{1}'", "On main: older"),
        ("git stash clear", "On main: newer, On main: older"),
    ] {
        let mut before = String::new();
        let (env, result, told) = after(line, |env| {
            before = stash(&env.checkout);
            may_change(env, &STASH);
        });
        let (mut was, mut is): (Vec<_>, Vec<_>) =
            (before.lines().map(str::to_owned).collect(), stash(&env.checkout).lines().map(str::to_owned).collect());
        if line.contains("drop") {
            // it lies above what was there all along
            was.sort();
            is.sort();
        }
        assert_eq!(is, was, "{line}");
        let notices = result["notices"].to_string();
        assert!(notices.contains(&format!("are back: {back};")), "{line}: {notices}");
        assert!(told.contains(&format!("are back: {back}")) && told.contains("leave them alone"), "{line}: {told}");
    }
}

#[test]
fn a_branch_and_a_tag_that_a_command_deleted_are_back() {
    let mut before = String::new();
    let line = "git branch -qD topic; git tag -d v1; git pack-refs --all";
    let upstream = [("remote", "origin"), ("merge", "refs/heads/t"), ("merge", "refs/heads/u"), ("description", "")];
    let (env, result, told) = after(line, |env| {
        for (key, value) in upstream {
            env.checkout.git(&["config", "--add", &format!("branch.topic.{key}"), value]);
        }
        before = refs(&env.checkout);
        let places =
            ["config", "refs/heads/topic", "refs/heads/main", "refs/tags/v1", "packed-refs", "logs/refs/heads/topic"];
        let places = places.map(|place| format!(".git/{place}"));
        may_change(env, &places.each_ref().map(String::as_str));
        may_change(env, &STASH);
    });
    let settings = env.checkout.git(&["config", "--get-regexp", "^branch\\.topic\\."]);
    let mut settings: Vec<_> = settings.lines().map(str::trim_end).collect();
    settings.sort_unstable();
    let mut wanted = upstream.map(|(key, value)| format!("branch.topic.{key} {value}").trim_end().to_owned());
    wanted.sort();
    assert_eq!(settings, wanted, "git forgets its upstream with it");
    assert!(!result["notices"].to_string().contains(".git/config"), "{result}");
    let is = refs(&env.checkout);
    for line in before.lines() {
        assert!(is.contains(line), "{line} is not in\n{is}");
    }
    for name in ["the branch topic was gone", "the tag v1 was gone"] {
        assert!(result["notices"].to_string().contains(name), "{result}");
        assert!(told.contains(name), "{told}");
    }
}

#[test]
fn a_branch_that_a_command_renamed_is_back_and_head_that_followed_it_is_named() {
    let (env, result, _) = after("git branch -qm main renamed", |env| {
        may_change(
            env,
            &[".git/HEAD", ".git/logs/HEAD", ".git/config", ".git/refs/heads/main", ".git/logs/refs/heads/main"],
        );
        env.may_add(".git/refs/heads/renamed").may_add(".git/logs/refs/heads/renamed");
    });
    let at = env.checkout.git(&["rev-parse", "renamed"]);
    assert_eq!(env.checkout.git(&["rev-parse", "main"]), at);
    assert_eq!(env.checkout.git(&["symbolic-ref", "HEAD"]), "refs/heads/renamed", "it was left");
    let notices = result["notices"].to_string();
    for told in ["the branch main was gone", "the branch renamed", "git symbolic-ref HEAD refs/heads/main"] {
        assert!(notices.contains(told), "{told}: {notices}");
    }
}

#[test]
fn what_moved_is_named_with_the_way_back_and_what_is_new_or_configured_is_named() {
    let line = "git update-ref refs/heads/topic $(git commit-tree -m x HEAD^{tree}); git branch new; \
                git config alias.x status; git branch -qm topic/below 2>/dev/null";
    let mut was = String::new();
    let (env, result, told) = after(line, |env| {
        was = env.checkout.git(&["rev-parse", "topic"]);
        let places = [".git/refs/heads/topic", ".git/logs/refs/heads/topic", ".git/config"];
        may_change(env, &places);
        env.may_add(".git/refs/heads/new").may_add(".git/logs/refs/heads/new");
    });
    let is = env.checkout.git(&["rev-parse", "topic"]);
    assert_ne!(is, was, "it was left there");
    let notices = result["notices"].to_string();
    for told in [&format!("git branch -f topic {was}"), "the branch new", ".git/config changed"] {
        assert!(notices.contains(told), "{told}: {notices}");
    }
    let kept = format!("refs/nisse/found/{}/moved", result["task"].as_str().unwrap());
    assert_eq!(env.checkout.git(&["rev-parse", &kept]), was);
    assert!(!told.contains("Note:"), "{told}");
}

/// The person is at work while a command runs.
#[test]
fn what_the_person_does_meanwhile_is_not_undone() {
    let scratch = tempfile::tempdir().unwrap();
    let (began, release) = (scratch.path().join("began"), scratch.path().join("release"));
    let line =
        format!("echo b > b.txt; : > {}; while [ ! -e {} ]; do sleep 0.05; done", began.display(), release.display());
    let run = Step::call("run_command", json!({"command": line}));
    let env = TestEnvironment::new(Wire::Chat, vec![run, Step::hand_back()]);
    furnish(&env.checkout);
    let origin = Checkout::new(&env.root().join("origin"));
    origin.write("o.txt", "o\n").commit("theirs");
    env.checkout.git(&["remote", "add", "origin", origin.path().to_str().unwrap()]);
    let running = env.start(&["delegate", "--json", "Make b.txt."]);
    assert!(wait_until(Duration::from_mins(2), || began.exists()), "the command did not begin");
    env.checkout.write("p.txt", "p\n").commit("of the person");
    env.checkout.git(&["fetch", "--quiet", "origin"]);
    env.checkout.write("a.txt", "unfinished\n").git(&["stash", "push", "--quiet", "--message", "newest"]);
    env.checkout.git(&["tag", "v2"]);
    let before = (refs(&env.checkout), stash(&env.checkout));
    fs::write(&release, "").unwrap();
    let run = env.finish(running);
    let result = run.ends(0, "handback");
    let is = (refs(&env.checkout), stash(&env.checkout));
    assert!(before.0.lines().filter(|line| !line.contains("nisse/")).all(|line| is.0.contains(line)), "{is:?}");
    assert_eq!(is.1, before.1);
    assert!(env.checkout.has_ref("refs/remotes/origin/main"));
    let notices = result["notices"].to_string();
    for named in ["main moved from", "the tag v2", "refs/remotes/origin/main", "On main: newest"] {
        assert!(notices.contains(named), "{named}: {notices}");
    }
    assert!(!env.server.requests()[1].last_answers()[0].text.contains("Note:"));
    env.changed_paths();
}

#[test]
fn what_a_command_took_away_comes_back_though_nisse_was_killed_meanwhile() {
    let mut before = (String::new(), String::new());
    let line = "git stash pop -q; git branch -qD topic; echo half > half.txt";
    let (env, _scratch) = killed_in(Wire::Chat, "worktree", line, |env| {
        furnish(&env.checkout);
        before = (refs(&env.checkout), stash(&env.checkout));
        may_change(env, &STASH);
        may_change(env, &[".git/refs/heads/topic", ".git/logs/refs/heads/topic"]);
    });
    let gated = env.run(&["resume", "--json"]).ends(6, "gated");
    assert!(before.0.lines().all(|line| refs(&env.checkout).contains(line)));
    assert_eq!(stash(&env.checkout), before.1);
    let notices = gated["notices"].to_string();
    assert!(notices.contains("the branch topic was gone") && notices.contains("are back: On main: newer"), "{notices}");
}
