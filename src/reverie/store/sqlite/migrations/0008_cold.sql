-- Deleted entries and the sources of dreams by the time they left, for retention; the sources of dreams by memory, for
-- search behind what is hot.
CREATE INDEX entry_cold ON entry (tenant, state, gone_at) WHERE gone_seq IS NOT NULL AND state IN ('deleted', 'dreamt');
CREATE INDEX entry_dreamt ON entry (tenant, ref, gone_seq) WHERE gone_seq IS NOT NULL AND state = 'dreamt';
