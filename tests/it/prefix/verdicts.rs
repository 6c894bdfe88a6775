//! Each end and each verdict of a resume says why, in one line.

use nisse::domain::{
    event::{Event, EventKind},
    id::IntentId,
    task::Task,
};

/// Asserts it of what was written after the cut that left `task`.
pub(super) fn each_has_its_cause(task: &Task, after: &[Event], at: &str) {
    let open: Vec<IntentId> = task.pending_intents().map(|intent| intent.id).collect();
    for event in after {
        let verdict = match &event.kind {
            EventKind::IntentSettled { intent, cause } if open.contains(intent) => cause.as_deref(),
            EventKind::IntentAbandoned { cause, .. }
            | EventKind::Recovered { cause, .. }
            | EventKind::TaskEnded { cause, .. }
            | EventKind::SpanStarted { cause } => Some(cause.as_str()),
            _ => continue,
        };
        let one_line = verdict.is_some_and(|cause| !cause.is_empty() && !cause.contains('\n'));
        assert!(one_line, "{at}: no cause in {event:?}");
    }
}
