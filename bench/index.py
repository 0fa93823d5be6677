"""Why words and vectors are searched in memory: the same index in SQLite's FTS5, in pgvector, and as Reverie holds it.

    python -m bench index            10,000 and 100,000 entries
    python -m bench index --quick    10,000 entries

Words: the sixty best of the bench's questions by BM25, the same terms in each. Vectors: the sixty nearest, exact in all.
A commit: one row in one durable transaction, with and without a row of FTS5 beside it. Cold: what the first question of
a process pays, reading every row of the memory.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.peers.corpus import memories, questions

LIMIT = 60
KEY = b"k" * 32


def measure(sizes: Sequence[int]) -> dict[str, Any]:
    """Milliseconds by size and way of indexing."""
    from tests.postgres import start_server

    from reverie.models.static import StaticEmbedder
    from reverie.recall.lexical import query_terms, terms

    embedder = StaticEmbedder()
    asked = questions(120, seed=5)
    words = [query_terms(question) for question in asked]
    vectors = embedder.embed(asked)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="reverie-bench-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        server = start_server(Path(folder))
        for size in sizes:
            texts = memories(size, seed=14)
            entries = [terms(text) for text in texts]
            dense = embedder.embed(texts)
            found[str(size)] = {
                **_fts5(entries, words),
                **_held(entries, dense, words, vectors),
                **_pgvector(server, dense, vectors),
            }
        found["commit"] = _commits(Path(folder))
    return found


def _times(ask: Callable[[Any], object], queries: Sequence[Any]) -> float:
    """The median, in milliseconds, after a few to warm up."""
    for query in queries[:20]:
        ask(query)
    took = []
    for query in queries[20:]:
        began = time.perf_counter()
        ask(query)
        took.append(time.perf_counter() - began)
    return statistics.median(took) * 1000


def _fts5(entries: list[list[str]], words: list[list[str]]) -> dict[str, float]:
    import apsw

    db = apsw.Connection(":memory:")
    db.execute("CREATE VIRTUAL TABLE f USING fts5 (body, tokenize = \"unicode61 remove_diacritics 0 tokenchars '_'\")")
    with db:
        db.executemany(
            "INSERT INTO f (rowid, body) VALUES (?, ?)", [(n, " ".join(t)) for n, t in enumerate(entries, 1)]
        )
    sql = f"SELECT rowid, rank FROM f WHERE f MATCH ? ORDER BY rank LIMIT {LIMIT}"

    def ask(query: list[str]) -> object:
        return db.execute(sql, (" OR ".join(f'"{term}"' for term in query),)).fetchall()

    return {"words, FTS5": _times(ask, words)}


def _held(
    entries: list[list[str]], dense: list[bytes], words: list[list[str]], vectors: list[bytes]
) -> dict[str, float]:
    from reverie.store.vectors import Vectors
    from reverie.store.words import Words, ask, pack

    packed = [(n, pack(terms, KEY)) for n, terms in enumerate(entries, 1)]
    cold = []
    for _ in range(3):
        began = time.perf_counter()
        index = Words()
        index.update(packed)
        near = Vectors(len(dense[0]))
        near.update(list(enumerate(dense, 1)))
        cold.append((time.perf_counter() - began) * 1000)
    return {
        "words, held": _times(lambda query: index.best(ask(query, KEY), LIMIT), words),
        "vectors, held": _times(lambda vector: near.best(vector, LIMIT), vectors),
        "cold, held (rows read already)": statistics.median(cold),
    }


def _pgvector(server: Any, dense: list[bytes], vectors: list[bytes]) -> dict[str, float]:
    import numpy as np
    import psycopg

    def text(vector: bytes) -> str:
        return str(np.frombuffer(vector, dtype=np.int8).tolist())

    name = str(psycopg.conninfo.conninfo_to_dict(server.make_database())["dbname"])
    with psycopg.connect(server.url(name, "postgres"), autocommit=True) as db:
        db.execute("CREATE EXTENSION IF NOT EXISTS vector")
        db.execute("CREATE TABLE v (n bigint PRIMARY KEY, e halfvec(256))")
        with db.cursor().copy("COPY v FROM STDIN") as copy:
            for n, vector in enumerate(dense, 1):
                copy.write_row((n, text(vector)))
        db.execute("VACUUM ANALYZE v")
        sql = f"SELECT n FROM v ORDER BY e <#> %s::halfvec LIMIT {LIMIT}"
        return {"vectors, pgvector exact": _times(lambda vector: db.execute(sql, (text(vector),)).fetchall(), vectors)}


def _commits(folder: Path) -> dict[str, float]:
    import apsw

    texts = memories(1200, seed=3)
    took: dict[str, float] = {}
    for name in ("one row", "one row and one of FTS5"):
        db = apsw.Connection(str(folder / f"{name}.db"))
        db.execute("PRAGMA journal_mode = WAL").fetchall()
        db.execute("PRAGMA synchronous = FULL")
        db.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, body TEXT); CREATE VIRTUAL TABLE f USING fts5 (body)")
        times = []
        for n, text in enumerate(texts, 1):
            began = time.perf_counter()
            db.execute("BEGIN IMMEDIATE")
            db.execute("INSERT INTO t VALUES (?, ?)", (n, text))
            if name != "one row":
                db.execute("INSERT INTO f (rowid, body) VALUES (?, ?)", (n, text))
            db.execute("COMMIT")
            times.append(time.perf_counter() - began)
        took[name] = statistics.median(times) * 1000
    return took


def table(report: dict[str, Any]) -> str:
    """The figures as Markdown, in milliseconds."""
    sizes = [size for size in report if size != "commit"]
    lines = ["| ms, median | " + " | ".join(f"{int(size):,} entries" for size in sizes) + " |"]
    lines.append("|---|" + "---:|" * len(sizes))
    for name in report[sizes[0]]:
        lines.append(f"| {name} | " + " | ".join(f"{report[size][name]:.2f}" for size in sizes) + " |")
    commits = ", ".join(f"{name} {took:.2f} ms" for name, took in report["commit"].items())
    return "\n".join([*lines, "", f"A durable commit: {commits}."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10,000 entries only")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    given = parser.parse_args()
    report = measure((10_000,) if given.quick else (10_000, 100_000))
    print(json.dumps(report, indent=1) if given.json else table(report))


if __name__ == "__main__":
    main()
