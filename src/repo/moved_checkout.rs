//! Whether a task began in this checkout, also where that was moved or copied since.

use std::{path::Path, time::Duration};

use uuid::Uuid;

use super::{
    Checkout, Error,
    repository_id::{RepositoryId, is_one, relative},
};

/// How often, and after what pause, it is written again where another process is at it.
const TRIES: u32 = 10;

const PAUSE: Duration = Duration::from_millis(20);

impl Checkout {
    /// Whether what began at `place` began in this checkout: it is there, or was before it was moved.
    #[must_use]
    pub fn is_or_was_at(&self, place: &Path) -> bool {
        // one that was moved may have left a link
        self.root() == place
            || is_one(place, self.root())
            || self.former_places().moved_from.iter().any(|former| former == place)
    }

    /// The checkout that this one is a copy of: its tasks are there.
    #[must_use]
    pub fn copy_of(&self) -> Option<&Path> {
        self.former_places().copy_of.as_deref()
    }

    /// Sees to it that this checkout is known again after it was moved. To be done when a task is in the log, so that what a
    /// killed process leaves of it is cleared by whoever goes on with that.
    pub fn write_repository_id(&self) -> Result<(), Error> {
        let (common, own) = (self.common_dir(), relative(self.git_dir(), self.common_dir()));
        let here = (own, self.root().to_owned());
        let new = || RepositoryId { id: Uuid::now_v7().to_string(), places: Vec::new() };
        let mut known = match RepositoryId::read(common) {
            Some(known) if known.places.contains(&here) => return Ok(()),
            Some(known) if self.copy_of().is_none() => known,
            Some(_) | None => new(),
        };
        known.places.push(here.clone());
        let mut written = known.write(common);
        // tasks that begin at once write the same, each in the way of the other for a moment
        for _ in 0..TRIES {
            let there = RepositoryId::read(common).is_some_and(|known| known.places.contains(&here));
            if written.is_ok() || there {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
            written = known.write(common);
        }
        written
    }
}
