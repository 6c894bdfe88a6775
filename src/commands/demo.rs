//! `nisse demo`: a whole delegation without any setup. Only the model is a script, behind a loopback server that speaks
//! the proxy's protocol; client, catalog, repository, worktree, commands and check are real.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::json;

use super::{
    Error,
    delegate::{Delegation, delegate},
    open::{Opened, for_git},
    result::TaskResult,
    run::Watch,
    settings::{Environment, Flags},
};
use crate::{
    adapters::demo::{ALIAS, Server, Step},
    domain::{checkout::Isolation, id::CommitId},
    repo::scratch,
};

/// The brief.
pub const BRIEF: &str = "make the failing test in test.sh pass";
/// The check.
pub const CHECK: &str = "sh test.sh";

const PROGRAM: &str = r#"#!/bin/sh
# Prints the mean of its arguments, rounded down.
sum=0
for n in "$@"; do
    sum=$((sum + n))
done
echo $((sum / 2))
"#;

const TEST: &str = r#"#!/bin/sh
# Fails unless mean.sh is right.
expect() {
    wanted=$1
    shift
    got=$(sh mean.sh "$@" 2>/dev/null) || got="an error"
    if [ "$got" != "$wanted" ]; then
        echo "mean of '$*': got $got, wanted $wanted"
        exit 1
    fi
}
expect 5 2 4 9
expect 0
echo ok
"#;

/// A scratch repository with a bug and a test that fails.
pub struct Scratch {
    /// The directory that contains everything; it is kept for the user to look at.
    pub dir: PathBuf,
    /// The repository.
    pub repo: PathBuf,
    /// The state directory.
    pub state: PathBuf,
}

/// The result of the demo.
pub struct Shown {
    /// The delegation's result.
    pub result: TaskResult,
    /// What it changed, as a patch.
    pub patch: String,
}

/// Makes the scratch repository.
pub fn scratch(environment: &Environment) -> Result<Scratch, Error> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Write { path, source }
    };
    let temp = std::env::temp_dir();
    let dir = tempfile::Builder::new().prefix("nisse-demo-").tempdir_in(&temp).map_err(failed(&temp))?.keep();
    let repo = dir.join("repo");
    fs::create_dir(&repo).map_err(failed(&repo))?;
    scratch::make(&repo, &[("mean.sh", PROGRAM), ("test.sh", TEST)], "A mean, and its test", &for_git(environment))?;
    Ok(Scratch { state: dir.join("state"), dir, repo })
}

/// Delegates the repair to the scripted model.
pub async fn demo(environment: &Environment, scratch: &Scratch, watch: Watch) -> Result<Shown, Error> {
    let server = Server::start(script()).await.map_err(|source| Error::Listen { source })?;
    let environment = environment
        .without_settings()
        .with("NISSE_LLM_BASE_URL", server.address())
        .with("NISSE_LLM_TOKEN", server.token())
        .with("NISSE_ROLE_DELEGATE", ALIAS);
    let flags = Flags { state_dir: Some(scratch.state.clone()), checks: vec![CHECK.to_owned()], ..Flags::default() };
    let opened = Opened::new(environment, &flags, &scratch.repo)?;
    let delegation = Delegation { brief: BRIEF.to_owned(), branch: None, base: None, isolation: Isolation::Worktree };
    let result = delegate(&opened, &delegation, watch).await?;
    let patch = match (&result.snapshot, &result.head) {
        (Some(from), Some(to)) => opened.checkout()?.diff(&CommitId(from.clone()), &CommitId(to.clone()))?.patch,
        _ => Vec::new(),
    };
    Ok(Shown { result, patch: String::from_utf8_lossy(&patch).into_owned() })
}

fn script() -> Vec<Step> {
    let note = |changed: &str, next: &str| json!({"changed": changed, "now_true": "`sh test.sh` prints ok and exits 0", "next": next, "succeeded": true});
    vec![
        Step {
            text: "First I look at the failing test, and at the program that it tests.\n",
            calls: vec![("run_command", json!({"command": CHECK})), ("read_file", json!({"path": "mean.sh"}))],
        },
        Step {
            text: "mean.sh divides by 2, however many arguments there are. It must divide by their number.\n",
            calls: vec![(
                "edit_file",
                json!({"path": "mean.sh", "old": "echo $((sum / 2))", "new": "echo $((sum / $#))"}),
            )],
        },
        Step {
            text: "That was the bug. I do not run the test again, I am sure.\n",
            calls: vec![("hand_back", note("mean.sh divides by the number of its arguments, not by 2", "nothing"))],
        },
        Step {
            text: "The check was run all the same, and I was wrong: without arguments, mean.sh now divides by zero.\n",
            calls: vec![(
                "edit_file",
                json!({
                    "path": "mean.sh",
                    "old": "sum=0\n",
                    "new": "# the mean of nothing is 0\n[ $# -gt 0 ] || set -- 0\nsum=0\n",
                }),
            )],
        },
        Step { text: "Once more, and now I look.\n", calls: vec![("run_command", json!({"command": CHECK}))] },
        Step {
            text: "",
            calls: vec![(
                "hand_back",
                note(
                    "mean.sh divides by the number of its arguments, not by 2, and prints 0 where there are none",
                    "nothing is left to do",
                ),
            )],
        },
    ]
}
