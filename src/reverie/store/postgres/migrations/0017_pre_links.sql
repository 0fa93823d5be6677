-- A sum of each link, as entries, index rows and documents have one.
ALTER TABLE reverie.link ADD COLUMN IF NOT EXISTS intact bigint GENERATED ALWAYS AS (
  hashtextextended((
    ref || chr(31) || from_id || chr(31) || type || chr(31) || to_id || chr(31) ||
    coalesce(long_from, '') || chr(31) || coalesce(long_to, '') || chr(31) || coalesce(note, '') || chr(31) || n::text
  ) COLLATE "C", 0)
) STORED;
