-- Stages that people had run on what a revision gives.
CREATE TABLE validations (
  seq            INTEGER PRIMARY KEY,
  id             TEXT    NOT NULL UNIQUE,
  workspace      TEXT    NOT NULL,
  proposal       TEXT    NOT NULL,
  revision       INTEGER NOT NULL,
  patch_digest   TEXT    NOT NULL,
  paths_digest   TEXT    NOT NULL,
  policy_digest  TEXT    NOT NULL,
  candidate_tree TEXT    NOT NULL,
  status         TEXT    NOT NULL,
  requested_by   TEXT    NOT NULL,
  started_at     INTEGER NOT NULL,
  finished_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX validations_proposal ON validations (proposal);

CREATE TABLE validation_stages (
  validation  TEXT    NOT NULL,
  place       INTEGER NOT NULL, -- in the order in which they are shown
  stage       TEXT    NOT NULL,
  status      TEXT    NOT NULL,
  detail      TEXT    NOT NULL,
  test_runs   TEXT    NOT NULL, -- JSON, a list
  output      TEXT    NOT NULL,
  cut         INTEGER NOT NULL,
  exit_code   INTEGER,
  started_at  INTEGER NOT NULL,
  finished_at INTEGER NOT NULL,
  duration_ms INTEGER NOT NULL,
  PRIMARY KEY (validation, stage)
) STRICT;
