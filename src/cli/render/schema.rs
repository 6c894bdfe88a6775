//! JSON schemas of what `--json` prints, made from the types; `examples/` holds the same.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::diff;
use crate::{
    cli::error::ErrorObject,
    commands::{apply::Applied, doctor::Report, init, result::TaskResult, resume::Nothing, trust},
    domain::event::EventKind,
};

/// All schemas with the names of their files under `examples/`.
#[must_use]
pub fn all() -> Vec<(String, Vec<u8>)> {
    let documents = [
        ("result", of::<TaskResult>()),
        ("error", of::<ErrorObject>()),
        ("nothing_pending", of::<Nothing>()),
        ("event", event()),
        ("apply", of::<Applied>()),
        ("diff", of::<diff::Document<'_>>()),
        ("doctor", of::<Report>()),
        ("init", of::<init::Report>()),
        ("trust", of::<trust::Report>()),
    ];
    documents.map(|(name, schema)| (format!("{name}.schema.json"), format!("{schema:#}\n").into_bytes())).into()
}

fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// An event's line: what [`super::json::event`] makes of the stored form, whose one member is the event's name.
fn event() -> Value {
    let mut stored = of::<EventKind>();
    let kinds = stored["oneOf"].take();
    let kinds: Vec<Value> = kinds
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|kind| {
            let (name, content) = kind["properties"].as_object()?.iter().next()?;
            Some(json!({
                "description": kind["description"],
                "properties": {"event": {"const": name}, "data": content},
            }))
        })
        .collect();
    let mut schema = Map::new();
    schema.insert("$schema".to_owned(), stored["$schema"].take());
    schema.insert("title".to_owned(), json!("Event"));
    schema.insert("description".to_owned(), json!("What happened to a task, one object a line, as it happens."));
    schema.insert("type".to_owned(), json!("object"));
    schema.insert(
        "properties".to_owned(),
        json!({
            "v": {"const": 1, "description": "Version of this object's form."},
            "type": {"const": "event"},
            "task": {"type": "string", "description": "The task."},
            "seq": {"type": "integer", "minimum": 1, "description": "Its place in the task's log, without gaps."},
            "at": {"type": "string", "format": "date-time", "description": "When, in UTC."},
            "spent_ms": {"type": "integer", "minimum": 0, "description": "The task's active time by then."},
            "event": {"type": "string", "description": "What happened."},
            "data": {"type": "object", "description": "The particulars."},
        }),
    );
    let required = ["v", "type", "task", "seq", "at", "spent_ms", "event", "data"];
    schema.insert("required".to_owned(), json!(required));
    schema.insert("oneOf".to_owned(), Value::Array(kinds));
    schema.insert("$defs".to_owned(), stored["$defs"].take());
    Value::Object(schema)
}
