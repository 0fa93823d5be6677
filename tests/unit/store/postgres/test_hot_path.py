"""No query of the store crosses tenants: each names the tenant in every table of tenants' rows it touches.

So tables can be partitioned by tenant, or distributed by it, and every query goes to one partition.
"""

from __future__ import annotations

import re

import pytest

from reverie.store.postgres.rows import QUERIES

OWN = ("entry", "absence", "tag", "link", "about", "event", "recall", "document", "answer", "lease")
NAMED = re.compile(rf"reverie\.({'|'.join(OWN)})\b")
TOUCHING = sorted(name for name, sql in QUERIES.items() if NAMED.search(sql))


@pytest.mark.parametrize("name", TOUCHING)
def test_a_query_names_its_tenant(name: str) -> None:
    sql = QUERIES[name]
    assert re.search(r"\btenant\b", sql), f"{name} would look at every partition"
    if "INSERT INTO" not in sql:
        assert re.search(r"tenant = (%|e\.tenant|led\.tenant|a\.tenant|u\.)", sql), name


def test_every_table_leads_with_the_tenant() -> None:
    from importlib.resources import files

    schema = files("reverie.store.postgres").joinpath("schema.sql").read_text("utf-8")
    for table in OWN:
        body = re.search(rf"CREATE TABLE reverie\.{table} \((.*?)\n\)", schema, re.S)
        assert body is not None, table
        assert re.search(r"PRIMARY KEY \(tenant\b", body[1]), table
