//! The active time since the last event, in case the process is killed: a file beside the task's lock, overwritten each
//! second and not synced. The next `span_started` adds it to the active time, so that only the fold knows it.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::mpsc,
    time::Duration,
};

use crate::{domain::id::TaskId, ports::clock::Clock};

/// The interval, and the most time that can be lost.
const BEAT: Duration = Duration::from_secs(1);

/// A thread that keeps a span's active time; it ends, and the file goes, when this is dropped.
#[derive(Debug)]
pub(super) struct Heartbeat {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
    path: PathBuf,
}

impl Heartbeat {
    /// Begins to beat for the span whose first event is `span`; `used_ms` tells the task's active time. If the file
    /// cannot be created, there is no heartbeat, and a kill loses the last seconds.
    pub(super) fn begin(state_dir: &Path, task: TaskId, span: u64, used_ms: impl Fn() -> u64 + Send + 'static) -> Self {
        let path = path(state_dir, task);
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&path).ok();
        let (stop, stopped) = mpsc::channel();
        let thread = file.and_then(|file| {
            let beat = move || {
                while stopped.recv_timeout(BEAT) == Err(mpsc::RecvTimeoutError::Timeout) {
                    write(&file, span, used_ms());
                }
            };
            std::thread::Builder::new().name("heartbeat".to_owned()).spawn(beat).ok()
        });
        Self { stop: Some(stop), thread, path }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path); // a task that is left in good order has told all in its events
    }
}

/// The active time that a killed process had come to in the span that began with event `span`; none if it left none.
pub(super) fn found(state_dir: &Path, task: TaskId, span: u64) -> Option<u64> {
    let text = std::fs::read_to_string(path(state_dir, task)).ok()?;
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    let (of, ms) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (of == span).then_some(ms)
}

/// The file's name.
pub(super) fn path(state_dir: &Path, task: TaskId) -> PathBuf {
    state_dir.join("locks").join(format!("{task}.beat"))
}

/// Of a fixed length, so that no part of an earlier beat is left behind it.
fn write(file: &File, span: u64, ms: u64) {
    let _ = file.write_all_at(format!("{span:>20} {ms:>20}\n").as_bytes(), 0); // the next one may succeed
}

/// A span's active time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used {
    clock: Clock,
    before_ms: u64,
    began_ms: u64,
}

impl Used {
    /// Active time that continues from `before_ms`.
    pub(super) fn from(clock: Clock, before_ms: u64) -> Self {
        Self { clock, before_ms, began_ms: millis(clock) }
    }

    /// The task's active time, in milliseconds.
    pub(super) fn ms(self) -> u64 {
        self.before_ms + millis(self.clock).saturating_sub(self.began_ms)
    }
}

fn millis(clock: Clock) -> u64 {
    u64::try_from(clock.active().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_beat_of_the_same_span_is_found() {
        let state = tempfile::tempdir().unwrap();
        std::fs::create_dir(state.path().join("locks")).unwrap();
        let task = TaskId(uuid::Uuid::from_u128(1));
        assert_eq!(found(state.path(), task, 7), None);
        let file = File::create(path(state.path(), task)).unwrap();
        write(&file, 7, 123_456);
        write(&file, 7, 5);
        assert_eq!((found(state.path(), task, 7), found(state.path(), task, 9)), (Some(5), None));
        File::create(path(state.path(), task)).unwrap().write_all_at(b"torn", 0).unwrap();
        assert_eq!(found(state.path(), task, 7), None);
    }
}
