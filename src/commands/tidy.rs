//! After the result of a task is shown, packs what its turns left in the repository.

use super::{Error, open::Opened};
use crate::{
    domain::id::TaskId,
    log::{Access, Log},
    repo::Packed,
};

/// Packs what an ended task left, if it is worthwhile; calls `begun` with its size in bytes. A failure does not change the
/// task's result.
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
