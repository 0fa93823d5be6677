-- Whom entries are about: a keyed hash of each subject, folded, so that one look finds every spelling in every memory.
-- The program fills it after this step: the hash is not one that SQL can make.
CREATE TABLE reverie.about (
  tenant integer NOT NULL,
  who bytea NOT NULL,
  n bigint NOT NULL,
  PRIMARY KEY (tenant, who, n)
);
ALTER TABLE reverie.about ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON reverie.about USING (tenant = nullif(current_setting('reverie.tenant', true), '')::integer);

-- Until the last process of the older release is gone: its entries are listed without a key, and looked at by every
-- search for a subject.
CREATE FUNCTION reverie.about_from_before() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF coalesce(current_setting('reverie.keyed', true), '') <> 'on' THEN
    INSERT INTO reverie.about (tenant, who, n) VALUES (NEW.tenant, '', NEW.n) ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER about_from_before AFTER INSERT ON reverie.entry
FOR EACH ROW WHEN (NEW.subject IS NOT NULL OR NEW.tags LIKE '%"subject:%')
EXECUTE FUNCTION reverie.about_from_before();
