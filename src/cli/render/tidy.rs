//! What is said while a repository is tidied after a task: only where it takes time, and never as data.

use super::{Manner, say};
use crate::{
    commands::{Error, settings::units::about},
    repo::Packed,
};

/// Tells of a packing. That it failed changes nothing of what the task came to.
pub fn packed(manner: Manner, pack: impl FnOnce(&dyn Fn(u64)) -> Result<Option<Packed>, Error>) {
    let tell = |line: &str| {
        if !manner.quiet {
            say(manner, line);
        }
    };
    let begun = |bytes| tell(&format!("packing what the task's turns left in the repository ({})", about(bytes)));
    match pack(&begun) {
        Ok(None) => {}
        Ok(Some(Packed { before, after })) => tell(&format!("packed: {} became {}", about(before), about(after))),
        Err(error) => tell(&format!("what the task's turns left is not packed, and kept as it is: {error}")),
    }
}
