-- When workers look at a tenant next, so that they need not look at all. 0: not known yet, so at once.
ALTER TABLE tenant ADD COLUMN wake_at INTEGER DEFAULT 0;
CREATE INDEX tenant_wake ON tenant (wake_at) WHERE wake_at IS NOT NULL;
