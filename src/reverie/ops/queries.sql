-- The doctor's queries of a PostgreSQL server. None reads a tenant's rows.

-- name: role
-- Whether row security binds this role.
SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user

-- name: unguarded
-- Tables with tenants' rows where row security is not both on and forced.
SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS s ON s.oid = c.relnamespace
WHERE s.nspname = 'reverie' AND c.relkind IN ('r', 'p') AND c.relname NOT IN ('setting', 'api_key')
AND NOT (c.relrowsecurity AND c.relforcerowsecurity) ORDER BY c.relname

-- name: indexes
-- The indexes, and whether each can be used.
SELECT c.relname, i.indisvalid AND i.indisready FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
JOIN pg_namespace AS s ON s.oid = c.relnamespace WHERE s.nspname = 'reverie'

-- name: bloat
-- Tables with many dead rows.
SELECT relname, n_live_tup, n_dead_tup FROM pg_stat_user_tables
WHERE schemaname IN ('reverie', 'reverie_jobs') AND n_dead_tup > 10000 AND n_dead_tup > n_live_tup / 5 ORDER BY n_dead_tup DESC

-- name: replication
-- How far each replica is behind, in bytes.
SELECT coalesce(application_name, ''), coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn), 0)::bigint
FROM pg_stat_replication

-- name: replica
-- Whether this server only follows another.
SELECT pg_is_in_recovery()

-- name: connections
-- The limit of connections, those reserved for others, and those open.
SELECT current_setting('max_connections')::integer,
current_setting('superuser_reserved_connections')::integer
+ coalesce(current_setting('reserved_connections', true)::integer, 0), -- PostgreSQL 15 has no such setting
(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')

-- name: extension
-- The version of pgvector, where it is installed.
SELECT extversion FROM pg_extension WHERE extname = 'vector'

-- name: migrations
-- The migrations the database has.
SELECT right(name, 4)::integer FROM reverie.setting WHERE name LIKE 'migration/%'
