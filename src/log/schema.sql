CREATE TABLE event (
    task     TEXT    NOT NULL,
    seq      INTEGER NOT NULL,
    v        INTEGER NOT NULL,
    at_ms    INTEGER NOT NULL,
    spent_ms INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    body     TEXT    NOT NULL,
    PRIMARY KEY (task, seq)
) STRICT;
CREATE INDEX event_first ON event (at_ms, task) WHERE seq = 1;
CREATE TABLE blob (
    hash    TEXT    PRIMARY KEY,
    raw_len INTEGER NOT NULL,
    zstd    BLOB    NOT NULL
) STRICT;
CREATE TRIGGER event_without_gaps BEFORE INSERT ON event
WHEN NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM event WHERE task = NEW.task)
BEGIN SELECT raise(ABORT, 'events are numbered without gaps'); END;
CREATE TRIGGER event_update BEFORE UPDATE ON event BEGIN SELECT raise(ABORT, 'events are never changed'); END;
CREATE TRIGGER event_delete BEFORE DELETE ON event BEGIN SELECT raise(ABORT, 'events are never deleted'); END;
CREATE TRIGGER blob_update BEFORE UPDATE ON blob BEGIN SELECT raise(ABORT, 'blobs are never changed'); END;
CREATE TRIGGER blob_delete BEFORE DELETE ON blob BEGIN SELECT raise(ABORT, 'blobs are never deleted'); END;
