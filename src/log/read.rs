//! Reading the log: one task's events, or the list of tasks.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{
    Error, Log, codec,
    lock::{self, is_held},
};
use std::sync::Arc;

use crate::domain::{
    event::Event,
    fold::Illegal,
    id::{Hash, TaskId},
    started::TaskStarted,
    task::Task,
};

/// The columns that make an [`Event`].
const EVENT: &str = "SELECT seq, v, at_ms, spent_ms, kind, body FROM event";

/// A row of the event table.
struct Row {
    seq: u64,
    content: Result<Content, String>,
}

/// All of a row but its number.
struct Content {
    version: u32,
    at_ms: u64,
    spent_ms: u64,
    kind: String,
    body: String,
}

impl Row {
    /// `SQLite` holds to the columns' types, but not to UTF-8 or to the range of a number: what does not fit is not the
    /// database's error but this event's.
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let number = |column| row.get::<_, i64>(column).and_then(|number| in_range(column, number));
        let content = || {
            Ok(Content {
                version: row.get(1)?,
                at_ms: number(2)?,
                spent_ms: number(3)?,
                kind: row.get(4)?,
                body: row.get(5)?,
            })
        };
        let content = || content().map_err(|error: rusqlite::Error| error.to_string());
        Ok(match row.get::<_, i64>(0)? {
            below @ ..=0 => Self { seq: 0, content: Err(format!("its number is {below}, and they begin with 1")) },
            seq => Self { seq: in_range(0, seq)?, content: content() },
        })
    }
}

impl Log {
    /// A task's events after number `after` (0 for all), oldest first.
    pub fn events(&self, task: TaskId, after: u64) -> Result<Vec<Event>, Error> {
        let database = |source| self.database("reading events", source);
        // below 1 stands what no nisse has written: it is told, not passed over
        let wanted = format!("{EVENT} WHERE task = ?1 AND (seq > ?2 OR seq < 1) ORDER BY seq");
        let read = |connection: &Connection| -> rusqlite::Result<Vec<Row>> {
            let mut statement = connection.prepare_cached(&wanted)?;
            statement.query_map(params![task.to_string(), int(after)], Row::read)?.collect()
        };
        let rows = read(&self.connection()).map_err(database)?;
        rows.into_iter().map(|row| self.event(task, row)).collect()
    }

    /// The task, folded from its events.
    pub fn task(&self, id: TaskId) -> Result<Task, Error> {
        let events = self.events(id, 0)?;
        Task::fold(&events).map_err(corrupt)?.ok_or_else(|| Error::NoSuchTask { name: id.to_string() })
    }

    /// Whether a process works on the task at this moment.
    #[must_use]
    pub fn is_held(&self, task: TaskId) -> bool {
        is_held(&self.state_dir, task)
    }

    /// The tasks that have a lock file, held or not, of this log or not.
    #[must_use]
    pub fn locks(&self) -> Vec<TaskId> {
        lock::all(&self.state_dir)
    }

    /// Takes the lock file of a task away that no one works on any more.
    pub fn remove_lock(&self, task: TaskId) -> Result<(), Error> {
        lock::remove(&self.state_dir, task)
    }

    /// Does `work` while no process works on the task, and none can begin to.
    pub fn while_free<T>(&self, task: TaskId, work: impl FnOnce() -> T) -> Result<T, Error> {
        let _held = lock::Lock::take(&self.state_dir, task)?;
        Ok(work())
    }

    /// All tasks, newest first. That one of them is corrupt is no concern of the others.
    pub fn tasks(&self) -> Result<Vec<TaskId>, Error> {
        let read = |connection: &Connection| -> rusqlite::Result<Vec<String>> {
            let listing = "SELECT task FROM event WHERE seq = 1 ORDER BY at_ms DESC, task DESC";
            connection.prepare_cached(listing)?.query_map([], |row| row.get(0))?.collect()
        };
        let names = read(&self.connection()).map_err(|source| self.database("listing tasks", source))?;
        let foreign = |name: &str| self.database("listing tasks", not_an_id(name));
        names.iter().map(|name| name.parse().map_err(|_| foreign(name))).collect()
    }

    /// The tasks whose id begins with `name`, or whose short form (the end of the id) does; of any repository.
    pub fn named(&self, name: &str) -> Result<Vec<TaskId>, Error> {
        let wanted = name.to_ascii_lowercase();
        let is_named = |id: &TaskId| id.to_string().starts_with(&wanted) || id.short().starts_with(&wanted);
        Ok(self.tasks()?.into_iter().filter(|id| !wanted.is_empty() && is_named(id)).collect())
    }

    /// What a task began with.
    pub fn started(&self, task: TaskId) -> Result<Arc<TaskStarted>, Error> {
        let row = self
            .connection()
            .prepare_cached(&format!("{EVENT} WHERE task = ?1 AND seq = 1"))
            .and_then(|mut statement| statement.query_row([task.to_string()], Row::read).optional())
            .map_err(|source| self.database("reading events", source))?
            .ok_or_else(|| Error::NoSuchTask { name: task.to_string() })?;
        let first = self.event(task, row)?;
        let begun = Task::begin(&first).map_err(corrupt)?;
        Ok(begun.started)
    }

    fn event(&self, task: TaskId, row: Row) -> Result<Event, Error> {
        let corrupt = |what| Error::Corrupt { task, seq: row.seq, what };
        let Content { version, at_ms, spent_ms, kind, body } = row.content.map_err(corrupt)?;
        if version > super::EVENTS {
            return Err(Error::NewerEvent { task, seq: row.seq, found: version });
        }
        let kind = codec::decode(version, task, &kind, &body, &|hash| self.blob(hash)).map_err(corrupt)?;
        Ok(Event { task, seq: row.seq, at_ms, spent_ms, kind })
    }

    fn blob(&self, hash: &Hash) -> Result<String, String> {
        let row: Option<(i64, Vec<u8>)> = self
            .connection()
            .prepare_cached("SELECT raw_len, zstd FROM blob WHERE hash = ?1")
            .and_then(|mut statement| statement.query_row([&hash.0], |row| Ok((row.get(0)?, row.get(1)?))).optional())
            .map_err(|error| error.to_string())?;
        let (length, packed) = row.ok_or_else(|| format!("its content {hash} is missing"))?;
        let length = usize::try_from(length).map_err(|error| error.to_string())?;
        let bytes = zstd::bulk::decompress(&packed, length).map_err(|error| format!("its content {hash}: {error}"))?;
        if Hash::of(&bytes) != *hash {
            return Err(format!("its content {hash} has another hash"));
        }
        String::from_utf8(bytes).map_err(|error| format!("its content {hash}: {error}"))
    }

    pub(super) fn database(&self, what: &'static str, source: rusqlite::Error) -> Error {
        Error::Database { what, path: self.state_dir.join("nisse.db"), source }
    }
}

/// `SQLite`'s integers are signed; ours never reach half of their range.
pub(super) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn in_range(column: usize, number: i64) -> rusqlite::Result<u64> {
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}

fn corrupt(illegal: Illegal) -> Error {
    Error::Corrupt { task: illegal.task, seq: illegal.seq, what: illegal.what }
}

fn not_an_id(name: &str) -> rusqlite::Error {
    let what = format!("{name:?} is no task's id").into();
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, what)
}
