//! Writing a task's log: events are staged, then committed together before anything outside the log is touched.

use std::{fmt, fs::File, path::Path, sync::Weak, time::Duration};

use rusqlite::{TransactionBehavior, params};

use super::{
    EVENTS, Error, Log, SCHEMA, codec,
    heartbeat::{self, Heartbeat, Used},
    lock::Lock,
    read::int,
};
use crate::{
    domain::{
        event::{Event, EventKind},
        id::TaskId,
        started::TaskStarted,
        task::Task,
    },
    ports::clock::Clock,
};

/// A subscriber: called with each event once it is durable, and the task's state after it.
pub type Subscriber = Box<dyn FnMut(&Event, &Task) + Send>;

impl Log {
    /// Writes events in one transaction; they are durable when this returns.
    pub fn append(&self, events: &[Event]) -> Result<(), Error> {
        let path = self.state_dir.join("nisse.db");
        let database = |source| Error::Database { what: "writing events", path: path.clone(), source };
        let encoded: Vec<_> = events
            .iter()
            .map(|event| codec::encode(&event.kind).map(|encoded| (event, encoded)))
            .collect::<Result<_, _>>()
            .map_err(|error| database(rusqlite::Error::ToSqlConversionFailure(error.into())))?;
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(database)?;
        let found: u32 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(database)?;
        if found != SCHEMA {
            return Err(Error::Newer { path: path.clone(), found });
        }
        for (event, encoded) in &encoded {
            for (hash, text) in &encoded.blobs {
                let packed = zstd::bulk::compress(text.as_bytes(), 3).map_err(|source| Error::Io {
                    what: "compressing for",
                    path: path.clone(),
                    source,
                })?;
                transaction
                    .prepare_cached("INSERT INTO blob (hash, raw_len, zstd) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")
                    .and_then(|mut insert| insert.execute(params![hash.0, int(text.len() as u64), packed]))
                    .map_err(database)?;
            }
            transaction
                .prepare_cached(
                    "INSERT INTO event (task, seq, v, at_ms, spent_ms, kind, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                )
                .and_then(|mut insert| {
                    insert.execute(params![
                        event.task.to_string(),
                        int(event.seq),
                        EVENTS,
                        int(event.at_ms),
                        int(event.spent_ms),
                        encoded.kind,
                        encoded.body
                    ])
                })
                .map_err(database)?;
        }
        transaction.commit().map_err(database)
    }
}

/// A task's log, opened for writing by its one owner.
pub struct Journal {
    log: Log,
    lock: Lock,
    clock: Clock,
    used: Used,
    _heartbeat: Heartbeat,
    task: Task,
    staged: Vec<Event>,
    subscribers: Vec<Subscriber>,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("task", &self.task.id).field("seq", &self.task.seq).finish_non_exhaustive()
    }
}

impl Journal {
    /// The lock files of the task, and of the checkout if it is held: a child process that inherits them keeps both locked
    /// until it ends.
    #[must_use]
    pub fn locks(&self) -> Vec<Weak<File>> {
        let checkout = self.log.checkout.as_ref().map(|held| held.file());
        std::iter::once(self.lock.file()).chain(checkout).collect()
    }

    /// Holds the checkout with this git directory as long as the task; see [`Log::hold_checkout`].
    pub fn hold_checkout(&mut self, git_dir: &Path) -> Result<(), Error> {
        self.log.hold_checkout(git_dir, self.task.id)
    }

    /// Begins a task: its first event is durable when this returns.
    pub fn begin(
        log: Log,
        clock: Clock,
        id: TaskId,
        started: TaskStarted,
        mut subscribers: Vec<Subscriber>,
    ) -> Result<Self, Error> {
        let lock = Lock::take(&log.state_dir, id)?;
        let kind = EventKind::TaskStarted(Box::new(started));
        let first = Event { task: id, seq: 1, at_ms: clock.civil_ms(), spent_ms: 0, kind };
        let task = Task::begin(&first)?;
        log.append(std::slice::from_ref(&first))?;
        for subscriber in &mut subscribers {
            subscriber(&first, &task);
        }
        let used = Used::from(clock, 0);
        let heartbeat = Heartbeat::begin(&log.state_dir, id, 1, move || used.ms());
        Ok(Self { log, lock, clock, used, _heartbeat: heartbeat, task, staged: Vec::new(), subscribers })
    }

    /// Continues a task.
    pub fn resume(
        log: Log,
        clock: Clock,
        id: TaskId,
        cause: &str,
        subscribers: Vec<Subscriber>,
    ) -> Result<Self, Error> {
        let lock = Lock::take(&log.state_dir, id)?;
        let task = log.task(id)?;
        // what a killed process had used since its last event
        let lost = heartbeat::found(&log.state_dir, id, task.span).unwrap_or(0);
        let used = Used::from(clock, task.spent_ms.max(lost));
        let heartbeat = Heartbeat::begin(&log.state_dir, id, task.seq + 1, move || used.ms());
        let mut journal = Self { log, lock, clock, used, _heartbeat: heartbeat, task, staged: Vec::new(), subscribers };
        journal.push(EventKind::SpanStarted { cause: cause.to_owned() })?;
        Ok(journal)
    }

    pub(super) fn log(&self) -> &Log {
        &self.log
    }

    /// The task as it is, staged events included.
    #[must_use]
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The events so far, durable ones only.
    pub fn events(&self) -> Result<Vec<Event>, Error> {
        self.log.events(self.task.id, 0)
    }

    /// The task's active time, in milliseconds.
    #[must_use]
    pub fn spent_ms(&self) -> u64 {
        self.used.ms()
    }

    /// What is left of the task's time cap.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        Duration::from_millis(self.task.started.caps.time_ms.saturating_sub(self.spent_ms()))
    }

    /// The clock for the events' times.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Stages an event. It counts for [`Self::task`] at once and is durable after the next [`Self::commit`].
    pub fn push(&mut self, kind: EventKind) -> Result<(), Error> {
        let event = Event {
            task: self.task.id,
            seq: self.task.seq + 1,
            at_ms: self.clock.civil_ms(),
            spent_ms: self.spent_ms(),
            kind,
        };
        self.task.apply(&event)?;
        self.staged.push(event);
        Ok(())
    }

    /// Makes what is staged durable, in one transaction. Call it before touching anything outside the log.
    pub fn commit(&mut self) -> Result<(), Error> {
        if self.staged.is_empty() {
            return Ok(());
        }
        self.log.append(&self.staged)?;
        for event in self.staged.drain(..) {
            for subscriber in &mut self.subscribers {
                subscriber(&event, &self.task);
            }
        }
        Ok(())
    }
}
