-- What an entry is found by, in one row: its words, hashed under the tenant's key, and its vector (int8). It takes the
-- place of the word index (posting, words) and of the table of vectors. seq: when it was indexed; again: whether that
-- was later than when it was stored. What came since is read from the end; what was indexed again by the index.
CREATE TABLE reverie.recall (
  tenant integer NOT NULL,
  ref text COLLATE "C" NOT NULL,
  n bigint NOT NULL,
  seq bigint NOT NULL,
  again boolean NOT NULL,
  words bytea,
  model text COLLATE "C",
  vector bytea,
  PRIMARY KEY (tenant, ref, n)
);
CREATE INDEX recall_again ON reverie.recall (tenant, ref, seq) WHERE again;
-- vectors do not shrink: trying costs time
ALTER TABLE reverie.recall ALTER COLUMN vector SET STORAGE EXTERNAL, ALTER COLUMN words SET STORAGE EXTERNAL;

-- Nobody has named a tenant yet, and the walls stand for the owner too: they are opened for this transaction only.
ALTER TABLE reverie.entry NO FORCE ROW LEVEL SECURITY;
ALTER TABLE reverie.posting NO FORCE ROW LEVEL SECURITY;
ALTER TABLE reverie.vector NO FORCE ROW LEVEL SECURITY;
INSERT INTO reverie.recall (tenant, ref, n, seq, again, words, model, vector)
SELECT e.tenant, e.ref, e.n, coalesce(v.seq, e.born_seq), coalesce(v.seq, e.born_seq) <> e.born_seq, p.words, v.model,
v.data
FROM reverie.entry AS e
LEFT JOIN (
  SELECT tenant, n, string_agg(int8send(word) || int2send(least(times, 32767)::smallint), ''::bytea ORDER BY word)
    AS words
  FROM reverie.posting GROUP BY tenant, n
) AS p ON p.tenant = e.tenant AND p.n = e.n
LEFT JOIN reverie.vector AS v ON v.tenant = e.tenant AND v.n = e.n
WHERE e.gone_seq IS NULL;
ALTER TABLE reverie.entry FORCE ROW LEVEL SECURITY;

DROP TABLE reverie.posting, reverie.words, reverie.vector;
ALTER TABLE reverie.tenant DROP COLUMN indexed, DROP COLUMN tokens;
ALTER TABLE reverie.recall ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON reverie.recall USING (tenant = nullif(current_setting('reverie.tenant', true), '')::integer);
