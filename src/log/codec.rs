//! Events to and from rows: a kind, a version and a JSON body; long strings go to blobs by hash.

use serde_json::{Map, Value};

use super::upcast::{self, upcast};
use crate::domain::{
    event::EventKind,
    id::{Hash, TaskId},
};

/// Strings of this many bytes and more are kept as blobs.
const BLOB_FROM: usize = 4096;
/// The member that refers to a blob. No event has a member of this name.
const BLOB: &str = "$blob";

/// An event as it is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Encoded {
    /// The event's name.
    pub kind: String,
    /// Its content, as JSON.
    pub body: String,
    /// Its long strings.
    pub blobs: Vec<(Hash, String)>,
}

/// The row of an event.
pub fn encode(kind: &EventKind) -> Result<Encoded, serde_json::Error> {
    let (name, mut content) = tagged(kind)?;
    let mut blobs = Vec::new();
    take_blobs(&mut content, &mut blobs);
    Ok(Encoded { kind: name, body: content.to_string(), blobs })
}

/// The event of a row of that version, and of that task. `blob` finds a blob by its hash.
///
/// What is read must encode to what was stored (or upcast): a missing or unknown member is an error, never a default.
pub fn decode(
    version: u32,
    task: TaskId,
    kind: &str,
    body: &str,
    blob: &dyn Fn(&Hash) -> Result<String, String>,
) -> Result<EventKind, String> {
    let mut content: Value = serde_json::from_str(body).map_err(|error| format!("its body is no JSON: {error}"))?;
    put_blobs(&mut content, blob)?;
    let mut stored = upcast::Event { task, kind: kind.to_owned(), content };
    upcast(version, &mut stored)?;
    let upcast::Event { kind, content, .. } = stored;
    let whole = Value::Object(Map::from_iter([(kind.clone(), content)]));
    let event: EventKind = serde_json::from_value(whole.clone()).map_err(|error| error.to_string())?;
    let again = serde_json::to_value(&event).map_err(|error| error.to_string())?;
    if again != whole {
        return Err(format!("{kind} has members that are missing or unknown"));
    }
    Ok(event)
}

fn tagged(kind: &EventKind) -> Result<(String, Value), serde_json::Error> {
    match serde_json::to_value(kind)? {
        Value::Object(map) if map.len() == 1 => Ok(map.into_iter().next().unwrap_or_default()),
        other => Err(serde::ser::Error::custom(format!("an event is one tagged object, not {other}"))),
    }
}

fn take_blobs(value: &mut Value, blobs: &mut Vec<(Hash, String)>) {
    match value {
        Value::String(text) if text.len() >= BLOB_FROM => {
            let text = std::mem::take(text);
            let hash = Hash::of(text.as_bytes());
            *value = serde_json::json!({ BLOB: hash, "bytes": text.len() });
            blobs.push((hash, text));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| take_blobs(item, blobs)),
        Value::Object(map) => map.values_mut().for_each(|item| take_blobs(item, blobs)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn put_blobs(value: &mut Value, blob: &dyn Fn(&Hash) -> Result<String, String>) -> Result<(), String> {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(hash)) = map.get(BLOB) {
                *value = Value::String(blob(&Hash(hash.clone()))?);
                return Ok(());
            }
            map.values_mut().try_for_each(|item| put_blobs(item, blob))
        }
        Value::Array(items) => items.iter_mut().try_for_each(|item| put_blobs(item, blob)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}
