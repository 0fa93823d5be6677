-- Whom entries are about: a keyed hash of each subject, folded, so that one look finds every spelling in every memory.
CREATE TABLE about (
  tenant INTEGER NOT NULL,
  who BLOB NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY (tenant, who, n)
) WITHOUT ROWID;

INSERT OR IGNORE INTO about (tenant, who, n)
SELECT e.tenant, unhex(k.value), e.n FROM entry AS e CROSS JOIN json_each(subject_keys(e.tenant, e.subject, e.tags)) AS k
WHERE e.state <> 'erased' AND (e.subject IS NOT NULL OR e.tags LIKE '%"subject:%');
