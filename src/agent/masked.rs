//! Masks secrets in a reply before it is recorded.
//!
//! Opaque parts stay byte for byte, because some vendors sign them. In arguments, only known values are masked: what merely
//! looks like a token may be an example that the model writes into a file. The note of the ending call is text for people,
//! and becomes a commit message.

use std::borrow::Cow;

use serde_json::Value;

use crate::domain::{
    mask::Mask,
    message::{Part, Reply, Stop},
    role::ToolName,
};

/// The reply with its secrets masked.
pub(super) fn masked(mut reply: Reply, mask: &Mask) -> Reply {
    for part in &mut reply.parts {
        match part {
            Part::Text(text) => *text = mask.apply(text).into_owned(),
            Part::Call(call) => {
                let note = call.name == ToolName::HandBack.as_str();
                let hide = |text: &str| if note { mask.apply(text) } else { mask.known(text) }.into_owned();
                if let Some(masked) = masked_json(&call.arguments, &hide) {
                    call.arguments = masked;
                }
            }
            Part::Reasoning(_) => {}
        }
    }
    if let Stop::Declined(text) = &mut reply.stop {
        *text = mask.apply(text).into_owned();
    }
    reply
}

/// The JSON text with `hide` applied to every string; none if that changes nothing.
fn masked_json(text: &str, hide: &dyn Fn(&str) -> String) -> Option<String> {
    let masked = match serde_json::from_str::<Value>(text) {
        Ok(before) => {
            let mut after = before.clone();
            over_strings(&mut after, hide);
            if after == before { Cow::Borrowed(text) } else { Cow::Owned(after.to_string()) }
        }
        Err(_) => Cow::Owned(hide(text)),
    };
    (masked != text).then(|| masked.into_owned())
}

fn over_strings(value: &mut Value, hide: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = hide(text),
        Value::Array(items) => items.iter_mut().for_each(|item| over_strings(item, hide)),
        Value::Object(members) => members.values_mut().for_each(|member| over_strings(member, hide)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
