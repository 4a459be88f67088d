-- The commit that a transaction made. No event before this schema tells of one.
ALTER TABLE transactions ADD COLUMN ref TEXT NOT NULL DEFAULT '';
ALTER TABLE transactions ADD COLUMN commit_id TEXT NOT NULL DEFAULT '';
ALTER TABLE transactions ADD COLUMN parent TEXT NOT NULL DEFAULT '';
