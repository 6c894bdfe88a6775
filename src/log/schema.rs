//! The database's tables, and the way from every earlier version to today's.
//!
//! One transaction holds the write lock from the first look to the last step, so that a kill at any point leaves the old
//! tables or the new ones, and two processes that open an old log at once do it once. A nisse that had the log open
//! looks at the version again before it writes ([`super::Log::append`]). A released step is never changed.

use rusqlite::{Connection, TransactionBehavior};

use super::{SCHEMA, crash};

/// What makes version `n + 2` of version `n + 1`.
const STEPS: [&str; SCHEMA as usize - 1] = [
    // 2: the list of tasks is read from the index alone, without a look at each first event
    "DROP INDEX IF EXISTS event_first;
     CREATE INDEX event_first ON event (at_ms, task) WHERE seq = 1;",
];

/// Makes the tables, or brings those of an earlier version up to date. What a newer nisse made is left alone.
pub(super) fn bring_up_to_date(connection: &mut Connection) -> rusqlite::Result<()> {
    let version = |connection: &Connection| connection.query_row("PRAGMA user_version", [], |row| row.get::<_, u32>(0));
    if version(connection)? >= SCHEMA {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    crash::point("migrate.begun");
    // another process may have done it while the lock was waited for
    match version(&transaction)? {
        0 => transaction.execute_batch(include_str!("schema.sql"))?,
        found => {
            for step in STEPS.iter().skip(found as usize - 1) {
                transaction.execute_batch(step)?;
                crash::point("migrate.step");
            }
        }
    }
    let found = version(&transaction)?;
    transaction.pragma_update(None, "user_version", SCHEMA.max(found))?;
    crash::point("migrate.marked");
    transaction.commit()?;
    crash::point("migrate.done");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrated_tables_are_those_of_a_new_log() {
        let tables = |connection: &Connection| -> Vec<String> {
            let mut statement = connection.prepare("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").unwrap();
            let mut found: Vec<String> =
                statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
            found.sort();
            found
        };
        let mut new = Connection::open_in_memory().unwrap();
        bring_up_to_date(&mut new).unwrap();
        let mut old = Connection::open_in_memory().unwrap();
        let recorded = include_str!("../../tests/logs/v1.sql");
        old.execute_batch(recorded).unwrap();
        bring_up_to_date(&mut old).unwrap();
        assert_eq!(tables(&old), tables(&new));
        let version: u32 = old.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
        assert_eq!(version, SCHEMA);
    }
}
