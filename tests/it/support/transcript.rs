//! A whole run as text that is the same on every machine, to be kept as a snapshot.

use regex::Regex;
use serde_json::{Value, json};

use super::{Asked, Wire};

/// What the model was told, and what the program wrote and said. Of each request only what is new since the one before
/// is shown: the server has checked that the rest is the same. What is the same in every task (the system prompt, the
/// tools, the first event) is shown by [`opening`] alone.
///
/// `root` is the world's directory; it, the port, commit ids, moments and durations are replaced by their names.
pub(crate) fn transcript(requests: &[Asked], stdout: &str, stderr: &str, root: &str) -> String {
    let mut text = String::new();
    let mut shown = 0;
    for (nth, asked) in requests.iter().enumerate() {
        let messages = asked.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        text.push_str(match asked.wire {
            Wire::Chat => "=== request, normalized route\n",
            Wire::Messages => "=== request, native route\n",
        });
        if nth == 0 {
            let mut head = asked.body.clone();
            head["tools"] = json!(asked.offered());
            if let Some(head) = head.as_object_mut() {
                head.remove("messages");
                head.remove("system");
            }
            text.push_str(&pretty(&head));
        }
        // a request sent again shows its last message
        let from = if messages.len() > shown { shown } else { messages.len().saturating_sub(1) };
        for message in messages[from..].iter().filter(|message| message["role"] != "system") {
            text.push_str(&pretty(message));
        }
        shown = messages.len();
    }
    text.push_str("=== stdout\n");
    for line in stdout.lines().filter(|line| !line.contains(START)) {
        text.push_str(line);
        text.push('\n');
    }
    text.push_str("=== stderr\n");
    text.push_str(stderr);
    normalised(&text, root)
}

/// How the first event is marked on stdout.
const START: &str = r#""event":"task_started""#;

/// The first request whole, and the first event: what every task begins with.
pub(crate) fn opening(requests: &[Asked], stdout: &str, root: &str) -> String {
    let first = requests.first().map(|asked| pretty(&asked.body)).unwrap_or_default();
    let start: Vec<Value> =
        stdout.lines().filter(|line| line.contains(START)).filter_map(|line| serde_json::from_str(line).ok()).collect();
    normalised(&format!("=== request\n{first}=== event\n{}", start.iter().map(pretty).collect::<String>()), root)
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn normalised(text: &str, root: &str) -> String {
    let text = text.replace(root, "[ROOT]");
    let rules = [
        (r"127\.0\.0\.1:\d+", "127.0.0.1:[PORT]"),
        (r"\b[0-9a-f]{64}\b", "[SHA-256]"),
        (r"\b[0-9a-f]{40}\b", "[COMMIT]"),
        (r#""(duration_s|duration_ms|spent_ms)":\s*[0-9.]+"#, r#""$1": [TIME]"#),
        (r"\bafter \d+ m?s\b", "after [TIME]"),
        (r"\b\d+ s spent\b", "[TIME] spent"),
        (r#""at":"[^"]*""#, r#""at":"[AT]""#),
        (r#""estimated_input":\s*[0-9]+"#, r#""estimated_input": [ESTIMATE]"#),
    ];
    rules.iter().fold(text, |text, (pattern, name)| {
        Regex::new(pattern).expect("a pattern of ours").replace_all(&text, *name).into_owned()
    })
}
