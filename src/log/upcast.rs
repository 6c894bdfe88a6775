//! Events of earlier versions, brought to today's form before they are decoded: old logs load for ever.
//!
//! One function a step. It works on the stored JSON and gives a member that is missing the value that it meant when the
//! event was written, never a default of today. A released step is never changed; `tests/logs` holds what each version
//! wrote.

use serde_json::{Map, Value, json};

use super::EVENTS;
use crate::domain::id::TaskId;

/// A step from one version to the next.
type Step = fn(&mut Event) -> Result<(), String>;

/// The steps, from version 1 on.
const STEPS: [Step; EVENTS as usize - 1] = [from_1, from_2];

/// An event as it is stored.
#[derive(Debug)]
pub(super) struct Event {
    /// Its task.
    pub(super) task: TaskId,
    /// Its name.
    pub(super) kind: String,
    /// Its content.
    pub(super) content: Value,
}

/// Brings an event of `version` to today's form. A version that is not ours yet is the caller's to refuse.
pub(super) fn upcast(version: u32, event: &mut Event) -> Result<(), String> {
    let done = version.checked_sub(1).ok_or("its version 0 is none")? as usize;
    STEPS.iter().skip(done).try_for_each(|step| step(event))
}

/// Version 2: the first event holds the tools as they were offered, and the words around what a request holds; a reply
/// says by which prices another model's answer is counted; a settlement says what recovery found; a switch of the checkout
/// keeps nothing; a request can be withheld for want of money too.
fn from_1(event: &mut Event) -> Result<(), String> {
    match event.kind.as_str() {
        "task_started" => {
            let frozen: Value =
                serde_json::from_str(include_str!("upcast/v1.json")).map_err(|error| error.to_string())?;
            let role = object(event.content.get_mut("role"), "role")?;
            let names = role.get("tools").and_then(Value::as_array).ok_or("its role has no tools")?;
            let offered = |name: &Value| -> Result<Value, String> {
                let known = name.as_str().and_then(|name| frozen["tools"].get(name));
                let known = known.ok_or_else(|| format!("version 1 had no tool {name}"))?;
                Ok(json!({"name": name, "description": known["description"], "parameters": known["parameters"]}))
            };
            let offered = names.iter().map(offered).collect::<Result<Value, _>>()?;
            role.insert("tools".to_owned(), offered);
            object(Some(&mut event.content), "content")?.insert("wording".to_owned(), frozen["wording"].clone());
        }
        "reply_received" => {
            let reply = object(event.content.get_mut("reply"), "reply")?;
            object(reply.get_mut("answered_by"), "answered_by")?.insert("prices".to_owned(), Value::Null);
        }
        "request_withheld" => {
            object(Some(&mut event.content), "content")?.insert("cap".to_owned(), json!("tokens"));
        }
        "intent_opened" => {
            // what a task in place began with is kept no more: only a clean checkout has one
            if let Some(switch) = event.content.pointer_mut("/kind/checkout_switch") {
                object(Some(switch), "kind")?.remove("kept").ok_or("its switch keeps nothing")?;
            }
        }
        "intent_settled" => {
            object(Some(&mut event.content), "content")?.insert("cause".to_owned(), Value::Null);
        }
        _ => {}
    }
    Ok(())
}

/// Version 3: the first event is in parts; an ending call's note says which kind it is; a command's effects on the
/// repository can name a HEAD that followed its branch to another name.
fn from_2(event: &mut Event) -> Result<(), String> {
    match event.kind.as_str() {
        "task_started" => {
            let task = json!(event.task);
            let content = object(Some(&mut event.content), "content")?;
            let mut take = |name: &str| content.remove(name).ok_or_else(|| format!("it has no {name}"));
            let mut role = take("role")?;
            let keeps = take("keep_turns")? == Value::Bool(true);
            let role_members = object(Some(&mut role), "role")?;
            let mut limits = Map::new();
            for name in ["bad_replies", "repeats", "failed_checks"] {
                limits.insert(
                    name.to_owned(),
                    role_members.remove(name).ok_or_else(|| format!("its role has no {name}"))?,
                );
            }
            limits.insert("when_met".to_owned(), json!("fail"));
            role_members.insert("limits".to_owned(), Value::Object(limits));
            role_members.insert("on_success".to_owned(), json!(if keeps { "keep" } else { "squash" }));
            role_members.insert("on_failure".to_owned(), json!("discard"));
            let mut workplace = Map::from_iter([("host".to_owned(), json!("here"))]);
            for name in ["checkout", "base", "branch", "worktree", "isolation", "filters", "copy", "setup"] {
                workplace.insert(name.to_owned(), take(name)?);
            }
            event.content = json!({
                "tree": {"parent": null, "root": task},
                "role": role,
                "wording": take("wording")?,
                "assignment": {"brief": take("brief")?},
                "models": {"own": take("model")?, "others": {}},
                "caps": take("caps")?,
                "workplace": workplace,
                "commands": {
                    "time_ms": take("command_time_ms")?,
                    "pass_env": take("pass_env")?,
                    "keep_output": 16 * 1024,
                    "sandbox": "none",
                },
                "files": {"deny": take("deny")?, "max_untracked": take("max_untracked")?},
                "checks": take("checks")?,
            });
        }
        "ending_accepted" => {
            let content = object(Some(&mut event.content), "content")?;
            let note = content.remove("handback").ok_or("it has no note")?;
            content.insert("note".to_owned(), json!({"hand_back": note}));
        }
        _ => {}
    }
    Ok(())
}

fn object<'a>(value: Option<&'a mut Value>, what: &str) -> Result<&'a mut Map<String, Value>, String> {
    value.and_then(Value::as_object_mut).ok_or_else(|| format!("its {what} is no object"))
}
