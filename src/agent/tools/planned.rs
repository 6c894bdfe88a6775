//! What a tool that writes would do: everything is computed, nothing is changed.
//!
//! The loop makes the plan durable as an intent, then writes with the hash from here as the expected one.

use super::{Edit, FileRules, edit, write};
use crate::{
    domain::{
        id::Hash,
        mask::{MASKED, Mask},
    },
    ports::host::{Error, FileBytes, FileKind, Host},
};

/// Bytes of a file that can be changed by a tool at most.
const MOST: u64 = 32 * 1024 * 1024;

/// The hash of what the model last saw or wrote at a resolved path.
pub type Known<'a> = &'a (dyn Fn(&str) -> Option<Hash> + Sync);

/// A file's way from what it is to what it shall be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedEdit {
    /// Relative to the root, links followed.
    pub path: String,
    /// The hash of its bytes now; none if there is no such file.
    pub before: Option<Hash>,
    /// Its bytes afterwards.
    pub bytes: Vec<u8>,
    /// Their hash.
    pub after: Hash,
    /// The answer to the call once they are written.
    pub answer: String,
}

/// Plans a call that writes, or says to the model why it is refused; only what the machine could not do is an error.
pub async fn plan_edit(
    edit: &Edit,
    host: &dyn Host,
    rules: &FileRules,
    known: Known<'_>,
    mask: &Mask,
) -> Result<Result<PlannedEdit, String>, Error> {
    match plan(edit, host, rules, known, mask).await {
        Err(error @ (Error::Refused(_) | Error::Changed { .. })) => Ok(Err(error.to_string())),
        Err(error @ Error::Io { .. }) => Err(error),
        Ok(planned) => Ok(planned),
    }
}

/// The resolved path of the file that a call would write; none where it is refused.
pub async fn edited_path(edit: &Edit, host: &dyn Host, rules: &FileRules) -> Result<Option<String>, Error> {
    match rules.resolve(host, asked_path(edit)).await {
        Ok(resolved) => Ok(Some(resolved.path)),
        Err(Error::Refused(_) | Error::Changed { .. }) => Ok(None),
        Err(error @ Error::Io { .. }) => Err(error),
    }
}

fn asked_path(edit: &Edit) -> &str {
    match edit {
        Edit::WriteFile(write) => &write.path,
        Edit::EditFile(edit) => &edit.path,
    }
}

async fn plan(
    edit: &Edit,
    host: &dyn Host,
    rules: &FileRules,
    known: Known<'_>,
    mask: &Mask,
) -> Result<Result<PlannedEdit, String>, Error> {
    let asked = asked_path(edit);
    let resolved = rules.resolve(host, asked).await?;
    let current = match resolved.kind {
        FileKind::Absent => None,
        FileKind::File => Some(host.read(&resolved.path, MOST).await?),
        FileKind::Directory => return Ok(Err(format!("{asked} is a directory, not a file."))),
        FileKind::Other => return Ok(Err(format!("{asked} is not a regular file."))),
    };
    if let Some(FileBytes { size, .. }) = current.as_ref().filter(|file| file.size > MOST) {
        return Ok(Err(format!("{asked} has {size} bytes, too many for a file tool; use run_command.")));
    }
    let computed = match edit {
        Edit::WriteFile(file) => write::bytes(file, current.as_ref(), known(&resolved.path).as_ref()),
        Edit::EditFile(file) => edit::bytes(file, current.as_ref(), mask),
    };
    Ok(computed.and_then(|(bytes, answer)| {
        let before = current.as_ref().map_or(&[][..], |file| &file.bytes);
        if masks(&bytes) > masks(before) {
            return Err(format!(
                "Nothing was written: the text holds `{MASKED}`, which stands for a secret in what you were shown. Use \
                 edit_file on the lines around it, or name the secret some other way."
            ));
        }
        let after = Hash::of(&bytes);
        let before = current.as_ref().map(|file| file.hash.clone());
        if before.as_ref() == Some(&after) {
            return Err(format!("Nothing changed: {asked} already holds exactly this."));
        }
        Ok(PlannedEdit { path: resolved.path, before, bytes, after, answer })
    }))
}

/// How often the mask is in a text. A file may hold it of its own.
fn masks(bytes: &[u8]) -> usize {
    memchr::memmem::find_iter(bytes, MASKED.as_bytes()).count()
}
