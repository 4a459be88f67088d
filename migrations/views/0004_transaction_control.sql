-- Transactions show who asked for the apply, what it rests on, and whom they
-- wait behind. The tables are filled again from the log.
DELETE FROM checkpoints WHERE consumer = 'transactions';
DROP TABLE transactions;
DELETE FROM phases;

CREATE TABLE transactions (
  seq            INTEGER PRIMARY KEY,
  id             TEXT    NOT NULL UNIQUE,
  workspace      TEXT    NOT NULL,
  proposal       TEXT    NOT NULL,
  revision       INTEGER NOT NULL,
  patch_digest   TEXT    NOT NULL,
  policy_digest  TEXT    NOT NULL,
  state          TEXT    NOT NULL,
  attempt        INTEGER NOT NULL,
  behind         TEXT    NOT NULL, -- the transaction just before it in the line
  asked_by       TEXT    NOT NULL, -- who wants it applied
  reason         TEXT    NOT NULL, -- of the newest wish
  candidate_tree TEXT    NOT NULL,
  before_paths   TEXT    NOT NULL,
  after_paths    TEXT    NOT NULL,
  before_tree    TEXT    NOT NULL,
  after_tree     TEXT    NOT NULL,
  gates          TEXT    NOT NULL, -- JSON
  relied         TEXT    NOT NULL, -- JSON
  files          TEXT    NOT NULL, -- JSON
  failure        TEXT    NOT NULL, -- JSON, null for none
  resolution     TEXT    NOT NULL, -- JSON, null for none
  compensates    TEXT    NOT NULL,
  compensated_by TEXT    NOT NULL,
  opened_by      TEXT    NOT NULL,
  opened_at      INTEGER NOT NULL,
  updated_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX transactions_workspace ON transactions (workspace);
CREATE INDEX transactions_proposal ON transactions (proposal);
