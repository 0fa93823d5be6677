-- The sources of dreams keep their index rows, marked as cold, so that cold storage is searched from an index on disk.
-- Rows of sources from before are made by the job that makes missing vectors.
ALTER TABLE reverie.recall ADD COLUMN IF NOT EXISTS cold boolean NOT NULL DEFAULT false;
CREATE INDEX IF NOT EXISTS recall_cold ON reverie.recall (tenant, ref, seq) WHERE cold;
