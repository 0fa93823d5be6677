-- A sum of each row, which the server writes with the row: damage that its pages do not show is found by reading both.
ALTER TABLE reverie.entry ADD COLUMN IF NOT EXISTS intact bigint GENERATED ALWAYS AS (
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
) STORED;
ALTER TABLE reverie.recall ADD COLUMN IF NOT EXISTS intact bytea GENERATED ALWAYS AS (
  substr(sha256(coalesce(words, '') || '\x1f'::bytea || coalesce(vector, '')), 1, 8)
) STORED;
ALTER TABLE reverie.document ADD COLUMN IF NOT EXISTS intact bytea GENERATED ALWAYS AS (
  substr(sha256(coalesce(body, '')), 1, 8)
) STORED;
