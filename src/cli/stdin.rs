//! Standard input as a brief: whoever waits for it unawares is told so.

use std::{
    io::{self, Read},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::Duration,
};

use super::render::{self, Manner};
use crate::commands::brief::{self, Error, Origin};

/// How long nothing may come before it is told that something is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// Reads the brief from where it is.
pub(super) fn brief(manner: Manner, origin: &Origin) -> Result<String, Error> {
    brief::read(origin, Awaited { from: io::stdin(), manner, waiting: None, came: false })
}

/// A reader that tells when nothing comes.
struct Awaited<R> {
    from: R,
    manner: Manner,
    /// Dropped when something has come.
    waiting: Option<Sender<()>>,
    came: bool,
}

impl<R: Read> Read for Awaited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.came && !self.manner.quiet {
            let (waiting, come) = mpsc::channel();
            self.waiting = Some(waiting);
            let manner = self.manner;
            thread::spawn(move || {
                if come.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                    render::say(manner, "waiting for the brief on stdin, to its end (Ctrl-D at a terminal)");
                }
            });
        }
        let read = self.from.read(buffer);
        self.came = true;
        self.waiting = None;
        read
    }
}
