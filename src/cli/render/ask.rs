//! Questions to the person: on standard error, and only where somebody can answer.

use std::{
    io::IsTerminal as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use dialoguer::{Select, console::Term};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag, low_level,
};

use super::{Manner, Width, diff, first_line, layout::Fields, plain, result, say, settings};
use crate::{
    commands::{log::TaskDiff, models::Row, result::TaskResult, trust},
    domain::{amount::counted, gate::Answer, id::TaskId, task::Task},
};

/// Lines of a patch that are shown before a question.
const MOST_LINES: usize = 100;

/// Whether somebody can be asked: the questions need a terminal on both sides.
#[must_use]
pub fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks which of several tasks is meant; none if nobody chose.
#[must_use]
pub fn which(tasks: &[Task]) -> Option<TaskId> {
    let line = |task: &Task| {
        let outcome = task.outcome().map_or("cut off", |outcome| outcome.word());
        format!("{}  {outcome:<11}  {}", task.id.short(), plain(&first_line(task.started.brief(), 45)))
    };
    let items: Vec<String> = tasks.iter().map(line).collect();
    tasks.get(first_question("Which task goes on", &items, 0)?).map(|task| task.id)
}

/// Shows what is there, and asks what becomes of it; none if that is left open.
#[must_use]
pub fn about_files(manner: Manner, result: &TaskResult, found: Option<&TaskDiff>) -> Option<Answer> {
    let cause = format!("{}: {}", result::outcome(result.outcome, false).0, plain(&result.cause));
    Width::of_stderr().folded(&cause, 0).iter().for_each(|line| say(manner, line));
    match found {
        Some(TaskDiff { from, to, diff, .. }) => {
            say(manner, &format!("what is there beyond the last checkpoint, {}:", from.short()));
            let patch = diff::readable(&String::from_utf8_lossy(&diff.patch));
            for line in patch.lines().take(MOST_LINES) {
                say(manner, line);
            }
            let more = patch.lines().count().saturating_sub(MOST_LINES);
            if more > 0 {
                let more = counted(more as u64, "more line");
                say(manner, &format!("… and {more}: git diff {} {}", from.short(), to.short()));
            }
        }
        None => say(manner, "nothing is there beyond the last checkpoint"),
    }
    let answers = [
        (Some(Answer::Rollback), "Roll back to the last checkpoint; what is there is kept aside"),
        (Some(Answer::Keep), "Keep what is there, and go on"),
        (Some(Answer::Drop), "Give the task up; its commits are kept as discarded"),
        (None, "Leave it as it is"),
    ];
    let words = answers.map(|(_, words)| words);
    // whoever only presses Enter has decided nothing
    answers.get(choice("What becomes of it", &words, words.len() - 1)?)?.0
}

/// Asks which model the role delegate has; none if nobody chose.
#[must_use]
pub fn model(offered: &[Row]) -> Option<String> {
    let items: Vec<String> = offered.iter().map(|row| plain(&row.alias)).collect();
    offered.get(first_question("Which model does the tasks", &items, 0)?).map(|row| row.alias.clone())
}

/// Shows what a repository's settings file names, and asks whether it may run.
#[must_use]
pub fn trust(manner: Manner, project: &trust::Report) -> bool {
    let mut fields = Fields::new(Width::of_stderr(), settings::NAMES);
    let head = format!("{} comes with the repository, and names what runs as you:", plain(&project.path));
    Width::of_stderr().folded(&head, 0).iter().for_each(|line| fields.line(line));
    for (key, value) in settings::effects(project) {
        fields.field(key, &value);
    }
    fields.into_text().lines().for_each(|line| say(manner, line));
    let answers = ["No", "Yes, until the file changes (nisse trust --revoke forgets it)"];
    // whoever only presses Enter has decided nothing
    first_question("May it run", &answers, 0) == Some(1)
}

/// A question before any work, when nobody listens for signals yet: one that ends nisse does so once the terminal is as
/// it was, with its cursor.
fn first_question(question: &str, items: &[impl std::fmt::Display], first: usize) -> Option<usize> {
    // the one that came from outside first: whatever came, the question raises SIGINT
    let flags = [SIGTERM, SIGHUP, SIGINT].map(|signal| (signal, Arc::new(AtomicBool::new(false))));
    let heard: Vec<_> = flags.iter().filter_map(|(signal, came)| flag::register(*signal, came.clone()).ok()).collect();
    let chosen = choice(question, items, first);
    for id in heard {
        low_level::unregister(id);
    }
    if let Some((signal, _)) = flags.iter().find(|(_, came)| came.load(Ordering::Relaxed)) {
        // where it cannot die so, nothing was chosen
        let _ = low_level::emulate_default_handler(*signal);
        return None;
    }
    chosen
}

fn choice(question: &str, items: &[impl std::fmt::Display], first: usize) -> Option<usize> {
    let chosen = Select::new().with_prompt(question).items(items).default(first).interact_opt();
    // whatever came, the cursor must be seen again
    let _ = Term::stderr().show_cursor();
    chosen.ok().flatten()
}
