//! This machine: files under a root, and commands that run there.
//!
//! The root is opened anew for each call, so that a worktree that was made again is found. Work on files blocks,
//! so it runs on the runtime's blocking threads; dropping a listing or a search ends it at the next file.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{descendants::RunningCommands, files, listing, process, root_directory::RootDirectory, search};
use crate::{
    domain::{id::Hash, mask::Mask},
    ports::{
        BoxFuture,
        host::{Command, CommandOutput, Error, FileBytes, Found, Host, LastLine, Listed, Listing, Resolved, Search},
    },
    repo::{SameSecond, directory},
};

/// This machine, for one root directory.
#[derive(Clone, Debug)]
pub struct Local {
    root: PathBuf,
    environment: BTreeMap<OsString, OsString>,
    same_second: SameSecond,
    mask: Mask,
    running: RunningCommands,
}

impl Local {
    /// This machine for the directory `root`. Of `environment` (nisse's own), commands see the allowed part.
    #[must_use]
    pub fn new<N, V>(root: impl Into<PathBuf>, environment: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<OsString>,
        V: Into<OsString>,
    {
        let root = root.into();
        Self {
            // from now on no link is followed to it
            root: match (root.parent(), root.file_name()) {
                (Some(parent), Some(name)) => {
                    directory::real(parent).map_or_else(|_| root.clone(), |real| real.join(name))
                }
                (Some(_) | None, Some(_) | None) => root,
            },
            environment: environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            same_second: SameSecond::default(),
            mask: Mask::default(),
            running: RunningCommands::default(),
        }
    }

    /// The same, knowing what others write below this root, and telling them what runs.
    #[must_use]
    pub fn beside(self, same_second: &SameSecond) -> Self {
        Self { same_second: same_second.clone(), ..self }
    }

    /// The same, masking what is cut here before it is.
    #[must_use]
    pub fn masking(self, mask: &Mask) -> Self {
        Self { mask: mask.clone(), ..self }
    }

    /// The same, whose commands are counted there while they run.
    #[must_use]
    pub fn counting(self, running: &RunningCommands) -> Self {
        Self { running: running.clone(), ..self }
    }

    /// Runs `work` on a blocking thread; it is told to stop when the future is dropped.
    fn blocking<'a, T: Send + 'static>(
        &self,
        work: impl FnOnce(&RootDirectory, &AtomicBool) -> Result<T, Error> + Send + 'static,
    ) -> BoxFuture<'a, Result<T, Error>> {
        let path = self.root.clone();
        Box::pin(async move {
            let stop = StopOnDrop::default();
            let told = Arc::clone(&stop.0);
            let done = tokio::task::spawn_blocking(move || work(&RootDirectory::open(&path)?, &told)).await;
            done.unwrap_or_else(|error| {
                Err(Error::Io { what: "cannot work on files".to_owned(), source: std::io::Error::other(error) })
            })
        })
    }
}

/// Raises its flag when it is dropped.
#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A command that runs, until this is dropped.
struct Running<'a>(&'a SameSecond);

impl<'a> Running<'a> {
    fn new(same_second: &'a SameSecond) -> Self {
        same_second.ran();
        Self(same_second)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.ran();
    }
}

impl Host for Local {
    fn resolve<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Resolved, Error>> {
        let path = path.to_owned();
        self.blocking(move |root, _| root.resolve(&path))
    }

    fn read<'a>(&'a self, path: &'a str, limit: u64) -> BoxFuture<'a, Result<FileBytes, Error>> {
        let path = path.to_owned();
        self.blocking(move |root, _| files::read(root, &path, limit))
    }

    fn write<'a>(
        &'a self,
        path: &'a str,
        expected: Option<&'a Hash>,
        bytes: &'a [u8],
    ) -> BoxFuture<'a, Result<(), Error>> {
        let (path, expected, bytes) = (path.to_owned(), expected.cloned(), bytes.to_owned());
        let same_second = self.same_second.clone();
        self.blocking(move |root, _| {
            same_second.before_change(root.path(), &[root.path().join(&path)]);
            files::write(root, &path, expected.as_ref(), &bytes)
        })
    }

    fn settle<'a>(
        &'a self,
        path: &'a str,
        before: Option<&'a Hash>,
        after: &'a Hash,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let (path, before, after) = (path.to_owned(), before.cloned(), after.clone());
        self.blocking(move |root, _| files::settle(root, &path, before.as_ref(), &after))
    }

    fn list<'a>(&'a self, listing: &'a Listing) -> BoxFuture<'a, Result<Listed, Error>> {
        let listing = listing.clone();
        self.blocking(move |root, stop| listing::list(root, &listing, stop))
    }

    fn search<'a>(&'a self, search: &'a Search) -> BoxFuture<'a, Result<Found, Error>> {
        let (search, mask) = (search.clone(), self.mask.clone());
        self.blocking(move |root, stop| search::search(root, &search, &mask, stop))
    }

    fn run<'a>(&'a self, command: &'a Command, last_line: &'a LastLine) -> BoxFuture<'a, Result<CommandOutput, Error>> {
        Box::pin(async move {
            let _running = Running::new(&self.same_second);
            let root = RootDirectory::open(&self.root)?;
            process::run(&root, &self.environment, &self.mask, command, last_line, &self.running).await
        })
    }
}
