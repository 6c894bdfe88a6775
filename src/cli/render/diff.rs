//! A patch: coloured for a reader, byte for byte for a program.

use std::{fmt::Write as _, io::IsTerminal as _};

use anstream::ColorChoice;
use clap::builder::styling::{AnsiColor, Style};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Manner, bytes, data, plain};
use crate::{
    commands::log::TaskDiff,
    domain::id::{CommitId, TaskId},
};

/// Shows it.
pub fn diff(manner: Manner, found: &TaskDiff) {
    if manner.json {
        return data(manner, &serde_json::json!(Document::of(found)).to_string());
    }
    let coloured = match manner.color {
        ColorChoice::Always | ColorChoice::AlwaysAnsi => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => std::io::stdout().is_terminal(),
    };
    if coloured {
        let text = readable(&String::from_utf8_lossy(&found.diff.patch));
        return data(manner, text.trim_end_matches('\n'));
    }
    bytes(&found.diff.patch);
}

/// What a task changed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Document<'a> {
    /// Version of this object's form.
    #[schemars(extend("const" = 1))]
    v: u32,
    /// `diff`.
    #[schemars(extend("const" = "diff"))]
    r#type: &'static str,
    /// The task.
    task: TaskId,
    /// The commit that it started from.
    from: &'a CommitId,
    /// Its last commit.
    to: &'a CommitId,
    /// The paths that changed; of a file that was renamed both.
    files: Vec<&'a str>,
    /// Lines added.
    insertions: u64,
    /// Lines removed.
    deletions: u64,
    /// What `git apply` takes; null where it is no UTF-8: a string could not hold it.
    patch: Option<&'a str>,
}

impl<'a> Document<'a> {
    fn of(found: &'a TaskDiff) -> Self {
        let TaskDiff { task, from, to, diff } = found;
        Self {
            v: 1,
            r#type: "diff",
            task: *task,
            from,
            to,
            files: diff.paths().collect(),
            insertions: diff.insertions,
            deletions: diff.deletions,
            patch: std::str::from_utf8(&diff.patch).ok(),
        }
    }
}

/// The patch in colour, without what would steer a terminal, and without the bytes of binary files.
pub(super) fn readable(patch: &str) -> String {
    let mut text = String::new();
    let mut binary = false;
    for line in patch.split_terminator('\n') {
        if line.starts_with("diff --git ") {
            binary = false;
        } else if binary {
            continue;
        }
        let style = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => Style::new().bold(),
            [b'+', ..] => Style::new().fg_color(Some(AnsiColor::Green.into())),
            [b'-', ..] => Style::new().fg_color(Some(AnsiColor::Red.into())),
            [b'@', b'@', ..] => Style::new().fg_color(Some(AnsiColor::Cyan.into())),
            [b' ' | b'\\', ..] => Style::new(),
            _ => Style::new().bold(),
        };
        if line == "GIT binary patch" {
            binary = true;
            let _ = writeln!(text, "{style}a binary file{style:#}");
            continue;
        }
        let shown: Vec<String> = line.split('\t').map(plain).collect();
        let _ = writeln!(text, "{style}{}{style:#}", shown.join("\t"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_sees_colours_and_nothing_that_steers_a_terminal() {
        let patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new \u{1b}[2J\tend\ndiff --git a/b b/b\nGIT binary \
                     patch\nliteral 3\nzzz\n\ndiff --git a/c b/c\nold mode 100644\n";
        let text = readable(patch);
        assert!(text.contains("\u{1b}[32m+new  [2J\tend") && text.contains("\u{1b}[31m-old"), "{text:?}");
        assert!(text.contains("a binary file") && !text.contains("zzz") && text.contains("old mode"), "{text:?}");
    }
}
