-- The entries of a task, and the number of entries that left a memory by state: from indexes, however large the memory is.
CREATE INDEX entry_task ON entry (tenant, ref, iif(json_valid(attributes), json_extract(attributes, '$.intent.task_id'), NULL))
  WHERE gone_seq IS NULL AND iif(json_valid(attributes), json_extract(attributes, '$.intent.task_id'), NULL) IS NOT NULL;
CREATE INDEX entry_left ON entry (tenant, ref, state, archived) WHERE gone_seq IS NOT NULL;
