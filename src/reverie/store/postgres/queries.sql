-- Every query of the PostgreSQL store. {columns}, {brief} and {filter} stand for the fragments at the top.
-- Row security adds the tenant by itself; the queries name it all the same.

-- name: columns
-- An entry, in the order rows.py reads it.
e.n, e.ref, coalesce(e.long_id, e.id) AS id, e.kind, e.content, e.tags, e.subject, e.attributes, e.actor, e.role,
e.door, e.session, e.run, e.node, e.trust, e.state, e.created_at, e.expires_at, e.pinned, e.archived, e.held,
e.version, e.born_seq, e.epoch, e.gone_seq

-- name: brief
-- The columns of an entry that a ranking needs, in the order of Brief.
e.n, coalesce(e.long_id, e.id), e.created_at, e.content, e.actor, e.session, e.subject, e.role

-- name: filter_readable
-- The condition of an ordinary read.
e.state IN ('active', 'contested', 'pending_enrichment') AND NOT e.archived
AND (e.expires_at IS NULL OR e.expires_at > %(now)s)

-- name: filter_states
e.state = ANY(%(states)s::text[])

-- name: filter_archived
e.archived = %(archived)s

-- name: filter_expired
(e.expires_at IS NOT NULL AND e.expires_at <= %(now)s) = %(expired)s

-- name: filter_kinds
e.kind = ANY(%(kinds)s::text[])

-- name: filter_subject
e.subject = %(subject)s

-- name: filter_actor
e.actor = %(actor)s

-- name: filter_session
e.session = %(session)s

-- name: filter_sessionless
e.session IS NULL

-- name: filter_hidden
(e.session IS NULL OR (
  e.session <> ALL(%(hidden_sessions)s::text[])
  AND (e.session, e.kind) NOT IN (SELECT * FROM unnest(%(hidden_in)s::text[], %(hidden_kinds)s::text[]))
  AND (e.session <> ALL(%(hidden_others)s::text[]) OR e.kind = ANY(%(hidden_known)s::text[]))))

-- name: filter_without_kinds
e.kind <> ALL(%(without_kinds)s::text[])

-- name: filter_not_by
(e.actor <> %(not_actor)s OR e.born_seq < %(not_from)s)

-- name: filter_since_epoch
e.epoch >= %(since_epoch)s

-- name: filter_run
e.run = %(run)s

-- name: filter_task
reverie.task_of(e.attributes) = %(task)s

-- name: filter_pinned
e.pinned = %(pinned)s

-- name: filter_since
e.created_at >= %(since)s

-- name: filter_until
e.created_at < %(until)s

-- name: filter_tags
NOT EXISTS (SELECT 1 FROM unnest(%(tags)s::text[]) AS wanted WHERE NOT EXISTS (
  SELECT 1 FROM reverie.tag AS t WHERE t.tenant = e.tenant AND t.ref = e.ref AND t.tag = wanted AND t.n = e.n))

-- name: filter_any_tags
EXISTS (SELECT 1 FROM reverie.tag AS t
  WHERE t.tenant = e.tenant AND t.ref = e.ref AND t.n = e.n AND t.tag = ANY(%(any_tags)s::text[]))

-- name: bind
-- Tenant of this transaction, and its time limits.
SELECT set_config('reverie.name', %(name)s, true), set_config('statement_timeout', %(statement)s, true),
set_config('lock_timeout', %(lock)s, true), set_config('idle_in_transaction_session_timeout', %(idle)s, true),
set_config('reverie.control', %(control)s, true), set_config('reverie.keyed', 'on', true)

-- name: head
-- The tip of the tenant's log; from here on the transaction sees the tenant's rows.
SELECT n, log_key, seq, epoch, hash, entries, bytes, rules_seq, position,
set_config('reverie.tenant', n::text, true) FROM reverie.tenant WHERE name = %(name)s

-- name: lock_head
-- The same, locked until the transaction ends: other writers of this tenant wait here.
SELECT n, log_key, seq, epoch, hash, entries, bytes, rules_seq, position,
set_config('reverie.tenant', n::text, true) FROM reverie.tenant WHERE name = %(name)s FOR NO KEY UPDATE

-- name: add_tenant
-- Add a tenant, unless another transaction was first.
INSERT INTO reverie.tenant (name, log_key, seq, epoch, hash, entries, bytes, rules_seq, position, created_at)
VALUES (%s, %s, 0, 0, %s, 0, 0, 0, 0, %s) ON CONFLICT (name) DO NOTHING

-- name: set_head
-- Move the tip of a tenant's log.
UPDATE reverie.tenant SET seq = %s, epoch = %s, hash = %s, entries = %s, bytes = %s, rules_seq = %s, position = %s
WHERE n = %s

-- name: event_hash
-- The hash of the event at a position of the log.
SELECT hash FROM reverie.event WHERE tenant = %s AND seq = %s

-- name: get
-- One entry of a ref by id.
SELECT {columns} FROM reverie.entry AS e
WHERE e.tenant = %(tenant)s AND e.ref = %(ref)s AND e.id = %(id)s AND (%(gone)s OR e.gone_seq IS NULL) AND {filter}

-- name: get_as_of
-- One entry of a ref by id, as readable at a log position.
SELECT {columns} FROM reverie.entry AS e
WHERE e.tenant = %(tenant)s AND e.ref = %(ref)s AND e.id = %(id)s
AND e.born_seq <= %(as_of)s AND (e.gone_seq IS NULL OR e.gone_seq > %(as_of)s)
AND NOT EXISTS (SELECT 1 FROM reverie.absence AS a
  WHERE a.tenant = e.tenant AND a.n = e.n AND a.gone_seq <= %(as_of)s AND a.back_seq > %(as_of)s)
AND {filter}

-- name: get_any
-- One entry of a ref by id, whatever its state.
SELECT {columns} FROM reverie.entry AS e WHERE e.tenant = %s AND e.ref = %s AND e.id = %s

-- name: scan_newest
-- Readable entries of a ref, newest first.
SELECT {columns} FROM reverie.entry AS e
WHERE e.tenant = %(tenant)s AND e.ref = %(ref)s AND e.gone_seq IS NULL AND (e.created_at, e.n) < (%(at)s, %(n)s)
AND {filter}
ORDER BY e.created_at DESC, e.n DESC LIMIT %(limit)s

-- name: scan_oldest
-- Readable entries of a ref, oldest first.
SELECT {columns} FROM reverie.entry AS e
WHERE e.tenant = %(tenant)s AND e.ref = %(ref)s AND e.gone_seq IS NULL AND (e.created_at, e.n) > (%(at)s, %(n)s)
AND {filter}
ORDER BY e.created_at, e.n LIMIT %(limit)s

-- name: scan_tag
-- Readable entries of a ref that have a tag, newest first: led by the tag, so that rare tags are found at once.
SELECT {columns} FROM reverie.tag AS led JOIN reverie.entry AS e ON e.tenant = led.tenant AND e.n = led.n
WHERE led.tenant = %(tenant)s AND led.ref = %(ref)s AND led.tag = %(tag)s
AND e.tenant = %(tenant)s AND e.gone_seq IS NULL AND (e.created_at, e.n) < (%(at)s, %(n)s) AND {filter}
ORDER BY e.created_at DESC, e.n DESC LIMIT %(limit)s

-- name: scan_task
-- Readable entries of a task, newest first. Looked up first and sorted then: without statistics the planner would walk
-- the whole memory by time.
SELECT {columns} FROM (
  SELECT * FROM reverie.entry AS t WHERE t.tenant = %(tenant)s AND t.ref = %(ref)s AND t.gone_seq IS NULL
  AND reverie.task_of(t.attributes) = %(task)s OFFSET 0
) AS e
WHERE (e.created_at, e.n) < (%(at)s, %(n)s) AND {filter}
ORDER BY e.created_at DESC, e.n DESC LIMIT %(limit)s

-- name: scan_as_of
-- Entries of a ref as readable at a log position, newest first: those still readable, and those that left since.
SELECT * FROM (
  SELECT {columns} FROM reverie.entry AS e
  WHERE e.tenant = %(tenant)s AND e.ref = %(ref)s AND e.gone_seq IS NULL AND e.born_seq <= %(as_of)s
  AND (e.created_at, e.n) < (%(at)s, %(n)s)
  AND NOT EXISTS (SELECT 1 FROM reverie.absence AS a
    WHERE a.tenant = e.tenant AND a.n = e.n AND a.gone_seq <= %(as_of)s AND a.back_seq > %(as_of)s)
  AND {filter}
  UNION ALL
  SELECT {columns} FROM reverie.entry AS e
  WHERE e.tenant = %(tenant)s AND e.ref = %(ref)s AND e.gone_seq > %(as_of)s AND e.born_seq <= %(as_of)s
  AND (e.created_at, e.n) < (%(at)s, %(n)s)
  AND NOT EXISTS (SELECT 1 FROM reverie.absence AS a
    WHERE a.tenant = e.tenant AND a.n = e.n AND a.gone_seq <= %(as_of)s AND a.back_seq > %(as_of)s)
  AND {filter}
) AS both_sides ORDER BY created_at DESC, n DESC LIMIT %(limit)s

-- name: scan_all
-- Every row of a tenant (or of one ref), readable or not, in order of insertion.
SELECT {columns} FROM reverie.entry AS e
WHERE e.tenant = %(tenant)s AND (%(ref)s::text IS NULL OR e.ref = %(ref)s) AND (%(gone)s OR e.gone_seq IS NULL)
AND e.n > %(n)s AND {filter}
ORDER BY e.n LIMIT %(limit)s

-- name: scan_subject
-- Every row of a tenant about a subject, in order of insertion.
SELECT {columns} FROM reverie.entry AS e
WHERE e.tenant = %(tenant)s AND e.subject = %(subject)s AND (%(ref)s::text IS NULL OR e.ref = %(ref)s)
AND (%(gone)s OR e.gone_seq IS NULL) AND e.n > %(n)s AND {filter}
ORDER BY e.n LIMIT %(limit)s

-- name: about
-- Entries about a subject with or without text, in order of insertion. Those without a key were written by a
-- process of an older release.
SELECT {columns} FROM reverie.about AS a JOIN reverie.entry AS e ON e.tenant = a.tenant AND e.n = a.n
WHERE a.tenant = %(tenant)s AND a.who = ANY(ARRAY[%(who)s, ''::bytea]) AND e.tenant = %(tenant)s
ORDER BY a.n

-- name: scan_expired
-- Entries of a tenant that passed their expiry and still have text, in order of insertion.
SELECT {columns} FROM reverie.entry AS e
WHERE e.tenant = %(tenant)s AND e.expires_at <= %(now)s AND e.state <> 'erased'
AND (%(ref)s::text IS NULL OR e.ref = %(ref)s)
AND (%(gone)s OR e.gone_seq IS NULL) AND e.n > %(n)s AND {filter}
ORDER BY e.n LIMIT %(limit)s

-- name: scan_cold
-- Deleted or dreamt entries that left readable memory before an instant, the first to leave first: files, or all others.
SELECT {columns} FROM reverie.entry AS e
WHERE e.tenant = %s AND e.state = %s AND e.state IN ('deleted', 'dreamt') AND e.gone_seq IS NOT NULL AND e.gone_at <= %s
AND NOT e.archived AND NOT e.held AND (e.kind = 'file') = %s
ORDER BY e.gone_at, e.n LIMIT %s

-- name: scan_left
-- Entries of a ref that left readable memory, the last to leave first.
SELECT {columns} FROM reverie.entry AS e
WHERE e.tenant = %(tenant)s AND e.gone_seq IS NOT NULL AND e.ref = %(ref)s AND {filter}
ORDER BY e.gone_seq DESC LIMIT %(limit)s

-- name: count
-- Number of matching entries.
SELECT count(*) FROM reverie.entry AS e
WHERE e.tenant = %(tenant)s AND (%(ref)s::text IS NULL OR e.ref = %(ref)s) AND (%(gone)s OR e.gone_seq IS NULL)
AND {filter}

-- name: count_live
-- Number of entries of a ref that are not gone.
SELECT count(*) FROM reverie.entry AS e WHERE e.tenant = %(tenant)s AND e.ref = %(ref)s AND e.gone_seq IS NULL

-- name: count_left
-- Number of entries of a ref that are gone, by state.
SELECT count(*) FROM reverie.entry AS e
WHERE e.tenant = %(tenant)s AND e.ref = %(ref)s AND e.gone_seq IS NOT NULL
AND {filter}

-- name: refs
-- The memories of a tenant in a range of names, with the number of readable entries.
SELECT ref, count(*) FROM reverie.entry WHERE tenant = %s AND ref >= %s AND ref < %s AND gone_seq IS NULL
AND state <> 'draft' AND (expires_at IS NULL OR expires_at > %s) GROUP BY ref ORDER BY ref

-- name: ids
-- The ids of a memory in a range.
SELECT id FROM reverie.entry WHERE tenant = %s AND ref = %s AND id >= %s AND id < %s
AND long_id IS NULL AND state NOT IN ('draft', 'erased') ORDER BY id LIMIT %s

-- name: pick
-- Entries at the given positions that match. `ref || ''` and `gone_seq + 0` keep the planner from the indexes of these:
-- without statistics, right after a load, it would read the whole memory by them.
SELECT {columns} FROM reverie.entry AS e
WHERE e.tenant = %(tenant)s AND e.n = ANY(%(positions)s::bigint[]) AND e.ref || '' = %(ref)s
AND (%(gone)s OR e.gone_seq + 0 IS NULL) AND {filter}

-- name: pick_briefs
-- The same entries, in brief.
SELECT {brief} FROM reverie.entry AS e
WHERE e.tenant = %(tenant)s AND e.n = ANY(%(positions)s::bigint[]) AND e.ref || '' = %(ref)s
AND (%(gone)s OR e.gone_seq + 0 IS NULL) AND {filter}

-- name: foremost
-- The first entries in the order of the given positions that match. As a limit, and not by cutting the list, so that a
-- filter that leaves half reads no more than one that leaves all.
SELECT {brief} FROM unnest(%(positions)s::bigint[]) WITH ORDINALITY AS p (n, place)
CROSS JOIN LATERAL (SELECT * FROM reverie.entry WHERE tenant = %(tenant)s AND n = p.n OFFSET 0) AS e
WHERE e.ref = %(ref)s AND (%(gone)s OR e.gone_seq IS NULL) AND {filter} ORDER BY p.place LIMIT %(limit)s

-- name: foremost_rows
-- The same, not in brief: what is shown is among them.
SELECT {columns} FROM unnest(%(positions)s::bigint[]) WITH ORDINALITY AS p (n, place)
CROSS JOIN LATERAL (SELECT * FROM reverie.entry WHERE tenant = %(tenant)s AND n = p.n OFFSET 0) AS e
WHERE e.ref = %(ref)s AND (%(gone)s OR e.gone_seq IS NULL) AND {filter} ORDER BY p.place LIMIT %(limit)s

-- name: beside
-- The two readable entries before and after each of the first entries of conversations in the order of the given
-- positions, nearest first, and whether they match. A credential is no speaker.
SELECT best.n, near.* FROM (
  SELECT e.n, e.created_at FROM unnest(%(positions)s::bigint[]) WITH ORDINALITY AS p (n, place)
  CROSS JOIN LATERAL (SELECT * FROM reverie.entry WHERE tenant = %(tenant)s AND n = p.n OFFSET 0) AS e
  WHERE e.ref = %(ref)s AND e.gone_seq IS NULL AND {filter}
  AND (e.session IS NOT NULL OR NOT (e.actor = '' OR e.actor ^@ ANY(%(credentials)s::text[])))
  ORDER BY p.place LIMIT %(ahead)s
) AS best LEFT JOIN LATERAL (
  (SELECT -1 AS side, ({filter}) AS fits, {columns} FROM reverie.entry AS e
   WHERE e.tenant = %(tenant)s AND e.ref = %(ref)s AND e.gone_seq IS NULL
   AND (e.created_at, e.n) < (best.created_at, best.n) AND e.state <> 'draft'
   AND (e.expires_at IS NULL OR e.expires_at > %(now)s) ORDER BY e.created_at DESC, e.n DESC LIMIT 2)
  UNION ALL
  (SELECT 1, ({filter}), {columns} FROM reverie.entry AS e
   WHERE e.tenant = %(tenant)s AND e.ref = %(ref)s AND e.gone_seq IS NULL
   AND (e.created_at, e.n) > (best.created_at, best.n) AND e.state <> 'draft'
   AND (e.expires_at IS NULL OR e.expires_at > %(now)s) ORDER BY e.created_at, e.n LIMIT 2)
) AS near ON true

-- name: passing
-- Positions of a ref that match.
SELECT e.n FROM reverie.entry AS e
WHERE e.tenant = %(tenant)s AND e.ref = %(ref)s AND e.gone_seq IS NULL AND {filter}

-- name: passing_tags
-- The same, led by tags: entries that have at least a number of them.
SELECT e.n FROM reverie.entry AS e
WHERE e.tenant = %(tenant)s AND e.n = ANY(ARRAY(
  SELECT t.n FROM reverie.tag AS t
  WHERE t.tenant = %(tenant)s AND t.ref = %(ref)s AND t.tag = ANY(%(led)s::text[])
  GROUP BY t.n HAVING count(*) >= %(least)s))
AND e.ref || '' = %(ref)s AND e.gone_seq + 0 IS NULL AND {filter}

-- name: around
-- The readable entries before and after each position in its ref, by time and then by insertion, nearest first.
SELECT e.n,
  ARRAY(SELECT b.n FROM reverie.entry AS b WHERE b.tenant = e.tenant AND b.ref = e.ref AND b.gone_seq IS NULL
   AND (b.created_at, b.n) < (e.created_at, e.n) AND b.state <> 'draft'
   AND (b.expires_at IS NULL OR b.expires_at > %(now)s) ORDER BY b.created_at DESC, b.n DESC LIMIT %(steps)s),
  ARRAY(SELECT a.n FROM reverie.entry AS a WHERE a.tenant = e.tenant AND a.ref = e.ref AND a.gone_seq IS NULL
   AND (a.created_at, a.n) > (e.created_at, e.n) AND a.state <> 'draft'
   AND (a.expires_at IS NULL OR a.expires_at > %(now)s) ORDER BY a.created_at, a.n LIMIT %(steps)s)
FROM reverie.entry AS e
WHERE e.tenant = %(tenant)s AND e.n = ANY(%(positions)s::bigint[]) AND e.ref || '' = %(ref)s

-- name: index_rows
-- Index rows of a memory: rows beyond a position, and those up to it that were indexed again after a log position.
SELECT n, words, vector, model FROM reverie.recall
WHERE tenant = %(tenant)s AND ref = %(ref)s AND n > %(after)s AND NOT cold
UNION ALL
SELECT n, words, vector, model FROM reverie.recall
WHERE tenant = %(tenant)s AND ref = %(ref)s AND again AND seq > %(since)s AND n <= %(after)s AND NOT cold

-- name: index_fresh
-- The same, as many as are fetched with a snapshot.
(SELECT n, words, vector, model FROM reverie.recall
WHERE tenant = %(tenant)s AND ref = %(ref)s AND n > %(after)s AND NOT cold LIMIT 2000)
UNION ALL
(SELECT n, words, vector, model FROM reverie.recall
WHERE tenant = %(tenant)s AND ref = %(ref)s AND again AND seq > %(since)s AND n <= %(after)s AND NOT cold LIMIT 2000)

-- name: cold_rows
-- Index rows of the sources of dreams that came to cold storage, or were indexed again there, after a log position.
SELECT n, words, vector, model FROM reverie.recall
WHERE tenant = %(tenant)s AND ref = %(ref)s AND cold AND seq > %(since)s

-- name: cold_positions
-- All sources of dreams of a memory that have an index row.
SELECT n FROM reverie.recall WHERE tenant = %(tenant)s AND ref = %(ref)s AND cold

-- name: cold_returned
-- Entries of a memory that were indexed again as readable ones after a log position.
SELECT n FROM reverie.recall WHERE tenant = %(tenant)s AND ref = %(ref)s AND again AND seq > %(since)s AND NOT cold

-- name: named
-- The entries that events of some types name, after a log position.
SELECT DISTINCT entry_id FROM reverie.event
WHERE tenant = %(tenant)s AND type = ANY(%(types)s::text[]) AND seq > %(since)s AND entry_id IS NOT NULL

-- name: not_cold
-- The entries of a memory with these ids that are not in the index of cold storage.
SELECT e.n FROM reverie.entry AS e WHERE e.tenant = %(tenant)s AND e.ref = %(ref)s AND e.id = ANY(%(ids)s::text[])
AND NOT EXISTS (SELECT 1 FROM reverie.recall AS r WHERE r.tenant = e.tenant AND r.ref = e.ref AND r.n = e.n AND r.cold)

-- name: index_gone
-- Entries of a memory that left it after a log position.
SELECT n FROM reverie.entry WHERE tenant = %(tenant)s AND gone_seq > %(since)s AND ref = %(ref)s

-- name: index_scrubbed
-- Entries of a memory whose text was destroyed after a log position: no index may hold anything of them.
SELECT n FROM reverie.entry
WHERE tenant = %(tenant)s AND ref = %(ref)s AND scrub_seq IS NOT NULL AND scrub_seq > %(since)s

-- name: index_state
-- The number of readable entries, and of those with a vector of a model.
SELECT count(*), count(r.n) FROM reverie.entry AS e
LEFT JOIN reverie.recall AS r ON r.tenant = e.tenant AND r.ref = e.ref AND r.n = e.n AND r.model = %(model)s
WHERE e.tenant = %(tenant)s AND (%(ref)s::text IS NULL OR e.ref = %(ref)s) AND e.gone_seq IS NULL
AND e.state <> 'draft' AND (e.expires_at IS NULL OR e.expires_at > %(now)s)

-- name: unembedded
-- Readable entries and sources of dreams without a vector of a model.
SELECT {columns} FROM reverie.entry AS e
WHERE e.tenant = %(tenant)s AND (%(ref)s::text IS NULL OR e.ref = %(ref)s)
AND (e.gone_seq IS NULL OR e.state = 'dreamt')
AND e.state <> 'draft' AND (e.expires_at IS NULL OR e.expires_at > %(now)s)
AND NOT EXISTS (SELECT 1 FROM reverie.recall AS r
  WHERE r.tenant = e.tenant AND r.ref = e.ref AND r.n = e.n AND r.model = %(model)s)
ORDER BY e.n LIMIT %(limit)s

-- name: add_event
-- Append to the log.
INSERT INTO reverie.event (tenant, seq, epoch, at, type, operation, actor, session, entry_id, conflict_id, task_id,
data, prev_hash, hash, run) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)

-- name: add_entry
-- Store an entry.
INSERT INTO reverie.entry (n, tenant, ref, id, kind, content, tags, subject, attributes, actor, role, door, session,
run, node, trust, state, created_at, expires_at, pinned, archived, held, version, born_seq, epoch, long_id)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)

-- name: add_recall
-- Index row of a new entry.
INSERT INTO reverie.recall (tenant, ref, n, seq, again, words, model, vector)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s)

-- name: set_recall
-- Index an entry again; words or vector that are not given stay.
INSERT INTO reverie.recall AS r (tenant, ref, n, seq, again, cold, words, model, vector)
VALUES (%s, %s, %s, %s, true, %s, %s, %s, %s)
ON CONFLICT (tenant, ref, n) DO UPDATE SET seq = excluded.seq, again = true, cold = excluded.cold, words = coalesce(excluded.words, r.words),
model = coalesce(excluded.model, r.model), vector = coalesce(excluded.vector, r.vector)

-- name: cool_recall
-- Mark the index row of an entry that became the source of a dream.
UPDATE reverie.recall SET cold = true, seq = %s WHERE tenant = %s AND ref = %s AND n = %s

-- name: cool_recall_many
-- The same for several entries.
UPDATE reverie.recall AS r SET cold = true, seq = one.seq
FROM unnest(%s::bigint[], %s::text[], %s::bigint[]) AS one (seq, ref, n)
WHERE r.tenant = %s AND r.ref = one.ref AND r.n = one.n

-- name: drop_recall
-- Take an entry out of the index.
DELETE FROM reverie.recall WHERE tenant = %s AND ref = %s AND n = %s

-- name: drop_recall_many
-- The same for several entries. No two of a tenant have one position.
DELETE FROM reverie.recall WHERE tenant = %s AND ref = ANY(%s::text[]) AND n = ANY(%s::bigint[])

-- name: add_tag
-- Tag an entry.
INSERT INTO reverie.tag (tenant, ref, tag, n) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING

-- name: drop_tag
-- Take a tag off an entry.
DELETE FROM reverie.tag WHERE tenant = %s AND ref = %s AND tag = %s AND n = %s

-- name: add_about
-- List an entry under a subject.
INSERT INTO reverie.about (tenant, who, n) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING

-- name: drop_about
-- Remove an entry from under a subject.
DELETE FROM reverie.about WHERE tenant = %s AND who = ANY(%s::bytea[]) AND n = %s

-- name: change
-- Change mutable fields of an entry.
UPDATE reverie.entry SET state = %s, archived = %s, pinned = %s, held = %s, attributes = %s, expires_at = %s,
version = %s, gone_seq = %s, gone_at = CASE WHEN %s THEN NULL ELSE coalesce(%s, gone_at) END
WHERE tenant = %s AND n = %s

-- name: change_many
-- The same for several entries, with an array for each column. The positions are bound once more, so that the primary key
-- is used: for a join alone the planner may scan the table.
UPDATE reverie.entry AS e SET state = u.state, archived = u.archived, pinned = u.pinned, held = u.held,
attributes = u.attributes, expires_at = u.expires_at, version = u.version, gone_seq = u.gone_seq,
gone_at = CASE WHEN u.back THEN NULL ELSE coalesce(u.gone_at, e.gone_at) END
FROM unnest(%s::text[], %s::boolean[], %s::boolean[], %s::boolean[], %s::text[], %s::bigint[], %s::bigint[],
  %s::bigint[], %s::boolean[], %s::bigint[], %s::integer[], %s::bigint[])
AS u (state, archived, pinned, held, attributes, expires_at, version, gone_seq, back, gone_at, tenant, n)
WHERE e.tenant = %s AND e.n = ANY(%s::bigint[]) AND e.n = u.n

-- name: rewrite
-- Replace the text of an entry by a more redacted one.
UPDATE reverie.entry SET kind = %(kind)s, content = %(content)s, tags = %(tags)s, subject = %(subject)s,
attributes = %(attributes)s, actor = %(actor)s, role = %(role)s, session = %(session)s, run = %(run)s, node = %(node)s,
version = %(version)s, scrub_seq = %(seq)s WHERE tenant = %(tenant)s AND n = %(n)s

-- name: purge
-- Destroy the text of an entry; the row stays so that the id is never used again.
UPDATE reverie.entry SET content = '', tags = '[]', subject = NULL, attributes = '{{}}', actor = '', role = NULL,
session = NULL, run = NULL, node = NULL, state = 'erased',
pinned = false, version = version + 1, scrub_seq = %(seq)s, gone_seq = coalesce(gone_seq, %(seq)s),
gone_at = coalesce(gone_at, %(now)s) WHERE tenant = %(tenant)s AND n = %(n)s

-- name: add_absence
-- Record the interval in which a restored entry was gone.
INSERT INTO reverie.absence (tenant, n, gone_seq, back_seq) VALUES (%s, %s, %s, %s)
ON CONFLICT (tenant, n, gone_seq) DO UPDATE SET back_seq = excluded.back_seq

-- name: drop_notes
-- Remove the notes on the links of an entry: they are text about it.
UPDATE reverie.link SET note = NULL
WHERE tenant = %(tenant)s AND ref = %(ref)s AND (from_id = %(id)s OR to_id = %(id)s) AND note IS NOT NULL

-- name: id_taken
-- Whether a ref has, or had, an entry of this id.
SELECT 1 FROM reverie.entry WHERE tenant = %s AND ref = %s AND id = %s

-- name: add_link
-- Add a link between two entries.
INSERT INTO reverie.link (tenant, ref, from_id, type, to_id, note, n, long_from, long_to)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING

-- name: links_from
-- Links that start at some entries.
SELECT coalesce(long_from, from_id), coalesce(long_to, to_id), type, note FROM reverie.link
WHERE tenant = %s AND ref = %s AND from_id = ANY(%s) ORDER BY n

-- name: links_to
-- Links that end at some entries.
SELECT coalesce(long_from, from_id), coalesce(long_to, to_id), type, note FROM reverie.link
WHERE tenant = %s AND ref = %s AND to_id = ANY(%s) ORDER BY from_id, type, to_id

-- name: read_log
-- Events after a position.
SELECT seq, epoch, at, type, operation, actor, session, entry_id, conflict_id, task_id, data, prev_hash, hash
FROM reverie.event WHERE tenant = %(tenant)s AND seq > %(after)s
AND (%(types)s::text[] IS NULL OR type = ANY(%(types)s::text[]))
ORDER BY seq LIMIT %(limit)s

-- name: read_log_back
-- Events between two positions, newest first.
SELECT seq, epoch, at, type, operation, actor, session, entry_id, conflict_id, task_id, data, prev_hash, hash
FROM reverie.event WHERE tenant = %(tenant)s AND seq > %(after)s AND seq < %(before)s
AND (%(types)s::text[] IS NULL OR type = ANY(%(types)s::text[]))
ORDER BY seq DESC LIMIT %(limit)s

-- name: read_type
-- Events of one type after a position.
SELECT seq, epoch, at, type, operation, actor, session, entry_id, conflict_id, task_id, data, prev_hash, hash
FROM reverie.event WHERE tenant = %(tenant)s AND type = %(type)s AND seq > %(after)s ORDER BY seq LIMIT %(limit)s

-- name: read_type_back
-- Events of one type between two positions, newest first.
SELECT seq, epoch, at, type, operation, actor, session, entry_id, conflict_id, task_id, data, prev_hash, hash
FROM reverie.event WHERE tenant = %(tenant)s AND type = %(type)s AND seq > %(after)s AND seq < %(before)s
ORDER BY seq DESC LIMIT %(limit)s

-- name: positions_at
-- The last log position at or before each instant, by binary search.
WITH RECURSIVE look (at, low, high) AS (
  SELECT i, 0::bigint, %(head)s::bigint FROM unnest(%(instants)s::bigint[]) AS i
  UNION ALL
  SELECT look.at, CASE WHEN e.at <= look.at THEN (low + high + 1) / 2 ELSE low END,
  CASE WHEN e.at <= look.at THEN high ELSE (low + high + 1) / 2 - 1 END
  FROM look JOIN reverie.event AS e ON e.tenant = %(tenant)s AND e.seq = (low + high + 1) / 2 WHERE low < high
)
SELECT at, low FROM look WHERE low = high

-- name: stored_by
-- Number of entries stored up to each log position, by binary search: entries are numbered as they are stored.
WITH RECURSIVE look (seq, low, high) AS (
  SELECT p, %(first)s::bigint, coalesce(
    (SELECT max(n) FROM reverie.entry WHERE tenant = %(tenant)s), %(first)s::bigint)
  FROM unnest(%(positions)s::bigint[]) AS p
  UNION ALL
  SELECT look.seq, CASE WHEN e.born_seq <= look.seq THEN (low + high + 1) / 2 ELSE low END,
  CASE WHEN e.born_seq <= look.seq THEN high ELSE (low + high + 1) / 2 - 1 END
  FROM look CROSS JOIN LATERAL (
    SELECT born_seq FROM reverie.entry WHERE tenant = %(tenant)s AND n >= (low + high + 1) / 2 ORDER BY n LIMIT 1
  ) AS e WHERE low < high
)
SELECT seq, low - %(first)s::bigint FROM look WHERE low = high

-- name: left_between
-- Number of entries that left readable memory between two log positions and have not returned.
SELECT count(*) FROM reverie.entry WHERE tenant = %s AND gone_seq IS NOT NULL AND gone_seq > %s AND gone_seq <= %s

-- name: facets
-- Facets of the readable entries of a memory: each value with the number of entries.
WITH own AS MATERIALIZED (
  SELECT n, kind, actor, subject FROM reverie.entry
  WHERE tenant = %(tenant)s AND ref = %(ref)s AND gone_seq IS NULL AND state <> 'draft'
  AND (expires_at IS NULL OR expires_at > %(now)s)
)
(SELECT 'kind', kind, count(*) FROM own GROUP BY kind ORDER BY 3 DESC, 2 LIMIT %(most)s)
UNION ALL
(SELECT 'subject', subject, count(*) FROM own WHERE subject IS NOT NULL GROUP BY subject ORDER BY 3 DESC, 2 LIMIT %(most)s)
UNION ALL
(SELECT 'source', actor, count(*) FROM own WHERE actor <> '' GROUP BY actor ORDER BY 3 DESC, 2 LIMIT %(most)s)
UNION ALL
(SELECT 'tag', tag, count(*) FROM reverie.tag WHERE tenant = %(tenant)s AND ref = %(ref)s AND n IN (SELECT n FROM own)
AND NOT (tag LIKE 'compacted-from:%%' OR tag LIKE 'archive:%%' OR tag LIKE 'subject:%%') GROUP BY tag ORDER BY 3 DESC, 2 LIMIT %(most)s)

-- name: read_run
-- Events that name a run.
SELECT seq, epoch, at, type, operation, actor, session, entry_id, conflict_id, task_id, data, prev_hash, hash
FROM reverie.event WHERE tenant = %(tenant)s AND run = %(run)s ORDER BY seq LIMIT %(limit)s OFFSET %(skip)s

-- name: load
-- A version of a document, the newest by default.
SELECT space, key, version, body, meta, updated_at, seq FROM reverie.document
WHERE tenant = %(tenant)s AND space = %(space)s AND key = %(key)s
AND (%(version)s::bigint IS NULL OR version = %(version)s)
ORDER BY version DESC LIMIT 1

-- name: documents
-- The newest version of each document of a space, with `dropped` also tombstones. What begins with the prefix lies between
-- it and `beyond`.
SELECT * FROM (
  SELECT DISTINCT ON (key) space, key, version, body, meta, updated_at, seq FROM reverie.document
  WHERE tenant = %(tenant)s AND space = %(space)s AND key > %(after)s AND key >= %(prefix)s AND key < %(beyond)s
  ORDER BY key, version DESC
) AS newest WHERE body IS NOT NULL OR %(dropped)s ORDER BY key LIMIT %(limit)s

-- name: add_document
-- Add the next version of a document.
INSERT INTO reverie.document (tenant, space, key, version, body, meta, updated_at, seq)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s)

-- name: trim_document
-- Remove old versions of a document.
DELETE FROM reverie.document WHERE tenant = %s AND space = %s AND key = %s AND version <= %s

-- name: answer
-- A remembered answer.
SELECT digest, answer FROM reverie.answer WHERE tenant = %s AND key = %s AND until > %s

-- name: add_answer
-- Remember an answer.
INSERT INTO reverie.answer (tenant, key, digest, answer, until) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (tenant, key) DO UPDATE SET digest = excluded.digest, answer = excluded.answer, until = excluded.until

-- name: trim_answers
-- Remove expired answers.
DELETE FROM reverie.answer WHERE tenant = %s AND until <= %s

-- name: searches
-- The sealed searches of a memory, or of every memory.
SELECT ref, body FROM reverie.searches WHERE tenant = %(tenant)s AND (%(ref)s::text IS NULL OR ref = %(ref)s)
ORDER BY ref

-- name: keep_searches
-- Replace the sealed searches of a memory.
INSERT INTO reverie.searches (tenant, ref, body, at) VALUES (%s, %s, %s, %s)
ON CONFLICT (tenant, ref) DO UPDATE SET body = excluded.body, at = excluded.at

-- name: drop_searches
-- Remove the searches of a memory, or of every memory.
DELETE FROM reverie.searches WHERE tenant = %(tenant)s AND (%(ref)s::text IS NULL OR ref = %(ref)s)

-- name: claim
-- Take a lease that is free, expired or already ours.
INSERT INTO reverie.lease (tenant, name, holder, until) VALUES (%(tenant)s, %(name)s, %(holder)s, %(until)s)
ON CONFLICT (tenant, name) DO UPDATE SET holder = excluded.holder, until = excluded.until
WHERE lease.until <= %(now)s OR lease.holder = %(holder)s
RETURNING 1

-- name: leases
-- Leases that are held, by name.
SELECT name, holder, until FROM reverie.lease WHERE tenant = %s AND until > %s ORDER BY name COLLATE "C" LIMIT %s

-- name: release
-- Release a lease.
DELETE FROM reverie.lease WHERE tenant = %s AND name = %s AND holder = %s

-- name: wake
-- Wake a tenant at an instant, or earlier if that was planned.
UPDATE reverie.tenant SET wake_at = %(at)s WHERE n = %(tenant)s AND (wake_at IS NULL OR wake_at > %(at)s)

-- name: wake_exactly
-- Wake a tenant at an instant and not earlier.
UPDATE reverie.tenant SET wake_at = %(at)s WHERE n = %(tenant)s AND wake_at IS DISTINCT FROM %(at)s

-- name: tenants
-- Every tenant.
SELECT name FROM reverie.tenant ORDER BY name

-- name: awake
-- Tenants that are due.
SELECT name FROM reverie.tenant WHERE wake_at <= %s ORDER BY wake_at, n

-- name: key
-- A key by id.
SELECT id, tenant, digest, name, rights, authority, scopes, created_at, expires_at, revoked_at FROM reverie.api_key
WHERE id = %s

-- name: keys
-- Keys, of one tenant or of all.
SELECT id, tenant, digest, name, rights, authority, scopes, created_at, expires_at, revoked_at FROM reverie.api_key
WHERE %(tenant)s::text IS NULL OR tenant = %(tenant)s ORDER BY created_at, id

-- name: add_key
-- Add a key.
INSERT INTO reverie.api_key (id, tenant, digest, name, rights, authority, scopes, created_at, expires_at, revoked_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)

-- name: revoke_key
-- Revoke a key at an instant. An earlier revocation stays.
UPDATE reverie.api_key SET revoked_at = least(revoked_at, %s) WHERE id = %s RETURNING 1

-- name: setting
-- A host-wide value.
SELECT value FROM reverie.setting WHERE name = %s

-- name: set_setting
-- Store a host-wide value.
INSERT INTO reverie.setting (name, value) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: take_setting
-- Remove a host-wide value.
DELETE FROM reverie.setting WHERE name = %s RETURNING value

-- name: owe_vacuum
-- Note that text was destroyed and VACUUM is pending: one row for each transaction, so that no two wait for each other.
INSERT INTO reverie.setting (name, value) VALUES ('vacuum/' || %s, '')

-- name: vacuum_owed
-- The pending notes of every process.
SELECT name FROM reverie.setting WHERE name LIKE 'vacuum/%'

-- name: vacuum_done
-- Remove notes after VACUUM.
DELETE FROM reverie.setting WHERE name = ANY(%s)

-- name: sums_of_rows
-- The columns in which the server keeps a checksum of each row, and their expressions.
SELECT c.relname, a.attname, pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef d
JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum JOIN pg_class c ON c.oid = d.adrelid
WHERE c.relnamespace = 'reverie'::regnamespace AND a.attgenerated = 's' ORDER BY c.relname

-- name: labels
-- Subject, tags and index keys of every entry that has a subject.
SELECT e.subject, e.tags, array_agg(a.who) FILTER (WHERE a.who IS NOT NULL)
FROM reverie.entry AS e LEFT JOIN reverie.about AS a ON a.tenant = e.tenant AND a.n = e.n
WHERE e.tenant = %(tenant)s AND (e.subject IS NOT NULL OR e.tags LIKE '%%subject:%%')
GROUP BY e.n, e.subject, e.tags

-- name: tagged
-- The tags of every entry, and the tags under which it is listed; also tag rows without an entry.
SELECT e.tags, array_agg(t.tag) FILTER (WHERE t.tag IS NOT NULL)
FROM (SELECT n, ref, tags FROM reverie.entry WHERE tenant = %(tenant)s) AS e
FULL JOIN (SELECT n, ref, tag FROM reverie.tag WHERE tenant = %(tenant)s) AS t ON t.n = e.n AND t.ref = e.ref
WHERE t.tag IS NOT NULL OR e.tags <> '[]' GROUP BY e.n, e.tags

-- name: database_bytes
-- Total size of Reverie: tables, indexes and long values.
SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
WHERE relnamespace = 'reverie'::regnamespace AND relkind = 'r'

-- name: bound_by_row_security
-- Whether row-level security applies: the role is neither superuser nor exempt, and every table of tenants forces it.
SELECT NOT (r.rolsuper OR r.rolbypassrls) AND NOT EXISTS (
  SELECT 1 FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'tenant'
  WHERE c.relnamespace = 'reverie'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> 'api_key'
  AND NOT (c.relrowsecurity AND c.relforcerowsecurity))
FROM pg_roles AS r WHERE r.rolname = current_user
