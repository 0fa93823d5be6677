"""Hot queries find their rows by an index that begins with the tenant, under row security too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from tests.postgres import PostgresServer

from reverie.core.entry import Scope
from reverie.store.conformance import make_entry
from reverie.store.conformance.lab import put
from reverie.store.postgres import PostgresStore
from reverie.store.postgres.rows import SQL, statement

FOUND_BY = {
    "get": "entry_id",
    "get_as_of": "entry_id",
    "scan_newest": "entry_live",
    "scan_oldest": "entry_live",
    "scan_tag": "tag_pkey",
    "scan_all": "entry_pkey",
    "scan_subject": "entry_subject",
    "scan_expired": "entry_expiry",
    "pick": "entry_pkey",
    "pick_briefs": "entry_pkey",
    "foremost": "entry_pkey",
    "foremost_rows": "entry_pkey",
    "beside": "entry_live",
    "passing_tags": "entry_pkey",
    "around": "entry_live",
    "read_log": "event_pkey",
    "read_run": "event_run",
    "load": "document_pkey",
    "documents": "document_pkey",
}
BY_POSITION: dict[str, tuple[str, Any]] = {
    "get_any": ("entry_id", (1, "r1", "e40")),
    "id_taken": ("entry_id", (1, "r1", "e40")),
    "cold_rows": ("recall_cold", {"tenant": 1, "ref": "r1", "since": 5990}),
    "cold_returned": ("recall_again", {"tenant": 1, "ref": "r1", "since": 5990}),
    "named": ("event_type", {"tenant": 1, "types": ["t4", "t5"], "since": 5990}),
    "not_cold": ("entry_id", {"tenant": 1, "ref": "r1", "ids": ["e40", "e41"]}),
    "scan_cold": ("entry_cold", (1, "dreamt", 1, False, 1)),
    "index_rows": ("recall_pkey", {"tenant": 1, "ref": "r1", "after": 5990, "since": 5990}),
    "index_fresh": ("recall_pkey", {"tenant": 1, "ref": "r1", "after": 5990, "since": 5990}),
    "index_scrubbed": ("entry_scrub", {"tenant": 1, "since": 5990, "ref": "r1"}),
    "index_gone": ("entry_gone", {"tenant": 1, "since": 5990, "ref": "r1"}),
    "drop_recall": ("recall_pkey", (1, "r1", 40)),
    "links_from": ("link_pkey", (1, "r1", ["e40"])),
    "links_to": ("link_to", (1, "r1", ["e40"])),
    "answer": ("answer_pkey", (1, "k40", 1)),
    "event_hash": ("event_pkey", (1, 1)),
    "key": ("api_key_pkey", ("k40",)),
    "awake": ("tenant_wake", (1,)),
    "trim_answers": ("answer_until", (1, 1)),
    "trim_document": ("document_pkey", (1, "s1", "k40", 1)),
}
BOUND: dict[str, Any] = {
    "tenant": 1,
    "ref": "r1",
    "id": "e40",
    "gone": False,
    "now": 1,
    "as_of": 1,
    "at": 2**60,
    "n": 1,
    "limit": 10,
    "tag": "t4",
    "led": ["t4", "t5"],
    "least": 1,
    "subject": "s3",
    "positions": "{40,41}",
    "after": 0,
    "types": None,
    "run": "r",
    "skip": 0,
    "steps": 2,
    "ahead": 30,
    "credentials": ["key:"],
    "space": "s1",
    "key": "k40",
    "version": None,
    "prefix": "",
    "beyond": "x",
    "name": "acme",
}


# Enough rows that it matters which index is used; one entry in ten has left, expires or has a subject.
FILL = """
INSERT INTO reverie.entry (tenant, n, ref, id, kind, content, tags, subject, attributes, actor, door, trust, state,
  created_at, expires_at, pinned, archived, held, version, born_seq, epoch, gone_seq, gone_at, session, scrub_seq)
SELECT 1, g, 'r' || g % 3, 'e' || g, CASE WHEN g % 100 = 3 THEN 'rare' ELSE 'note' END, 'text', '[]',
  CASE WHEN g % 10 = 0 THEN 's' || g % 7 END, '{}', CASE WHEN g % 100 = 4 THEN 'eve' ELSE 'ada' END,
  'rest', 10, 'active', g, CASE WHEN g % 10 = 1 THEN g END, g % 100 = 5, false, false, 1, g, 1,
  CASE WHEN g % 10 = 2 THEN g END, CASE WHEN g % 10 = 2 THEN g END, CASE WHEN g % 20 = 6 THEN 's' || g % 100 END,
  CASE WHEN g % 100 = 2 THEN g END
FROM generate_series(10, 6000) AS g;
INSERT INTO reverie.recall SELECT 1, 'r' || g % 3, g, g, g % 100 = 0, 'w', 'm', 'x' FROM generate_series(10, 6000) AS g;
INSERT INTO reverie.tag SELECT 1, 'r' || g % 3, 't' || g % 50, g FROM generate_series(10, 6000) AS g;
INSERT INTO reverie.link (tenant, ref, from_id, type, to_id, n)
  SELECT 1, 'r' || g % 3, 'e' || g, 'supports', 'e' || g * 7, g FROM generate_series(10, 6000) AS g;
INSERT INTO reverie.answer SELECT 1, 'k' || g, 'd', 'a', g FROM generate_series(10, 6000) AS g;
INSERT INTO reverie.document SELECT 1, 's' || g % 3, 'k' || g, 1, 'x', '{}', 1, 1 FROM generate_series(10, 6000) AS g;
INSERT INTO reverie.event (tenant, seq, epoch, at, type, operation, actor, data, prev_hash, hash, run)
  SELECT 1, g, 1, 1, 't' || g % 9, 'x', 'x', '{}', 'x', 'x', CASE WHEN g % 9 = 0 THEN 'r' || g END
  FROM generate_series(10, 6000) AS g;
INSERT INTO reverie.api_key SELECT 'k' || g, 't', 'x', 'x', '[]', 1, '[]', 1 FROM generate_series(10, 6000) AS g;
VACUUM ANALYZE
"""


@pytest.fixture(scope="module")
def planner(postgres: PostgresServer) -> Iterator[psycopg.Connection]:
    """A connection inside a tenant, with enough rows to choose between plans."""
    url = postgres.make_database()
    store = PostgresStore(url)
    store.write(Scope("acme", "notes"), lambda tx: put(tx, make_entry(id="a")))
    store.close()
    name = str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])
    for part in FILL.split(";\n"):
        postgres.execute(part, database=name)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT set_config('reverie.name', 'acme', false), set_config('reverie.tenant', '1', false)")
        connection.execute("SET enable_seqscan = off")
        connection.execute("SET enable_bitmapscan = off")
        yield connection
    postgres.drop_database(url)


def plan(connection: psycopg.Connection, sql: bytes, bound: Any) -> str:
    return "\n".join(row[0] for row in connection.execute(b"EXPLAIN " + sql, bound).fetchall())


@pytest.mark.parametrize("name", sorted(FOUND_BY))
def test_a_hot_query_uses_its_index(planner: psycopg.Connection, name: str) -> None:
    bound = BOUND | ({"after": "", "dropped": False} if name == "documents" else {})
    found = plan(planner, statement(name, ("readable",)), bound)
    assert re.search(rf"using {FOUND_BY[name]} .*\n(?:.*\n)?\s*Index Cond: .*tenant = ", found), found
    assert "Seq Scan" not in found, found


@pytest.mark.parametrize("name", sorted(BY_POSITION))
def test_a_query_bound_by_position_uses_its_index(planner: psycopg.Connection, name: str) -> None:
    index, bound = BY_POSITION[name]
    found = plan(planner, SQL[name], bound)
    assert f"using {index} " in found, found
    assert "Seq Scan" not in found, found


FILTERS: dict[str, tuple[str, Any]] = {
    "since": ("entry_live", 5990),
    "subject": ("entry_subject", "s3"),
    "kinds": ("entry_kind", ["rare"]),
    "actor": ("entry_actor", "eve"),
    "session": ("entry_session", "s6"),
    "pinned": ("entry_pinned", True),
}


@pytest.mark.parametrize("part", FILTERS)
def test_a_filter_that_leaves_few_is_led_by_its_index(planner: psycopg.Connection, part: str) -> None:
    index, value = FILTERS[part]
    found = plan(planner, statement("passing", ("readable", part)), BOUND | {part: value})
    assert f"using {index} " in found, found


def test_what_was_indexed_again_is_found_by_its_own_index(planner: psycopg.Connection) -> None:
    assert "using recall_again " in plan(planner, SQL["index_rows"], BY_POSITION["index_rows"][1])
