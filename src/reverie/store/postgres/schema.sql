-- Every tenant in one schema. `tenant` leads every primary key, so that tables can be partitioned or distributed by it;
-- row security shows a transaction the rows of the tenant it named and no others, not even to the owner.
-- Text is compared by its bytes (COLLATE "C"): the order is the same on every machine and on SQLite.

CREATE SCHEMA IF NOT EXISTS reverie;

-- Above tenants.
CREATE TABLE reverie.setting (
  name text COLLATE "C" PRIMARY KEY,
  value bytea NOT NULL
);

CREATE TABLE reverie.api_key (
  id text COLLATE "C" PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL,
  digest bytea NOT NULL,
  name text NOT NULL,
  rights text NOT NULL,
  authority integer NOT NULL,
  scopes text NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint,
  revoked_at bigint
);

-- The head of a tenant's log. A write locks its row first, so commits are in the order of the log and tenants never
-- wait for each other. wake_at: when workers look at it next; 0 when that is not known yet.
CREATE TABLE reverie.tenant (
  n integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  log_key bytea NOT NULL,
  seq bigint NOT NULL,
  epoch bigint NOT NULL,
  hash bytea NOT NULL,
  entries bigint NOT NULL,
  bytes bigint NOT NULL,
  rules_seq bigint NOT NULL,
  position bigint NOT NULL,
  created_at bigint NOT NULL,
  wake_at bigint DEFAULT 0
) WITH (fillfactor = 50);
CREATE INDEX tenant_wake ON reverie.tenant (wake_at) WHERE wake_at IS NOT NULL;

-- n is the position: order of insertion, never used twice, since rows are never deleted. Every tenant counts in a range
-- of its own, so that no position tells how much another tenant writes. gone_seq: the entry left readable memory there.
-- scrub_seq: its text, or some of it, was destroyed there.
-- An id too long for an index is kept in long_id, and id holds its digest.
CREATE TABLE reverie.entry (
  tenant integer NOT NULL,
  n bigint NOT NULL,
  ref text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  long_id text,
  kind text COLLATE "C" NOT NULL,
  content text NOT NULL,
  tags text NOT NULL,
  subject text COLLATE "C",
  attributes text NOT NULL,
  actor text COLLATE "C" NOT NULL,
  role text,
  door text NOT NULL,
  session text COLLATE "C",
  run text COLLATE "C",
  node text,
  trust integer NOT NULL,
  state text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint,
  pinned boolean NOT NULL,
  archived boolean NOT NULL,
  held boolean NOT NULL,
  version bigint NOT NULL,
  born_seq bigint NOT NULL,
  epoch bigint NOT NULL,
  gone_seq bigint,
  gone_at bigint,
  scrub_seq bigint,
  -- A sum of the row, which the server writes with it: damage that its pages do not show is found by reading both.
  intact bigint GENERATED ALWAYS AS (
  hashtextextended((
    n::text || chr(31) ||
    ref || chr(31) ||
    id || chr(31) ||
    coalesce(long_id, '') || chr(31) ||
    kind || chr(31) ||
    content || chr(31) ||
    tags || chr(31) ||
    coalesce(subject, '') || chr(31) ||
    attributes || chr(31) ||
    actor || chr(31) ||
    coalesce(role, '') || chr(31) ||
    door || chr(31) ||
    coalesce(session, '') || chr(31) ||
    coalesce(run, '') || chr(31) ||
    coalesce(node, '') || chr(31) ||
    trust::text || chr(31) ||
    state || chr(31) ||
    created_at::text || chr(31) ||
    coalesce(expires_at::text, '') || chr(31) ||
    version::text || chr(31) ||
    born_seq::text || chr(31) ||
    epoch::text || chr(31) ||
    coalesce(gone_seq::text, '')
  ) COLLATE "C", 0)
  ) STORED,
  PRIMARY KEY (tenant, n)
);
CREATE UNIQUE INDEX entry_id ON reverie.entry (tenant, ref, id);
CREATE INDEX entry_live ON reverie.entry (tenant, ref, created_at, n) WHERE gone_seq IS NULL;
CREATE INDEX entry_gone ON reverie.entry (tenant, gone_seq) WHERE gone_seq IS NOT NULL;
CREATE INDEX entry_cold ON reverie.entry (tenant, state, gone_at) WHERE gone_seq IS NOT NULL AND state IN ('deleted', 'dreamt');
CREATE INDEX entry_subject ON reverie.entry (tenant, subject, n) WHERE subject IS NOT NULL;
CREATE INDEX entry_expiry ON reverie.entry (tenant, expires_at) WHERE expires_at IS NOT NULL AND state <> 'erased';
CREATE INDEX entry_scrub ON reverie.entry (tenant, ref, scrub_seq) WHERE scrub_seq IS NOT NULL;
CREATE INDEX entry_kind ON reverie.entry (tenant, ref, kind) WHERE gone_seq IS NULL;
CREATE INDEX entry_actor ON reverie.entry (tenant, ref, actor) WHERE gone_seq IS NULL;
CREATE INDEX entry_session ON reverie.entry (tenant, ref, session) WHERE gone_seq IS NULL AND session IS NOT NULL;
CREATE INDEX entry_pinned ON reverie.entry (tenant, ref) WHERE gone_seq IS NULL AND pinned;
CREATE FUNCTION reverie.task_of(attributes text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN attributes LIKE '%"task_id"%' AND attributes NOT LIKE '%\\u0000%'
    THEN attributes::jsonb #>> '{intent,task_id}' END
$$;
CREATE INDEX entry_task ON reverie.entry (tenant, ref, reverie.task_of(attributes))
WHERE gone_seq IS NULL AND reverie.task_of(attributes) IS NOT NULL;
CREATE INDEX entry_left ON reverie.entry (tenant, ref, state, archived) WHERE gone_seq IS NOT NULL;

-- Intervals in which an entry that was restored had been gone: reads as of a position inside one do not see it.
CREATE TABLE reverie.absence (
  tenant integer NOT NULL,
  n bigint NOT NULL,
  gone_seq bigint NOT NULL,
  back_seq bigint NOT NULL,
  PRIMARY KEY (tenant, n, gone_seq)
);

CREATE TABLE reverie.tag (
  tenant integer NOT NULL,
  ref text COLLATE "C" NOT NULL,
  tag text COLLATE "C" NOT NULL,
  n bigint NOT NULL,
  PRIMARY KEY (tenant, ref, tag, n)
);

-- Ends too long for an index: as for entries.
CREATE TABLE reverie.link (
  tenant integer NOT NULL,
  ref text COLLATE "C" NOT NULL,
  from_id text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  to_id text COLLATE "C" NOT NULL,
  long_from text,
  long_to text,
  note text,
  n bigint NOT NULL,
  intact bigint GENERATED ALWAYS AS (
    hashtextextended((
      ref || chr(31) || from_id || chr(31) || type || chr(31) || to_id || chr(31) ||
      coalesce(long_from, '') || chr(31) || coalesce(long_to, '') || chr(31) || coalesce(note, '') || chr(31) || n::text
    ) COLLATE "C", 0)
  ) STORED,
  PRIMARY KEY (tenant, ref, from_id, type, to_id)
);
CREATE INDEX link_to ON reverie.link (tenant, ref, to_id);

-- Whom entries are about: a keyed hash of each subject, folded, so that one look finds every spelling in every memory.
CREATE TABLE reverie.about (
  tenant integer NOT NULL,
  who bytea NOT NULL,
  n bigint NOT NULL,
  PRIMARY KEY (tenant, who, n)
);

-- Append-only, hash-chained, without text. The trigger stops accidents; the chain shows the rest. run: as in data.
CREATE TABLE reverie.event (
  tenant integer NOT NULL,
  seq bigint NOT NULL,
  epoch bigint NOT NULL,
  at bigint NOT NULL,
  type text COLLATE "C" NOT NULL,
  operation text NOT NULL,
  actor text NOT NULL,
  session text,
  entry_id text,
  conflict_id text,
  task_id text,
  data text NOT NULL,
  prev_hash bytea NOT NULL,
  hash bytea NOT NULL,
  run text COLLATE "C",
  PRIMARY KEY (tenant, seq)
);
CREATE INDEX event_run ON reverie.event (tenant, run, seq) WHERE run IS NOT NULL;
CREATE INDEX event_type ON reverie.event (tenant, type, seq);
CREATE FUNCTION reverie.event_is_final() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the event log is append-only';
END
$$;
CREATE TRIGGER event_is_final BEFORE UPDATE OR DELETE ON reverie.event
FOR EACH ROW EXECUTE FUNCTION reverie.event_is_final();

-- What an entry is found by, in one row: its words, hashed under the tenant's key, and its vector (int8). seq: when it
-- was indexed; again: whether that was later than when it was stored. What came since is read from the end; what was
-- indexed again by the index.
CREATE TABLE reverie.recall (
  tenant integer NOT NULL,
  ref text COLLATE "C" NOT NULL,
  n bigint NOT NULL,
  seq bigint NOT NULL,
  again boolean NOT NULL,
  words bytea,
  model text COLLATE "C",
  vector bytea,
  intact bytea GENERATED ALWAYS AS (
    substr(sha256(coalesce(words, '') || '\x1f'::bytea || coalesce(vector, '')), 1, 8)
  ) STORED,
  cold boolean NOT NULL DEFAULT false,
  PRIMARY KEY (tenant, ref, n)
);
CREATE INDEX recall_again ON reverie.recall (tenant, ref, seq) WHERE again;
CREATE INDEX recall_cold ON reverie.recall (tenant, ref, seq) WHERE cold;
-- vectors do not shrink: trying costs time
ALTER TABLE reverie.recall ALTER COLUMN vector SET STORAGE EXTERNAL, ALTER COLUMN words SET STORAGE EXTERNAL;

-- Versioned state that is not memory. body is NULL in a tombstone.
CREATE TABLE reverie.document (
  tenant integer NOT NULL,
  space text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  body bytea,
  meta text NOT NULL,
  updated_at bigint NOT NULL,
  seq bigint NOT NULL,
  intact bytea GENERATED ALWAYS AS (
    substr(sha256(coalesce(body, '')), 1, 8)
  ) STORED,
  PRIMARY KEY (tenant, space, key, version)
);

CREATE TABLE reverie.answer (
  tenant integer NOT NULL,
  key text COLLATE "C" NOT NULL,
  digest text NOT NULL,
  answer bytea NOT NULL,
  until bigint NOT NULL,
  PRIMARY KEY (tenant, key)
);
CREATE INDEX answer_until ON reverie.answer (tenant, until);

-- The last searches of a memory, for dreams to replay: one sealed row each, written over.
CREATE TABLE reverie.searches (
  tenant integer NOT NULL,
  ref text COLLATE "C" NOT NULL,
  body bytea NOT NULL,
  at bigint NOT NULL,
  PRIMARY KEY (tenant, ref)
);

CREATE TABLE reverie.lease (
  tenant integer NOT NULL,
  name text COLLATE "C" NOT NULL,
  holder text NOT NULL,
  until bigint NOT NULL,
  PRIMARY KEY (tenant, name)
);

-- The second wall. A transaction names its tenant (reverie.name); the head it finds names the number (reverie.tenant).
-- Without either nothing is seen and nothing can be stored. Control sees the list of tenants and nothing of theirs.
ALTER TABLE reverie.tenant ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON reverie.tenant USING (name = current_setting('reverie.name', true));
CREATE POLICY list ON reverie.tenant FOR SELECT USING (current_setting('reverie.control', true) = 'on');
DO $$
DECLARE
  part text;
BEGIN
  FOREACH part IN ARRAY ARRAY['entry', 'absence', 'tag', 'link', 'about', 'event', 'recall', 'document',
    'answer', 'searches', 'lease']
  LOOP
    EXECUTE format('ALTER TABLE reverie.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', part);
    EXECUTE format('CREATE POLICY own ON reverie.%I USING '
      '(tenant = nullif(current_setting(''reverie.tenant'', true), '''')::integer)', part);
  END LOOP;
END
$$;
