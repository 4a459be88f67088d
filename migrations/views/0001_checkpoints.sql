-- The views: tables made by following the log. Deleting this file loses nothing.
PRAGMA application_id = 0x52545657; -- "RTVW"

-- How far each projector has got; moved in the transaction that writes its rows.
CREATE TABLE checkpoints (
  consumer TEXT    PRIMARY KEY,
  position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
