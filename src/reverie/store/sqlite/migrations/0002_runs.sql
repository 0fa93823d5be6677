-- The events of a run; most events name none and cost it nothing.
CREATE INDEX event_run ON event (tenant, json_extract(data, '$.run'), seq)
  WHERE json_extract(data, '$.run') IS NOT NULL;
