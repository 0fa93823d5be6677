-- The last searches of a memory, for dreams to replay: one sealed row each, written over.
CREATE TABLE searches (
  tenant INTEGER NOT NULL,
  ref TEXT NOT NULL,
  body BLOB NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (tenant, ref)
) WITHOUT ROWID;
