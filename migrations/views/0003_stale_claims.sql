-- Why a claim is stale, as JSON; null of one that is not. No event before this
-- schema says so of any claim.
ALTER TABLE claims ADD COLUMN stale TEXT NOT NULL DEFAULT 'null';
