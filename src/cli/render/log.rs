//! `nisse log`: the list of tasks, and one task's story.

use anstream::adapter::strip_str;

use super::{Manner, data, first_line, grouped, json, moment, say, span, story};
use crate::{
    cli::error::Report,
    commands::log::Listed,
    domain::{event::Event, task::Task},
};

/// The list of tasks, and what is wrong with those that cannot be read.
pub fn list(manner: Manner, tasks: &[Listed], corrupt: &[Report]) {
    corrupt.iter().flat_map(Report::lines).for_each(|line| say(manner, &line));
    if manner.json {
        let corrupt: Vec<_> = corrupt.iter().map(|report| &report.message).collect();
        data(manner, &serde_json::json!({"v": 1, "type": "log", "tasks": tasks, "corrupt": corrupt}).to_string());
        return;
    }
    for task in tasks {
        let cost = task.cost_usd.map_or_else(String::new, |usd| format!("  ${usd:.4}"));
        data(
            manner,
            &format!(
                "{}  {}  {:<11}  {} turns  {} tokens{cost}  {}",
                task.task.short(),
                moment(task.begun_ms),
                task.outcome,
                task.turns,
                grouped(task.tokens),
                first_line(&task.brief, 60)
            ),
        );
    }
}

/// One task's events.
pub fn one(manner: Manner, task: &Task, events: &[Event]) {
    if manner.json {
        let events: Vec<_> = events.iter().map(json::event).collect();
        let outcome = task.outcome().map_or("pending", |outcome| outcome.word());
        let document = serde_json::json!({
            "v": 1, "type": "log", "task": task.id, "outcome": outcome, "events": events,
        });
        data(manner, &document.to_string());
        return;
    }
    data(manner, &format!("task {}  branch {}", task.id, task.started.branch));
    for event in events {
        for (index, line) in story::lines(event).into_iter().enumerate() {
            let at = if index == 0 { span(event.spent_ms) } else { String::new() };
            data(manner, &format!("{at:>12}  {}", strip_str(&line)));
        }
    }
}
