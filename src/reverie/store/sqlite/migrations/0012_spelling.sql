-- Subjects are compared without invisible characters and differences of Unicode form: entries whose subjects have such
-- are listed under their keys too. The keys that they have stay.
INSERT OR IGNORE INTO about (tenant, who, n)
SELECT e.tenant, unhex(k.value), e.n FROM entry AS e CROSS JOIN json_each(subject_keys(e.tenant, e.subject, e.tags)) AS k
WHERE e.state <> 'erased' AND (e.subject IS NOT NULL OR e.tags LIKE '%"subject:%')
AND (coalesce(e.subject, '') || e.tags) GLOB '*[^ -~]*';
