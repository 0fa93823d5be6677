"""Why words and vectors are searched in memory: the same index in SQLite's FTS5, in pgvector, and as Reverie holds it.

    python -m bench index            10,000 and 100,000 entries
    python -m bench index --quick    10,000 entries

Words: the sixty best entries for each of the bench's questions by BM25, with the same terms in each index. Vectors: the
sixty nearest, exact in all. A commit: one row in one durable transaction, with and without a row of FTS5. Cold: the first
question of a process, which reads every row of the memory. Filters: whole searches of Reverie whose filter leaves many,
few or no entries, and FTS5 joined with a table of tags, which searches words alone; each question goes to all in turn.
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
HITS = 10
KEY = b"k" * 32
LEFT = ("all", "half", "1 %", "10 entries", "nothing")
"""What the filters leave; also the tags they ask for."""


def measure(sizes: Sequence[int]) -> dict[str, Any]:
    """Milliseconds by size and way of indexing."""
    from tests.postgres import start_server

    from reverie.providers.static import StaticEmbedder
    from reverie.search.analysis import query_terms, terms

    embedder = StaticEmbedder()
    asked = questions(120, seed=5)
    words = [query_terms(question) for question in asked]
    vectors = embedder.embed(asked)
    found: dict[str, Any] = {"filters": {}}
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
            found["filters"][str(size)] = _filters(server, Path(folder) / str(size), texts, asked)
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
    from reverie.index import words as scoring
    from reverie.index.parts import Part
    from reverie.index.postings import ask, pack
    from reverie.index.segment import build
    from reverie.index.vectors import Meaning

    rows = [(n, pack(terms, KEY), dense[n - 1], "static") for n, terms in enumerate(entries, 1)]
    cold = []
    for _ in range(3):
        began = time.perf_counter()
        parts = [Part(build(rows))]
        cold.append((time.perf_counter() - began) * 1000)
    return {
        "words, held": _times(lambda query: scoring.best(parts, ask(query, KEY), LIMIT), words),
        "vectors, held": _times(lambda vector: Meaning(parts, ("static", vector)).best(LIMIT), vectors),
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


def _filters(server: Any, folder: Path, texts: list[str], asked: list[str]) -> dict[str, dict[str, float]]:
    """Median milliseconds of a search by what its filter leaves, then by who is asked."""
    import reverie
    from reverie.core.query import Filter

    tags = [_tags(n, len(texts)) for n in range(len(texts))]
    wheres = {"no filter": (None, Filter())}
    wheres |= {f"a tag that leaves {left}": (left, Filter(tags=(left,))) for left in LEFT}
    wheres |= {f"a kind that leaves {left}": (left, Filter(kinds=(left,))) for left in LEFT[3:]}
    floor = _floor_with_tags(texts, tags)
    with reverie.open(folder / "filters") as sqlite, reverie.open(server.make_database()) as postgres:
        memories = {"SQLite": sqlite.ref("notes"), "PostgreSQL": postgres.ref("notes")}
        for memory in memories.values():
            for at in range(0, len(texts), 1000):
                memory.put_many([
                    {"content": text, "tags": own, "kind": own[-1] if own[-1] in LEFT[3:] else "note"}
                    for text, own in zip(texts[at : at + 1000], tags[at : at + 1000], strict=True)
                ])  # fmt: skip
        return {
            name: _in_turn(
                {
                    "FTS5 and a join": lambda query, left=left: floor(query, left),
                    **{
                        kind: lambda query, memory=memory, where=where: memory.search(query, where=where, limit=HITS)
                        for kind, memory in memories.items()
                    },
                },
                asked[:60],
            )
            for name, (left, where) in wheres.items()
        }


def _tags(n: int, size: int) -> list[str]:
    """Of the entry at a place: each leaves as much as it says, spread evenly."""
    every = {"all": 1, "half": 2, "1 %": 100, "10 entries": size // 10}
    return [left for left, step in every.items() if n % step == step // 3]


def _floor_with_tags(texts: list[str], tags: list[list[str]]) -> Callable[[str, str | None], object]:
    """A search by FTS5 that joins a table of tags."""
    import apsw

    from reverie.search.analysis import query_terms, terms

    db = apsw.Connection(":memory:")
    db.execute("CREATE TABLE e (n INTEGER PRIMARY KEY, body TEXT)")
    db.execute("CREATE TABLE tag (tag TEXT, n INTEGER, PRIMARY KEY (tag, n)) WITHOUT ROWID")
    db.execute("CREATE VIRTUAL TABLE f USING fts5 (body, tokenize = \"unicode61 remove_diacritics 0 tokenchars '_'\")")
    with db:
        db.executemany("INSERT INTO e VALUES (?, ?)", enumerate(texts, 1))
        db.executemany("INSERT INTO f (rowid, body) VALUES (?, ?)", [
            (n, " ".join(terms(text))) for n, text in enumerate(texts, 1)
        ])  # fmt: skip
        db.executemany("INSERT INTO tag VALUES (?, ?)", [(tag, n) for n, own in enumerate(tags, 1) for tag in own])
    sql = f"""SELECT e.n, e.body FROM f JOIN e ON e.n = f.rowid WHERE f MATCH :asked
        AND (:tag IS NULL OR EXISTS (SELECT 1 FROM tag WHERE tag.tag = :tag AND tag.n = f.rowid))
        ORDER BY rank LIMIT {HITS}"""

    def ask(query: str, tag: str | None) -> object:
        asked = " OR ".join(f'"{term}"' for term in query_terms(query))
        return db.execute(sql, {"asked": asked, "tag": tag}).fetchall()

    return ask


def _in_turn(askers: dict[str, Callable[[str], object]], queries: Sequence[str]) -> dict[str, float]:
    """The median of each, in milliseconds, all asked the same before the next."""
    took: dict[str, list[float]] = {name: [] for name in askers}
    for query in queries:
        for name, ask in askers.items():
            began = time.perf_counter()
            ask(query)
            took[name].append(time.perf_counter() - began)
    return {name: statistics.median(times[5:]) * 1000 for name, times in took.items()}


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
    sizes = [size for size in report if size not in ("commit", "filters")]
    lines = ["| ms, median | " + " | ".join(f"{int(size):,} entries" for size in sizes) + " |"]
    lines.append("|---|" + "---:|" * len(sizes))
    for name in report[sizes[0]]:
        lines.append(f"| {name} | " + " | ".join(f"{report[size][name]:.2f}" for size in sizes) + " |")
    commits = ", ".join(f"{name} {took:.2f} ms" for name, took in report["commit"].items())
    lines += ["", f"A durable commit: {commits}.", ""]
    for size, rows in report["filters"].items():
        who = list(next(iter(rows.values())))
        lines += [
            f"| search p50 in ms, {int(size):,} entries | " + " | ".join(who) + " |",
            "|---|" + "---:|" * len(who),
        ]
        for name, took in rows.items():
            floor, *others = took.values()
            cells = [f"{floor:.2f}", *(f"{one:.2f} ({floor / one:.2f})" for one in others)]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join([*lines, "In brackets: how many times faster than FTS5 and a join."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10,000 entries only")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    given = parser.parse_args()
    report = measure((10_000,) if given.quick else (10_000, 100_000))
    print(json.dumps(report, indent=1) if given.json else table(report))


if __name__ == "__main__":
    main()
