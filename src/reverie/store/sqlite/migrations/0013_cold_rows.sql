-- The sources of dreams keep their index rows, marked as cold, so that cold storage is searched from an index on disk.
-- Rows of sources from before are made by the job that makes missing vectors.
ALTER TABLE recall ADD COLUMN cold INTEGER NOT NULL DEFAULT 0;
CREATE INDEX recall_cold ON recall (tenant, ref, seq) WHERE cold;
DROP INDEX IF EXISTS entry_dreamt;
