-- What stands beside the engine's own tables: the last error of a job, and what the engine has no function for.
-- Run again whenever this file changed, so everything here replaces what was.

-- The code of a job's last fault. Never a message: that may hold what nobody should see.
CREATE TABLE IF NOT EXISTS job_error (
  job_id bigint PRIMARY KEY REFERENCES procrastinate_jobs ON DELETE CASCADE,
  code text NOT NULL,
  at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS job_turn ON procrastinate_jobs ((args ->> 'tenant'), priority)
  WHERE status IN ('todo', 'doing');
CREATE INDEX IF NOT EXISTS job_tenant ON procrastinate_jobs ((args ->> 'tenant'), id);
CREATE INDEX IF NOT EXISTS job_running ON procrastinate_jobs (priority) WHERE status = 'doing';
CREATE INDEX IF NOT EXISTS job_same ON procrastinate_jobs (queueing_lock) WHERE status IN ('todo', 'doing');

-- Finding the next job: by turn, and of each lock the first one only. A queue grows from nothing to ten thousand before
-- the server has statistics of it, and without them it would sort everything: so it is told which way to go.
CREATE INDEX IF NOT EXISTS job_slot ON procrastinate_jobs (lock, priority DESC, id) WHERE status IN ('todo', 'doing');
ALTER FUNCTION procrastinate_fetch_job_v2(character varying[], bigint)
  SET enable_sort = off SET enable_bitmapscan = off SET enable_seqscan = off;

-- When the last round of sweeps began, whoever made it.
CREATE TABLE IF NOT EXISTS job_round (one boolean PRIMARY KEY DEFAULT true CHECK (one), at timestamptz NOT NULL);

-- Begin a round of sweeps, unless one began within so many seconds.
CREATE OR REPLACE FUNCTION job_round(seconds float) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO job_round AS r (at) VALUES (now())
  ON CONFLICT (one) DO UPDATE SET at = excluded.at WHERE r.at <= now() - make_interval(secs => seconds);
  RETURN FOUND;
END
$$;

-- Add a job unless the same one waits or runs. Its turn: one after the tenant's last that waits, but not before the one
-- whose turn it is now. So tenants take turns however many jobs each of them has.
CREATE OR REPLACE FUNCTION job_add(task text, owner text, arguments jsonb, slot text, same text)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  now_at integer;
  own_last integer;
  made bigint;
BEGIN
  IF EXISTS (SELECT 1 FROM procrastinate_jobs WHERE queueing_lock = same AND status IN ('todo', 'doing')) THEN
    RETURN NULL;
  END IF;
  SELECT coalesce((SELECT -min(priority) FROM procrastinate_jobs WHERE status = 'doing'),
                  (SELECT -max(priority) FROM procrastinate_jobs WHERE status = 'todo'), 0) INTO now_at;
  SELECT -min(priority) FROM procrastinate_jobs
  WHERE args ->> 'tenant' = owner AND status IN ('todo', 'doing') INTO own_last;
  SELECT unnest(procrastinate_defer_jobs_v1(ARRAY[
    ('reverie', task, -greatest(now_at, own_last + 1), slot, same, arguments, NULL)::procrastinate_job_to_defer_v1
  ])) INTO made;
  RETURN made;
EXCEPTION WHEN unique_violation THEN
  RETURN NULL; -- added by another process in this instant
END
$$;

-- The jobs of a tenant, oldest first.
CREATE OR REPLACE FUNCTION job_list(owner text)
RETURNS TABLE (id bigint, task_name text, args jsonb, status text, attempts integer, code text,
  scheduled_at timestamptz, created_at timestamptz) LANGUAGE sql STABLE AS $$
  SELECT j.id, j.task_name, j.args, j.status::text, j.attempts, e.code, j.scheduled_at,
    coalesce((SELECT min(v.at) FROM procrastinate_events AS v WHERE v.job_id = j.id), now())
  FROM procrastinate_jobs AS j LEFT JOIN job_error AS e ON e.job_id = j.id
  WHERE j.args ->> 'tenant' = owner AND j.status IN ('todo', 'doing', 'failed', 'aborted')
  ORDER BY j.id LIMIT 10000
$$;

-- Remember why a job failed.
CREATE OR REPLACE FUNCTION job_fault(job bigint, fault text) RETURNS void LANGUAGE sql AS $$
  INSERT INTO job_error (job_id, code) SELECT id, fault FROM procrastinate_jobs WHERE id = job
  ON CONFLICT (job_id) DO UPDATE SET code = excluded.code, at = now()
$$;

-- Let a job that does not run start again. False when it runs.
CREATE OR REPLACE FUNCTION job_retry(job bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM procrastinate_jobs AS j JOIN procrastinate_jobs AS other
      ON other.queueing_lock = j.queueing_lock AND other.status IN ('todo', 'doing') AND other.id <> j.id
      WHERE j.id = job) THEN
    UPDATE procrastinate_jobs SET queueing_lock = NULL WHERE id = job; -- the same was added since: both run
  END IF;
  UPDATE procrastinate_jobs SET status = 'todo', attempts = 0, scheduled_at = NULL, abort_requested = false
  WHERE id = job AND status IN ('todo', 'failed', 'aborted');
  RETURN FOUND;
END
$$;

-- Remove a job that does not run. False when it runs.
CREATE OR REPLACE FUNCTION job_discard(job bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM procrastinate_jobs WHERE id = job AND status IN ('todo', 'failed', 'aborted');
  RETURN FOUND;
END
$$;

-- Jobs whose worker gave no sign of life: the next worker has them, or they are dead after so many attempts.
CREATE OR REPLACE FUNCTION job_recover(seconds float, most integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  stalled record;
  taken integer := 0;
BEGIN
  PERFORM procrastinate_prune_stalled_workers_v1(seconds);
  FOR stalled IN
    SELECT id, attempts FROM procrastinate_jobs WHERE status = 'doing' AND worker_id IS NULL FOR UPDATE SKIP LOCKED
  LOOP
    IF stalled.attempts + 1 >= most THEN
      PERFORM procrastinate_finish_job_v1(stalled.id, 'failed', false);
    ELSE
      PERFORM procrastinate_retry_job_v2(stalled.id, now(), NULL, NULL, NULL);
    END IF;
    PERFORM job_fault(stalled.id, 'worker_lost');
    taken := taken + 1;
  END LOOP;
  RETURN taken;
END
$$;

-- When a job ends, the next one of its lock may begin: wake a worker, which would else look again only after a while.
CREATE OR REPLACE FUNCTION job_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM procrastinate_jobs WHERE lock = OLD.lock AND status = 'todo') THEN
    PERFORM pg_notify('procrastinate_queue_v1#' || OLD.queue_name,
      json_build_object('type', 'job_inserted', 'job_id', OLD.id)::text);
  END IF;
  RETURN NULL;
END
$$;
DROP INDEX IF EXISTS job_lock;
CREATE OR REPLACE TRIGGER job_ended_deleted AFTER DELETE ON procrastinate_jobs
FOR EACH ROW WHEN (OLD.status = 'doing' AND OLD.lock IS NOT NULL) EXECUTE FUNCTION job_ended();
CREATE OR REPLACE TRIGGER job_ended_changed AFTER UPDATE OF status ON procrastinate_jobs
FOR EACH ROW WHEN (OLD.status = 'doing' AND NEW.status <> 'doing' AND OLD.lock IS NOT NULL)
EXECUTE FUNCTION job_ended();
