//! JSON as models and proxies send it, and as it goes back: members in a fixed order, recorded pieces byte for byte.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::domain::message::mend_surrogates;

/// Parses `text`; where it is unreadable, once more with halves of surrogate pairs mended.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match mend_surrogates(text) {
        std::borrow::Cow::Borrowed(_) => Err(error),
        std::borrow::Cow::Owned(mended) => serde_json::from_str(&mended),
    })
}

/// A whole number that is not negative, also where it was written `8192.0` or `"8192"`.
pub(super) fn whole_number(value: &Value) -> Option<u64> {
    let float = |number: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
        (number.fract() == 0.0 && (0.0..9e15).contains(&number)).then_some(number as u64)
    };
    match value {
        Value::Number(number) => number.as_u64().or_else(|| number.as_f64().and_then(float)),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A number, also where it was written as a string.
pub(super) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Whether a member holds nothing worth keeping: null, empty, or an object of nulls.
pub(super) fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_blank),
    }
}

/// The text between the braces of `raw`, which must be one JSON object.
pub(super) fn members_of(raw: &str) -> Result<&str, serde_json::Error> {
    serde_json::from_str::<serde_json::Map<String, Value>>(raw)?;
    let inner = raw.trim();
    Ok(inner.get(1..inner.len() - 1).unwrap_or_default().trim())
}

/// An object that is written member by member, in the order of the calls. Histories are long, and are written before each
/// request: every byte is copied as seldom as may be.
pub(super) struct Object(Vec<u8>);

impl Object {
    pub(super) fn new() -> Self {
        Self::with_room_for(0)
    }

    /// One that will hold so many bytes of text.
    pub(super) fn with_room_for(bytes: usize) -> Self {
        let mut text = Vec::with_capacity(bytes + bytes / 16 + 100);
        text.push(b'{');
        Self(text)
    }

    /// A member: text, a number, a truth value or null.
    pub(super) fn put(&mut self, name: &str, value: impl Serialize) -> &mut Self {
        self.name(name);
        write(&mut self.0, value);
        self
    }

    /// A member whose value is JSON already, and stays as it is.
    pub(super) fn raw(&mut self, name: &str, json: &str) -> &mut Self {
        self.name(name);
        self.0.extend_from_slice(json.as_bytes());
        self
    }

    /// A member that is an array of pieces that are JSON already.
    pub(super) fn array<S: AsRef<str>>(&mut self, name: &str, pieces: impl IntoIterator<Item = S>) -> &mut Self {
        self.name(name);
        self.0.push(b'[');
        for (index, piece) in pieces.into_iter().enumerate() {
            if index > 0 {
                self.0.push(b',');
            }
            self.0.extend_from_slice(piece.as_ref().as_bytes());
        }
        self.0.push(b']');
        self
    }

    /// Members as they stand between the braces of another object.
    pub(super) fn members(&mut self, members: &str) -> &mut Self {
        if !members.is_empty() {
            self.comma();
            self.0.extend_from_slice(members.as_bytes());
        }
        self
    }

    pub(super) fn end(mut self) -> String {
        self.0.push(b'}');
        // only text was written
        String::from_utf8(self.0).unwrap_or_default()
    }

    fn name(&mut self, name: &str) {
        self.comma();
        write(&mut self.0, name);
        self.0.push(b':');
    }

    fn comma(&mut self) {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
    }
}

/// Writes a plain value, which cannot fail in memory.
fn write(out: &mut Vec<u8>, value: impl Serialize) {
    let _ = serde_json::to_writer(out, &value);
}

/// The bytes of texts that are to be written one behind the other.
pub(super) fn length(pieces: &[String]) -> usize {
    pieces.iter().map(|piece| piece.len() + 1).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn half_a_surrogate_pair_is_mended_and_other_faults_are_not() {
        assert_eq!(parse::<Value>(r#"{"a":"x \ud83d"}"#).unwrap(), json!({"a": "x \u{fffd}"}));
        assert!(parse::<Value>(r#"{"a":"#).is_err());
        assert!(parse::<Value>(r#"{"a":"\ud83d"#).is_err());
    }

    #[test]
    fn numbers_are_read_in_all_spellings_and_never_guessed() {
        for (value, wanted) in [
            (json!(8192), Some(8192)),
            (json!(8192.0), Some(8192)),
            (json!("8192"), Some(8192)),
            (json!(-1), None),
            (json!(1.5), None),
            (json!(null), None),
            (json!(1e300), None),
        ] {
            assert_eq!(whole_number(&value), wanted, "{value}");
        }
    }

    #[test]
    fn an_object_keeps_the_order_and_the_bytes() {
        let mut object = Object::new();
        object.members("").put("b", 1).raw("a", "1.50").members(members_of(" { \"c\" : [ ] } ").unwrap());
        assert_eq!(object.end(), r#"{"b":1,"a":1.50,"c" : [ ]}"#);
        assert!(members_of("[1]").is_err());
    }
}
