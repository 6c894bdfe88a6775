//! What `nisse demo` prints before and after the task.

use super::{Manner, Width, data, diff, result, say};
use crate::{
    commands::demo::{BRIEF, CHECK, Scratch, Shown},
    domain::id::TaskId,
};

/// Says what is about to happen.
pub fn before(manner: Manner, scratch: &Scratch) {
    if manner.quiet {
        return;
    }
    let lines = [
        &format!("A scratch repository with a bug, and a test that finds it: {}", scratch.repo.display()),
        "The model is a script behind a server on 127.0.0.1; everything else works as in every delegation.",
        "",
        &format!("$ nisse delegate --check '{CHECK}' '{BRIEF}'"),
    ];
    for line in lines {
        say(manner, line);
    }
}

/// What to do about a stopped demo: its server is gone, so its task cannot be resumed.
#[must_use]
pub fn again(_task: TaskId) -> String {
    "the demo was stopped; to start another: nisse demo".to_owned()
}

/// Prints the result, and where to look.
pub fn after(manner: Manner, scratch: &Scratch, shown: &Shown) {
    if manner.json {
        result::line(manner, &shown.result);
        return;
    }
    let width = Width::of_stdout();
    let mut fields = result::facts(&shown.result, width);
    fields.line("");
    diff::readable(&shown.patch).lines().for_each(|line| fields.line(line));
    fields.line("");
    let (dir, repo, state) = (scratch.dir.display(), scratch.repo.display(), scratch.state.display());
    let task = shown.result.task;
    if shown.result.exit == 7 {
        fields.line(&again(task));
    }
    // not wrapped, so that it can be copied
    let here = format!("-C {repo} --state-dir {state} {}", task.short());
    fields.whole("story", &format!("nisse log {here}"));
    if shown.result.branch.is_some() {
        fields.whole("apply", &format!("nisse apply {here}"));
    }
    fields.whole("clean up", &format!("rm -rf {dir}"));
    data(manner, fields.into_text().trim_end());
}
