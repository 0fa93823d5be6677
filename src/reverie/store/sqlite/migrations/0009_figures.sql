-- Events by type: the dreams of a tenant are found however much was written since. Readable entries by what they are
-- told apart by, so that they are counted without being read.
CREATE INDEX event_type ON event (type, n);
CREATE INDEX entry_facets ON entry (tenant, ref, kind, actor, subject, expires_at)
  WHERE gone_seq IS NULL AND state <> 'draft';
