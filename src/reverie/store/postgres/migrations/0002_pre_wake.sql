-- When workers look at a tenant next, so that they need not look at all. 0: not known yet, so at once.
ALTER TABLE reverie.tenant ADD COLUMN wake_at bigint DEFAULT 0;
CREATE INDEX tenant_wake ON reverie.tenant (wake_at) WHERE wake_at IS NOT NULL;
