"""The naive host: one table, full-text search, and for a summary the texts one after another, cut at a length."""

from __future__ import annotations

import platform
import uuid
from importlib.metadata import version
from pathlib import Path

from psycopg_pool import ConnectionPool

from bench.peers.postgres_database import make_database
from bench.peers.protocol import serve


class Floor:
    def __init__(self, folder: Path) -> None:
        self._pool = ConnectionPool(make_database(folder), max_size=16, kwargs={"autocommit": True}, open=True)
        with self._pool.connection() as connection:
            connection.execute("CREATE TABLE note (n bigserial PRIMARY KEY, id text UNIQUE, text text, words tsvector)")
            connection.execute("CREATE INDEX note_words ON note USING gin (words)")

    def put(self, text: str) -> str:
        return self.put_many([text])[0]

    def put_many(self, texts: list[str]) -> list[str]:
        keys = [uuid.uuid4().hex for _ in texts]
        insert = "INSERT INTO note (id, text, words) VALUES (%s, %s, to_tsvector('english', %s))"
        rows = [(key, text, text) for key, text in zip(keys, texts, strict=True)]
        with self._pool.connection() as connection, connection.transaction(), connection.cursor() as cursor:
            cursor.executemany(insert, rows)
        return keys

    def get(self, entry_id: str) -> str:
        with self._pool.connection() as connection:
            return str(connection.execute("SELECT text FROM note WHERE id = %s", (entry_id,)).fetchone()[0])

    def newest(self, count: int) -> int:
        with self._pool.connection() as connection:
            return len(connection.execute("SELECT text FROM note ORDER BY n DESC LIMIT %s", (count,)).fetchall())

    def search(self, query: str) -> list[str]:
        sql = (
            "SELECT text FROM note, to_tsquery('english', %s) AS q WHERE words @@ q "
            "ORDER BY ts_rank(words, q) DESC LIMIT 10"
        )
        asked = " | ".join(word for word in "".join(c if c.isalnum() else " " for c in query).split())
        with self._pool.connection() as connection:
            return [text for (text,) in connection.execute(sql, (asked,))]

    def close(self) -> None:
        self._pool.close()


if __name__ == "__main__":
    serve(Floor, {"python": platform.python_version(), "psycopg": version("psycopg")})
