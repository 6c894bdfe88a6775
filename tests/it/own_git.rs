//! What a model does with git by itself never ends a task: its files are the work, branch and HEAD go back to where the
//! task had them, and what was found there is kept.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Script, Step, TestEnvironment, Wire, wait_until};

/// A branch `other` that conflicts with the task's in `b.txt`, and what runs into that.
macro_rules! conflict {
    ($line:literal) => {
        concat!(
            "git switch -qc other HEAD~1 && echo o > b.txt && git add b.txt && git commit -qm o && git switch -q - && ",
            $line
        )
    };
}

/// What moves branch, HEAD or index of the worktree that it is run in, with a word of what is told of it; none where there
/// is nothing to tell. Before it, a checkpoint added `b.txt`; after it, `c.txt` is written.
const MOVES: &[(&str, &str, &str)] = &[
    ("commit", "echo x > x.txt && git add -A && git commit -qm mine", "the branch"),
    ("amend", "git commit -q --amend -m mine", "the branch"),
    ("soft reset", "git reset -q --soft HEAD~1", "the branch"),
    ("mixed reset", "git reset -q HEAD~1", "the branch"),
    ("switch", "git switch -qc topic", "HEAD"),
    ("commit elsewhere", "git switch -qc topic && git commit -qm mine --allow-empty", "HEAD"),
    ("detached", "git switch -q --detach", "HEAD"),
    ("detached commit", "git switch -q --detach && git commit -qm mine --allow-empty", "HEAD"),
    ("orphan", "git switch -q --orphan new && echo b > b.txt && echo a > a.txt", "HEAD"),
    ("branch deleted", "git update-ref -d $(git symbolic-ref HEAD)", "the branch"),
    ("branch renamed", "git branch -qm topic", "the branch"),
    ("HEAD is rubbish", "echo rubbish > $(git rev-parse --git-path HEAD)", "HEAD"),
    ("index gone", "rm $(git rev-parse --git-path index)", ""),
    ("index is rubbish", "echo rubbish > $(git rev-parse --git-path index)", ""),
    ("merge in conflict", conflict!("git merge -q other"), "a merge"),
    ("rebase in conflict", conflict!("git rebase -q other"), "a rebase"),
    ("cherry-pick in conflict", conflict!("git cherry-pick other"), "a cherry-pick"),
    ("revert in conflict", conflict!("git commit -qm 1 --allow-empty && git revert --no-edit other"), "a revert"),
    ("bisect", "git bisect start && git bisect bad && git bisect good HEAD~1", "a bisect"),
    (
        "all at once",
        "git commit -qm 1 --allow-empty; git switch -q --detach HEAD~1; git bisect start; git bisect bad",
        "HEAD",
    ),
];

fn write() -> Step {
    Step::call("write_file", json!({"path": "b.txt", "content": "b\n"}))
}

/// Whether nothing of git's that is half done is left, and what a command left can still be reached.
fn is_settled(env: &TestEnvironment, what: &str) {
    assert!(!env.checkout.path().join(".git/worktrees").exists(), "{what}: a worktree is left");
    assert_eq!(env.checkout.git(&["symbolic-ref", "HEAD"]), "refs/heads/main", "{what}");
    assert_eq!(env.checkout.git(&["status", "--porcelain"]), "", "{what}");
}

fn with_branches(env: &TestEnvironment) {
    for name in ["topic", "other", "new"] {
        env.may_add(&format!(".git/refs/heads/{name}")).may_add(&format!(".git/logs/refs/heads/{name}"));
    }
}

#[test]
fn what_a_command_did_with_git_is_taken_in_and_the_run_goes_on() {
    for (what, line, told) in MOVES {
        let line = format!("{line}; echo c > c.txt");
        let run = Step::call("run_command", json!({"command": line}));
        let env = TestEnvironment::new(Wire::Chat, vec![write(), run, Step::hand_back()]);
        with_branches(&env);
        let result = env.delegate(&[], "Make b.txt.").ends(0, "handback");
        assert_eq!(env.on_branch(&result, "c.txt").unwrap(), b"c\n", "{what}");
        assert!(env.on_branch(&result, "b.txt").is_some(), "{what}");
        assert_eq!(env.on_branch(&result, "a.txt").unwrap(), b"a\n", "{what}");
        is_settled(&env, what);
        let (branch, snapshot) = (result["branch"].as_str().unwrap(), result["snapshot"].as_str().unwrap());
        assert_eq!(env.checkout.git(&["rev-list", "--count", &format!("{snapshot}..{branch}")]), "1", "{what}");
        let notices = result["notices"].to_string();
        let answer = env.server.requests().pop().unwrap().last_answers().pop().unwrap().text;
        assert_eq!(answer.contains("nisse commits for you"), !told.is_empty(), "{what}: {answer}");
        assert!(notices.contains(told), "{what}: {notices}");
        assert_eq!(notices == "[]", told.is_empty(), "{what}: {notices}");
    }
}

#[test]
fn a_model_is_told_once_and_what_it_committed_is_kept() {
    let commit = |text: &str| {
        let line = format!("echo {text} > {text}.txt; git add -A; git commit -qm {text}");
        Step::call("run_command", json!({"command": line}))
    };
    let env = TestEnvironment::new(Wire::Messages, vec![write(), commit("one"), commit("two"), Step::hand_back()]);
    let result = env.delegate(&["--check", "git commit -qm check --allow-empty"], "Make it.").ends(0, "handback");
    let told = |turn: usize| env.server.requests()[turn].last_answers()[0].text.contains("nisse commits for you");
    assert_eq!([told(2), told(3)], [true, false]);
    let task = result["task"].as_str().unwrap();
    let format = ["for-each-ref", "--format=%(contents:subject)", &format!("refs/nisse/found/{task}")];
    assert_eq!(env.checkout.git(&format), "one\ntwo\ncheck");
    assert_eq!(result["artifacts"], json!(["b.txt", "one.txt", "two.txt"]));
}

#[test]
fn a_setup_that_commits_leaves_the_branch_where_it_was() {
    let env = TestEnvironment::new(Wire::Chat, vec![write(), Step::hand_back()]);
    env.set("NISSE_WORKTREE_SETUP", "git commit -qm setup --allow-empty");
    let result = env.delegate(&[], "Make b.txt.").ends(0, "handback");
    assert_eq!(result["artifacts"], json!(["b.txt"]));
}

/// Changes that a rebase had put aside are in no tree and on no branch.
#[test]
fn what_a_rebase_put_aside_is_kept() {
    let line = conflict!("echo loose >> a.txt && git rebase -q --autostash other");
    let run = Step::call("run_command", json!({"command": line}));
    let env = TestEnvironment::new(Wire::Chat, vec![write(), run, Step::hand_back()]);
    with_branches(&env);
    let result = env.delegate(&[], "Make b.txt.").ends(0, "handback");
    let kept = format!("refs/nisse/found/{}/autostash", result["task"].as_str().unwrap());
    assert_eq!(env.checkout.git(&["show", &format!("{kept}:a.txt")]), "a\nloose");
    assert!(result["notices"].to_string().contains(&kept), "{result}");
}

/// A task that rests, with no call open, or whose command was cut off; in its worktree this line is run.
fn disturbed(line: &str, in_command: bool) -> (TestEnvironment, String, tempfile::TempDir) {
    let scratch = tempfile::tempdir().unwrap();
    if in_command {
        let began = scratch.path().join("began");
        let line = format!("{line}; echo c > c.txt; : > {}; sleep 600", began.display());
        let run = Step::call("run_command", json!({"command": line}));
        let env = TestEnvironment::new(Wire::Chat, Script::ByHistory(vec![write(), run, Step::hand_back()]));
        with_branches(&env);
        let running = env.start(&["delegate", "--json", "Do it."]);
        assert!(wait_until(Duration::from_mins(2), || began.exists()), "the command did not begin");
        running.signal(Signal::KILL);
        let first = env.finish(running).json().remove(0);
        return (env, first["task"].as_str().unwrap().to_owned(), scratch);
    }
    let limited = || Step::error(429, &[("retry-after", "86400")], "throttling_error", "Rate limit exceeded.");
    let asked = AtomicBool::new(false);
    let script = Script::by_content(move |request| match request.replies() {
        0 => write(),
        _ if !asked.swap(true, Ordering::SeqCst) => limited(),
        _ => Step::hand_back(),
    });
    let env = TestEnvironment::new(Wire::Chat, script);
    with_branches(&env);
    let rests = env.delegate(&[], "Do it.").ends(5, "interrupted");
    let line = format!("cd '{}'; {line}; echo c > c.txt", rests["worktree"].as_str().unwrap());
    // what it does ends as it may
    env.run_program("bash", &["-c", &line]);
    (env, rests["task"].as_str().unwrap().to_owned(), scratch)
}

/// Whether an answer that was given led to the task's end, and not to the same question.
fn ends(env: &TestEnvironment, task: &str, answer: &str, what: &str) -> Value {
    let run = env.run(&["resume", "--json", task, answer]);
    let outcome = if answer == "--drop" { "dropped" } else { "handback" };
    let result = run.ends(0, outcome);
    is_settled(env, what);
    let pending = env.run(&["resume", "--json"]);
    assert!(pending.exits(0).stdout.is_empty() || pending.json().len() <= 1, "{what}: {}", pending.report());
    let report = env.run(&["doctor", "--json"]).stdout;
    assert!(!report.contains("its cleanup is pending"), "{what}: {report}");
    result
}

#[test]
fn whatever_was_moved_every_answer_ends_the_question() {
    let mut all = MOVES.to_vec();
    all.extend([
        ("worktree gone", "cd ..; rm -r $OLDPWD", ""),
        ("worktree and branch gone", "git update-ref -d $(git symbolic-ref HEAD); cd ..; rm -r $OLDPWD", ""),
        ("entry gone", "rm -r $(git rev-parse --git-dir)", ""),
        ("entry and branch gone", "git update-ref -d $(git symbolic-ref HEAD); rm -r $(git rev-parse --git-dir)", ""),
    ]);
    for in_command in [false, true] {
        for (what, line, _) in &all {
            let (env, task, _scratch) = disturbed(line, in_command);
            let first = env.run(&["resume", "--json", &task]);
            if first.result()["outcome"] == "handback" {
                continue;
            }
            first.ends(6, "gated");
            env.keep("asked");
            for answer in ["--rollback", "--keep", "--drop"] {
                let what = format!("{what}, {answer}, in a command: {in_command}");
                env.bring_back("asked");
                ends(&env, &task, answer, &what);
            }
        }
    }
}
