//! Progress of packing after a task: only if it takes time, and never on stdout.

use super::{Manner, say};
use crate::{
    commands::{Error, settings::units::about},
    repo::Packed,
};

/// Reports a packing. Its failure does not change the task's result.
pub fn packed(manner: Manner, pack: impl FnOnce(&dyn Fn(u64)) -> Result<Option<Packed>, Error>) {
    let tell = |line: &str| {
        if !manner.quiet {
            say(manner, line);
        }
    };
    let begun =
        |bytes| tell(&format!("packing objects that the task's turns left in the repository ({})", about(bytes)));
    match pack(&begun) {
        Ok(None) => {}
        Ok(Some(Packed { before, after })) => tell(&format!("packed: {} became {}", about(before), about(after))),
        Err(error) => {
            tell(&format!("could not pack the objects that the task's turns left: {error}; they stay as they are"));
        }
    }
}
