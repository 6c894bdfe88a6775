//! What was moved out of the trees of tasks.

use super::{Known, Leftover, Owner, Removal, State, began_in};
use crate::{
    domain::{id::TaskId, task::WHOLE_WORKTREE},
    repo::Checkout,
};

/// What was moved out of a task's tree stays until whoever sees this says that it may go.
pub(super) fn judge(known: &mut Known<'_>, checkout: &Checkout, id: TaskId) -> Option<Leftover> {
    let name = known.log.kept_dir(id).display().to_string();
    let (state, why, remove) = match known.owner(id) {
        Owner::InUse => return None,
        Owner::Foreign => (State::Foreign, "its task is not in this log".to_owned(), Removal::Never),
        Owner::Unreadable => (State::Kept, "its task cannot be read".to_owned(), Removal::Never),
        // it is told where the task worked
        Owner::Settled(task, _) if !began_in(checkout, &task.started).unwrap_or(true) => return None,
        Owner::Settled(task, _) if task.kept_aside.iter().any(|(_, paths)| *paths == [WHOLE_WORKTREE]) => {
            let why =
                "the repository no longer has its task's commits, so this is the only copy of its files; remove it \
                       by hand when you do not need it"
                    .to_owned();
            (State::Kept, why, Removal::Never)
        }
        Owner::Settled(task, _) => {
            let paths: Vec<_> = task.kept_aside.iter().flat_map(|(_, paths)| paths.iter().cloned()).collect();
            let why = format!("its task created it, and no commit can hold it: {}", paths.join(", "));
            (State::Dead, why, Removal::Kept(id))
        }
    };
    Some(Leftover { kind: "kept", name, task: Some(id), state, why, remove })
}
