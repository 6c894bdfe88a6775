//! After a task has ended and that was told: what its turns left in the repository is packed.

use super::{Error, open::Opened};
use crate::{
    domain::id::TaskId,
    log::{Access, Log},
    repo::Packed,
};

/// Packs what an ended task left, if it is worth while; `begun` is told how many bytes that are. Whatever comes of it, the
/// task is what it is.
pub fn pack(opened: &Opened, id: TaskId, begun: &dyn Fn(u64)) -> Result<Option<Packed>, Error> {
    let Some(log) = Log::open(opened.state_dir(), Access::Read)? else { return Ok(None) };
    let task = log.task(id)?;
    if task.ended.is_none() || task.pending_intents().next().is_some() {
        return Ok(None);
    }
    let started = &task.started;
    let checkout = opened.checkout_of(started)?;
    let Some(loose) = checkout.worth_packing(id, &started.workplace.branch, started.workplace.base.commit.as_ref())?
    else {
        return Ok(None);
    };
    begun(loose.bytes);
    Ok(Some(checkout.pack(&loose)?))
}
