-- One file, every tenant. Tenants are numbered so that rows stay small; every query is bound to one number.

CREATE TABLE setting (
  name TEXT PRIMARY KEY,
  value BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE tenant (
  n INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  log_key BLOB NOT NULL,
  seq INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  hash BLOB NOT NULL,
  entries INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  rules_seq INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  wake_at INTEGER DEFAULT 0
);
CREATE INDEX tenant_wake ON tenant (wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE api_key (
  id TEXT PRIMARY KEY,
  tenant TEXT NOT NULL,
  digest BLOB NOT NULL,
  name TEXT NOT NULL,
  rights TEXT NOT NULL,
  authority INTEGER NOT NULL,
  scopes TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
) WITHOUT ROWID;

-- n is the position: order of insertion, never used twice, since rows are never deleted. Every tenant counts in a range
-- of its own, so that no position tells how much another tenant writes. gone_seq: the entry left readable memory there.
CREATE TABLE entry (
  n INTEGER PRIMARY KEY,
  tenant INTEGER NOT NULL,
  ref TEXT NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  content TEXT NOT NULL,
  tags TEXT NOT NULL,
  subject TEXT,
  attributes TEXT NOT NULL,
  actor TEXT NOT NULL,
  role TEXT,
  door TEXT NOT NULL,
  session TEXT,
  run TEXT,
  node TEXT,
  trust INTEGER NOT NULL,
  state TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  pinned INTEGER NOT NULL,
  archived INTEGER NOT NULL,
  held INTEGER NOT NULL,
  version INTEGER NOT NULL,
  born_seq INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  gone_seq INTEGER,
  gone_at INTEGER
);
CREATE UNIQUE INDEX entry_id ON entry (tenant, ref, id);
CREATE INDEX entry_live ON entry (tenant, ref, created_at, n) WHERE gone_seq IS NULL;
CREATE INDEX entry_gone ON entry (tenant, gone_seq) WHERE gone_seq IS NOT NULL;
CREATE INDEX entry_cold ON entry (tenant, state, gone_at) WHERE gone_seq IS NOT NULL AND state IN ('deleted', 'dreamt');
CREATE INDEX entry_subject ON entry (tenant, subject) WHERE subject IS NOT NULL;
CREATE INDEX entry_expiry ON entry (tenant, expires_at) WHERE expires_at IS NOT NULL AND state <> 'erased';
CREATE INDEX entry_facets ON entry (tenant, ref, kind, actor, subject, expires_at)
  WHERE gone_seq IS NULL AND state <> 'draft';
CREATE INDEX entry_session ON entry (tenant, ref, session) WHERE gone_seq IS NULL AND session IS NOT NULL;
CREATE INDEX entry_pinned ON entry (tenant, ref) WHERE gone_seq IS NULL AND pinned;
CREATE INDEX entry_task ON entry (tenant, ref, iif(json_valid(attributes), json_extract(attributes, '$.intent.task_id'), NULL))
  WHERE gone_seq IS NULL AND iif(json_valid(attributes), json_extract(attributes, '$.intent.task_id'), NULL) IS NOT NULL;
CREATE INDEX entry_left ON entry (tenant, ref, state, archived) WHERE gone_seq IS NOT NULL;

-- Intervals in which an entry that was restored had been gone: reads as of a position inside one do not see it.
CREATE TABLE absence (
  tenant INTEGER NOT NULL,
  n INTEGER NOT NULL,
  gone_seq INTEGER NOT NULL,
  back_seq INTEGER NOT NULL,
  PRIMARY KEY (n, gone_seq)
) WITHOUT ROWID;

CREATE TABLE tag (
  tenant INTEGER NOT NULL,
  ref TEXT NOT NULL,
  tag TEXT NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY (tenant, ref, tag, n)
) WITHOUT ROWID;

CREATE TABLE link (
  tenant INTEGER NOT NULL,
  ref TEXT NOT NULL,
  from_id TEXT NOT NULL,
  type TEXT NOT NULL,
  to_id TEXT NOT NULL,
  note TEXT,
  n INTEGER NOT NULL,
  PRIMARY KEY (tenant, ref, from_id, type, to_id)
) WITHOUT ROWID;
CREATE INDEX link_to ON link (tenant, ref, to_id);

-- Append-only, hash-chained, without text. The triggers stop accidents; the chain shows the rest. n: the position in the
-- tenant's log, counted in a range of its own as positions of entries are.
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
CREATE INDEX event_type ON event (type, n);
CREATE TRIGGER event_is_final BEFORE UPDATE ON event BEGIN
  SELECT RAISE(ABORT, 'the event log is append-only');
END;
CREATE TRIGGER event_is_kept BEFORE DELETE ON event BEGIN
  SELECT RAISE(ABORT, 'the event log is append-only');
END;

-- Embedding models, by number.
CREATE TABLE model (
  k INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
);

-- Versioned state that is not memory. body is NULL in a tombstone.
CREATE TABLE document (
  tenant INTEGER NOT NULL,
  space TEXT NOT NULL,
  key TEXT NOT NULL,
  version INTEGER NOT NULL,
  body BLOB,
  meta TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (tenant, space, key, version)
);

CREATE TABLE answer (
  tenant INTEGER NOT NULL,
  key TEXT NOT NULL,
  digest TEXT NOT NULL,
  answer BLOB NOT NULL,
  until INTEGER NOT NULL,
  PRIMARY KEY (tenant, key)
) WITHOUT ROWID;

CREATE TABLE lease (
  tenant INTEGER NOT NULL,
  name TEXT NOT NULL,
  holder TEXT NOT NULL,
  until INTEGER NOT NULL,
  PRIMARY KEY (tenant, name)
) WITHOUT ROWID;

-- The events of a run; most events name none. Damaged data must not hide from `audit verify` behind an error here.
CREATE INDEX event_run ON event (iif(json_valid(data), json_extract(data, '$.run'), NULL))
  WHERE iif(json_valid(data), json_extract(data, '$.run'), NULL) IS NOT NULL;

-- What an entry is found by, in one row: its words, hashed under the tenant's key, and its vector (int8). seq: when it
-- was indexed; again: whether that was later than when it was stored. Rows lie in the order of their entries, so that
-- what came since can be read from the end; what was indexed again is found by the index.
CREATE TABLE recall (
  n INTEGER PRIMARY KEY,
  tenant INTEGER NOT NULL,
  ref TEXT NOT NULL,
  seq INTEGER NOT NULL,
  again INTEGER NOT NULL,
  words BLOB,
  model INTEGER,
  vector BLOB,
  cold INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX recall_again ON recall (tenant, ref, seq) WHERE again;
CREATE INDEX recall_cold ON recall (tenant, ref, seq) WHERE cold;

-- Whom entries are about: a keyed hash of each subject, folded, so that one look finds every spelling in every memory.
CREATE TABLE about (
  tenant INTEGER NOT NULL,
  who BLOB NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY (tenant, who, n)
) WITHOUT ROWID;

-- The last searches of a memory, for dreams to replay: one sealed row each, written over.
CREATE TABLE searches (
  tenant INTEGER NOT NULL,
  ref TEXT NOT NULL,
  body BLOB NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (tenant, ref)
) WITHOUT ROWID;
