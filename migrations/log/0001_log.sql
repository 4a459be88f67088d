-- The log: what happened, what each command came to, and the work that follows.
-- Times are unix nanoseconds, UTC. Digests and hashes are 32 raw bytes.
PRAGMA application_id = 0x52544c47; -- "RTLG"

CREATE TABLE streams (
  id   INTEGER PRIMARY KEY,
  name TEXT    NOT NULL UNIQUE
) STRICT;

-- Rows are appended and never changed; position is the one order all else
-- follows. The writer sets it to the last + 1.
CREATE TABLE events (
  position    INTEGER PRIMARY KEY,
  id          TEXT    NOT NULL, -- ULID; not indexed, since the writer cannot repeat one
  workspace   TEXT    NOT NULL,
  stream      INTEGER NOT NULL REFERENCES streams (id),
  version     INTEGER NOT NULL,
  type        TEXT    NOT NULL,
  schema      INTEGER NOT NULL,
  time        INTEGER NOT NULL,
  actor       TEXT    NOT NULL,
  session     TEXT    NOT NULL,
  command     TEXT    NOT NULL, -- key, of this actor, of the command that caused it
  cause       TEXT    NOT NULL,
  correlation TEXT    NOT NULL,
  data        BLOB    NOT NULL, -- JSON
  hash        BLOB    NOT NULL, -- over the previous hash, every field and the stream's name
  UNIQUE (stream, version)
) STRICT;

-- What each command came to, also of one that changed nothing; written with
-- its events. The table keeps its rowid: clients send keys in any order, and
-- so only the index is random. The key stands first in the index: the keys that
-- we make are in time order, and so all actors write to its last page.
CREATE TABLE outcomes (
  actor    TEXT    NOT NULL,
  command  TEXT    NOT NULL,
  digest   BLOB    NOT NULL, -- of the input: the key of one command is no other's
  position INTEGER NOT NULL,
  answer   BLOB    NOT NULL,
  time     INTEGER NOT NULL,
  UNIQUE (command, actor)
) STRICT;

-- A seat belt, not proof: whoever can write the file can drop a trigger, and
-- then the hashes tell. The triggers on INSERT are there because INSERT OR
-- REPLACE deletes without a word to the triggers on DELETE.
CREATE TRIGGER events_no_update BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_no_delete BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_gapless BEFORE INSERT ON events
  WHEN NEW.position IS NOT coalesce((SELECT max(position) FROM events), 0) + 1
    OR NEW.version IS NOT coalesce((SELECT max(version) FROM events WHERE stream = NEW.stream), 0) + 1
  BEGIN SELECT RAISE(ABORT, 'positions and versions are without gaps'); END;
CREATE TRIGGER streams_no_update BEFORE UPDATE ON streams BEGIN SELECT RAISE(ABORT, 'streams are append-only'); END;
CREATE TRIGGER streams_no_delete BEFORE DELETE ON streams BEGIN SELECT RAISE(ABORT, 'streams are append-only'); END;
CREATE TRIGGER outcomes_no_update BEFORE UPDATE ON outcomes BEGIN SELECT RAISE(ABORT, 'outcomes are append-only'); END;
CREATE TRIGGER outcomes_no_delete BEFORE DELETE ON outcomes BEGIN SELECT RAISE(ABORT, 'outcomes are append-only'); END;
CREATE TRIGGER outcomes_once BEFORE INSERT ON outcomes
  WHEN EXISTS (SELECT 1 FROM outcomes WHERE actor = NEW.actor AND command = NEW.command)
  BEGIN SELECT RAISE(IGNORE); END;

-- How far each process manager has got; moved with the jobs it asked for.
CREATE TABLE checkpoints (
  consumer TEXT    PRIMARY KEY,
  position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Work asked for by events, oldest first. A finished job keeps its row, so
-- that an event read twice makes no second one.
CREATE TABLE jobs (
  seq         INTEGER PRIMARY KEY,
  id          TEXT    NOT NULL UNIQUE, -- made from its event's id
  kind        TEXT    NOT NULL,
  event       TEXT    NOT NULL,
  stream      TEXT    NOT NULL,
  data        BLOB    NOT NULL,
  workspace   TEXT    NOT NULL,
  actor       TEXT    NOT NULL,
  session     TEXT    NOT NULL,
  command     TEXT    NOT NULL,
  cause       TEXT    NOT NULL,
  correlation TEXT    NOT NULL,
  state       TEXT    NOT NULL DEFAULT 'free' CHECK (state IN ('free', 'leased', 'done')),
  attempt     INTEGER NOT NULL DEFAULT 0, -- leases so far, and so the fence of the newest
  until       INTEGER NOT NULL DEFAULT 0, -- not to be taken before: end of the lease, or of the wait
  why         TEXT    NOT NULL DEFAULT '' -- of the last release
) STRICT;
CREATE INDEX jobs_open ON jobs (kind, seq) WHERE state <> 'done';

-- Events a manager could not react to, for ever: their jobs are missing until
-- someone puts them back.
CREATE TABLE parked (
  consumer TEXT    NOT NULL,
  position INTEGER NOT NULL,
  error    TEXT    NOT NULL,
  tries    INTEGER NOT NULL,
  time     INTEGER NOT NULL,
  PRIMARY KEY (consumer, position)
) STRICT, WITHOUT ROWID;

-- Folded states of streams that have no end. Disposable.
CREATE TABLE snapshots (
  stream  TEXT    NOT NULL,
  code    TEXT    NOT NULL, -- names the code that folded it
  version INTEGER NOT NULL,
  state   BLOB    NOT NULL,
  PRIMARY KEY (stream, code)
) STRICT;
