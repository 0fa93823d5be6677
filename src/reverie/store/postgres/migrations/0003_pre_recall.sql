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

CREATE FUNCTION reverie.words_before(tenant integer, n bigint) RETURNS bytea LANGUAGE sql STABLE AS $$
  SELECT string_agg(int8send(p.word) || int2send(least(p.times, 32767)::smallint), ''::bytea ORDER BY p.word)
  FROM reverie.words AS w CROSS JOIN unnest(w.words) AS u (word)
  JOIN reverie.posting AS p ON p.tenant = w.tenant AND p.word = u.word AND p.n = w.n
  WHERE w.tenant = $1 AND w.n = $2
$$;

-- Nobody has named a tenant, and the walls stand for the owner too: they are opened for this transaction only.
ALTER TABLE reverie.entry NO FORCE ROW LEVEL SECURITY;
ALTER TABLE reverie.words NO FORCE ROW LEVEL SECURITY;
ALTER TABLE reverie.posting NO FORCE ROW LEVEL SECURITY;
ALTER TABLE reverie.vector NO FORCE ROW LEVEL SECURITY;
INSERT INTO reverie.recall (tenant, ref, n, seq, again, words, model, vector)
SELECT e.tenant, e.ref, e.n, coalesce(v.seq, e.born_seq), coalesce(v.seq, e.born_seq) <> e.born_seq,
reverie.words_before(e.tenant, e.n), v.model, v.data
FROM reverie.entry AS e LEFT JOIN reverie.vector AS v ON v.tenant = e.tenant AND v.n = e.n
WHERE e.gone_seq IS NULL;
ALTER TABLE reverie.entry FORCE ROW LEVEL SECURITY;
ALTER TABLE reverie.words FORCE ROW LEVEL SECURITY;
ALTER TABLE reverie.posting FORCE ROW LEVEL SECURITY;
ALTER TABLE reverie.vector FORCE ROW LEVEL SECURITY;
ALTER TABLE reverie.recall ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON reverie.recall USING (tenant = nullif(current_setting('reverie.tenant', true), '')::integer);

-- Until the last process of the older release is gone: what it indexes is found by the new one, and what either takes
-- out is out everywhere. It writes the words of an entry before its vector.
ALTER TABLE reverie.tenant ALTER COLUMN indexed SET DEFAULT 0, ALTER COLUMN tokens SET DEFAULT 0;
CREATE FUNCTION reverie.recall_from_before() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    DELETE FROM reverie.recall WHERE tenant = OLD.tenant AND ref = OLD.ref AND n = OLD.n;
  ELSE
    INSERT INTO reverie.recall AS r (tenant, ref, n, seq, again, words, model, vector)
    VALUES (NEW.tenant, NEW.ref, NEW.n, NEW.seq, true, reverie.words_before(NEW.tenant, NEW.n), NEW.model, NEW.data)
    ON CONFLICT (tenant, ref, n) DO UPDATE SET seq = excluded.seq, again = true,
    words = coalesce(excluded.words, r.words), model = excluded.model, vector = excluded.vector;
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER recall_from_before AFTER INSERT OR DELETE ON reverie.vector
FOR EACH ROW EXECUTE FUNCTION reverie.recall_from_before();
CREATE FUNCTION reverie.out_of_before() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM reverie.posting AS p USING reverie.words AS w
  WHERE w.tenant = OLD.tenant AND w.n = OLD.n AND p.tenant = w.tenant AND p.word = ANY(w.words) AND p.n = w.n;
  DELETE FROM reverie.words WHERE tenant = OLD.tenant AND n = OLD.n;
  DELETE FROM reverie.vector WHERE tenant = OLD.tenant AND n = OLD.n;
  RETURN NULL;
END
$$;
CREATE TRIGGER out_of_before AFTER DELETE ON reverie.recall FOR EACH ROW EXECUTE FUNCTION reverie.out_of_before();
