-- What search filters select by, and the log position at which the text of an entry was destroyed: files of the search
-- index on other machines are cleared by it.
ALTER TABLE reverie.entry ADD COLUMN IF NOT EXISTS scrub_seq bigint;
CREATE INDEX IF NOT EXISTS entry_scrub ON reverie.entry (tenant, ref, scrub_seq) WHERE scrub_seq IS NOT NULL;
CREATE INDEX IF NOT EXISTS entry_kind ON reverie.entry (tenant, ref, kind) WHERE gone_seq IS NULL;
CREATE INDEX IF NOT EXISTS entry_actor ON reverie.entry (tenant, ref, actor) WHERE gone_seq IS NULL;
CREATE INDEX IF NOT EXISTS entry_session ON reverie.entry (tenant, ref, session)
WHERE gone_seq IS NULL AND session IS NOT NULL;
CREATE INDEX IF NOT EXISTS entry_pinned ON reverie.entry (tenant, ref) WHERE gone_seq IS NULL AND pinned;
