-- What was changed behind the service's back. id is that of the event.
CREATE TABLE foreign_changes (
  seq            INTEGER PRIMARY KEY,
  id             TEXT    NOT NULL UNIQUE,
  workspace      TEXT    NOT NULL,
  found_at       TEXT    NOT NULL,
  transaction_id TEXT    NOT NULL,
  head           TEXT    NOT NULL,
  paths          TEXT    NOT NULL, -- JSON, a list
  more           INTEGER NOT NULL,
  at             INTEGER NOT NULL
) STRICT;
CREATE INDEX foreign_changes_workspace ON foreign_changes (workspace);
