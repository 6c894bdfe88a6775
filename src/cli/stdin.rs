//! A brief that has to be waited for, on standard input or in a pipe: whoever waits unawares is told so.

use std::{
    io::{self, Read},
    path::Path,
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
    let from = match origin {
        Origin::Argument(_) | Origin::Nothing => return brief::read(origin, io::empty()),
        Origin::Stdin | Origin::ArgumentAndStdin(_) => "on stdin, to its end (Ctrl-D at a terminal)".to_owned(),
        Origin::File(path) => format!("in {}, to its end", printable(path)),
    };
    let waiting = (!manner.quiet).then(|| wait(manner, format!("waiting for the brief {from}")));
    brief::read(origin, Awaited { from: io::stdin(), waiting })
}

/// Tells it once what is returned has lived for longer than patience has.
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

/// A reader that ends the waiting with the first that comes.
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
