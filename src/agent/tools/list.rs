//! `list_files`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{FileRules, Looked};
use crate::ports::host::{Error, FileKind, Host, Listing};

pub(super) const DESCRIPTION: &str = "List the files of the project, with their paths. Files that git ignores are left \
                                      out. Use `glob` and `under` to narrow the list.";

/// Paths named at most.
const MOST: usize = 1000;

/// Lists files.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListFiles {
    /// Only paths that match, e.g. `*.md` (at any depth) or `docs/**/*.md` (from the root of the project).
    pub glob: Option<String>,
    /// Only files under this directory, e.g. `docs`.
    pub under: Option<String>,
}

pub(super) async fn list_files(list: &ListFiles, host: &dyn Host, rules: &FileRules) -> Result<Looked, Error> {
    let listing = listing(list.glob.as_ref(), list.under.as_ref(), host, rules).await?;
    let listed = host.list(&listing).await?;
    if listed.paths.is_empty() {
        return Ok(Looked::done("[no such files; those that git ignores are not listed]".to_owned()));
    }
    let mut content: String = listed.paths.iter().map(|path| one_line(path) + "\n").collect();
    if listed.more {
        content.push_str(&more(&format!("there are more than {MOST} files")));
    }
    Ok(Looked::done(content))
}

/// A listing within the rules.
pub(super) async fn listing(
    glob: Option<&String>,
    under: Option<&String>,
    host: &dyn Host,
    rules: &FileRules,
) -> Result<Listing, Error> {
    let mut from = String::new();
    if let Some(under) = under {
        let resolved = rules.resolve(host, under).await?;
        match resolved.kind {
            FileKind::Directory | FileKind::File => from = resolved.path,
            FileKind::Absent | FileKind::Other => {
                return Err(Error::Refused(format!("{under}: there is no such directory")));
            }
        }
    }
    Ok(Listing { under: from, glob: glob.cloned(), deny: rules.globs().to_vec(), limit: MOST })
}

/// The line that says that a list was cut.
pub(super) fn more(what: &str) -> String {
    format!("[{what}; narrow it with `glob` or `under`]\n")
}

/// A path on one line, whatever its name holds.
pub(super) fn one_line(path: &str) -> String {
    path.chars().map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() }).collect()
}
