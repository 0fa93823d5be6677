-- The last searches of a memory, for dreams to replay: one sealed row each, written over.
CREATE TABLE reverie.searches (
  tenant integer NOT NULL,
  ref text COLLATE "C" NOT NULL,
  body bytea NOT NULL,
  at bigint NOT NULL,
  PRIMARY KEY (tenant, ref)
);
ALTER TABLE reverie.searches ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON reverie.searches USING
  (tenant = nullif(current_setting('reverie.tenant', true), '')::integer);
