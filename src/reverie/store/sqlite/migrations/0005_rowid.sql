-- The log and what entries are found by lie in the order of one number. A tree of whole rows is split and levelled at
-- every tenth row; one that grows at its end by a number is not, so a write touches 6.8 pages instead of 8.3.

ALTER TABLE event RENAME TO event_4;
CREATE TABLE event (
  n INTEGER PRIMARY KEY,
  epoch INTEGER NOT NULL,
  at INTEGER NOT NULL,
  type TEXT NOT NULL,
  operation TEXT NOT NULL,
  actor TEXT NOT NULL,
  session TEXT,
  entry_id TEXT,
  conflict_id TEXT,
  task_id TEXT,
  data TEXT NOT NULL,
  prev_hash BLOB NOT NULL,
  hash BLOB NOT NULL
);
INSERT INTO event (n, epoch, at, type, operation, actor, session, entry_id, conflict_id, task_id, data, prev_hash,
hash) SELECT ((tenant - 1) << 40) + seq, epoch, at, type, operation, actor, session, entry_id, conflict_id, task_id,
data, prev_hash, hash FROM event_4 ORDER BY tenant, seq;
DROP TABLE event_4;
CREATE TRIGGER event_is_final BEFORE UPDATE ON event BEGIN
  SELECT RAISE(ABORT, 'the event log is append-only');
END;
CREATE TRIGGER event_is_kept BEFORE DELETE ON event BEGIN
  SELECT RAISE(ABORT, 'the event log is append-only');
END;
CREATE INDEX event_run ON event (iif(json_valid(data), json_extract(data, '$.run'), NULL))
  WHERE iif(json_valid(data), json_extract(data, '$.run'), NULL) IS NOT NULL;

ALTER TABLE recall RENAME TO recall_4;
CREATE TABLE recall (
  n INTEGER PRIMARY KEY,
  tenant INTEGER NOT NULL,
  ref TEXT NOT NULL,
  seq INTEGER NOT NULL,
  again INTEGER NOT NULL,
  words BLOB,
  model INTEGER,
  vector BLOB
);
INSERT INTO recall (n, tenant, ref, seq, again, words, model, vector)
SELECT n, tenant, ref, seq, again, words, model, vector FROM recall_4 ORDER BY n;
DROP TABLE recall_4;
CREATE INDEX recall_again ON recall (tenant, ref, seq) WHERE again;
