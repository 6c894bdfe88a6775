//! The message of the one commit that a task becomes.

use crate::domain::{note::Note, task::Task};

/// A subject from the note's first line, the note, and the task's trailer.
pub(super) fn of_note(task: &Task, note: &Note) -> String {
    let note = note.handback();
    let first = note.changed.trim().lines().next().unwrap_or_default();
    let mut subject: String = first.chars().take(72).collect();
    if subject.len() < first.len() {
        subject = first.chars().take(71).collect::<String>().trim_end().to_owned() + "…";
    }
    format!(
        "{subject}\n\nChanged: {}\n\nNow true: {}\n\nNext: {}\n\nNisse-Task: {}\n",
        note.changed.trim(),
        note.now_true.trim(),
        note.next.trim(),
        task.id
    )
}
