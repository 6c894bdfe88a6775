//! Questions to the user: on standard error, and only if someone can answer.

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

/// Whether there is someone to ask: questions need a terminal for input and output.
#[must_use]
pub fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks which of several tasks is meant; none if the user chose none.
#[must_use]
pub fn which(tasks: &[Task]) -> Option<TaskId> {
    let line = |task: &Task| {
        let outcome = task.outcome().map_or("cut off", |outcome| outcome.word());
        format!("{}  {outcome:<11}  {}", task.id.short(), plain(&first_line(task.started.brief(), 45)))
    };
    let items: Vec<String> = tasks.iter().map(line).collect();
    tasks.get(first_question("Task to resume", &items, 0)?).map(|task| task.id)
}

/// Shows what changed, and asks what to do with it; none if the user decides later.
#[must_use]
pub fn about_files(manner: Manner, result: &TaskResult, found: Option<&TaskDiff>) -> Option<Answer> {
    let cause = format!("{}: {}", result::outcome(result.outcome, false).0, plain(&result.cause));
    Width::of_stderr().folded(&cause, 0).iter().for_each(|line| say(manner, line));
    match found {
        Some(TaskDiff { from, to, diff, .. }) => {
            say(manner, &format!("changes since the last checkpoint, {}:", from.short()));
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
        None => say(manner, "nothing has changed since the last checkpoint"),
    }
    let answers = [
        (Some(Answer::Rollback), "Restore the last checkpoint; a copy of what is there is kept"),
        (Some(Answer::Keep), "Keep the files as they are, and resume"),
        (Some(Answer::Drop), "Give up the task; its commits are kept for 30 days"),
        (None, "Decide later"),
    ];
    let words = answers.map(|(_, words)| words);
    // pressing Enter alone decides nothing
    answers.get(choice("What to do with the changes", &words, words.len() - 1)?)?.0
}

/// Asks for the model of the role delegate; none if the user chose none.
#[must_use]
pub fn model(offered: &[Row]) -> Option<String> {
    let items: Vec<String> = offered.iter().map(|row| plain(&row.alias)).collect();
    offered.get(first_question("Model for tasks", &items, 0)?).map(|row| row.alias.clone())
}

/// Shows what a repository's settings file names, and asks whether it may run.
#[must_use]
pub fn trust(manner: Manner, project: &trust::Report) -> bool {
    let mut fields = Fields::new(Width::of_stderr(), settings::NAMES);
    let head = format!("{} comes with the repository and contains commands that run as you:", plain(&project.path));
    Width::of_stderr().folded(&head, 0).iter().for_each(|line| fields.line(line));
    for (key, value) in settings::effects(project) {
        fields.field(key, &value);
    }
    fields.into_text().lines().for_each(|line| say(manner, line));
    let answers = ["No", "Yes, until the file changes (undo: nisse trust --revoke)"];
    // pressing Enter alone decides nothing
    first_question("Trust this file", &answers, 0) == Some(1)
}

/// A question before signal handlers are installed. A signal that ends nisse does so after the terminal is restored,
/// with its cursor.
fn first_question(question: &str, items: &[impl std::fmt::Display], first: usize) -> Option<usize> {
    // a signal from outside comes first, since the question raises SIGINT for any of them
    let flags = [SIGTERM, SIGHUP, SIGINT].map(|signal| (signal, Arc::new(AtomicBool::new(false))));
    let heard: Vec<_> = flags.iter().filter_map(|(signal, came)| flag::register(*signal, came.clone()).ok()).collect();
    let chosen = choice(question, items, first);
    for id in heard {
        low_level::unregister(id);
    }
    if let Some((signal, _)) = flags.iter().find(|(_, came)| came.load(Ordering::Relaxed)) {
        // if that does not end the process, nothing was chosen
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
