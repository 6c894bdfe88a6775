//! Which paths a file tool may touch: inside the worktree, never `.git` (both the host's rules), never a denied one.

use crate::{
    domain::globs::{self, PathGlobs},
    ports::host::{Error, Host, Resolved},
};

/// The paths that no file tool touches.
#[derive(Clone, Debug)]
pub struct FileRules {
    globs: Vec<String>,
    deny: PathGlobs,
}

impl FileRules {
    /// Rules that deny these globs; an error names the one that is none.
    pub fn new(deny: &[String]) -> Result<Self, globs::Error> {
        Ok(Self { globs: deny.to_vec(), deny: PathGlobs::denying(deny)? })
    }

    /// The denied globs.
    pub(super) fn globs(&self) -> &[String] {
        &self.globs
    }

    /// Where `path` really is; refused if its name or its target's is denied.
    pub(super) async fn resolve(&self, host: &dyn Host, path: &str) -> Result<Resolved, Error> {
        if path == "~" || path.starts_with("~/") {
            return Err(Error::Refused(format!(
                "{path}: `~` stands for no directory here; paths are relative to the root of the project"
            )));
        }
        let resolved = host.resolve(path).await?;
        if self.deny.matches(&resolved.path) || self.deny.matches(path.trim_start_matches("./")) {
            return Err(Error::Refused(format!(
                "{path} is a file that may hold secrets; by the rules of this project no file tool reads or writes it"
            )));
        }
        Ok(resolved)
    }
}
