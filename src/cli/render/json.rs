//! JSON: events as they happen, one object a line.

use serde_json::{Map, Value, json};

use crate::domain::event::Event;

/// An event as a line of `--json`: `v`, `type` = `event`, its place in the log, its name, and its content as stored.
#[must_use]
pub fn event(event: &Event) -> Value {
    let content = serde_json::to_value(&event.kind).ok().and_then(|tagged| match tagged {
        Value::Object(map) => map.into_iter().next().map(|(_, content)| content),
        _ => None,
    });
    json!({
        "v": 1,
        "type": "event",
        "task": event.task,
        "seq": event.seq,
        "at": timestamp(event.at_ms),
        "spent_ms": event.spent_ms,
        "event": event.kind.name(),
        "data": content.unwrap_or(Value::Object(Map::new())),
    })
}

/// RFC 3339 in UTC, to the millisecond.
#[must_use]
pub fn timestamp(at_ms: u64) -> String {
    let ms = i64::try_from(at_ms).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(ms).map_or_else(|_| at_ms.to_string(), |at| format!("{at:.3}"))
}
