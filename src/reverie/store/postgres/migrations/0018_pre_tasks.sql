-- The entries of a task, and the number of entries that left a memory by state: from indexes, however large the memory is.
CREATE OR REPLACE FUNCTION reverie.task_of(attributes text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN attributes LIKE '%"task_id"%' AND attributes NOT LIKE '%\\u0000%'
    THEN attributes::jsonb #>> '{intent,task_id}' END
$$;
CREATE INDEX IF NOT EXISTS entry_task ON reverie.entry (tenant, ref, reverie.task_of(attributes))
WHERE gone_seq IS NULL AND reverie.task_of(attributes) IS NOT NULL;
CREATE INDEX IF NOT EXISTS entry_left ON reverie.entry (tenant, ref, state, archived) WHERE gone_seq IS NOT NULL;
