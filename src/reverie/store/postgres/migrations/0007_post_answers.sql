-- Idempotency keys are kept as hashes under the tenant's key: callers put anything into them, credentials too. Processes
-- of the older release keep them as they come, so those are hashed when none of them runs any more.
CREATE FUNCTION reverie.answer_key(log_key bytea, key text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  inner_pad bytea := decode(repeat('36', 64), 'hex');
  outer_pad bytea := decode(repeat('5c', 64), 'hex');
BEGIN
  FOR i IN 0 .. length(log_key) - 1 LOOP
    inner_pad := set_byte(inner_pad, i, 54 # get_byte(log_key, i));
    outer_pad := set_byte(outer_pad, i, 92 # get_byte(log_key, i));
  END LOOP;
  RETURN 'put/' || encode(sha256(outer_pad || sha256(inner_pad || convert_to(key, 'UTF8'))), 'hex');
END
$$;
ALTER TABLE reverie.answer NO FORCE ROW LEVEL SECURITY;
ALTER TABLE reverie.tenant NO FORCE ROW LEVEL SECURITY;
-- Into a new file, and the old one is removed: an UPDATE would leave the keys in dead rows until VACUUM.
CREATE TEMPORARY TABLE answer_before ON COMMIT DROP AS
SELECT a.tenant, CASE WHEN a.key ~ '^(akashik|put)/[0-9a-f]{64}$' THEN a.key ELSE reverie.answer_key(t.log_key, a.key)
END AS key, a.digest, a.answer, a.until FROM reverie.answer AS a JOIN reverie.tenant AS t ON t.n = a.tenant;
TRUNCATE reverie.answer;
INSERT INTO reverie.answer (tenant, key, digest, answer, until)
SELECT tenant, key, digest, answer, until FROM answer_before ON CONFLICT DO NOTHING;
ALTER TABLE reverie.answer FORCE ROW LEVEL SECURITY;
ALTER TABLE reverie.tenant FORCE ROW LEVEL SECURITY;
DROP FUNCTION reverie.answer_key(bytea, text);
