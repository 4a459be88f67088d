-- In every table seq is the position of the event that made the row: it is the
-- order of lists and what the cursor of a page names. Times are unix
-- nanoseconds, UTC, 0 for none. An id that is absent is ''.

CREATE TABLE workspaces (
  seq        INTEGER PRIMARY KEY,
  id         TEXT    NOT NULL UNIQUE,
  name       TEXT    NOT NULL,
  root       TEXT    NOT NULL,
  kind       TEXT    NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE principals (
  seq        INTEGER PRIMARY KEY,
  id         TEXT    NOT NULL UNIQUE,
  name       TEXT    NOT NULL,
  kind       TEXT    NOT NULL,
  owner      TEXT    NOT NULL,
  vendor     TEXT    NOT NULL,
  model      TEXT    NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE roles (
  seq       INTEGER PRIMARY KEY,
  principal TEXT    NOT NULL,
  workspace TEXT    NOT NULL, -- '*' for all
  role      TEXT    NOT NULL,
  UNIQUE (principal, workspace, role)
) STRICT;

CREATE TABLE tokens (
  seq        INTEGER PRIMARY KEY,
  id         TEXT    NOT NULL UNIQUE,
  principal  TEXT    NOT NULL,
  scope      TEXT    NOT NULL, -- JSON
  issued_by  TEXT    NOT NULL,
  issued_at  INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  revoked_at INTEGER NOT NULL
) STRICT;
CREATE INDEX tokens_principal ON tokens (principal);

CREATE TABLE tasks (
  seq        INTEGER PRIMARY KEY,
  id         TEXT    NOT NULL UNIQUE,
  workspace  TEXT    NOT NULL,
  title      TEXT    NOT NULL,
  body       TEXT    NOT NULL,
  priority   INTEGER NOT NULL,
  risk       TEXT    NOT NULL,
  assignee   TEXT    NOT NULL,
  status     TEXT    NOT NULL,
  created_by TEXT    NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX tasks_workspace ON tasks (workspace);

-- state is what the log says; a claim past expires_at has ended whatever it says.
CREATE TABLE claims (
  seq        INTEGER PRIMARY KEY,
  id         TEXT    NOT NULL UNIQUE,
  workspace  TEXT    NOT NULL,
  resource   TEXT    NOT NULL,
  type       TEXT    NOT NULL,
  holder     TEXT    NOT NULL,
  task       TEXT    NOT NULL,
  rationale  TEXT    NOT NULL,
  fence      INTEGER NOT NULL,
  base_state TEXT    NOT NULL,
  base_hash  TEXT    NOT NULL,
  granted_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  state      TEXT    NOT NULL,
  cause      TEXT    NOT NULL
) STRICT;
CREATE INDEX claims_workspace ON claims (workspace);
CREATE INDEX claims_resource ON claims (workspace, resource);

CREATE TABLE proposals (
  seq               INTEGER PRIMARY KEY,
  id                TEXT    NOT NULL UNIQUE,
  workspace         TEXT    NOT NULL,
  task              TEXT    NOT NULL,
  author            TEXT    NOT NULL,
  title             TEXT    NOT NULL,
  summary           TEXT    NOT NULL,
  search            TEXT    NOT NULL, -- title and summary in lower case
  risk              TEXT    NOT NULL, -- the author's word
  effective_risk    TEXT    NOT NULL, -- of the newest revision
  status            TEXT    NOT NULL,
  expected_tests    TEXT    NOT NULL, -- JSON
  rollback_notes    TEXT    NOT NULL,
  compensates       TEXT    NOT NULL,
  revision          INTEGER NOT NULL, -- number of the newest, 0 before the first
  transaction_id    TEXT    NOT NULL, -- the newest
  transaction_state TEXT    NOT NULL,
  transaction_of    INTEGER NOT NULL, -- number of the revision it applies
  created_at        INTEGER NOT NULL,
  updated_at        INTEGER NOT NULL
) STRICT;
CREATE INDEX proposals_workspace ON proposals (workspace);
CREATE INDEX proposals_transaction ON proposals (transaction_id) WHERE transaction_id <> '';

CREATE TABLE revisions (
  seq            INTEGER PRIMARY KEY,
  proposal       TEXT    NOT NULL,
  number         INTEGER NOT NULL,
  patch_digest   TEXT    NOT NULL,
  patch_bytes    INTEGER NOT NULL,
  base_commit    TEXT    NOT NULL,
  paths_digest   TEXT    NOT NULL,
  candidate_tree TEXT    NOT NULL,
  files          TEXT    NOT NULL, -- JSON
  resources      TEXT    NOT NULL, -- JSON
  attached_by    TEXT    NOT NULL,
  attached_at    INTEGER NOT NULL,
  UNIQUE (proposal, number)
) STRICT;

-- The paths that the newest revision of each proposal touches, both sides of a rename.
CREATE TABLE proposal_paths (
  proposal TEXT NOT NULL,
  path     TEXT NOT NULL,
  PRIMARY KEY (proposal, path)
) STRICT, WITHOUT ROWID;

CREATE TABLE votes (
  seq        INTEGER PRIMARY KEY,
  id         TEXT    NOT NULL UNIQUE,
  proposal   TEXT    NOT NULL,
  voter      TEXT    NOT NULL,
  revision   INTEGER NOT NULL,
  vote       TEXT    NOT NULL,
  reason     TEXT    NOT NULL,
  confidence REAL,
  cast_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX votes_proposal ON votes (proposal, voter);

CREATE TABLE approvals (
  seq          INTEGER PRIMARY KEY,
  id           TEXT    NOT NULL UNIQUE,
  workspace    TEXT    NOT NULL,
  proposal     TEXT    NOT NULL,
  task         TEXT    NOT NULL,
  subject      TEXT    NOT NULL,
  reason       TEXT    NOT NULL,
  revision     INTEGER NOT NULL,
  status       TEXT    NOT NULL,
  requested_by TEXT    NOT NULL,
  requested_at INTEGER NOT NULL
) STRICT;
CREATE INDEX approvals_workspace ON approvals (workspace);
CREATE INDEX approvals_proposal ON approvals (proposal);

CREATE TABLE approval_decisions (
  seq        INTEGER PRIMARY KEY,
  approval   TEXT    NOT NULL,
  decided_by TEXT    NOT NULL,
  verdict    TEXT    NOT NULL,
  reason     TEXT    NOT NULL,
  revision   INTEGER NOT NULL,
  decided_at INTEGER NOT NULL
) STRICT;
CREATE INDEX approval_decisions_approval ON approval_decisions (approval);

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
  candidate_tree TEXT    NOT NULL,
  before_paths   TEXT    NOT NULL,
  after_paths    TEXT    NOT NULL,
  before_tree    TEXT    NOT NULL,
  after_tree     TEXT    NOT NULL,
  gates          TEXT    NOT NULL, -- JSON
  files          TEXT    NOT NULL, -- JSON
  failure        TEXT    NOT NULL, -- JSON, null for none
  compensates    TEXT    NOT NULL,
  compensated_by TEXT    NOT NULL,
  opened_by      TEXT    NOT NULL,
  opened_at      INTEGER NOT NULL,
  updated_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX transactions_workspace ON transactions (workspace);
CREATE INDEX transactions_proposal ON transactions (proposal);

CREATE TABLE phases (
  seq            INTEGER PRIMARY KEY,
  transaction_id TEXT    NOT NULL,
  attempt        INTEGER NOT NULL,
  phase          TEXT    NOT NULL,
  status         TEXT    NOT NULL,
  actor          TEXT    NOT NULL,
  reason         TEXT    NOT NULL,
  request        TEXT    NOT NULL,
  inputs         TEXT    NOT NULL, -- JSON
  outputs        TEXT    NOT NULL, -- JSON
  failure_code   TEXT    NOT NULL,
  recovery_state TEXT    NOT NULL,
  started_at     INTEGER NOT NULL,
  ended_at       INTEGER NOT NULL
) STRICT;
CREATE INDEX phases_transaction ON phases (transaction_id);

CREATE TABLE test_runs (
  seq                INTEGER PRIMARY KEY,
  id                 TEXT    NOT NULL UNIQUE,
  workspace          TEXT    NOT NULL,
  proposal           TEXT    NOT NULL,
  revision           INTEGER NOT NULL,
  task               TEXT    NOT NULL,
  command            TEXT    NOT NULL,
  argv               TEXT    NOT NULL, -- JSON
  state              TEXT    NOT NULL,
  reason             TEXT    NOT NULL,
  candidate_tree     TEXT    NOT NULL,
  patch_digest       TEXT    NOT NULL,
  exit_code          INTEGER,
  signal             TEXT    NOT NULL,
  isolation          TEXT    NOT NULL,
  environment_digest TEXT    NOT NULL,
  log_digest         TEXT    NOT NULL,
  output_bytes       INTEGER NOT NULL,
  summary            TEXT    NOT NULL,
  timeout_seconds    INTEGER NOT NULL,
  requested_by       TEXT    NOT NULL,
  requested_at       INTEGER NOT NULL,
  started_at         INTEGER NOT NULL,
  ended_at           INTEGER NOT NULL,
  duration_ms        INTEGER NOT NULL
) STRICT;
CREATE INDEX test_runs_workspace ON test_runs (workspace);
CREATE INDEX test_runs_proposal ON test_runs (proposal);
