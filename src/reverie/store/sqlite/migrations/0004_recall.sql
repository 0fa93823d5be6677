-- What an entry is found by, in one row: its words, hashed under the tenant's key, and its vector (int8). It takes the
-- place of the word index (an FTS5 table for each tenant) and of the table of vectors. seq: when it was indexed; again:
-- whether that was later than when it was stored. Rows lie in the order of their entries, so that what came since can
-- be read from the end; what was indexed again is found by the index.
CREATE TABLE recall (
  tenant INTEGER NOT NULL,
  ref TEXT NOT NULL,
  n INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  again INTEGER NOT NULL,
  words BLOB,
  model INTEGER,
  vector BLOB,
  PRIMARY KEY (tenant, ref, n)
) WITHOUT ROWID;
CREATE INDEX recall_again ON recall (tenant, ref, seq) WHERE again;

INSERT INTO recall (tenant, ref, n, seq, again, words, model, vector)
SELECT e.tenant, e.ref, e.n, coalesce(v.seq, e.born_seq), coalesce(v.seq, e.born_seq) <> e.born_seq,
words_before_0004(e.tenant, e.n), v.model, v.data
FROM entry AS e LEFT JOIN vector AS v ON v.n = e.n WHERE e.gone_seq IS NULL;
DROP TABLE vector;
