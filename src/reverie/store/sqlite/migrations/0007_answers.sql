-- Idempotency keys are kept as hashes under the tenant's key: callers put anything into them, credentials too.
UPDATE answer SET key = answer_key(tenant, key)
WHERE key NOT GLOB 'akashik/*' OR length(key) <> 72 OR substr(key, 9) GLOB '*[^0-9a-f]*';
