-- Events by type: the dreams of a tenant are found however much was written since.
CREATE INDEX IF NOT EXISTS event_type ON reverie.event (tenant, type, seq);
