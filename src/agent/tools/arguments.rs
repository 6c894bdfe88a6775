//! Arguments as models write them, fitted to a tool's schema.
//!
//! Taken, because it means only one thing: nothing, white space or `null` for no arguments; an object that was encoded
//! twice; `null` and `""` for an optional argument that is left out; `"12"` and `12.0` for 12; `"true"` for true; 12 for
//! `"12"`. Everything else is told, all at once, by field and expected type. Nothing of `hand_back` is fitted: whether work
//! succeeded must not be a guess, and a number is no note.

use serde_json::{Map, Number, Value};

use crate::domain::{message::mend_surrogates, role::ToolName};

/// The one JSON object that `written` is, or why it is none.
pub(super) fn object(written: &str) -> Result<Map<String, Value>, String> {
    if written.trim().is_empty() {
        return Ok(Map::new());
    }
    match value(written)? {
        Value::String(inner) if !inner.trim().is_empty() => match value(&mend_surrogates(&inner))? {
            Value::Object(object) => Ok(object),
            other => Err(format!("The arguments must be a JSON object, not {} inside a string", kind(&other))),
        },
        Value::Object(object) => Ok(object),
        Value::Null | Value::String(_) => Ok(Map::new()),
        other => Err(format!("The arguments must be a JSON object, not {}", kind(&other))),
    }
}

fn value(text: &str) -> Result<Value, String> {
    let mut several = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    match (several.next(), several.next()) {
        (Some(Ok(value)), None) => Ok(value),
        (Some(Ok(Value::Object(_))), Some(Ok(Value::Object(_)))) => {
            Err("The arguments are several JSON objects; make one call for each".to_owned())
        }
        (Some(Err(error)), _) | (_, Some(Err(error))) => Err(format!("The arguments are not valid JSON ({error})")),
        (Some(Ok(_)), Some(Ok(_))) | (None, _) => Err("The arguments are not one JSON object".to_owned()),
    }
}

/// The arguments fitted to the schema, or everything that is wrong with them.
pub(super) fn coerced(
    tool: ToolName,
    schema: &Value,
    mut given: Map<String, Value>,
) -> Result<Map<String, Value>, Vec<String>> {
    let (mut right, mut wrong) = (Map::new(), Vec::new());
    for (name, field, required) in fields(schema) {
        let expected = expected(field);
        match given.shift_remove(name).unwrap_or(Value::Null) {
            Value::Null if required => wrong.push(format!("`{name}` is missing: expected {expected}")),
            Value::Null => {}
            Value::String(text) if !required && text.trim().is_empty() => {}
            Value::String(text) if text.trim().is_empty() && field.get("minLength").is_some() => {
                wrong.push(format!("`{name}` is blank: expected {expected}"));
            }
            value => {
                let strict = tool == ToolName::HandBack;
                match fit(&value, field, strict) {
                    Some(value) => {
                        right.insert(name.to_owned(), value);
                    }
                    None => wrong.push(format!("`{name}`: expected {expected}, got {}", kind(&value))),
                }
            }
        }
    }
    wrong.extend(given.keys().map(|name| format!("`{}` is not one of its arguments", cut(name))));
    if wrong.is_empty() { Ok(right) } else { Err(wrong) }
}

/// `value` as the field's type, if it can only mean that.
fn fit(value: &Value, field: &Value, strict: bool) -> Option<Value> {
    match (field["type"].as_str()?, value) {
        ("string", Value::String(_)) | ("boolean", Value::Bool(_)) => Some(value.clone()),
        ("string", Value::Number(number)) if !strict => Some(Value::String(number.to_string())),
        ("boolean", Value::String(text)) if !strict => match text.trim().to_ascii_lowercase().as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        },
        ("integer", Value::Number(number)) => whole(number, field),
        ("integer", Value::String(text)) => whole(&text.trim().parse::<u64>().ok()?.into(), field),
        _ => None,
    }
}

fn whole(number: &Number, field: &Value) -> Option<Value> {
    let whole = number.as_u64().or_else(|| {
        let real = number.as_f64()?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
        (real.fract() == 0.0 && (0.0..9e15).contains(&real)).then_some(real as u64)
    })?;
    (whole >= field["minimum"].as_u64().unwrap_or(0)).then(|| whole.into())
}

/// A schema's arguments in one line: `{"path": string, "start_line"?: integer}`.
pub(super) fn usage(schema: &Value) -> String {
    let fields: Vec<String> = fields(schema)
        .map(|(name, field, required)| {
            format!("\"{name}\"{}: {}", if required { "" } else { "?" }, field["type"].as_str().unwrap_or("any"))
        })
        .collect();
    format!("{{{}}}", fields.join(", "))
}

/// A generated schema without what proxies and vendors stumble over: one closed object of plain types, where what is
/// optional is not required instead of nullable.
pub(super) fn plain(mut schema: Value) -> Value {
    if let Some(object) = schema.as_object_mut() {
        // the struct's documentation is for us
        object.shift_remove("description");
    }
    strip(&mut schema);
    schema
}

fn strip(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    for name in ["$schema", "title", "format", "default"] {
        object.shift_remove(name);
    }
    if let Some(Value::Array(types)) = object.get("type")
        && let Some(only) = types.iter().find(|name| *name != "null").cloned()
    {
        object.insert("type".to_owned(), only);
    }
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.values_mut().for_each(strip);
    }
}

/// Name, schema and whether it is required, of each argument.
fn fields(schema: &Value) -> impl Iterator<Item = (&str, &Value, bool)> {
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.map(move |(name, field)| (name.as_str(), field, required.iter().any(|entry| entry == name)))
}

fn expected(field: &Value) -> String {
    match (field["type"].as_str(), field["minimum"].as_u64()) {
        (Some("integer"), Some(least)) => format!("a whole number from {least} on"),
        (Some("integer"), None) => "a whole number".to_owned(),
        (Some("boolean"), _) => "a boolean, true or false".to_owned(),
        (Some("string"), _) if field.get("minLength").is_some() => "a string that is not blank".to_owned(),
        (Some(other), _) => format!("a {other}"),
        (None, _) => "a value".to_owned(),
    }
}

fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => format!("the boolean {value}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the string {:?}", cut(text)),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn cut(text: &str) -> String {
    text.chars().take(40).collect()
}
