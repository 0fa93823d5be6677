-- Every query of the SQLite store. {columns}, {brief} and {filter} stand for the fragments at the top.

-- name: columns
-- An entry, in the order rows.py reads it.
e.n, e.ref, e.id, e.kind, e.content, e.tags, e.subject, e.attributes, e.actor, e.role, e.door, e.session, e.run,
e.node, e.trust, e.state, e.created_at, e.expires_at, e.pinned, e.archived, e.held,
e.version, e.born_seq, e.epoch, e.gone_seq

-- name: brief
-- The columns of an entry that a ranking needs, in the order of Brief.
e.n, e.id, e.created_at, e.content, e.actor, e.session, e.subject, e.role

-- name: filter
-- Conditions of a Filter on an entry. Absent parts are NULL.
e.state IN (SELECT value FROM json_each(:states))
AND (:archived IS NULL OR e.archived = :archived)
AND (:expired IS NULL OR (e.expires_at IS NOT NULL AND e.expires_at <= :now) = :expired)
AND (:kinds IS NULL OR e.kind IN (SELECT value FROM json_each(:kinds)))
AND (:subject IS NULL OR e.subject = :subject)
AND (:actor IS NULL OR e.actor = :actor)
AND (:session IS NULL OR e.session = :session)
AND (:sessionless IS NULL OR e.session IS NULL)
AND (:hidden IS NULL OR e.session IS NULL OR (
  e.session NOT IN (SELECT value FROM json_each(:hidden, '$.sessions'))
  AND (e.session, e.kind) NOT IN (
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(:hidden, '$.kinds'))
  AND (e.session NOT IN (SELECT value FROM json_each(:hidden, '$.others'))
    OR e.kind IN (SELECT value FROM json_each(:hidden, '$.known')))))
AND (:without_kinds IS NULL OR e.kind NOT IN (SELECT value FROM json_each(:without_kinds)))
AND (:not_actor IS NULL OR e.actor <> :not_actor OR e.born_seq < :not_from)
AND (:since_epoch IS NULL OR e.epoch >= :since_epoch)
AND (:run IS NULL OR e.run = :run)
AND (:task IS NULL OR iif(json_valid(e.attributes), json_extract(e.attributes, '$.intent.task_id'), NULL) = :task)
AND (:pinned IS NULL OR e.pinned = :pinned)
AND (:since IS NULL OR e.created_at >= :since)
AND (:until IS NULL OR e.created_at < :until)
AND (:tags IS NULL OR NOT EXISTS (
  SELECT 1 FROM json_each(:tags) AS wanted WHERE NOT EXISTS (
    SELECT 1 FROM tag WHERE tag.tenant = e.tenant AND tag.ref = e.ref AND tag.tag = wanted.value AND tag.n = e.n)))
AND (:any_tags IS NULL OR EXISTS (
  SELECT 1 FROM json_each(:any_tags) AS wanted CROSS JOIN tag
  ON tag.tenant = e.tenant AND tag.ref = e.ref AND tag.tag = wanted.value AND tag.n = e.n))

-- name: readable
-- The conditions of the Filter of nearly every read.
e.state IN ('active', 'contested', 'pending_enrichment') AND e.archived = 0
AND (e.expires_at IS NULL OR e.expires_at > :now)

-- name: get
-- One entry of a ref by id.
SELECT {columns} FROM entry AS e
WHERE e.tenant = :tenant AND e.ref = :ref AND e.id = :id AND (:gone OR e.gone_seq IS NULL) AND {filter}

-- name: get_as_of
-- One entry of a ref by id, as readable at a log position.
SELECT {columns} FROM entry AS e
WHERE e.tenant = :tenant AND e.ref = :ref AND e.id = :id
AND e.born_seq <= :as_of AND (e.gone_seq IS NULL OR e.gone_seq > :as_of)
AND NOT EXISTS (SELECT 1 FROM absence AS a WHERE a.n = e.n AND a.gone_seq <= :as_of AND a.back_seq > :as_of)
AND {filter}

-- name: get_any
-- One entry of a ref by id, whatever its state.
SELECT {columns} FROM entry AS e WHERE e.tenant = ? AND e.ref = ? AND e.id = ?

-- name: scan_newest
-- Readable entries of a ref, newest first.
SELECT {columns} FROM entry AS e
WHERE e.tenant = :tenant AND e.ref = :ref AND e.gone_seq IS NULL AND (e.created_at, e.n) < (:at, :n) AND {filter}
ORDER BY e.created_at DESC, e.n DESC LIMIT :limit

-- name: scan_oldest
-- Readable entries of a ref, oldest first.
SELECT {columns} FROM entry AS e
WHERE e.tenant = :tenant AND e.ref = :ref AND e.gone_seq IS NULL AND (e.created_at, e.n) > (:at, :n) AND {filter}
ORDER BY e.created_at, e.n LIMIT :limit

-- name: scan_tag
-- Readable entries of a ref that have a tag, newest first: led by the tag, so that rare tags are found at once.
SELECT {columns} FROM tag AS led CROSS JOIN entry AS e ON e.n = led.n
WHERE led.tenant = :tenant AND led.ref = :ref AND led.tag = :tag
AND e.tenant = :tenant AND e.gone_seq IS NULL AND (e.created_at, e.n) < (:at, :n) AND {filter}
ORDER BY e.created_at DESC, e.n DESC LIMIT :limit

-- name: scan_task
-- Readable entries of a task, newest first: led by the task.
SELECT {columns} FROM entry AS e INDEXED BY entry_task
WHERE e.tenant = :tenant AND e.ref = :ref AND e.gone_seq IS NULL
AND iif(json_valid(e.attributes), json_extract(e.attributes, '$.intent.task_id'), NULL) IS NOT NULL
AND iif(json_valid(e.attributes), json_extract(e.attributes, '$.intent.task_id'), NULL) = :task
AND (e.created_at, e.n) < (:at, :n) AND {filter}
ORDER BY e.created_at DESC, e.n DESC LIMIT :limit

-- name: scan_as_of
-- Entries of a ref as readable at a log position, newest first: those still readable, and those that left since.
SELECT * FROM (
  SELECT {columns} FROM entry AS e
  WHERE e.tenant = :tenant AND e.ref = :ref AND e.gone_seq IS NULL AND e.born_seq <= :as_of
  AND (e.created_at, e.n) < (:at, :n)
  AND NOT EXISTS (SELECT 1 FROM absence AS a WHERE a.n = e.n AND a.gone_seq <= :as_of AND a.back_seq > :as_of)
  AND {filter}
  UNION ALL
  SELECT {columns} FROM entry AS e
  WHERE e.tenant = :tenant AND e.ref = :ref AND e.gone_seq > :as_of AND e.born_seq <= :as_of
  AND (e.created_at, e.n) < (:at, :n)
  AND NOT EXISTS (SELECT 1 FROM absence AS a WHERE a.n = e.n AND a.gone_seq <= :as_of AND a.back_seq > :as_of)
  AND {filter}
) ORDER BY created_at DESC, n DESC LIMIT :limit

-- name: scan_all
-- Every row of a tenant (or of one ref), readable or not, in order of insertion. Walked by position, in the tenant's
-- range: by an index on the tenant every page would sort all of its rows.
SELECT {columns} FROM entry AS e
WHERE +e.tenant = :tenant AND (:ref IS NULL OR e.ref = :ref) AND (:gone OR e.gone_seq IS NULL)
AND e.n > max(:n, :base) AND e.n <= :top AND {filter}
ORDER BY e.n LIMIT :limit

-- name: scan_subject
-- Every row of a tenant about a subject, in order of insertion.
SELECT {columns} FROM entry AS e INDEXED BY entry_subject
WHERE e.tenant = :tenant AND e.subject = :subject AND (:ref IS NULL OR e.ref = :ref)
AND (:gone OR e.gone_seq IS NULL) AND e.n > :n AND {filter}
ORDER BY e.n LIMIT :limit

-- name: about
-- Entries about a subject with or without text, in order of insertion.
SELECT {columns} FROM about AS a CROSS JOIN entry AS e ON e.n = a.n
WHERE a.tenant = :tenant AND a.who = :who AND e.tenant = :tenant ORDER BY a.n

-- name: scan_expired
-- Entries of a tenant that passed their expiry and still have text, in order of insertion.
SELECT {columns} FROM entry AS e INDEXED BY entry_expiry
WHERE e.tenant = :tenant AND e.expires_at <= :now AND e.state <> 'erased' AND (:ref IS NULL OR e.ref = :ref)
AND (:gone OR e.gone_seq IS NULL) AND e.n > :n AND {filter}
ORDER BY e.n LIMIT :limit

-- name: scan_cold
-- Deleted or dreamt entries that left readable memory before an instant, the first to leave first: files, or all others.
SELECT {columns} FROM entry AS e INDEXED BY entry_cold
WHERE e.tenant = ? AND e.state = ? AND e.state IN ('deleted', 'dreamt') AND e.gone_seq IS NOT NULL AND e.gone_at <= ?
AND e.archived = 0 AND e.held = 0 AND (e.kind = 'file') = ?
ORDER BY e.gone_at, e.n LIMIT ?

-- name: scan_left
-- Entries of a ref that left readable memory, the last to leave first.
SELECT {columns} FROM entry AS e INDEXED BY entry_gone
WHERE e.tenant = :tenant AND e.gone_seq IS NOT NULL AND e.ref = :ref AND {filter}
ORDER BY e.gone_seq DESC LIMIT :limit

-- name: count
-- Number of matching entries.
SELECT count(*) FROM entry AS e
WHERE e.tenant = :tenant AND (:ref IS NULL OR e.ref = :ref) AND (:gone OR e.gone_seq IS NULL) AND {filter}

-- name: count_live
-- Number of entries of a ref that are not gone.
SELECT count(*) FROM entry AS e INDEXED BY entry_live WHERE e.tenant = :tenant AND e.ref = :ref AND e.gone_seq IS NULL

-- name: count_left
-- Number of entries of a ref that are gone, by state.
SELECT count(*) FROM entry AS e INDEXED BY entry_left
WHERE e.tenant = :tenant AND e.ref = :ref AND e.gone_seq IS NOT NULL
AND e.state IN (SELECT value FROM json_each(:states)) AND (:archived IS NULL OR e.archived = :archived)

-- name: count_readable
-- The same for readable entries of a ref by kind and actor, from an index alone: what is not gone is in a readable state,
-- or a draft.
SELECT count(*) FROM entry AS e INDEXED BY entry_facets
WHERE e.tenant = :tenant AND e.ref = :ref AND e.gone_seq IS NULL AND e.state <> 'draft'
AND (e.expires_at IS NULL OR e.expires_at > :now)
AND (:kinds IS NULL OR e.kind IN (SELECT value FROM json_each(:kinds)))
AND (:without_kinds IS NULL OR e.kind NOT IN (SELECT value FROM json_each(:without_kinds)))
AND (:actor IS NULL OR e.actor = :actor)

-- name: count_hot
-- All readable entries of a ref, including expired ones. Nothing is compared, so it takes half as long.
SELECT count(*) FROM entry AS e INDEXED BY entry_facets
WHERE e.tenant = :tenant AND e.ref = :ref AND e.gone_seq IS NULL AND e.state <> 'draft'

-- name: count_expired
-- The number of expired ones among them.
SELECT count(*) FROM entry AS e INDEXED BY entry_expiry
WHERE e.tenant = :tenant AND e.expires_at <= :now AND e.expires_at IS NOT NULL AND e.state <> 'erased'
AND e.ref = :ref AND e.gone_seq IS NULL AND e.state <> 'draft'

-- name: count_by
-- The number that an actor wrote from a log position on, kind by kind, by an index. Comparing the actor of every entry
-- takes as long as counting all.
WITH RECURSIVE named (kind) AS (
  SELECT min(kind) FROM entry INDEXED BY entry_facets
  WHERE tenant = :tenant AND ref = :ref AND gone_seq IS NULL AND state <> 'draft'
  UNION ALL
  SELECT (SELECT min(kind) FROM entry INDEXED BY entry_facets
    WHERE tenant = :tenant AND ref = :ref AND kind > named.kind AND gone_seq IS NULL AND state <> 'draft')
  FROM named WHERE named.kind IS NOT NULL
)
SELECT count(*) FROM named CROSS JOIN entry AS e INDEXED BY entry_facets
WHERE e.tenant = :tenant AND e.ref = :ref AND e.kind = named.kind AND e.actor = :not_actor
AND e.gone_seq IS NULL AND e.state <> 'draft'
AND (e.expires_at IS NULL OR e.expires_at > :now)
AND (:kinds IS NULL OR e.kind IN (SELECT value FROM json_each(:kinds)))
AND (:without_kinds IS NULL OR e.kind NOT IN (SELECT value FROM json_each(:without_kinds)))
AND (:actor IS NULL OR e.actor = :actor)
AND e.born_seq >= :not_from

-- name: count_in_sessions
-- The number of entries with a session among them.
SELECT count(*) FROM entry AS e INDEXED BY entry_session
WHERE e.tenant = :tenant AND e.ref = :ref AND e.gone_seq IS NULL AND e.session IS NOT NULL AND e.state <> 'draft'
AND (e.expires_at IS NULL OR e.expires_at > :now)
AND (:kinds IS NULL OR e.kind IN (SELECT value FROM json_each(:kinds)))
AND (:without_kinds IS NULL OR e.kind NOT IN (SELECT value FROM json_each(:without_kinds)))
AND (:actor IS NULL OR e.actor = :actor)
AND (:not_actor IS NULL OR e.actor <> :not_actor OR e.born_seq < :not_from)

-- name: refs
-- The memories of a tenant in a range of names, with the number of readable entries.
SELECT ref, count(*) FROM entry INDEXED BY entry_facets WHERE tenant = ? AND ref >= ? AND ref < ? AND gone_seq IS NULL AND state <> 'draft'
AND (expires_at IS NULL OR expires_at > ?) GROUP BY ref ORDER BY ref

-- name: ids
-- The ids of a memory in a range.
SELECT id FROM entry INDEXED BY entry_id WHERE tenant = ? AND ref = ? AND id >= ? AND id < ?
AND state NOT IN ('draft', 'erased') ORDER BY id LIMIT ?

-- name: pick
-- Entries at the given positions that match.
SELECT {columns} FROM json_each(:positions) AS p CROSS JOIN entry AS e ON e.n = p.value
WHERE e.tenant = :tenant AND e.ref = :ref AND (:gone OR e.gone_seq IS NULL) AND {filter}

-- name: pick_briefs
-- The same entries, in brief.
SELECT {brief} FROM json_each(:positions) AS p CROSS JOIN entry AS e ON e.n = p.value
WHERE e.tenant = :tenant AND e.ref = :ref AND (:gone OR e.gone_seq IS NULL) AND {filter}

-- name: foremost
-- The first entries in the order of the given positions that match, in brief.
SELECT {brief} FROM json_each(:positions) AS p CROSS JOIN entry AS e ON e.n = p.value
WHERE e.tenant = :tenant AND e.ref = :ref AND (:gone OR e.gone_seq IS NULL) AND {filter} LIMIT :limit

-- name: passing
-- Positions of a ref that match, led by time.
SELECT e.n FROM entry AS e INDEXED BY entry_live
WHERE e.tenant = :tenant AND e.ref = :ref AND e.gone_seq IS NULL AND e.created_at >= :first AND e.created_at < :last
AND {filter}

-- name: passing_subject
-- The same, led by a subject.
SELECT e.n FROM entry AS e INDEXED BY entry_subject
WHERE e.tenant = :tenant AND e.subject = :subject AND e.ref = :ref AND e.gone_seq IS NULL AND {filter}

-- name: passing_session
-- The same, led by a session.
SELECT e.n FROM entry AS e INDEXED BY entry_session
WHERE e.tenant = :tenant AND e.ref = :ref AND e.session = :session AND e.gone_seq IS NULL AND {filter}

-- name: passing_pinned
-- The same, led by pins.
SELECT e.n FROM entry AS e INDEXED BY entry_pinned
WHERE e.tenant = :tenant AND e.ref = :ref AND e.pinned AND e.gone_seq IS NULL AND {filter}

-- name: passing_kinds
-- The same, led by kinds. Drafts are left out.
SELECT e.n FROM json_each(:kinds) AS k CROSS JOIN entry AS e INDEXED BY entry_facets
WHERE e.tenant = :tenant AND e.ref = :ref AND e.kind = k.value AND e.gone_seq IS NULL AND e.state <> 'draft' AND {filter}

-- name: passing_actor
-- The same, led by an actor, kind by kind.
WITH RECURSIVE k (kind) AS (
  SELECT min(kind) FROM entry INDEXED BY entry_facets
  WHERE tenant = :tenant AND ref = :ref AND gone_seq IS NULL AND state <> 'draft'
  UNION ALL
  SELECT (SELECT min(kind) FROM entry INDEXED BY entry_facets
    WHERE tenant = :tenant AND ref = :ref AND kind > k.kind AND gone_seq IS NULL AND state <> 'draft')
  FROM k WHERE k.kind IS NOT NULL
)
SELECT e.n FROM k CROSS JOIN entry AS e INDEXED BY entry_facets
WHERE e.tenant = :tenant AND e.ref = :ref AND e.kind = k.kind AND e.actor = :actor AND e.gone_seq IS NULL
AND e.state <> 'draft' AND {filter}

-- name: passing_tags
-- The same, led by tags: entries that have at least a number of them.
SELECT e.n FROM (
  SELECT n FROM tag WHERE tenant = :tenant AND ref = :ref AND tag IN (SELECT value FROM json_each(:led))
  GROUP BY n HAVING count(*) >= :least
) AS tagged CROSS JOIN entry AS e ON e.n = tagged.n
WHERE e.tenant = :tenant AND e.ref = :ref AND e.gone_seq IS NULL AND {filter}

-- name: before
-- The readable entry before each position in its ref, by time and then by insertion. The same instant is searched first
-- and then earlier ones: one comparison of (created_at, n) would walk all entries of the instant.
SELECT p.value,
  coalesce(
    (SELECT b.n FROM entry AS b WHERE b.tenant = e.tenant AND b.ref = e.ref AND b.gone_seq IS NULL
     AND b.created_at = e.created_at AND b.n < e.n AND b.state <> 'draft'
     AND (b.expires_at IS NULL OR b.expires_at > :now) ORDER BY b.n DESC LIMIT 1),
    (SELECT b.n FROM entry AS b WHERE b.tenant = e.tenant AND b.ref = e.ref AND b.gone_seq IS NULL
     AND b.created_at < e.created_at AND b.state <> 'draft'
     AND (b.expires_at IS NULL OR b.expires_at > :now) ORDER BY b.created_at DESC, b.n DESC LIMIT 1))
FROM json_each(:positions) AS p CROSS JOIN entry AS e ON e.n = p.value
WHERE e.tenant = :tenant AND e.ref = :ref

-- name: after
-- The readable entry after each position.
SELECT p.value,
  coalesce(
    (SELECT a.n FROM entry AS a WHERE a.tenant = e.tenant AND a.ref = e.ref AND a.gone_seq IS NULL
     AND a.created_at = e.created_at AND a.n > e.n AND a.state <> 'draft'
     AND (a.expires_at IS NULL OR a.expires_at > :now) ORDER BY a.n LIMIT 1),
    (SELECT a.n FROM entry AS a WHERE a.tenant = e.tenant AND a.ref = e.ref AND a.gone_seq IS NULL
     AND a.created_at > e.created_at AND a.state <> 'draft'
     AND (a.expires_at IS NULL OR a.expires_at > :now) ORDER BY a.created_at, a.n LIMIT 1))
FROM json_each(:positions) AS p CROSS JOIN entry AS e ON e.n = p.value
WHERE e.tenant = :tenant AND e.ref = :ref

-- name: index_rows
-- Index rows of a memory: rows beyond a position, and those up to it that were indexed again after a log position.
SELECT r.n, r.words, r.vector, (SELECT name FROM model WHERE k = r.model) FROM entry AS e INDEXED BY entry_live CROSS JOIN recall AS r ON r.n = e.n
WHERE e.tenant = :tenant AND e.ref = :ref AND e.gone_seq IS NULL AND e.n > :after
UNION ALL
SELECT n, words, vector, (SELECT name FROM model WHERE k = recall.model) FROM recall INDEXED BY recall_again
WHERE tenant = :tenant AND ref = :ref AND again AND seq > :since AND n <= :after AND NOT cold

-- name: index_new
-- The same, read from the end of the rows of all memories of the tenant: for when few are new.
SELECT n, words, vector, (SELECT name FROM model WHERE k = recall.model) FROM recall WHERE n > max(:after, :first) AND n <= :last AND tenant = :tenant AND ref = :ref AND NOT cold
UNION ALL
SELECT n, words, vector, (SELECT name FROM model WHERE k = recall.model) FROM recall INDEXED BY recall_again
WHERE tenant = :tenant AND ref = :ref AND again AND seq > :since AND n <= :after AND NOT cold

-- name: cold_rows
-- Index rows of the sources of dreams that came to cold storage, or were indexed again there, after a log position.
SELECT n, words, vector, (SELECT name FROM model WHERE k = recall.model) FROM recall INDEXED BY recall_cold
WHERE tenant = :tenant AND ref = :ref AND cold AND seq > :since

-- name: cold_positions
-- All sources of dreams of a memory that have an index row.
SELECT n FROM recall INDEXED BY recall_cold WHERE tenant = :tenant AND ref = :ref AND cold

-- name: cold_returned
-- Entries of a memory that were indexed again as readable ones after a log position.
SELECT n FROM recall INDEXED BY recall_again WHERE tenant = :tenant AND ref = :ref AND again AND seq > :since AND NOT cold

-- name: named
-- The entries that events of some types name, after a log position.
SELECT DISTINCT entry_id FROM event INDEXED BY event_type
WHERE type IN (SELECT value FROM json_each(:types)) AND n > :first + :since AND n <= :last AND entry_id IS NOT NULL

-- name: not_cold
-- The entries of a memory with these ids that are not in the index of cold storage.
SELECT e.n FROM json_each(:ids) AS wanted CROSS JOIN entry AS e INDEXED BY entry_id
WHERE e.tenant = :tenant AND e.ref = :ref AND e.id = wanted.value
AND NOT EXISTS (SELECT 1 FROM recall AS r WHERE r.n = e.n AND r.cold)

-- name: index_gone
-- Entries of a memory that left it after a log position.
SELECT n FROM entry INDEXED BY entry_gone WHERE tenant = :tenant AND gone_seq > :since AND ref = :ref

-- name: index_state
-- The number of readable entries, and of those with a vector of a model.
SELECT count(*), count(r.n) FROM entry AS e
LEFT JOIN recall AS r ON r.n = e.n
AND r.model = (SELECT k FROM model WHERE name = :model)
WHERE e.tenant = :tenant AND (:ref IS NULL OR e.ref = :ref) AND e.gone_seq IS NULL AND e.state <> 'draft'
AND (e.expires_at IS NULL OR e.expires_at > :now)

-- name: unembedded
-- Readable entries and sources of dreams without a vector of a model.
SELECT {columns} FROM entry AS e
LEFT JOIN recall AS r ON r.n = e.n
AND r.model = (SELECT k FROM model WHERE name = :model)
WHERE e.tenant = :tenant AND (:ref IS NULL OR e.ref = :ref) AND (e.gone_seq IS NULL OR e.state = 'dreamt')
AND r.n IS NULL AND e.state <> 'draft' AND (e.expires_at IS NULL OR e.expires_at > :now)
ORDER BY e.n LIMIT :limit

-- name: tenant
-- A tenant by name.
SELECT n, log_key, seq, epoch, hash, entries, bytes, rules_seq FROM tenant WHERE name = ?

-- name: wake
-- Wake a tenant at an instant, or earlier if that was planned.
UPDATE tenant SET wake_at = :at WHERE n = :tenant AND (wake_at IS NULL OR wake_at > :at)

-- name: wake_exactly
-- Wake a tenant at an instant and not earlier.
UPDATE tenant SET wake_at = :at WHERE n = :tenant AND wake_at IS NOT :at

-- name: tenant_to_write
-- The same, and the last position used in its range of 2^40.
SELECT n, log_key, seq, epoch, hash, entries, bytes, rules_seq,
(SELECT max(e.n) FROM entry AS e WHERE e.n > (t.n - 1) << 40 AND e.n <= t.n << 40) FROM tenant AS t WHERE name = ?

-- name: tenants
-- Every tenant.
SELECT name FROM tenant ORDER BY name

-- name: awake
-- Tenants that are due.
SELECT name FROM tenant WHERE wake_at <= ? ORDER BY wake_at, n

-- name: add_tenant
-- Add a tenant with an empty log.
INSERT INTO tenant (name, log_key, seq, epoch, hash, entries, bytes, rules_seq, created_at)
VALUES (?, ?, 0, 0, ?, 0, 0, 0, ?)

-- name: set_head
-- Move the tip of a tenant's log.
UPDATE tenant SET seq = ?, epoch = ?, hash = ?, entries = ?, bytes = ?, rules_seq = ? WHERE n = ?

-- name: add_event
-- Append to the log.
INSERT INTO event (n, epoch, at, type, operation, actor, session, entry_id, conflict_id, task_id, data, prev_hash, hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: add_entry
-- Store an entry.
INSERT INTO entry (n, tenant, ref, id, kind, content, tags, subject, attributes, actor, role, door, session, run, node,
trust, state, created_at, expires_at, pinned, archived, held, version, born_seq, epoch)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: add_recall
-- Index row of a new entry.
INSERT INTO recall (tenant, ref, n, seq, again, words, model, vector) VALUES (?, ?, ?, ?, ?, ?, ?, ?)

-- name: set_recall
-- Index an entry again; words or vector that are not given stay.
INSERT INTO recall (tenant, ref, n, seq, again, cold, words, model, vector) VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?)
ON CONFLICT (n) DO UPDATE SET seq = excluded.seq, again = 1, cold = excluded.cold, words = coalesce(excluded.words, words),
model = coalesce(excluded.model, model), vector = coalesce(excluded.vector, vector)

-- name: cool_recall
-- Mark the index row of an entry that became the source of a dream.
UPDATE recall SET cold = 1, seq = ? WHERE tenant = ? AND ref = ? AND n = ?

-- name: drop_recall
-- Take an entry out of the index.
DELETE FROM recall WHERE tenant = ? AND ref = ? AND n = ?

-- name: add_tag
-- Tag an entry.
INSERT OR IGNORE INTO tag (tenant, ref, tag, n) VALUES (?, ?, ?, ?)

-- name: drop_tag
-- Take a tag off an entry.
DELETE FROM tag WHERE tenant = ? AND ref = ? AND tag = ? AND n = ?

-- name: add_about
-- List an entry under a subject.
INSERT OR IGNORE INTO about (tenant, who, n) VALUES (?, ?, ?)

-- name: drop_about
-- Remove an entry from under a subject.
DELETE FROM about WHERE tenant = ? AND who = ? AND n = ?

-- name: model
-- The number of an embedding model.
SELECT k FROM model WHERE name = ?

-- name: add_model
-- Add an embedding model.
INSERT INTO model (name) VALUES (?) RETURNING k

-- name: change
-- Change mutable fields of an entry.
UPDATE entry SET state = ?, archived = ?, pinned = ?, held = ?, attributes = ?, expires_at = ?, version = ?,
gone_seq = ?, gone_at = CASE WHEN ? THEN NULL ELSE coalesce(?, gone_at) END
WHERE tenant = ? AND n = ?

-- name: rewrite
-- Replace the text of an entry by a more redacted one.
UPDATE entry SET kind = :kind, content = :content, tags = :tags, subject = :subject, attributes = :attributes,
actor = :actor, role = :role, session = :session, run = :run, node = :node, version = :version
WHERE tenant = :tenant AND n = :n

-- name: purge
-- Destroy the text of an entry; the row stays so that the id is never used again. A row that only shrinks leaves its page
-- nearly empty for good; taking it out and putting it back makes SQLite join such pages.
UPDATE entry SET content = '', tags = '[]', subject = NULL, attributes = '{{}}', actor = '', role = NULL,
session = NULL, run = NULL, node = NULL, state = 'erased', pinned = 0, version = version + 1,
gone_seq = coalesce(gone_seq, :seq), gone_at = coalesce(gone_at, :now) WHERE tenant = :tenant AND n = :n;
UPDATE entry SET n = -n WHERE tenant = :tenant AND n = :n;
UPDATE entry SET n = -n WHERE tenant = :tenant AND n = -:n

-- name: add_absence
-- Record the interval in which a restored entry was gone.
INSERT OR REPLACE INTO absence (tenant, n, gone_seq, back_seq) VALUES (?, ?, ?, ?)

-- name: drop_notes
-- Remove the notes on the links of an entry: they are text about it.
UPDATE link SET note = NULL WHERE tenant = :tenant AND ref = :ref AND (from_id = :id OR to_id = :id) AND note IS NOT NULL

-- name: id_taken
-- Whether a ref has, or had, an entry of this id.
SELECT 1 FROM entry WHERE tenant = ? AND ref = ? AND id = ?

-- name: add_link
-- Add a link between two entries.
INSERT OR IGNORE INTO link (tenant, ref, from_id, type, to_id, note, n)
VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: links_from
-- Links that start at some entries.
SELECT from_id, to_id, type, note FROM link
WHERE tenant = ? AND ref = ? AND from_id IN (SELECT value FROM json_each(?)) ORDER BY n

-- name: links_to
-- Links that end at some entries.
SELECT from_id, to_id, type, note FROM link INDEXED BY link_to
WHERE tenant = ? AND ref = ? AND to_id IN (SELECT value FROM json_each(?)) ORDER BY from_id, type, to_id

-- name: read_log
-- Events after a position.
SELECT n - :first, epoch, at, type, operation, actor, session, entry_id, conflict_id, task_id, data, prev_hash, hash
FROM event WHERE n > :first + :after AND n <= :last
AND (:types IS NULL OR type IN (SELECT value FROM json_each(:types)))
ORDER BY n LIMIT :limit

-- name: read_log_back
-- Events between two positions, newest first.
SELECT n - :first, epoch, at, type, operation, actor, session, entry_id, conflict_id, task_id, data, prev_hash, hash
FROM event WHERE n > :first + :after AND n < min(:first + :before, :last + 1)
AND (:types IS NULL OR type IN (SELECT value FROM json_each(:types)))
ORDER BY n DESC LIMIT :limit

-- name: read_type
-- Events of one type after a position.
SELECT n - :first, epoch, at, type, operation, actor, session, entry_id, conflict_id, task_id, data, prev_hash, hash
FROM event INDEXED BY event_type WHERE type = :type AND n > :first + :after AND n <= :last ORDER BY n LIMIT :limit

-- name: read_type_back
-- Events of one type between two positions, newest first.
SELECT n - :first, epoch, at, type, operation, actor, session, entry_id, conflict_id, task_id, data, prev_hash, hash
FROM event INDEXED BY event_type WHERE type = :type AND n > :first + :after AND n < min(:first + :before, :last + 1)
ORDER BY n DESC LIMIT :limit

-- name: positions_at
-- The last log position at or before each instant, by binary search.
WITH RECURSIVE look (at, low, high) AS (
  SELECT value, 0, :head FROM json_each(:instants)
  UNION ALL
  SELECT look.at, iif(e.at <= look.at, (low + high + 1) / 2, low), iif(e.at <= look.at, high, (low + high + 1) / 2 - 1)
  FROM look CROSS JOIN event AS e ON e.n = :first + (low + high + 1) / 2 WHERE low < high
)
SELECT at, low FROM look WHERE low = high

-- name: stored_by
-- Number of entries stored up to each log position, by binary search: entries are numbered as they are stored.
WITH RECURSIVE look (seq, low, high) AS (
  SELECT value, :first, coalesce((SELECT max(n) FROM entry WHERE n > :first AND n <= :last), :first)
  FROM json_each(:positions)
  UNION ALL
  SELECT look.seq, iif(e.born_seq <= look.seq, (low + high + 1) / 2, low),
  iif(e.born_seq <= look.seq, high, (low + high + 1) / 2 - 1)
  FROM look CROSS JOIN entry AS e
  ON e.n = (SELECT min(x.n) FROM entry AS x WHERE x.n >= (low + high + 1) / 2 AND x.n <= :last) WHERE low < high
)
SELECT seq, low - :first FROM look WHERE low = high

-- name: left_between
-- Number of entries that left readable memory between two log positions and have not returned.
SELECT count(*) FROM entry INDEXED BY entry_gone WHERE tenant = ? AND gone_seq > ? AND gone_seq <= ?

-- name: facets
-- Facets of the readable entries of a memory: each value with the number of entries.
WITH same AS MATERIALIZED (
  SELECT kind, actor, subject, count(*) AS entries FROM entry INDEXED BY entry_facets
  WHERE tenant = :tenant AND ref = :ref AND gone_seq IS NULL AND state <> 'draft'
  AND (expires_at IS NULL OR expires_at > :now) GROUP BY kind, actor, subject
)
SELECT * FROM (SELECT 'kind', kind, sum(entries) FROM same GROUP BY kind ORDER BY 3 DESC, 2 LIMIT :most)
UNION ALL SELECT * FROM (
  SELECT 'subject', subject, sum(entries) FROM same WHERE subject IS NOT NULL GROUP BY subject
  ORDER BY 3 DESC, 2 LIMIT :most)
UNION ALL SELECT * FROM (
  SELECT 'source', actor, sum(entries) FROM same WHERE actor <> '' GROUP BY actor ORDER BY 3 DESC, 2 LIMIT :most)
UNION ALL SELECT * FROM (
  SELECT 'tag', tag, count(*) FROM tag WHERE tenant = :tenant AND ref = :ref AND n IN (
    SELECT n FROM entry INDEXED BY entry_facets WHERE tenant = :tenant AND ref = :ref AND gone_seq IS NULL
    AND state <> 'draft' AND (expires_at IS NULL OR expires_at > :now))
  AND NOT (tag GLOB 'compacted-from:*' OR tag GLOB 'archive:*' OR tag GLOB 'subject:*') GROUP BY tag ORDER BY 3 DESC, 2 LIMIT :most)

-- name: read_run
-- Events that name a run. The index holds those events only.
SELECT n - :first, epoch, at, type, operation, actor, session, entry_id, conflict_id, task_id, data, prev_hash, hash
FROM event INDEXED BY event_run
WHERE iif(json_valid(data), json_extract(data, '$.run'), NULL) = :run AND n > :first AND n <= :last
  AND iif(json_valid(data), json_extract(data, '$.run'), NULL) IS NOT NULL
ORDER BY n LIMIT :limit OFFSET :skip

-- name: load
-- A version of a document, the newest by default.
SELECT space, key, version, body, meta, updated_at, seq FROM document
WHERE tenant = :tenant AND space = :space AND key = :key AND (:version IS NULL OR version = :version)
ORDER BY version DESC LIMIT 1

-- name: documents
-- The newest version of each document of a space; with `dropped` also tombstones.
SELECT space, key, max(version), body, meta, updated_at, seq FROM document
WHERE tenant = :tenant AND space = :space AND key > :after AND key >= :prefix AND key < :beyond
AND substr(key, 1, length(:prefix)) = :prefix
GROUP BY key HAVING body IS NOT NULL OR :dropped ORDER BY key LIMIT :limit

-- name: add_document
-- Add the next version of a document.
INSERT INTO document (tenant, space, key, version, body, meta, updated_at, seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?)

-- name: trim_document
-- Remove old versions of a document.
DELETE FROM document WHERE tenant = ? AND space = ? AND key = ? AND version <= ?

-- name: answer
-- A remembered answer.
SELECT digest, answer FROM answer WHERE tenant = ? AND key = ? AND until > ?

-- name: add_answer
-- Remember an answer.
INSERT OR REPLACE INTO answer (tenant, key, digest, answer, until) VALUES (?, ?, ?, ?, ?)

-- name: trim_answers
-- Remove expired answers.
DELETE FROM answer WHERE tenant = ? AND until <= ?

-- name: searches
-- The sealed searches of a memory, or of every memory.
SELECT ref, body FROM searches WHERE tenant = :tenant AND (:ref IS NULL OR ref = :ref) ORDER BY ref

-- name: keep_searches
-- Replace the sealed searches of a memory.
INSERT OR REPLACE INTO searches (tenant, ref, body, at) VALUES (?, ?, ?, ?)

-- name: drop_searches
-- Remove the searches of a memory, or of every memory.
DELETE FROM searches WHERE tenant = :tenant AND (:ref IS NULL OR ref = :ref)

-- name: claim
-- Take a lease that is free, expired or already ours.
INSERT INTO lease (tenant, name, holder, until) VALUES (:tenant, :name, :holder, :until)
ON CONFLICT (tenant, name) DO UPDATE SET holder = excluded.holder, until = excluded.until
WHERE lease.until <= :now OR lease.holder = :holder
RETURNING 1

-- name: leases
-- Leases that are held, by name.
SELECT name, holder, until FROM lease WHERE tenant = ? AND until > ? ORDER BY name LIMIT ?

-- name: release
-- Release a lease.
DELETE FROM lease WHERE tenant = ? AND name = ? AND holder = ?

-- name: key
-- A key by id.
SELECT id, tenant, digest, name, rights, authority, scopes, created_at, expires_at, revoked_at FROM api_key WHERE id = ?

-- name: keys
-- Keys, of one tenant or of all.
SELECT id, tenant, digest, name, rights, authority, scopes, created_at, expires_at, revoked_at FROM api_key
WHERE ?1 IS NULL OR tenant = ?1 ORDER BY created_at, id

-- name: add_key
-- Add a key.
INSERT INTO api_key (id, tenant, digest, name, rights, authority, scopes, created_at, expires_at, revoked_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: revoke_key
-- Revoke a key at an instant. An earlier revocation stays.
UPDATE api_key SET revoked_at = min(coalesce(revoked_at, ?1), ?1) WHERE id = ?2 RETURNING 1

-- name: setting
-- A host-wide value.
SELECT value FROM setting WHERE name = ?

-- name: set_setting
-- Store a host-wide value.
INSERT INTO setting (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: take_setting
-- Remove a host-wide value.
DELETE FROM setting WHERE name = ? RETURNING value
