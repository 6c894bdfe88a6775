//! What is said before the demo.

use super::{Manner, say};
use crate::commands::demo::{self, Scratch};

/// Tells what is about to happen.
pub fn before(manner: Manner, scratch: &Scratch) {
    if manner.quiet {
        return;
    }
    let (brief, check) = demo::told();
    say(manner, &format!("A scratch repository with a bug: {}", scratch.repo.display()));
    say(manner, "The model is a script; the repository, the worktree, the commands and the check are real.");
    say(manner, &format!("$ nisse delegate --check '{check}' \"{brief}\""));
}
