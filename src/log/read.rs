//! Reading the log: one task's events, or the list of tasks.

use rusqlite::{OptionalExtension as _, params};

use super::{Error, Log, codec, lock::is_held};
use crate::domain::{
    event::{Event, EventKind, TaskStarted},
    id::{Hash, TaskId},
    task::Task,
};

/// A row of the event table.
struct Row {
    seq: u64,
    version: u32,
    at_ms: u64,
    spent_ms: u64,
    kind: String,
    body: String,
}

impl Log {
    /// A task's events after number `after` (0 for all), oldest first.
    pub fn events(&self, task: TaskId, after: u64) -> Result<Vec<Event>, Error> {
        let database = |source| self.database("reading events", source);
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT seq, v, at_ms, spent_ms, kind, body FROM event WHERE task = ?1 AND seq > ?2 ORDER BY seq",
            )
            .map_err(database)?;
        let rows = statement
            .query_map(params![task.to_string(), int(after)], |row| {
                Ok(Row {
                    seq: uint(row.get(0)?),
                    version: row.get(1)?,
                    at_ms: uint(row.get(2)?),
                    spent_ms: uint(row.get(3)?),
                    kind: row.get(4)?,
                    body: row.get(5)?,
                })
            })
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(database)?;
        rows.iter().map(|row| self.event(task, row)).collect()
    }

    /// The task, folded from its events.
    pub fn task(&self, id: TaskId) -> Result<Task, Error> {
        let events = self.events(id, 0)?;
        Task::fold(&events)
            .map_err(|illegal| Error::Corrupt { task: illegal.task, seq: illegal.seq, what: illegal.what })?
            .ok_or_else(|| Error::NoSuchTask { name: id.to_string() })
    }

    /// Whether a process works on the task at this moment.
    #[must_use]
    pub fn is_held(&self, task: TaskId) -> bool {
        is_held(&self.state_dir, task)
    }

    /// All tasks with their first events, newest first.
    pub fn tasks(&self) -> Result<Vec<(TaskId, TaskStarted)>, Error> {
        let database = |source| self.database("listing tasks", source);
        let mut statement = self
            .connection
            .prepare_cached("SELECT task FROM event WHERE seq = 1 ORDER BY at_ms DESC, task DESC")
            .map_err(database)?;
        let names = statement
            .query_map([], |row| row.get::<_, String>(0))
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(database)?;
        let mut tasks = Vec::new();
        for name in names {
            let id: TaskId = name.parse().map_err(|_| Error::NoSuchTask { name: name.clone() })?;
            if let Some(started) = self.first_event(id)? {
                tasks.push((id, started));
            }
        }
        Ok(tasks)
    }

    /// The one task whose id begins with `name`, or whose short form (the end of the id) does.
    pub fn find(&self, name: &str) -> Result<TaskId, Error> {
        let wanted = name.to_ascii_lowercase();
        let found: Vec<TaskId> = self
            .tasks()?
            .into_iter()
            .map(|(id, _)| id)
            .filter(|id| !wanted.is_empty() && (id.to_string().starts_with(&wanted) || id.short().starts_with(&wanted)))
            .collect();
        match found.as_slice() {
            [] => Err(Error::NoSuchTask { name: name.to_owned() }),
            [one] => Ok(*one),
            _ => Err(Error::Ambiguous { name: name.to_owned(), among: found }),
        }
    }

    fn first_event(&self, task: TaskId) -> Result<Option<TaskStarted>, Error> {
        let row = self
            .connection
            .prepare_cached("SELECT seq, v, at_ms, spent_ms, kind, body FROM event WHERE task = ?1 AND seq = 1")
            .and_then(|mut statement| {
                statement
                    .query_row([task.to_string()], |row| {
                        Ok(Row {
                            seq: uint(row.get(0)?),
                            version: row.get(1)?,
                            at_ms: uint(row.get(2)?),
                            spent_ms: uint(row.get(3)?),
                            kind: row.get(4)?,
                            body: row.get(5)?,
                        })
                    })
                    .optional()
            })
            .map_err(|source| self.database("reading events", source))?;
        let Some(row) = row else { return Ok(None) };
        match self.event(task, &row)?.kind {
            EventKind::TaskStarted(started) => Ok(Some(*started)),
            _ => Err(Error::Corrupt { task, seq: 1, what: "a task begins with task_started".to_owned() }),
        }
    }

    fn event(&self, task: TaskId, row: &Row) -> Result<Event, Error> {
        let corrupt = |what| Error::Corrupt { task, seq: row.seq, what };
        if row.version != super::VERSION {
            return Err(corrupt(format!("its version {} is not known", row.version)));
        }
        let kind = codec::decode(&row.kind, &row.body, &|hash| self.blob(hash)).map_err(corrupt)?;
        Ok(Event { task, seq: row.seq, at_ms: row.at_ms, spent_ms: row.spent_ms, kind })
    }

    fn blob(&self, hash: &Hash) -> Result<String, String> {
        let row: Option<(i64, Vec<u8>)> = self
            .connection
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

fn uint(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
