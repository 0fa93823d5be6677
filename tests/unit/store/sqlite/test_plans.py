"""Hot queries find their rows by an index: the time of a read does not grow with what it does not ask for."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from reverie.core.entry import Scope
from reverie.store.conformance import make_entry
from reverie.store.conformance.lab import put
from reverie.store.sqlite import SqliteStore
from reverie.store.sqlite.read import PLAIN_QUERIES, QUERIES

_AGAIN = "recall_again (tenant=? AND ref=? AND seq>?)"
FOUND_BY = {
    "get": ["entry_id (tenant=? AND ref=? AND id=?)"],
    "get_as_of": ["entry_id (tenant=? AND ref=? AND id=?)"],
    "get_any": ["entry_id (tenant=? AND ref=? AND id=?)"],
    "id_taken": ["entry_id (tenant=? AND ref=? AND id=?)"],
    "scan_newest": ["entry_live (tenant=? AND ref=? AND created_at<?)"],
    "scan_oldest": ["entry_live (tenant=? AND ref=? AND created_at>?)"],
    "scan_tag": ["PRIMARY KEY (tenant=? AND ref=? AND tag=?)", "INTEGER PRIMARY KEY (rowid=?)"],
    "scan_subject": ["entry_subject (tenant=? AND subject=? AND rowid>?)"],
    "scan_expired": ["entry_expiry (tenant=? AND expires_at<?)"],
    "cold_rows": ["recall_cold (tenant=? AND ref=? AND seq>?)"],
    "cold_positions": ["recall_cold (tenant=? AND ref=?)"],
    "cold_returned": [_AGAIN],
    "named": ["event_type (type=? AND n>? AND n<?)"],
    "not_cold": ["entry_id (tenant=? AND ref=? AND id=?)", "SEARCH r USING INTEGER PRIMARY KEY (rowid=?)"],
    "scan_cold": ["entry_cold (tenant=? AND state=? AND gone_at<?)"],
    "pick": ["INTEGER PRIMARY KEY (rowid=?)"],
    "pick_briefs": ["INTEGER PRIMARY KEY (rowid=?)"],
    "foremost": ["INTEGER PRIMARY KEY (rowid=?)"],
    "passing_session": ["entry_session (tenant=? AND ref=? AND session=?)"],
    "passing_pinned": ["entry_pinned (tenant=? AND ref=?)"],
    "passing_kinds": ["entry_facets (tenant=? AND ref=? AND kind=?)"],
    "passing_actor": ["entry_facets (tenant=? AND ref=? AND kind=? AND actor=?)"],
    "passing": ["entry_live (tenant=? AND ref=? AND created_at>? AND created_at<?)"],
    "passing_subject": ["entry_subject (tenant=? AND subject=?)"],
    "passing_tags": ["PRIMARY KEY (tenant=? AND ref=? AND tag=?)", "INTEGER PRIMARY KEY (rowid=?)"],
    "before": [
        "entry_live (tenant=? AND ref=? AND created_at=? AND n<?)",
        "entry_live (tenant=? AND ref=? AND created_at<?)",
    ],
    "after": [
        "entry_live (tenant=? AND ref=? AND created_at=? AND n>?)",
        "entry_live (tenant=? AND ref=? AND created_at>?)",
    ],
    "index_rows": ["entry_live (tenant=? AND ref=?)", "SEARCH r USING INTEGER PRIMARY KEY (rowid=?)", _AGAIN],
    "index_new": ["INTEGER PRIMARY KEY (rowid>? AND rowid<?)", _AGAIN],
    "index_gone": ["entry_gone (tenant=? AND gone_seq>?)"],
    "links_from": ["PRIMARY KEY (tenant=? AND ref=? AND from_id=?)"],
    "links_to": ["link_to (tenant=? AND ref=? AND to_id=?)"],
    "read_log": ["INTEGER PRIMARY KEY (rowid>? AND rowid<?)"],
    "read_run": ["event_run (<expr>=? AND rowid>? AND rowid<?)"],
    "load": ["(tenant=? AND space=? AND key=?"],
    "documents": ["(tenant=? AND space=? AND key>? AND key<?)"],
    "about": ["PRIMARY KEY (tenant=? AND who=?)", "SEARCH e USING INTEGER PRIMARY KEY (rowid=?)"],
    "answer": ["PRIMARY KEY (tenant=? AND key=?)"],
    "tenant": ["(name=?)"],
    "tenant_to_write": ["(name=?)", "SEARCH e USING INTEGER PRIMARY KEY (rowid"],
    "key": ["PRIMARY KEY (id=?)"],
}
SMALL = {"tenants", "keys", "refs"}
"""Lists of a few names: reading all of it is what they are for."""
NOT_TABLES = re.compile(r"SCAN (?:p|k|wanted|tagged|json_each|CONSTANT ROW|\(subquery-\d+\))\b")


@pytest.fixture
def db(tmp_path: Path) -> Iterator[apsw.Connection]:
    store = SqliteStore(tmp_path / "plans.db")
    store.write(Scope("acme", "notes"), lambda tx: put(tx, make_entry(id="a", ref="notes")))
    store.close()
    connection = apsw.Connection(str(tmp_path / "plans.db"))
    yield connection
    connection.close()


def plan(db: apsw.Connection, sql: str) -> list[str]:
    bindings: Any = defaultdict(lambda: None)
    if not re.search(r":[a-z]", sql):
        numbered = [int(number) for number in re.findall(r"\?(\d)", sql)]
        bindings = [None] * (max(numbered) if numbered else sql.count("?"))
    return [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", bindings).fetchall()]


def reading(queries: dict[str, str]) -> dict[str, str]:
    without_comments = {name: re.sub(r"^--.*\n", "", sql, flags=re.M).strip() for name, sql in queries.items()}
    return {name: sql for name, sql in without_comments.items() if sql.startswith("SELECT")}


@pytest.mark.parametrize("queries", [QUERIES, PLAIN_QUERIES], ids=["filter", "readable"])
@pytest.mark.parametrize("name", sorted(FOUND_BY))
def test_a_hot_query_uses_its_index(db: apsw.Connection, queries: dict[str, str], name: str) -> None:
    steps = plan(db, queries[name])
    for wanted in FOUND_BY[name]:
        assert any(wanted in step for step in steps), steps


@pytest.mark.parametrize("queries", [QUERIES, PLAIN_QUERIES], ids=["filter", "readable"])
def test_no_query_reads_a_whole_table(db: apsw.Connection, queries: dict[str, str]) -> None:
    for name, sql in reading(queries).items():
        if name not in SMALL:
            scans = [step for step in plan(db, sql) if step.startswith("SCAN") and not NOT_TABLES.match(step)]
            assert not scans, (name, scans)


def test_a_tag_is_looked_up_by_entry_and_not_the_other_way_round(db: apsw.Connection) -> None:
    steps = [step for step in plan(db, QUERIES["scan_newest"]) if " tag " in step]
    assert steps == ["SEARCH tag USING PRIMARY KEY (tenant=? AND ref=? AND tag=? AND n=?)"] * 2
