//! Leftovers of settled tasks: listed, and with `--fix` removed if nothing is lost.

use std::path::Path;

use super::{Check, Verdict};
use crate::{
    commands::{
        Error,
        drop::carry_out,
        leftovers::{self, Leftover, State},
        open::{Opened, for_git},
        settings::{Environment, Flags, KeepTurns, Settings, units},
    },
    domain::amount::counted,
    log::{Access, Log},
    repo::{self, Checkout},
};

const SUBJECT: &str = "leftovers";
/// What the refs of earlier tasks keep.
pub const KEPT: &str = "kept";
/// From this many bytes on, what is kept is worth a warning.
const MUCH: u64 = 1_000_000_000;

/// Lists leftovers, and removes them with `fix`. Without a repository or a log there are none.
pub(super) async fn check_remains(
    settings: &Settings,
    environment: &Environment,
    flags: &Flags,
    directory: &Path,
    fix: bool,
    checks: &mut Vec<Check>,
) -> Vec<Leftover> {
    let Ok(checkout) = Checkout::open(directory, &for_git(environment)) else { return Vec::new() };
    let access = if fix { Access::Write } else { Access::Read };
    // a log that does not open is reported elsewhere
    let Ok(Some(log)) = Log::open(&settings.state_dir.value, access) else { return Vec::new() };
    let now_ms = settings.pins.clock().civil_ms();
    let keep = settings.branch.keep_turns.value;
    let looked = async {
        let mut found = leftovers::find_leftovers(&log, &checkout, keep, now_ms)?;
        if fix {
            let owing = leftovers::owing(&found);
            if !owing.is_empty() {
                let opened = Opened::new(environment.clone(), flags, directory)?;
                for id in owing {
                    Box::pin(carry_out(&opened, id)).await?;
                }
                let left = leftovers::find_leftovers(&log, &checkout, keep, now_ms)?;
                found = leftovers::carried_out(&log, found, left);
            }
            found = leftovers::fix(&log, &checkout, found);
        }
        Ok::<_, Error>(found)
    };
    match looked.await {
        Ok(found) => {
            checks.extend(as_checks(&found));
            match kept(&checkout, keep) {
                Ok(kept) => checks.extend(kept),
                Err(error) => checks.push(super::bad(KEPT, Verdict::Warning, &error.into())),
            }
            found
        }
        Err(error) => {
            checks.push(super::bad(SUBJECT, Verdict::Warning, &error));
            Vec::new()
        }
    }
}

/// What the refs of tasks keep in the repository, with its size.
fn kept(checkout: &Checkout, keep: KeepTurns) -> Result<Vec<Check>, repo::Error> {
    let turns = format!("the turns of finished tasks, one commit each (branch.keep_turns: {keep})");
    let kinds = [
        ("turns", turns.as_str()),
        ("discarded", "the commits of discarded tasks, for 30 days"),
        ("found", "files and commits found beside the work of tasks, for 30 days"),
        ("before-apply", "the checkout before work was applied, for 30 days"),
    ];
    let mut checks = Vec::new();
    for (name, what) in kinds {
        let kept = checkout.disk_usage_of_refs(name, |_| true)?;
        if kept.refs.is_empty() {
            continue;
        }
        let refs = counted(kept.refs.len() as u64, "ref");
        let found = format!("refs/nisse/{name}: {what}: {refs}, {}", units::about(kept.bytes));
        checks.push(if kept.bytes < MUCH {
            Check::good(KEPT, found)
        } else {
            let advice = "limit it with [branch] keep_turns, or delete refs; then `git gc` frees the space";
            Check::new(KEPT, Verdict::Warning, found, advice)
        });
    }
    Ok(checks)
}

/// A line for each, but only one for all locks: every ended task leaves one, and they are harmless.
fn as_checks(found: &[Leftover]) -> Vec<Check> {
    let (locks, others): (Vec<_>, Vec<_>) =
        found.iter().partition(|one| one.kind == "lock" && matches!(one.state, State::Dead | State::Removed));
    let mut checks: Vec<Check> = others.iter().map(|one| line(one)).collect();
    if let Some(first) = locks.first() {
        let removed = first.state == State::Removed;
        let what = if removed { "removed: lock files of" } else { "lock files of" };
        let whose =
            if locks.len() == 1 { "a task that has".to_owned() } else { format!("{} tasks that have", locks.len()) };
        checks.push(Check::good(SUBJECT, format!("{what} {whose} ended")));
    }
    if checks.is_empty() {
        checks.push(Check::good(SUBJECT, "none"));
    }
    checks
}

fn line(one: &Leftover) -> Check {
    let named = format!("{} {}: {}", one.kind, one.name, one.why);
    match one.state {
        State::Dead => Check::new(SUBJECT, Verdict::Warning, named, "to remove it: nisse doctor --fix"),
        State::Kept => {
            Check::new(SUBJECT, Verdict::Warning, named, "check whether you need it; nisse does not remove it")
        }
        State::Foreign => Check::new(SUBJECT, Verdict::Warning, named, "leave it to the nisse that made it"),
        State::Removed => Check::good(SUBJECT, format!("removed: {named}")),
    }
}
