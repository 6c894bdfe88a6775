//! What is said before and after the demo.

use std::fmt::Write as _;

use super::{Manner, data, on_terminal, result, say, screen};
use crate::{
    commands::demo::{BRIEF, CHECK, Scratch, Shown},
    domain::id::TaskId,
};

/// Tells what is about to happen.
pub fn before(manner: Manner, scratch: &Scratch) {
    if manner.quiet {
        return;
    }
    let lines = [
        &format!("A scratch repository with a bug, and a test that finds it: {}", scratch.repo.display()),
        "The model is a script behind a server on 127.0.0.1; everything else is what every delegation does.",
        "",
        &format!("$ nisse delegate --check '{CHECK}' '{BRIEF}'"),
    ];
    for line in lines {
        say(manner, line);
    }
}

/// The manner in which its progress is told: without a terminal, where no words of the model pass, event by event.
#[must_use]
pub fn manner(manner: Manner) -> Manner {
    Manner { verbose: manner.verbose || !on_terminal(), ..manner }
}

/// What to do about a demo that was stopped: its server is gone, so that its task cannot go on.
#[must_use]
pub fn again(_task: TaskId) -> String {
    "the demo was stopped; nisse demo begins another".to_owned()
}

/// Shows what it came to, and where to look.
pub fn after(manner: Manner, scratch: &Scratch, shown: &Shown) {
    if manner.json {
        result::line(manner, &shown.result);
        return;
    }
    let mut text = screen(&result::text(&shown.result));
    let _ = writeln!(text, "\n{}", screen(shown.patch.trim_end()));
    let (dir, repo, state) = (scratch.dir.display(), scratch.repo.display(), scratch.state.display());
    let task = shown.result.task;
    if shown.result.exit == 7 {
        let _ = writeln!(text, "{}", again(task));
    }
    let here = format!("-C {repo} --state-dir {state} {task:#}");
    let _ = writeln!(text, "story      nisse log {here}");
    if shown.result.branch.is_some() {
        let _ = writeln!(text, "bring home nisse apply {here}");
    }
    let _ = write!(text, "clean up   rm -rf {dir}");
    data(manner, &text);
}
