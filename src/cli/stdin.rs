//! Reads the brief from standard input or a pipe, and says so if it does not come.

use std::{
    io::{self, Read},
    path::Path,
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::Duration,
};

use super::render::{self, Manner};
use crate::commands::brief::{self, Error, Origin};

/// How long to wait before saying so.
const PATIENCE: Duration = Duration::from_secs(3);

/// Reads the brief.
pub(super) fn brief(manner: Manner, origin: &Origin) -> Result<String, Error> {
    let from = match origin {
        Origin::Argument(_) | Origin::Nothing => return brief::read(origin, io::empty()),
        Origin::Stdin | Origin::ArgumentAndStdin(_) => "on stdin (end it with Ctrl-D at a terminal)".to_owned(),
        Origin::File(path) => format!("in {}", printable(path)),
    };
    let waiting = (!manner.quiet).then(|| wait(manner, format!("waiting for the brief {from}")));
    brief::read(origin, Awaited { from: io::stdin(), waiting })
}

/// Prints `words` unless the returned sender is dropped before `PATIENCE` is over.
fn wait(manner: Manner, words: String) -> Sender<()> {
    let (waiting, come) = mpsc::channel();
    thread::spawn(move || {
        if come.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            render::say(manner, &words);
        }
    });
    waiting
}

fn printable(path: &Path) -> String {
    path.display().to_string().chars().filter(|c| !c.is_control()).collect()
}

/// A reader that ends the waiting with its first byte.
struct Awaited<R> {
    from: R,
    waiting: Option<Sender<()>>,
}

impl<R: Read> Read for Awaited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer);
        self.waiting = None;
        read
    }
}
