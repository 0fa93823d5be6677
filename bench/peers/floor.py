"""The floor: SQLite by hand, one row and one FTS5 row per entry in one durable commit, and nothing else.

No redaction, no event log, no vectors, no tenants, no filters. One connection behind a lock; many clients do not share
commits.
"""

from __future__ import annotations

import platform
import re
import threading
import time
import uuid
from pathlib import Path

import apsw

from bench.peers.protocol import serve

_WORD = re.compile(r"\w+")


class Floor:
    def __init__(self, folder: Path) -> None:
        self._lock = threading.Lock()
        self._db = apsw.Connection(str(folder / "floor.db"))
        self._db.execute("PRAGMA journal_mode = WAL").fetchall()
        self._db.execute("PRAGMA synchronous = FULL; PRAGMA cache_size = -65536")
        self._db.execute("CREATE TABLE entry (n INTEGER PRIMARY KEY, id TEXT UNIQUE, content TEXT, created_at INTEGER)")
        self._db.execute("CREATE INDEX entry_time ON entry (created_at, n)")
        self._db.execute("CREATE VIRTUAL TABLE words USING fts5 (body, tokenize = 'porter unicode61')")

    def put(self, text: str) -> str:
        return self.put_many([text])[0]

    def put_many(self, texts: list[str]) -> list[str]:
        ids = [uuid.uuid4().hex for _ in texts]
        now = time.time_ns() // 1_000_000
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            for entry_id, text in zip(ids, texts, strict=True):
                self._db.execute("INSERT INTO entry (id, content, created_at) VALUES (?, ?, ?)", (entry_id, text, now))
                row = self._db.last_insert_rowid()
                self._db.execute("INSERT INTO words (rowid, body) VALUES (?, ?)", (row, text))
            self._db.execute("COMMIT")
        return ids

    def get(self, entry_id: str) -> str:
        with self._lock:
            return str(self._db.execute("SELECT content FROM entry WHERE id = ?", (entry_id,)).get)

    def newest(self, count: int) -> int:
        sql = "SELECT id, content, created_at FROM entry ORDER BY created_at DESC, n DESC LIMIT ?"
        with self._lock:
            return len(self._db.execute(sql, (count,)).fetchall())

    def search(self, query: str) -> list[str]:
        asked = " OR ".join(f'"{word}"' for word in _WORD.findall(query))
        sql = """SELECT e.id, e.content FROM words AS w JOIN entry AS e ON e.n = w.rowid
                 WHERE words MATCH ? ORDER BY rank LIMIT 10"""
        with self._lock:
            return [content for _, content in self._db.execute(sql, (asked,))]

    def close(self) -> None:
        self._db.close()


if __name__ == "__main__":
    serve(Floor, {"python": platform.python_version(), "apsw": apsw.apsw_version()})
