//! `search`.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{FileRules, Looked, list};
use crate::ports::host::{self, Error, Host};

pub(super) const DESCRIPTION: &str = "Search the project's files for lines that match a regular expression. Answers \
                                      `path:line number: text`. Files that git ignores and binary files are left out.";

/// Lines shown at most.
const LINES: usize = 200;
/// Bytes of lines shown at most.
const BYTES: usize = 40 * 1024;

/// Searches files.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// A regular expression (Rust's syntax: no look-around, no back-references), matched line by line. Put `\` before
    /// `.`, `(`, `[`, `{`, `*`, `+`, `?` and `|` to find them as they are.
    #[schemars(length(min = 1))]
    pub pattern: String,
    /// Only in paths that match, e.g. `*.md` (at any depth) or `docs/**/*.md` (from the root of the project).
    pub glob: Option<String>,
    /// Only under this directory, or in this file.
    pub under: Option<String>,
    /// True: capital and small letters are the same.
    pub ignore_case: Option<bool>,
}

pub(super) async fn search(search: &Search, host: &dyn Host, rules: &FileRules) -> Result<Looked, Error> {
    let asked = host::Search {
        pattern: search.pattern.clone(),
        ignore_case: search.ignore_case.unwrap_or(false),
        listing: list::listing(search.glob.as_ref(), search.under.as_ref(), host, rules).await?,
        max_lines: LINES,
    };
    let found = host.search(&asked).await?;
    if found.lines.is_empty() {
        return Ok(Looked::done("[no line matches; files that git ignores are not searched]".to_owned()));
    }
    let mut content = String::new();
    for (shown, line) in found.lines.iter().enumerate() {
        if content.len() > BYTES {
            content.push_str(&list::more(&format!("only the first {shown} lines are shown")));
            return Ok(Looked::done(content));
        }
        let text = line.text.replace('\0', "\u{fffd}");
        let _ = writeln!(content, "{}:{}: {text}", list::one_line(&line.path), line.number);
    }
    if found.more {
        content.push_str(&list::more(&format!("more than {LINES} lines match")));
    }
    Ok(Looked::done(content))
}
