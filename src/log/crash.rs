//! Named crash points, for tests: with the cargo feature `crashpoints`, `CRASHPOINT=<name>` makes the process abort
//! where it reaches that point (`<name>#2`: the second time), as a power cut would; `CRASHPOINT=?` names each point that
//! is reached. `MEANWHILE=<name> <line>` runs a shell command there, to test what happens if someone acts at that moment.
//! Without the feature, crash points do nothing.

/// Every point, in the order in which a task may reach them, then those of `nisse apply`.
pub const POINTS: &[&str] = &[
    "migrate.begun",
    "migrate.step",
    "migrate.marked",
    "migrate.done",
    "prepare.begun",
    "prepare.snapshot",
    "switch.opened",
    "switch.marked",
    "switch.branch",
    "switch.head",
    "prepare.worktree",
    "prepare.submodules",
    "prepare.copied",
    "setup.ran",
    "prepare.setup",
    "prepare.ready",
    "recreate.removed",
    "recreate.added",
    "recreate.ready",
    "kept.moved",
    "persons.ref",
    "persons.stash",
    "take_in.ended",
    "take_in.kept",
    "take_in.branch",
    "edit.opened",
    "edit.written",
    "checkpoint.begun",
    "checkpoint.staged",
    "checkpoint.commit",
    "checkpoint.branch",
    "squash.commit",
    "squash.opened",
    "squash.applied",
    "back.opened",
    "back.files",
    "back.index",
    "back.head",
    "back.marked",
    "answer.recorded",
    "roll_back.kept",
    "roll_back.branch",
    "roll_back.restored",
    "undo.marked",
    "undo.branch",
    "drop.kept",
    "drop.cleared",
    "remove.directory",
    "remove.entry",
    "discard.opened",
    "discard.kept",
    "discard.worktree",
    "discard.branch",
    "end.recorded",
    "clean_up.done",
    "pack.made",
    "pack.placed",
    "pack.cleared",
    "apply.opened",
    "apply.held",
    "file.written",
    "file.exchanged",
    "file.aside",
    "file.moved",
    "advance.index",
    "advance.branch",
    "land.begun",
    "land.made",
    "land.index",
    "apply.done",
    "put_back.unlanded",
    "put_back.opened",
    "put_back.index",
    "put_back.done",
    "fix.removed",
];

/// Dies here, if the test says so.
#[cfg(feature = "crashpoints")]
#[expect(clippy::disallowed_methods, reason = "a test feature, told by a variable of its own")]
#[expect(clippy::print_stderr, reason = "the test asserts that it died where it was told to")]
pub fn point(name: &str) {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static REACHED: AtomicUsize = AtomicUsize::new(0);
    static PASSED: AtomicUsize = AtomicUsize::new(0);
    if let Ok(meanwhile) = std::env::var("MEANWHILE")
        && let Some((wanted, line)) = meanwhile.split_once(' ')
    {
        let (at, times) = wanted.split_once('#').unwrap_or((wanted, "1"));
        if at == name && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == times.parse().unwrap_or(1) {
            let done = std::process::Command::new("sh").args(["-ec", line]).status();
            eprintln!("meanwhile at {name}: {done:?}");
        }
    }
    let Ok(wanted) = std::env::var("CRASHPOINT") else { return };
    if wanted == "?" {
        return eprintln!("reached {name}");
    }
    let (at, times) = wanted.split_once('#').unwrap_or((&wanted, "1"));
    if at == name && REACHED.fetch_add(1, Ordering::SeqCst) + 1 == times.parse().unwrap_or(1) {
        eprintln!("crashed at {name}");
        std::process::abort();
    }
}

/// Nothing.
#[cfg(not(feature = "crashpoints"))]
#[inline]
pub fn point(_name: &str) {}
