-- What a revision was merged from. No event before this schema says so of any.
ALTER TABLE revisions ADD COLUMN rebased_from INTEGER NOT NULL DEFAULT 0;
ALTER TABLE revisions ADD COLUMN merged_paths TEXT NOT NULL DEFAULT '[]'; -- JSON

-- Which transaction changed which path, and what it left there. The table is
-- filled from the log.
CREATE TABLE changed_paths (
  workspace      TEXT    NOT NULL,
  path           TEXT    NOT NULL,
  seq            INTEGER NOT NULL,
  transaction_id TEXT    NOT NULL,
  kind           TEXT    NOT NULL,
  mode           TEXT    NOT NULL,
  sha256         TEXT    NOT NULL,
  PRIMARY KEY (workspace, path, seq)
) STRICT, WITHOUT ROWID;
