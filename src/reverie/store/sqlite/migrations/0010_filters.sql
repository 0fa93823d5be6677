-- What search filters select by; kinds and actors are found by entry_facets.
CREATE INDEX entry_session ON entry (tenant, ref, session) WHERE gone_seq IS NULL AND session IS NOT NULL;
CREATE INDEX entry_pinned ON entry (tenant, ref) WHERE gone_seq IS NULL AND pinned;
