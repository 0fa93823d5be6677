-- The events of a run; most events name none. Damaged data must not hide from `audit verify` behind an error here.
CREATE INDEX event_run ON event (tenant, iif(json_valid(data), json_extract(data, '$.run'), NULL), seq)
  WHERE iif(json_valid(data), json_extract(data, '$.run'), NULL) IS NOT NULL;
