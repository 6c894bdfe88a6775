//! `nisse demo`: the whole job with nothing set up. Only the model is a script; repository, worktree, commands and check
//! are real.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::json;

use super::{
    Error,
    delegate::{Delegation, begin},
    open::{Opened, for_git},
    result::TaskResult,
    run::{Watch, run},
    settings::{Environment, Flags},
};
use crate::{
    adapters::scripted::Scripted,
    domain::{
        caps::Money,
        checkout::Isolation,
        model::{PinnedModel, Prices, Route},
    },
    repo::scratch,
};

const PROGRAM: &str = "#!/bin/sh\n# Prints the mean of its arguments, rounded down.\nsum=0\nfor n in \"$@\"; do\n    \
                       sum=$((sum + n))\ndone\necho $((sum / 2))\n";
const TEST: &str = "#!/bin/sh\n# Fails unless mean.sh is right.\ngot=$(sh mean.sh 2 4 9)\nif [ \"$got\" = 5 ]; then\n    \
                    echo ok\nelse\n    echo \"mean of 2 4 9: got $got, wanted 5\"\n    exit 1\nfi\n";
const BRIEF: &str = "make the failing test in test.sh pass";
const CHECK: &str = "sh test.sh";

/// A scratch repository with a bug and a test that fails.
pub struct Scratch {
    /// The directory that holds everything; it is left for a look.
    pub dir: PathBuf,
    /// The repository.
    pub repo: PathBuf,
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
    Ok(Scratch { dir, repo })
}

/// Delegates the repair to the scripted model.
pub async fn demo(environment: &Environment, scratch: &Scratch, mut watch: Watch) -> Result<TaskResult, Error> {
    let flags =
        Flags { state_dir: Some(scratch.dir.join("state")), checks: vec![CHECK.to_owned()], ..Flags::default() };
    let opened = Opened::new(environment.without_settings(), &flags, &scratch.repo)?;
    let checkout = opened.checkout()?;
    let delegation = Delegation { brief: BRIEF.to_owned(), branch: None, base: None, isolation: Isolation::Worktree };
    let subscribers = std::mem::take(&mut watch.subscribers);
    let journal = begin(&opened, checkout, &delegation, model(), vec![CHECK.to_owned()], subscribers)?;
    run(&opened, checkout, &script(), &[], journal, watch).await
}

/// What is asked, for those who watch.
#[must_use]
pub fn told() -> (&'static str, &'static str) {
    (BRIEF, CHECK)
}

fn model() -> PinnedModel {
    PinnedModel {
        alias: "scripted".to_owned(),
        backing: "demo/scripted".to_owned(),
        provider: "demo".to_owned(),
        route: Route::Normalized,
        window: 100_000,
        max_output: 4096,
        tool_choice: false,
        prices: Prices {
            input: Some(Money(1_000_000)),
            output: Some(Money(2_000_000)),
            cache_read: None,
            cache_write: None,
        },
    }
}

fn script() -> Scripted {
    Scripted::steps(vec![
        vec![("run_command", json!({"command": "sh test.sh"})), ("read_file", json!({"path": "mean.sh"}))],
        vec![("edit_file", json!({"path": "mean.sh", "old": "echo $((sum / 2))", "new": "echo $((sum / $#))"}))],
        vec![("run_command", json!({"command": "sh test.sh"}))],
        vec![(
            "hand_back",
            json!({
                "changed": "mean.sh divides the sum by the number of arguments, not by 2",
                "now_true": "`sh test.sh` prints ok and exits 0",
                "next": "nothing is left to do; mean.sh without arguments still divides by zero, as before",
                "succeeded": true,
            }),
        )],
    ])
}
